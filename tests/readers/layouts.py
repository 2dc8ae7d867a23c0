"""Writes data sets in the layouts of the field: names and types as published, content our own."""

from __future__ import annotations

import csv
import io
import json
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from PIL import Image

SPLITS = {"train": 6, "validation": 2, "test": 4}
TEXTS = ("when the printer works", "me at 3 am", "我又迟到了", "¿quién pagó?", "a cat; a dog, a |")


@dataclass(frozen=True)
class Row:
    """One meme of a made-up data set."""

    id: str
    split: str
    text: str
    label: str
    image: bytes

    @property
    def file(self) -> str:
        return f"{self.id}.png"


def draw(number: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (8, 8), (number * 7 % 256, number * 29 % 256, 90)).save(out, "PNG")
    return out.getvalue()


def make_rows(labels: tuple[str, str] = ("hateful", "fine"), mark: str = "m") -> list[Row]:
    rows: list[Row] = []
    for split, count in SPLITS.items():
        for place in range(count):
            number = len(rows)
            text = f"{TEXTS[number % len(TEXTS)]} {number}"
            rows.append(Row(f"{mark}{number}", split, text, labels[place % 2], draw(number)))
    return rows


def write(path: Path, data: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    write(path, b"\n".join(map(orjson.dumps, rows)))


def write_csv(path: Path, rows: list[dict[str, Any]], mark: str = ",", code: str = "utf-8") -> None:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=mark)
    writer.writeheader()
    writer.writerows(rows)
    write(path, out.getvalue().encode(code))


def write_parquet(path: Path, rows: list[dict[str, Any]], classes: Mapping[str, Any] = {}) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows)
    if classes:
        facts = {"info": {"features": classes}}
        table = table.replace_schema_metadata({"huggingface": json.dumps(facts)})
    pq.write_table(table, path, row_group_size=3)


def write_tar(path: Path, rows: list[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        for row in rows:
            facts = orjson.dumps({"id": row.id, "label": row.label})
            for ending, data in (("png", row.image), ("json", facts), ("txt", row.text.encode())):
                info = tarfile.TarInfo(f"{row.id}.{ending}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))


def write_images(folder: Path, rows: list[Row]) -> None:
    for row in rows:
        write(folder / row.file, row.image)


def by_split(rows: list[Row], make: Callable[[Row], dict[str, Any]]) -> dict[str, list[Any]]:
    return {split: [make(row) for row in rows if row.split == split] for split in SPLITS}


def embed(row: Row) -> dict[str, Any]:
    image = {"bytes": row.image, "path": row.file}
    return {"id": row.id, "image": image, "text": row.text, "label": row.label}


def plain(row: Row, folder: str = "images/") -> dict[str, Any]:
    return {"id": row.id, "image": folder + row.file, "text": row.text, "label": row.label}
