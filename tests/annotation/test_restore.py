"""Backups from elsewhere: of the version before, of another program, or changed on the way."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memantics.annotation.backup import TABLES, restore
from memantics.annotation.schema import metadata
from memantics.annotation.service import open_service
from memantics.core.errors import DataError, MemanticsError, StoreError
from tests.annotation.team import PASSWORD, quick_hasher
from tests.commands import Shell
from tests.tolerances import holds

BEFORE = Path(__file__).parent / "before"
Parts = dict[str, bytes]


@pytest.fixture(scope="module")
def parts() -> Parts:
    """A backup that the version before wrote, by file."""
    with zipfile.ZipFile(BEFORE / "backup.zip") as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def pack(path: Path, parts: Parts) -> Path:
    with zipfile.ZipFile(path, "w") as packed:
        for name, data in parts.items():
            packed.writestr(name, data)
    return path


def changed(parts: Parts, table: str, **values: Any) -> Parts:
    """The backup with other values in the first row of a table."""
    name = f"tables/{table}.jsonl"
    first, *rest = parts[name].splitlines(keepends=True)
    return parts | {name: json.dumps(json.loads(first) | values).encode() + b"\n" + b"".join(rest)}


def test_a_database_and_a_backup_of_the_version_before_open(empty_url: str, tmp_path: Path) -> None:
    if empty_url.startswith("sqlite"):
        file = tmp_path / "empty.db"
        file.write_bytes(gzip.decompress((BEFORE / "annotate.db.gz").read_bytes()))
    else:
        restore(BEFORE / "backup.zip", empty_url, tmp_path / "media")
    service = open_service(empty_url, tmp_path / "media", hasher=quick_hasher())
    try:
        lead = service.accounts.log_in("lead", PASSWORD).actor
        (project,) = service.projects.mine(lead)
        raw = service.exchange.export(lead, project.id, "raw").data
        rows = zip(raw.splitlines(), (BEFORE / "raw.jsonl").read_bytes().splitlines(), strict=True)
        assert all(holds(json.loads(after), json.loads(before)) for after, before in rows)
        bob = service.accounts.log_in("bob", PASSWORD).actor
        task = service.work.next(bob, project.id)
        assert task is not None
        assert task.draft == {"harmful": "yes"}
        assert not service.work.submit(bob, task.assignment, {"harmful": "no"}, 0).again
    finally:
        service.close()


def misfits() -> Iterator[tuple[str, str, Any]]:
    """Values that a column cannot have, for every column of every table that has rows here."""
    for table in TABLES:
        for column in table.columns:
            if table.name in ("invitations", "skips"):
                continue
            yield table.name, str(column.name), {"an": "object"}
            yield table.name, str(column.name), 2**40 if "INT" in str(column.type) else [1]
            if not column.nullable:
                yield table.name, str(column.name), None
            if str(column.type) in ("TEXT", "BOOLEAN"):
                yield table.name, str(column.name), 7
    yield from (
        ("users", "preferences", "[]"),
        ("users", "name", "x" * 81),
        ("projects", "workflow", "name = 3"),
        ("projects", "settings", '{"lease_minutes": 0}'),
        ("assignments", "state", "gone"),
        ("assignments", "stage", 9),
        ("revisions", "stage", -1),
        ("items", "shown", '[{"label": 1}]'),
        ("media", "id", "../../../etc/passwd"),
        ("media", "size", -1),
        ("memberships", "user_id", 4711),
    )


@pytest.mark.slow
def test_a_backup_with_wrong_values_is_one_line_and_leaves_nothing(
    parts: Parts, database_url: str, tmp_path: Path
) -> None:
    """SQLite takes any type in any column: what is wrong has to be found before."""
    secret = json.loads(parts["tables/users.jsonl"].splitlines()[0])["password_hash"]
    cases = 0
    for table, column, value in misfits():
        if f"tables/{table}.jsonl" not in parts or not parts[f"tables/{table}.jsonl"]:
            continue
        bad = pack(tmp_path / "bad.zip", changed(parts, table, **{column: value}))
        if table == "users" and column == "password_hash" and value is None:
            continue
        with pytest.raises(DataError) as caught:
            restore(bad, database_url, tmp_path / "media")
        said = str(caught.value)
        assert "\n" not in said
        assert secret[-20:] not in said
        assert not [one for one in (tmp_path / "media").rglob("*") if one.is_file()]
        cases += 1
    assert cases > 150
    restore(pack(tmp_path / "good.zip", parts), database_url, tmp_path / "media")


@pytest.mark.parametrize("table", [table.name for table in TABLES])
def test_a_missing_table_is_named(
    parts: Parts, database_url: str, tmp_path: Path, table: str
) -> None:
    fewer = {name: data for name, data in parts.items() if name != f"tables/{table}.jsonl"}
    with pytest.raises(DataError, match=table):
        restore(pack(tmp_path / "bad.zip", fewer), database_url, tmp_path / "media")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": "0099"}, "has schema 0099"),
        ({"schema_version": 2}, "schema_version"),
        ({"tables": {"surprise": 1}}, "unknown tables: surprise"),
        ({"tables": []}, "tables"),
        ({"more": 1}, "unknown field 'more'"),
        ({"created": "today"}, "created"),
    ],
)
def test_a_foreign_manifest_is_refused(
    parts: Parts, database_url: str, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    manifest = json.dumps(json.loads(parts["manifest.json"]) | change).encode()
    bad = pack(tmp_path / "bad.zip", parts | {"manifest.json": manifest})
    with pytest.raises(MemanticsError, match=message):
        restore(bad, database_url, tmp_path / "media")


def test_images_of_others_in_the_same_folder_stay_as_they_are(
    parts: Parts, database_url: str, tmp_path: Path
) -> None:
    names = [name for name in parts if name.startswith("media/")]
    taken = tmp_path / names[-1]
    taken.parent.mkdir(parents=True)
    taken.write_bytes(b"somebody else's")
    with pytest.raises(StoreError, match="contains a different image"):
        restore(pack(tmp_path / "b.zip", parts), database_url, tmp_path / "media")
    assert [path.read_bytes() for path in taken.parent.iterdir()] == [b"somebody else's"]
    taken.write_bytes(parts[names[-1]])
    restore(tmp_path / "b.zip", database_url, tmp_path / "media")
    assert len(list(taken.parent.iterdir())) == len(names)


def test_the_command_says_one_line_without_a_hash(parts: Parts, shell: Shell) -> None:
    bad = pack(shell.folder / "bad.zip", changed(parts, "users", admin="yes"))
    said = shell.refused("annotate", "restore", bad, "--db", "new.db")
    assert "argon2" not in said
    assert "table users: admin: Input should be a valid boolean" in said


def test_every_table_is_in_a_backup_but_the_login_attempts() -> None:
    assert set(metadata.tables) - {table.name for table in TABLES} == {"login_attempts"}
