"""Online backup into one ZIP file, and restore into an empty database of either kind.

The file holds ``manifest.json``, every table as JSON lines and every image. It is the same from
SQLite and from PostgreSQL: a lab that begins on a laptop moves to a server by backup and restore.
"""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

import orjson
import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict
from sqlalchemy.engine import Connection

from memantics.annotate import schema
from memantics.annotate.archive import DAMAGE
from memantics.annotate.database import Database, newest_schema
from memantics.annotate.media import ID
from memantics.annotate.service import Service
from memantics.core.data import conform
from memantics.core.errors import DataError, StoreError

_MANIFEST = "manifest.json"
_CHUNK = 1000
_LARGEST_LINE = 64 * 1024 * 1024
_LARGEST_IMAGE = 64 * 1024 * 1024


class Manifest(BaseModel):
    """What a backup holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["memantics annotation backup"]
    schema_version: str
    database: str
    created: float
    tables: dict[str, int]
    images: int


def backup(service: Service, target: Path) -> Manifest:
    """Write a backup while people work; the file appears whole or not at all."""
    ground = service.ground
    partial = target.with_name(f"{target.name}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)
        partial.touch(mode=0o600)  # hashes of passwords are in it, as in the database
        with _snapshot(ground.db) as connection, zipfile.ZipFile(partial, "w") as archive:
            counts = {
                table.name: _write_table(connection, archive, table)
                for table in schema.metadata.sorted_tables
            }
            images = 0
            for row in connection.execute(sa.select(schema.media)):
                place = f"{row.project_id}/{row.id}"
                archive.write(ground.media / place, f"media/{place}")
                images += 1
            manifest = Manifest(
                kind="memantics annotation backup",
                schema_version=ground.db.schema_version(),
                database="sqlite" if ground.db.sqlite else "postgresql",
                created=ground.clock(),
                tables=counts,
                images=images,
            )
            archive.writestr(_MANIFEST, manifest.model_dump_json(indent=2))
        partial.replace(target)
    except OSError as error:
        raise StoreError(
            f"backup {target} cannot be written: {error.strerror}", hint="choose another file"
        ) from error
    finally:
        partial.unlink(missing_ok=True)
    return manifest


@contextmanager
def _snapshot(database: Database) -> Iterator[Connection]:
    """One moment of the database. SQLite's is a copy: a long read would make its log grow."""
    if not database.sqlite:
        steady = database.engine.execution_options(isolation_level="REPEATABLE READ")
        with steady.connect() as connection, connection.begin():
            connection.execute(sa.text("SET TRANSACTION READ ONLY"))
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


def restore(archive: Path, url: str, media: Path) -> Manifest:
    """Fill an empty database and its media folder from a backup."""
    database = Database(url)
    try:
        with _open_archive(archive) as packed:
            manifest = _read_manifest(packed, archive)
            database.migrate()
            with database.write() as connection:
                if connection.execute(sa.select(schema.users.c.id).limit(1)).first():
                    raise StoreError(
                        "the database is not empty", hint="restore into a new one, then switch"
                    )
                for table in schema.metadata.sorted_tables:
                    _read_table(connection, packed, table, manifest, archive)
                images = list(connection.execute(sa.select(schema.media)))
                for row in images:
                    _read_image(packed, row, media, archive)
                if not database.sqlite:
                    _set_sequences(connection)
    except (sa.exc.DBAPIError, OverflowError) as error:
        raise DataError(
            archive.name, "holds rows that do not fit together", hint="use another backup"
        ) from error
    finally:
        database.close()
    return manifest


@contextmanager
def _open_archive(archive: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(archive) as packed:
            yield packed
    except (*DAMAGE, orjson.JSONDecodeError) as error:
        raise DataError(archive.name, f"cannot be read as a backup: {error}") from error
    except KeyError as error:
        raise DataError(archive.name, f"is not complete: {error.args[0]}") from error


def _read_manifest(packed: zipfile.ZipFile, archive: Path) -> Manifest:
    if _MANIFEST not in packed.namelist():
        raise DataError(archive.name, "is no backup: manifest.json is missing")
    value = orjson.loads(packed.read(_MANIFEST))
    manifest = conform(Manifest, value, archive.name)
    if manifest.schema_version != newest_schema():
        raise StoreError(
            f"the backup has schema {manifest.schema_version}, this version {newest_schema()}",
            hint="restore it with the version of memantics that wrote it, then upgrade",
        )
    return manifest


def _read_table(
    connection: Connection,
    packed: zipfile.ZipFile,
    table: sa.Table,
    manifest: Manifest,
    archive: Path,
) -> None:
    count = 0
    with packed.open(f"tables/{table.name}.jsonl") as file:
        for rows in _chunks(file, table, archive):
            connection.execute(sa.insert(table), rows)
            count += len(rows)
    if count != manifest.tables.get(table.name):
        raise DataError(archive.name, f"table {table.name} has {count} rows, not as many as said")


def _chunks(file: IO[bytes], table: sa.Table, archive: Path) -> Iterator[list[dict[str, Any]]]:
    columns = set(table.columns.keys())
    rows: list[dict[str, Any]] = []
    number = 0
    while line := file.readline(_LARGEST_LINE):
        number += 1
        row = orjson.loads(line)
        if not isinstance(row, dict) or set(row) != columns:
            raise DataError(archive.name, f"table {table.name}: columns do not fit", row=number)
        rows.append(row)
        if len(rows) == _CHUNK:
            yield rows
            rows = []
    if rows:
        yield rows


def _read_image(packed: zipfile.ZipFile, row: Any, media: Path, archive: Path) -> None:
    """Only names that we could have given out reach the disk, and only the bytes they had."""
    if not ID.fullmatch(row.id) or not 0 <= row.size <= _LARGEST_IMAGE:
        raise DataError(archive.name, "names an image that was never ours")
    with packed.open(f"media/{int(row.project_id)}/{row.id}") as file:
        data = file.read(row.size + 1)
    if hashlib.sha256(data).hexdigest() != row.sha256:
        raise DataError(archive.name, f"image {row.id} is damaged")
    folder = media / str(int(row.project_id))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / row.id).write_bytes(data)
    except OSError as error:
        raise StoreError(
            f"image folder {media} cannot be written: {error.strerror}",
            hint="choose another --media",
        ) from error


def _set_sequences(connection: Connection) -> None:
    """PostgreSQL counts on its own: tell it where the restored rows ended."""
    for table in schema.metadata.sorted_tables:
        column = table.autoincrement_column
        if column is not None:
            last = connection.execute(sa.select(sa.func.max(column))).scalar_one_or_none()
            name = sa.func.pg_get_serial_sequence(table.name, column.name)
            if last is not None:
                connection.execute(sa.select(sa.func.setval(name, last)))
