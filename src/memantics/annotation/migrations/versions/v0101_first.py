"""First schema: the tables and indexes of ``v0101_first.sql``, in PostgreSQL syntax."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0101"
down_revision = None

_REFUSAL = "history is append-only"


def upgrade() -> None:
    """Create all tables, and the triggers that keep history append-only."""
    tables = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
    if op.get_bind().dialect.name == "sqlite":
        tables = tables.replace("SERIAL", "INTEGER").replace("DOUBLE PRECISION", "DOUBLE")
    for statement in tables.strip().split(";\n"):
        op.execute(statement)
    for table in ("revisions", "audit"):
        _forbid_changes(table)


def _forbid_changes(table: str) -> None:
    if op.get_bind().dialect.name == "sqlite":
        for event in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER keep_{table}_{event.lower()} BEFORE {event} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
            )
        return
    op.execute(
        "CREATE OR REPLACE FUNCTION memantics_refuse() RETURNS trigger AS $$ "
        f"BEGIN RAISE EXCEPTION '{_REFUSAL}'; END; $$ LANGUAGE plpgsql"
    )
    op.execute(
        f"CREATE TRIGGER keep_{table} BEFORE UPDATE OR DELETE ON {table} "
        "FOR EACH ROW EXECUTE FUNCTION memantics_refuse()"
    )
