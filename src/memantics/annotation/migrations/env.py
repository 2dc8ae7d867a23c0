"""Alembic's way in: the caller hands over an open connection."""

from __future__ import annotations

from alembic import context

from memantics.annotation.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=False,  # the caller's transaction carries all of it, on both databases
)
context.run_migrations()
