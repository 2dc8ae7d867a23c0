"""The published data: memes, tables and card facts, written as Parquet and ``metadata.jsonl``.

Parquet files contain the images. ``metadata.jsonl`` lies beside a folder of images, as in the
Hugging Face ``imagefolder`` convention.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import category
from uuid import NAMESPACE_URL, uuid5

import orjson

from memantics.benchmarks.writing import PublishedMeme, Record, read_png
from memantics.core.errors import DataError, InputError
from memantics.core.files import open_regular
from memantics.core.images import read_bytes

if TYPE_CHECKING:
    import pyarrow as pa

NAME = re.compile(r"[a-z][a-z0-9_]{1,40}")
MEMES = "memes"
_GROUP = 256  # rows in memory at once; images take most of the space


@dataclass(frozen=True, slots=True)
class CardFacts:
    """Store the text fields of a data card."""

    name: str
    title: str
    summary: str
    licence: str
    languages: tuple[str, ...]
    warning: str = ""
    citation: str = ""
    version: str = "1.0.0"
    rai: Mapping[str, str | list[str]] = field(default_factory=dict)

    @property
    def canary(self) -> str:
        """Unique string; a model that reproduces it was trained on these files."""
        drawn = uuid5(NAMESPACE_URL, f"{self.name} {self.version} {self.title}")
        return f"MEMANTICS CANARY {drawn}"

    def check(self) -> None:
        """Raise if the name is not valid for a folder, a task or a hub."""
        if not NAME.fullmatch(self.name):
            raise InputError(
                f"benchmark name {self.name!r} is not valid",
                hint="use lower-case letters, digits and _, beginning with a letter",
            )
        for part in ("title", "summary", "licence", "warning", "citation", "version"):
            # Line breaks are allowed in the longer texts.
            allowed = "\n" if part in ("summary", "warning", "citation") else ""
            for char in getattr(self, part):
                if char not in allowed and category(char) in ("Cc", "Cs", "Zl", "Zp"):
                    raise InputError(
                        f"the {part} contains the control character U+{ord(char):04X}",
                        hint="remove it from the option of publish, or from the card of the queue",
                    )


@dataclass(frozen=True, slots=True)
class CardSection:
    """Store a section of the data card: a title, sentences, and a table of values."""

    title: str
    lines: tuple[str, ...] = ()
    rows: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Bundle:
    """Hold everything that is published; the ``meme`` column of ``tables`` names a meme.

    Without ``images``, memes are identified by id, file name and checksum, for data whose images
    must not be redistributed.
    """

    facts: CardFacts
    memes: tuple[PublishedMeme, ...]
    tables: Mapping[str, Sequence[Record]]
    sections: tuple[CardSection, ...] = field(default=())
    images: bool = True


def copy_images(memes: Iterable[PublishedMeme], folder: Path) -> int:
    """Copy the images, converting other formats to PNG; return their number.

    Only PNG is written, since most official benchmark formats support no other image format.
    """
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for meme in memes:
        (folder / meme.file).write_bytes(read_png(meme.image))
        count += 1
    return count


@dataclass(frozen=True, slots=True)
class TableFile:
    """Store a written Parquet file: columns by name and type, size and checksum."""

    name: str
    path: Path
    rows: int
    columns: tuple[tuple[str, str], ...]
    size: int
    sha256: str


def write_tables(bundle: Bundle, folder: Path) -> list[TableFile]:
    """Write ``memes.parquet`` with images and records per meme, and one file per table."""
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
    """Group the records by meme and table."""
    by_meme: dict[str, dict[str, list[Record]]] = {}
    for name, records in bundle.tables.items():
        for record in records:
            by_meme.setdefault(str(record["meme"]), {}).setdefault(name, []).append(record)
    return by_meme


def write_metadata(bundle: Bundle, folder: Path) -> None:
    """Write ``metadata.jsonl`` in the ``imagefolder`` convention: one line per image."""
    by_meme = _collect(bundle)
    with (folder / "metadata.jsonl").open("wb") as file:
        for meme in bundle.memes:
            line = {"file_name": f"images/{meme.file}", "id": meme.id, "text": meme.text}
            line |= {"language": meme.language, "template_cluster": meme.template_cluster}
            if not bundle.images:
                line |= {"source": meme.image.name, "sha256": _hash(meme)}
            # Every line has the same columns: the hub's loader takes the schema from the first.
            records = by_meme.get(meme.id, {})
            file.write(
                orjson.dumps(line | {name: records.get(name, []) for name in bundle.tables}) + b"\n"
            )


def _write_memes(bundle: Bundle, tables: Mapping[str, pa.Table], path: Path) -> TableFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    # The hub displays a column as images if the schema has this key.
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
    """Write a table of memes without images: the file name and checksum of each."""
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
        fault = f"a column of its records has values of different types: {error}"
        raise DataError(name, fault) from error


def _write_table(name: str, table: pa.Table, path: Path) -> TableFile:
    import pyarrow.parquet as pq

    pq.write_table(table, path)
    return _describe(name, path, table.schema, table.num_rows)


def _describe(name: str, path: Path, schema: pa.Schema, rows: int) -> TableFile:
    with open_regular(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return TableFile(name, path, rows, tuple(_kinds(schema)), path.stat().st_size, digest)


def _kinds(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Return the type of each column, as one of the simple types that other formats support."""
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
