"""What a person holds is found without going through all that they ever answered."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0102"
down_revision = "0101"


def upgrade() -> None:
    """Add an index of held assignments alone: it stays as small as the number of people at work."""
    held = sa.text("state = 'leased'")
    op.create_index(
        "ix_assignments_held",
        "assignments",
        ["user_id", "project_id"],
        sqlite_where=held,
        postgresql_where=held,
    )
