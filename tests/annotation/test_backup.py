"""Backup while people work, restore into either database, and what is refused."""

from __future__ import annotations

import json
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from memantics.annotation import queries
from memantics.annotation.backup import backup, restore
from memantics.annotation.database import Database, newest_schema
from memantics.annotation.faults import DatabaseFailed
from memantics.annotation.records import Actor
from memantics.annotation.schema import metadata
from memantics.annotation.service import AnnotationService, open_service
from memantics.core.errors import DataError, InputError, StoreError
from tests.annotation.team import add_people, open_project, plain_items, quick_hasher, work_through

NO = {"harmful": "no"}


def test_a_backup_restores_into_either_database(
    service: AnnotationService, empty_url: str, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(5))
    ann, bob = add_people(service, lead, project.id, ["ann", "bob"], ["annotator"])
    work_through(service, ann, project.id, lambda _: NO)
    manifest = backup(service, tmp_path / "b.zip")
    assert (manifest.tables["items"], manifest.tables["revisions"], manifest.images) == (5, 5, 5)
    restore(tmp_path / "b.zip", empty_url, tmp_path / "other media")
    copy = open_service(empty_url, tmp_path / "other media", hasher=quick_hasher())
    try:
        before = service.exchange.export(lead, project.id, "raw").data
        assert copy.exchange.export(lead, project.id, "raw").data == before
        image = copy.lead.items(lead, project.id)[0].images[0]
        assert copy.exchange.media(lead, image).path.read_bytes()
        assert work_through(copy, bob, project.id, lambda _: NO) == [1, 2, 3, 4, 5]
        add_people(copy, lead, project.id, ["cyd"], ["annotator"])
    finally:
        copy.close()
    with pytest.raises(StoreError, match="not empty"):
        restore(tmp_path / "b.zip", empty_url, tmp_path / "other media")


