"""The columns of a data set without a dataset config: detected by name, labels only as named."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from memantics.benchmarks.dataset_cells import parse_cell
from memantics.core.errors import InputError, UnknownName
from memantics.core.members import BYTES, read_class_names
from memantics.core.parameters import Flag
from memantics.core.tables import TableRow

IDS = ("id", "ID", "Id", "id_EXIST", "item", "name", "post_id", "__key__", "key", "编号", "序号")
_SPLITS = ("split", "set", "partition")
_TEXTS = (
    *("text", "caption", "ocr", "ocr_text", "text_corrected", "sentence", "Text", "OCR"),
    *("文本", "文字", "图中文字", "标题"),
)
_IMAGES = (
    *("image", "img", "file_name", "image_name", "img_path", "image_path", "file", "picture"),
    *("图片", "图像", "文件名", "图片名", "图片路径"),
)


@dataclass(frozen=True, slots=True)
class LabelledColumns:
    """Names of the columns of a table; empty names are detected where possible.

    ``votes`` are columns with a list of labels, one per annotator. ``annotator`` is the column of
    annotators of a table whose rows are single votes. ``encoding`` is that of a table of separated
    values.
    """

    labels: Sequence[str] = ()
    image: str = ""
    text: str = ""
    id: str = ""
    split: str = ""
    votes: Sequence[str] = ()
    encoding: str = ""
    annotator: str = ""

    @property
    def given(self) -> bool:
        """Whether anything is named, so that no known data set is looked for."""
        return self != LabelledColumns()


def make_columns(
    *,
    label: Annotated[Sequence[str], Flag("Label column of your table; repeatable.")] = (),
    image: Annotated[str, Flag("Column with image files.", metavar="COLUMN")] = "",
    text: Annotated[str, Flag("Column with captions.", metavar="COLUMN")] = "",
    id: Annotated[  # noqa: A002 - the name of the flag
        str, Flag("Column with row ids. Default: id, else the image column.", metavar="COLUMN")
    ] = "",
    split_column: Annotated[
        str, Flag("Column with split names. Default: split.", metavar="COLUMN")
    ] = "",
    votes: Annotated[
        Sequence[str], Flag("Column with a list of labels, one per annotator; repeatable.")
    ] = (),
    annotator: Annotated[
        str,
        Flag(
            "Column with annotators, if each row is one vote. Default: detected.", metavar="COLUMN"
        ),
    ] = "",
    encoding: Annotated[
        str, Flag("Encoding of a table of separated values. Default: detected.")
    ] = "",
) -> LabelledColumns:
    """Collect the column names that a user gives on the command line."""
    return LabelledColumns(
        tuple(label), image, text, id, split_column, tuple(votes), encoding, annotator
    )


def find_columns(file: Path, row: TableRow, wanted: LabelledColumns) -> LabelledColumns:
    """Find the columns that the user named, and detect the others by their column names."""
    named = [name for name in row if not name.endswith(BYTES)]
    for column in (wanted.image, wanted.text, wanted.id, wanted.split, *wanted.votes):
        nested = column in (wanted.image, wanted.text, wanted.id) and _holds_field(row, column)
        if column and column not in row and column + BYTES not in row and not nested:
            raise UnknownName(f"column of {file.name}:", column, named)
    stated = [name for name in ("label", "labels") if name in named]
    if not wanted.labels and not wanted.votes and len(stated) == 1:
        wanted = replace(wanted, labels=stated)
    if not wanted.labels and not wanted.votes:
        hint = f"name the label column with --label NAME; columns: {', '.join(named[:12])}"
        raise InputError(f"{file.name}: no label column was found", hint=hint)
    taken = {*wanted.labels, *wanted.votes, wanted.image, wanted.text}
    embedded = [name.removesuffix(BYTES) for name in row if name.endswith(BYTES)]
    image = wanted.image or _pick(file, "image", [*embedded, *_IMAGES], named + embedded, taken)
    text = wanted.text or _pick(file, "text", _TEXTS, named, {*taken, image})
    if not (text or image):
        hint = "name one with --text NAME or --image NAME"
        raise InputError(
            f"{file.name}: neither a text column nor an image column was found", hint=hint
        )
    found = wanted.id or next((name for name in IDS if name in row and name not in taken), "")
    if not found and image and image not in embedded:
        found = image
    split = wanted.split or next((name for name in row if name.lower() in _SPLITS), "")
    return replace(wanted, image=image, text=text, id=found, split=split)


def _holds_field(row: TableRow, name: str) -> bool:
    """Return whether a record of a row has a field (``a.b``), even an empty one."""
    head, *rest = name.split(".")
    value = parse_cell(row.get(head, ""))
    for part in rest:
        if not isinstance(value, dict) or part not in value:
            return False
        value = value[part]
    return bool(rest)


def _pick(
    file: Path, what: str, names: Sequence[str], columns: Sequence[str], taken: set[str]
) -> str:
    """Return the only column with one of these names; ask if there are several."""
    found = [name for name in dict.fromkeys(names) if name in columns and name not in taken]
    if len(found) > 1:
        raise InputError(
            f"{file.name}: several columns could be the {what}: {', '.join(found)}",
            hint=f"name one with --{what} NAME",
        )
    return found[0] if found else ""


@dataclass(frozen=True, slots=True)
class OwnLabel:
    """A detected label column: ``key`` is its name in the config, ``record_field`` a field."""

    column: str
    key: str
    several: bool = False
    record_field: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    votes: Mapping[str, object] = field(default_factory=dict)


def _make_key(column: str) -> str:
    """Return the name of a label in the config: ASCII, since it is a part of task names."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", column).strip("_").lower() or "label"


