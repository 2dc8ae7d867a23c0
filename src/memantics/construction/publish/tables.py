"""The published data: memes, tables and card facts, written as Parquet and ``metadata.jsonl``.

Parquet files hold the images; ``metadata.jsonl`` goes beside a folder of images, as the Hugging
Face ``imagefolder`` convention has it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, uuid5

import orjson

from memantics.benchmarks.writing import PublishedMeme, Record, read_png
from memantics.core.errors import DataError, InputError
from memantics.core.images import read_bytes

if TYPE_CHECKING:
    import pyarrow as pa

NAME = re.compile(r"[a-z][a-z0-9_]{1,40}")
MEMES = "memes"
_GROUP = 256  # rows in memory at once: images are the bulk of it


@dataclass(frozen=True, slots=True)
class CardFacts:
    """What a data set's card says besides its figures."""

    name: str
    title: str
    summary: str
    licence: str
    languages: tuple[str, ...]
    warning: str = ""
    citation: str = ""
    version: str = "1.0.0"

    @property
    def canary(self) -> str:
        """A string unlike any other: a model that knows it has trained on these files."""
        drawn = uuid5(NAMESPACE_URL, f"{self.name} {self.version} {self.title}")
        return f"MEMANTICS CANARY {drawn}"

    def check(self) -> None:
        """Refuse names that no folder, task or hub would take."""
        if not NAME.fullmatch(self.name):
            raise InputError(
                f"benchmark name {self.name!r} does not fit",
                hint="use small letters, digits and _, beginning with a letter",
            )


@dataclass(frozen=True, slots=True)
class CardSection:
    """A part of the data card: a title, sentences, and a table of figures."""

    title: str
    lines: tuple[str, ...] = ()
    rows: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Bundle:
    """All that is published. ``tables`` hold one record a row; their key ``meme`` names a meme.

    Without ``images`` memes are named by id, file and checksum, for data whose images may not be
    passed on.
    """

    facts: CardFacts
    memes: tuple[PublishedMeme, ...]
    tables: Mapping[str, Sequence[Record]]
    sections: tuple[CardSection, ...] = field(default=())
    images: bool = True


def copy_images(memes: Iterable[PublishedMeme], folder: Path) -> int:
    """Copy the images, PNG byte by byte, others as PNG; return how many.

    One format, since most families' official formats know no other.
    """
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for meme in memes:
        (folder / meme.file).write_bytes(read_png(meme.image))
        count += 1
    return count


@dataclass(frozen=True, slots=True)
class TableFile:
    """A Parquet file that was written: its columns by name and kind, its size and checksum."""

    name: str
    path: Path
    rows: int
    columns: tuple[tuple[str, str], ...]
    size: int
    sha256: str


def write_tables(bundle: Bundle, folder: Path) -> list[TableFile]:
    """Write ``memes.parquet`` with images and each meme's records, and one file for every table."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = {name: _make_table(name, records) for name, records in bundle.tables.items()}
    place = folder / f"{MEMES}.parquet"
    if bundle.images:
        written = [_write_memes(bundle, tables, place)]
    else:
        written = [_write_names(bundle.memes, place)]
    for name, table in tables.items():
        written.append(_write_table(name, table, folder / f"{name}.parquet"))
    return written


def _collect(bundle: Bundle) -> dict[str, dict[str, list[Record]]]:
    """The records about each meme, by table."""
    by_meme: dict[str, dict[str, list[Record]]] = {}
    for name, records in bundle.tables.items():
        for record in records:
            by_meme.setdefault(str(record["meme"]), {}).setdefault(name, []).append(record)
    return by_meme


def write_metadata(bundle: Bundle, folder: Path) -> None:
    """Write ``metadata.jsonl`` as the ``imagefolder`` convention has it: one line an image."""
    by_meme = _collect(bundle)
    with (folder / "metadata.jsonl").open("wb") as file:
        for meme in bundle.memes:
            line = {"file_name": f"images/{meme.file}", "id": meme.id, "text": meme.text}
            line |= {"language": meme.language, "template_cluster": meme.template_cluster}
            if not bundle.images:
                line |= {"source": meme.image.name, "sha256": _hash(meme)}
            # The same columns in every line: the hub's loader takes the first as the schema.
            records = by_meme.get(meme.id, {})
            file.write(
                orjson.dumps(line | {name: records.get(name, []) for name in bundle.tables}) + b"\n"
            )


def _write_memes(bundle: Bundle, tables: Mapping[str, pa.Table], path: Path) -> TableFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    # The hub shows a column as pictures when the schema says so under this key.
    features = {"image": {"_type": "Image"}} | {
        name: {"dtype": "string", "_type": "Value"}
        for name in ("id", "text", "language", "template_cluster")
    }
    nested = [(n, pa.list_(pa.struct(list(t.schema)))) for n, t in tables.items() if t.num_columns]
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("image", image),
            ("text", pa.string()),
            ("language", pa.string()),
            ("template_cluster", pa.string()),
            *nested,
        ],
        metadata={"huggingface": orjson.dumps({"info": {"features": features}})},
    )
    memes, known = bundle.memes, _collect(bundle)
    names = [name for name, _ in nested]
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, len(memes), _GROUP):
            rows = [
                _row(meme) | {name: known.get(meme.id, {}).get(name, []) for name in names}
                for meme in memes[start : start + _GROUP]
            ]
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))
    return _describe(MEMES, path, schema, len(memes))


def _row(meme: PublishedMeme) -> dict[str, object]:
    return {
        "id": meme.id,
        "image": {"bytes": read_png(meme.image), "path": meme.file},
        "text": meme.text,
        "language": meme.language,
        "template_cluster": meme.template_cluster,
    }


def _write_names(memes: tuple[PublishedMeme, ...], path: Path) -> TableFile:
    """Memes without their images: the file each one was, and its checksum."""
    rows: list[Record] = [
        {
            "id": meme.id,
            "source": meme.image.name,
            "sha256": _hash(meme),
            "text": meme.text,
            "language": meme.language,
            "template_cluster": meme.template_cluster,
        }
        for meme in memes
    ]
    return _write_table(MEMES, _make_table(MEMES, rows), path)


def _hash(meme: PublishedMeme) -> str:
    return hashlib.sha256(read_bytes(meme.image)).hexdigest()


def _make_table(name: str, records: Iterable[Record]) -> pa.Table:
    import pyarrow as pa

    try:
        return pa.Table.from_pylist([dict(record) for record in records])
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(name, f"its records do not fit one table: {error}") from error


def _write_table(name: str, table: pa.Table, path: Path) -> TableFile:
    import pyarrow.parquet as pq

    pq.write_table(table, path)
    return _describe(name, path, table.schema, table.num_rows)


def _describe(name: str, path: Path, schema: pa.Schema, rows: int) -> TableFile:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return TableFile(name, path, rows, tuple(_kinds(schema)), path.stat().st_size, digest)


def _kinds(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Columns by the plain kinds that other formats know."""
    import pyarrow as pa

    for column in schema:
        kind = column.type
        plain = {"image": "image"}.get(column.name, "")
        if not plain:
            plain = "list" if pa.types.is_list(kind) else "text"
            plain = "integer" if pa.types.is_integer(kind) else plain
            plain = "number" if pa.types.is_floating(kind) else plain
            plain = "boolean" if pa.types.is_boolean(kind) else plain
            inner = kind.value_type if pa.types.is_list(kind) else kind
            plain = "struct" if pa.types.is_struct(inner) else plain
        yield column.name, plain
