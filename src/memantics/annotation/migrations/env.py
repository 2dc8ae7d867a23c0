"""Alembic environment: migrations run on a connection that the caller passes."""

from __future__ import annotations

from alembic import context

from memantics.annotation.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=False,  # all migrations run in the caller's transaction
)
context.run_migrations()