def name_apart(labels: Sequence[OwnLabel]) -> list[OwnLabel]:
    """Number the labels whose names in the config would be equal."""
    taken = Counter[str]()
    named = []
    for label in labels:
        taken[label.key] += 1
        count = taken[label.key]
        named.append(replace(label, key=f"{label.key}_{count}") if count > 1 else label)
    return named


def find_label(file: Path, row: TableRow, name: str) -> OwnLabel:
    """Detect the form of a label column: one value, a list, records, or columns of votes."""
    key = _make_key(name)
    column, dot, inner = name.partition(".")
    records = bool(dot) and name not in row and row.get(column, "").startswith("[")
    nested = bool(dot) and row.get(column, "").startswith("{")
    if name not in row and not records and not nested:
        raise UnknownName(f"column of {file.name}:", name, [c for c in row if BYTES not in c])
    names = read_class_names(file, name) if file.suffix.lower() == ".parquet" else ()
    votes = {"prefix": f"{name}:"} if any(c.startswith(f"{name}:") for c in row) else {}
    if records:
        return OwnLabel(column, key, several=True, record_field=inner)
    several = row.get(name, "").startswith("[")
    if several and len(_list_annotators(row, name)) > 0:
        return find_votes(row, name)
    return OwnLabel(
        name, key, several, values={str(place): one for place, one in enumerate(names)}, votes=votes
    )


def find_votes(row: TableRow, column: str) -> OwnLabel:
    """Detect the lists of annotators and of their attributes: those named ``…annotators``."""
    key = _make_key(column)
    cell = load_list(row[column])
    if not isinstance(cell, list):
        raise InputError(
            f"column {column!r} is not a list of votes", hint="give a list, one vote per annotator"
        )
    votes: dict[str, object] = {"column": column}
    attributes = {}
    for name in _list_annotators(row, column):
        rest = re.sub(r"[_\s-]*annotators?[_\s-]*", "", name, flags=re.IGNORECASE)
        if rest:
            attributes[rest] = name
        else:
            votes["annotators"] = name
    if attributes:
        votes["attributes"] = attributes
    return OwnLabel(column, key, several=any(isinstance(v, list) for v in cell), votes=votes)


def _list_annotators(row: TableRow, column: str) -> list[str]:
    """Return the lists of annotators and their attributes, which are as long as that of votes."""
    cell = load_list(row[column])
    size = len(cell) if isinstance(cell, list) else -1
    found = []
    for name, other in row.items():
        values = load_list(other) if name != column and "annotator" in name.lower() else None
        if isinstance(values, list) and len(values) == size:
            found.append(name)
    return found


def load_list(cell: str) -> object:
    """Parse a cell that is a list; None for other cells."""
    return parse_cell(cell) if cell.startswith("[") else None
