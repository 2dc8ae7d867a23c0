"""Examples from a user's own files: CSV, JSON lines, or a folder of images with metadata."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from memantics.core.data import Skip, checksum, conform, inside, read_jsonl
from memantics.core.errors import DataError
from memantics.detector.examples import (
    LABELS,
    MODALITIES,
    TYPE_IDS,
    TYPES,
    Example,
    Loaded,
    Modality,
    Type,
)

METADATA = ("metadata.jsonl", "metadata.csv")
COLUMNS = (
    "id", "text", "text_caption", "image_caption", "image", "label", "type", "modality", "target",
)  # fmt: skip
_LONGEST = 20_000
_LABELS = {"0": 0, "1": 1, "false": 0, "true": 1, **{name: n for n, name in enumerate(LABELS)}}


class _Row(BaseModel):
    """A row as a file has it; ``file_name`` is the image's name in the imagefolder convention."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str | int | None = None
    text: str = Field("", max_length=_LONGEST)
    text_caption: str = Field("", max_length=_LONGEST)
    image_caption: str = Field("", max_length=_LONGEST)
    image: str = ""
    file_name: str = ""
    label: str | int | bool | None = None
    type: str | int | None = None
    modality: str | None = None
    target: str | None = None


def read_examples(path: Path) -> Loaded:
    """Read a ``.csv``, a ``.jsonl`` or a folder with ``metadata.csv`` or ``metadata.jsonl``.

    A row with nothing to read in it is left out and listed; a row that cannot be understood is an
    error that names it.
    """
    table = _find_table(path)
    rows = _read_csv(table) if table.suffix.lower() == ".csv" else read_jsonl(table)
    examples: dict[str, Example] = {}
    skips: list[Skip] = []
    lost = 0
    for number, value in rows:
        row = conform(_Row, value, table.name, number)
        example = _make(row, table, number)
        if example.id in examples:
            raise DataError(table.name, f"id {example.id!r} comes twice", row=number)
        named = row.image or row.file_name
        if example.image is None and named:
            lost += 1
        if example.empty and example.image is None:
            reason = "no text, and its image is missing" if named else "no text and no image"
            skips.append(Skip(table.name, str(number), reason))
            continue
        examples[example.id] = example
    if not examples:
        raise DataError(table.name, "holds no examples", hint=f"columns: {', '.join(COLUMNS)}")
    notes = (f"{lost} images are named but missing: their texts are used alone",) if lost else ()
    return Loaded(
        name=path.name,
        examples=tuple(examples.values()),
        skips=tuple(skips),
        notes=notes,
        checksum=checksum([table], table.parent),
    )


def _find_table(path: Path) -> Path:
    if path.is_dir():
        for name in METADATA:
            if (path / name).is_file():
                return path / name
        raise DataError(path, f"has neither {' nor '.join(METADATA)}", hint="add one of them")
    if path.suffix.lower() not in (".csv", ".jsonl"):
        raise DataError(path, "is neither a .csv, a .jsonl nor a folder of images")
    if not path.is_file():
        raise DataError(path, "no such file", hint="check the path")
    return path


def _read_csv(path: Path) -> Iterator[tuple[int, JsonValue]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            for number, row in enumerate(reader, 2):
                if None in row or None in row.values():
                    problem = f"has another number of cells than the {len(reader.fieldnames or ())}"
                    raise DataError(path.name, f"{problem} columns", row=number)
                # An empty cell says nothing, as a missing field of JSON does.
                cells: dict[str, JsonValue] = {name: cell for name, cell in row.items() if cell}
                yield number, cells
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(path.name, f"cannot be read as CSV in UTF-8: {error}") from error


def _make(row: _Row, table: Path, number: int) -> Example:
    named = row.image or row.file_name
    image = inside(table.parent, named) if named else None
    label = _read_label(row.label, table, number)
    kind = _read_type(row.type, table, number)
    if kind is not None and label is None:
        label = int(kind != "none")
    if kind is not None and label != int(kind != "none"):
        raise DataError(table.name, f"label {label} does not go with type {kind}", row=number)
    if label == 0 and kind is None:
        kind = "none"
    return Example(
        id=str(row.id) if row.id is not None else _name(named) or str(number),
        text=row.text,
        text_caption=row.text_caption,
        image_caption=row.image_caption,
        image=image if image is not None and image.is_file() else None,
        label=label,
        type=kind,
        modality=_read_modality(row.modality, table, number),
        target=(row.target or "").strip() or None,
    )


def _name(image: str) -> str:
    """An image's name as an id, its folder included: two folders may hold the same name.

    >>> _name("a/7.png"), _name("7.png"), _name("")
    ('a/7', '7', '')
    """
    path = PurePosixPath(image)
    return (path.parent / path.stem).as_posix() if image else ""


def _read_label(value: str | int | bool | None, table: Path, number: int) -> int | None:
    if value is None or value == "":
        return None
    found = _LABELS.get(str(int(value) if isinstance(value, bool) else value).strip().lower())
    if found is None:
        problem = f"unknown label {value!r}"
        raise DataError(table.name, problem, row=number, hint=f"known: {', '.join(_LABELS)}")
    return found


def _read_type(value: str | int | None, table: Path, number: int) -> Type | None:
    if value is None or value == "":
        return None
    word = str(value).strip().lower()
    for place, known in enumerate(TYPE_IDS):
        if word in (known, str(place)):
            return known
    hint = f"known: {', '.join(TYPES)}, or the ids 0 to {len(TYPE_IDS) - 1} of ToxiCN MM"
    raise DataError(table.name, f"unknown type {value!r}", row=number, hint=hint)


def _read_modality(value: str | None, table: Path, number: int) -> Modality | None:
    if not value:
        return None
    for known in MODALITIES:
        if value.strip().lower() == known:
            return known
    hint = f"known: {', '.join(MODALITIES)}"
    raise DataError(table.name, f"unknown modality {value!r}", row=number, hint=hint)