def test_a_backup_under_load_is_consistent(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(40))
    people = add_people(service, lead, project.id, ["a", "b"], ["annotator"])

    def work(person: Actor) -> None:
        work_through(service, person, project.id, lambda _: NO)

    threads = [threading.Thread(target=work, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    archives = [tmp_path / f"{number}.zip" for number in range(3)]
    for archive in archives:
        backup(service, archive)
    for thread in threads:
        thread.join()
    for archive in archives:
        with zipfile.ZipFile(archive) as packed:
            assignments = list(rows_of(packed, "assignments"))
            revisions = list(rows_of(packed, "revisions"))
        assert len(revisions) == sum(row["state"] == "done" for row in assignments)


def rows_of(packed: zipfile.ZipFile, table: str) -> Iterator[dict[str, object]]:
    return (json.loads(line) for line in packed.read(f"tables/{table}.jsonl").splitlines())


def test_damaged_and_foreign_archives_are_refused(
    service: AnnotationService, tmp_path: Path
) -> None:
    open_project(service, tmp_path / "q", "validate", plain_items(1))
    good = tmp_path / "good.zip"
    backup(service, good)
    (tmp_path / "text.zip").write_text("no archive")
    cases = {"text.zip": "cannot be read"}
    with zipfile.ZipFile(good) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    image = next(name for name in parts if name.startswith("media/"))
    changed = {
        "empty.zip": ({}, "manifest.json is missing"),
        "image.zip": (parts | {image: b"other bytes"}, "is damaged"),
        "gone.zip": ({k: v for k, v in parts.items() if k != image}, "is incomplete"),
        "rows.zip": (parts | {"tables/items.jsonl": b""}, "differs from manifest.json"),
        "columns.zip": (parts | {"tables/users.jsonl": b'{"id": 1}\n'}, "columns do not match"),
        "manifest.zip": (parts | {"manifest.json": b"{"}, "cannot be read"),
        "line.zip": (parts | {"tables/users.jsonl": b"{\n"}, "cannot be read"),
        "kind.zip": (
            parts | {"manifest.json": parts["manifest.json"].replace(b"annotation", b"other")},
            "'kind'",
        ),
        "null.zip": (
            parts | {"tables/users.jsonl": nameless(parts["tables/users.jsonl"])},
            "inconsistent rows",
        ),
    }
    for name, (content, message) in changed.items():
        with zipfile.ZipFile(tmp_path / name, "w") as packed:
            for part, data in content.items():
                packed.writestr(part, data)
        cases[name] = message
    raw = bytearray(good.read_bytes())
    start = raw.find(b"tables/users.jsonl") + 40
    raw[start : start + 20] = b"\xff" * 20
    (tmp_path / "packed.zip").write_bytes(raw)
    cases["packed.zip"] = "cannot be read"
    for number, (name, message) in enumerate(cases.items()):
        with pytest.raises(DataError, match=message):
            restore(tmp_path / name, str(tmp_path / f"{number}.db"), tmp_path / "m")
        emptied = open_service(tmp_path / f"{number}.db", tmp_path / "m", hasher=quick_hasher())
        assert emptied.accounts.count() == 0
        emptied.close()


def nameless(rows: bytes) -> bytes:
    return json.dumps(json.loads(rows) | {"name": None}).encode() + b"\n"


def test_a_backup_is_for_its_owner_alone(service: AnnotationService, tmp_path: Path) -> None:
    """It holds the hashes of passwords, as the database does."""
    (tmp_path / "b.zip.partial").touch(0o644)
    backup(service, tmp_path / "b.zip")
    assert (tmp_path / "b.zip").stat().st_mode & 0o777 == 0o600


def test_migrations_and_tables_say_the_same(empty_url: str) -> None:
    database = Database(empty_url)
    database.migrate()
    database.migrate()
    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    assert database.schema_version() == newest_schema()
    database.close()


def test_a_database_of_the_first_schema_is_brought_up_to_date(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead, project = open_project(service, tmp_path / "q", "label-by-vote", plain_items(3))
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    work_through(service, ann, project.id, lambda _: NO)
    before = service.exchange.export(lead, project.id, "raw").data
    database = service.context.db
    with database.write() as connection:
        connection.execute(sa.text("DROP INDEX ix_assignments_held"))
        connection.execute(sa.text("DROP TABLE login_attempts"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0101'"))
    database.migrate()
    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    assert service.exchange.export(lead, project.id, "raw").data == before


def test_what_one_holds_is_found_without_going_through_what_one_did(
    service: AnnotationService,
) -> None:
    with service.context.db.read() as connection:
        asked = queries.HELD_ASSIGNMENTS.all(connection, {"user": 1, "project": 1})
        text, _ = queries.HELD_ASSIGNMENTS.text(connection.dialect)
        words = "EXPLAIN QUERY PLAN"
        if not service.context.db.sqlite:
            words = "EXPLAIN"  # of a table without rows, PostgreSQL would read all
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        values = {"user": 1, "project": 1}
        rows = connection.exec_driver_sql(f"{words} {text}", values).all()
    assert asked == []
    assert any("ix_assignments_held" in str(row) for row in rows), rows


def test_a_newer_schema_is_refused(database_url: str) -> None:
    database = Database(database_url)
    database.migrate()
    with database.write() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="which this version cannot read"):
        database.migrate()
    database.close()


@pytest.mark.parametrize("table", ["revisions", "audit"])
def test_history_cannot_be_rewritten(
    service: AnnotationService, tmp_path: Path, table: str
) -> None:
    lead, project = open_project(service, tmp_path / "q", "validate", plain_items(1))
    (ann,) = add_people(service, lead, project.id, ["ann"], ["annotator"])
    work_through(service, ann, project.id, lambda _: {"question": "yes", "answer": "no"})
    for statement in (f"DELETE FROM {table}", f"UPDATE {table} SET at = 0"):
        with (
            pytest.raises(DatabaseFailed, match="append-only"),
            service.context.db.write() as connection,
        ):
            connection.execute(sa.text(statement))


@pytest.mark.parametrize("url", ["", ":memory:", "mysql://x/y", "sqlite:///"])
def test_unusable_databases_are_named(url: str) -> None:
    with pytest.raises(InputError):
        Database(url)


def test_an_unreachable_server_is_one_line_without_its_password() -> None:
    database = Database("postgresql://me:sesame@127.0.0.1:9/none?connect_timeout=2")
    with pytest.raises(StoreError) as caught:
        database.migrate()
    assert "sesame" not in str(caught.value)
