"""Online backup into one ZIP file, and restore into an empty SQLite or PostgreSQL database.

The file contains ``manifest.json``, every table as JSON lines, and every image. It does not depend
on the database, so a project can move from SQLite to PostgreSQL by backup and restore.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
import struct
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Json, JsonValue, ValidationError, create_model
from pydantic import Field as Limit
from sqlalchemy.engine import Connection

from memantics.annotation import schema
from memantics.annotation.database import Database, allow_long, newest_schema
from memantics.annotation.faults import DatabaseFailed
from memantics.annotation.intake import ID
from memantics.annotation.labelstudio import DAMAGE
from memantics.annotation.project_settings import ProjectSettings
from memantics.annotation.records import AssignmentState, Preferences, TrainingState
from memantics.annotation.service import AnnotationService
from memantics.annotation.workflow import apply_settings, parse_workflow
from memantics.core.data import conform
from memantics.core.errors import DataError, StoreError, first_fault
from memantics.core.files import refuse_unwritable
from memantics.core.queue import Shown
from memantics.core.records import Closed

# Login attempts are deleted after minutes, so they are not backed up.
TABLES = [table for table in schema.metadata.sorted_tables if table is not schema.login_attempts]
# Schema revisions whose tables have the current columns.
_READABLE = ("0101", "0102", "0103")
_MANIFEST = "manifest.json"
_CHUNK = 1000
_ELSEWHERE = "choose another folder with --media"
_LARGEST_LINE = 64 * 1024 * 1024
_LARGEST_IMAGE = 64 * 1024 * 1024


class BackupManifest(Closed):
    """Content of ``manifest.json``: schema, database type, time, row counts and image count."""

    kind: Literal["memantics annotation backup"]
    schema_version: str
    database: str
    created: float
    tables: dict[str, int]
    images: int


def backup(service: AnnotationService, target: Path) -> BackupManifest:
    """Write a backup while the app runs; the file is replaced only when it is complete."""
    context = service.context
    partial = target.with_name(
        f"{target.name}.{secrets.token_hex(4)}.partial"
    )  # unique, since two processes may write the same backup
    try:
        with refuse_unwritable(f"backup {target}", hint="choose another file"):
            target.parent.mkdir(parents=True, exist_ok=True)
            partial.touch(mode=0o600)  # the file contains password hashes
            with _snapshot(context.db) as connection, zipfile.ZipFile(partial, "w") as archive:
                counts = {table.name: _write_table(connection, archive, table) for table in TABLES}
                for row in connection.execute(sa.select(schema.media)):
                    place = f"{row.project_id}/{row.id}"
                    archive.write(context.media / place, f"media/{place}")
                manifest = BackupManifest(
                    kind="memantics annotation backup",
                    schema_version=context.db.schema_version(),
                    database="sqlite" if context.db.sqlite else "postgresql",
                    created=context.clock(),
                    tables=counts,
                    images=counts[schema.media.name],
                )
                archive.writestr(_MANIFEST, manifest.model_dump_json(indent=2))
            partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return manifest


@contextmanager
def _snapshot(database: Database) -> Iterator[Connection]:
    """Open a consistent snapshot of the database.

    For SQLite the snapshot is a copy, because its write-ahead log grows during a long read.
    """
    if not database.sqlite:
        steady = database.engine.execution_options(isolation_level="REPEATABLE READ")
        with steady.connect() as connection, connection.begin():
            connection.execute(sa.text("SET TRANSACTION READ ONLY"))
            allow_long(connection)
            yield connection
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.sqlite"
        source = sqlite3.connect(database.url.removeprefix("sqlite:///"))
        duplicate = sqlite3.connect(copy)
        try:
            source.backup(duplicate)
        finally:
            duplicate.close()
            source.close()
        engine = sa.create_engine(f"sqlite:///{copy}")
        try:
            with engine.connect() as connection:
                yield connection
        finally:
            engine.dispose()


def _write_table(connection: Connection, archive: zipfile.ZipFile, table: sa.Table) -> int:
    count = 0
    query = sa.select(table).order_by(*table.primary_key.columns)
    info = zipfile.ZipInfo(f"tables/{table.name}.jsonl")
    info.compress_type = zipfile.ZIP_DEFLATED
    names = [str(column.name) for column in table.columns]
    options = {"yield_per": _CHUNK}
    with (
        archive.open(info, "w", force_zip64=True) as file,
        connection.execute(query, execution_options=options) as result,
    ):
        for row in result:
            file.write(orjson.dumps(dict(zip(names, row, strict=True))) + b"\n")
            count += 1
    return count


def restore(archive: Path, url: str, media: Path) -> BackupManifest:
    """Fill an empty database and its media folder from a backup."""
    database = Database(url)
    try:
        with _open_archive(archive) as packed:
            manifest = _read_manifest(packed, archive)
            database.migrate()
            with database.write() as connection:
                allow_long(connection)
                if connection.execute(sa.select(schema.users.c.id).limit(1)).first():
                    raise StoreError(
                        "the database is not empty", hint="restore into a new database"
                    )
                checker = RowChecker(archive.name)
                for table in TABLES:
                    _read_table(connection, packed, table, manifest, checker)
                if not database.sqlite:
                    _set_sequences(connection)
                _read_images(connection, packed, media, archive.name)
    except (sa.exc.StatementError, DatabaseFailed) as error:
        wrong = (sa.exc.IntegrityError, sa.exc.DataError)
        if isinstance(error, DatabaseFailed) and not isinstance(error.__cause__, wrong):
            raise  # the database is at fault, not the backup
        raise DataError(
            archive.name, "contains inconsistent rows", hint="use another backup"
        ) from error
    finally:
        database.close()
    return manifest


@contextmanager
def _open_archive(archive: Path) -> Iterator[zipfile.ZipFile]:
    if archive.exists() and not archive.is_file():  # reading a pipe would block forever
        raise DataError(archive.name, "is not a regular file")
    try:
        with zipfile.ZipFile(archive) as packed:
            yield packed
    except (*DAMAGE, ValueError, struct.error) as error:
        raise DataError(archive.name, f"cannot be read as a backup: {error}") from error
    except KeyError as error:
        raise DataError(archive.name, f"is incomplete: {error.args[0]}") from error


def _read_manifest(packed: zipfile.ZipFile, archive: Path) -> BackupManifest:
    if _MANIFEST not in packed.namelist():
        raise DataError(archive.name, "is not a backup: manifest.json is missing")
    with packed.open(_MANIFEST) as file:
        manifest = conform(BackupManifest, orjson.loads(file.read(_LARGEST_LINE)), archive.name)
    if manifest.schema_version not in _READABLE:
        raise StoreError(
            f"the backup has schema {manifest.schema_version}, not {newest_schema()}",
            hint="restore it with the version of Memantics that wrote it, then start this version "
            "on the database",
        )
    if unknown := sorted(set(manifest.tables) - {table.name for table in TABLES}):
        raise DataError(archive.name, f"contains unknown tables: {', '.join(unknown)}")
    return manifest


class RowChecker:
    """Check every row before it is inserted, because SQLite accepts any type in any column."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._stages: dict[int, int] = {}

    def check(self, table: sa.Table, row: Any, number: int) -> dict[str, Any]:
        """Return a row with valid columns, types, JSON and stage, or raise DataError."""
        if not isinstance(row, dict) or set(row) != set(table.columns.keys()):
            raise DataError(
                self._where, f"table {table.name}: the columns do not match the schema", row=number
            )
        try:
            _row_shape(table.name).model_validate(row)
        except ValidationError as error:
            raise self._misfit(table, first_fault(error), number) from error
        if table is schema.projects:
            workflow = parse_workflow(row["workflow"], f"{self._where}: project {row['id']}")
            settings = ProjectSettings.model_validate_json(row["settings"])
            self._stages[row["id"]] = len(apply_settings(workflow, settings).stages)
        stages = self._stages.get(row.get("project_id", 0))
        if stages is not None and not 0 <= row.get("stage", 0) < stages:
            raise self._misfit(table, "stage: the workflow has no such stage", number)
        found: dict[str, Any] = row
        return found

    def _misfit(self, table: sa.Table, problem: str, number: int) -> DataError:
        return DataError(
            self._where,
            f"contains inconsistent rows: table {table.name}: {problem}",
            row=number,
            hint="use another backup",
        )


