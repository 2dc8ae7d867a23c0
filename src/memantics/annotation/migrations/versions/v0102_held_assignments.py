"""Add an index of leased assignments."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0102"
down_revision = "0101"


def upgrade() -> None:
    """Add a partial index of leased assignments; it is as small as the number of active people."""
    held = sa.text("state = 'leased'")
    op.create_index(
        "ix_assignments_held",
        "assignments",
        ["user_id", "project_id"],
        sqlite_where=held,
        postgresql_where=held,
    )
