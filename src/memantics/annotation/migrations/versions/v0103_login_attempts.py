"""Add the table of login attempts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0103"
down_revision = "0102"


def upgrade() -> None:
    """Add the table of login attempts; rows are deleted after 15 minutes."""
    op.create_table(
        "login_attempts",
        sa.Column("attempt", sa.String(32), primary_key=True),
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
    )
    op.create_index("ix_login_attempts_key", "login_attempts", ["key", "at"])
    op.create_index("ix_login_attempts_at", "login_attempts", ["at"])