_CONTENT: dict[str, Any] = {
    "users.preferences": Json[Preferences],
    "sessions.kind": Literal["session", "link"],
    "projects.settings": Json[ProjectSettings],
    "memberships.training": TrainingState,
    "items.images": Json[list[str]],
    "items.shown": Json[list[Shown]],
    "items.prelabels": Json[dict[str, JsonValue]],
    "items.gold": Json[dict[str, JsonValue]],
    "items.hidden": Json[dict[str, JsonValue]],
    "items.state": Literal["open", "done"],
    "assignments.state": AssignmentState,
    "assignments.answer": Json[dict[str, JsonValue]],
    "drafts.answer": Json[dict[str, JsonValue]],
    "revisions.answer": Json[dict[str, JsonValue]],
    "audit.detail": Json[dict[str, JsonValue]],
    "media.id": Annotated[str, Limit(pattern=f"^{ID.pattern}$")],
    "media.size": Annotated[int, Limit(ge=0, le=_LARGEST_IMAGE)],
}


@cache
def _row_shape(table: str) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for column in schema.metadata.tables[table].columns:
        kind = _CONTENT.get(f"{table}.{column.name}") or _column_type(column.type)
        fields[str(column.name)] = (kind | None if column.nullable else kind, ...)
    return create_model(table, __config__=ConfigDict(strict=True), **fields)


def _column_type(kind: sa.types.TypeEngine[Any]) -> Any:
    if isinstance(kind, sa.Boolean):
        return bool
    if isinstance(kind, sa.Integer):
        return Annotated[int, Limit(ge=-(2**31), le=2**31 - 1)]
    if isinstance(kind, sa.Double):
        return Annotated[float, Limit(allow_inf_nan=False)]
    assert isinstance(kind, sa.String)
    return Annotated[str, Limit(max_length=kind.length)]


def _read_table(
    connection: Connection,
    packed: zipfile.ZipFile,
    table: sa.Table,
    manifest: BackupManifest,
    checker: RowChecker,
) -> None:
    count = 0
    with packed.open(f"tables/{table.name}.jsonl") as file:
        lines = iter(lambda: file.readline(_LARGEST_LINE), b"")
        while rows := [
            checker.check(table, orjson.loads(line), count + place)
            for place, line in enumerate(islice(lines, _CHUNK), 1)
        ]:
            connection.execute(sa.insert(table), rows)
            count += len(rows)
    if count != manifest.tables.get(table.name):
        raise DataError(
            Path(packed.filename or "").name,
            f"table {table.name} has {count} rows, which differs from manifest.json",
        )


def _read_images(
    connection: Connection, packed: zipfile.ZipFile, media: Path, archive: str
) -> None:
    """Write all images, or none if one of them fails."""
    written: list[Path] = []
    try:
        for row in connection.execute(sa.select(schema.media)):
            with packed.open(f"media/{row.project_id}/{row.id}") as file:
                data = file.read(row.size + 1)
            if hashlib.sha256(data).hexdigest() != row.sha256:
                raise DataError(archive, f"image {row.id} is damaged")
            path = media / str(row.project_id) / row.id
            if not path.exists():
                written.append(path)
                with refuse_unwritable(f"image folder {media}", hint=_ELSEWHERE):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(data)
            elif path.read_bytes() != data:
                problem = f"image folder {media} contains a different image {path.name}"
                raise StoreError(problem, hint=_ELSEWHERE)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise


def _set_sequences(connection: Connection) -> None:
    """Set PostgreSQL's id sequences to the highest restored ids."""
    for table in schema.metadata.sorted_tables:
        column = table.autoincrement_column
        if column is not None:
            last = connection.execute(sa.select(sa.func.max(column))).scalar_one_or_none()
            name = sa.func.pg_get_serial_sequence(table.name, column.name)
            if last is not None:
                connection.execute(sa.select(sa.func.setval(name, last)))
