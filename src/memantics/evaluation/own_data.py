"""Data sets without a dataset config: detect files, splits and columns, and write the config.

``data add PATH`` finds the tables below a path, their splits by name, and their columns by name and
content. Everything ambiguous is asked for in one line. The column of labels is never guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path

import orjson

from memantics.benchmarks.dataset_cells import look_up
from memantics.benchmarks.dataset_config import DatasetConfig
from memantics.benchmarks.dataset_files import CLASS_FOLDERS, read_data_file, read_split
from memantics.benchmarks.dataset_tasks import make_card
from memantics.benchmarks.registry import find_own_dataset_configs
from memantics.core.errors import DataError, InputError
from memantics.core.files import replace_file
from memantics.core.language import read_script
from memantics.core.result import Result, Table
from memantics.core.seen import SeenKeys
from memantics.core.separated import detect_form
from memantics.core.tables import TableRow
from memantics.evaluation.options import complete_tasks
from memantics.evaluation.own_columns import (
    LabelledColumns,
    OwnLabel,
    find_columns,
    find_label,
    find_votes,
    load_list,
    name_apart,
)
from memantics.evaluation.own_files import FoundSet
from memantics.evaluation.own_votes import LongTable, VoteFacts, find_long_table, read_joined

_MOST_VALUES = 26
_SHARE = 0.05
_LATIN = "Latin letters"
_SHOWN = 5  # unused files that are named
_SAMPLE = "__key__"  # the column of ids of tar archives


@dataclass(frozen=True, slots=True)
class OwnTable(Result):
    """The detected files and columns of a data set, and the dataset config written for it."""

    name: str
    dataset_config: Path
    rows: int
    splits: dict[str, int]
    languages: dict[str, int]
    duplicates: int
    labels: dict[str, dict[str, int]]
    columns: dict[str, str] = field(default_factory=dict)
    form: str = ""
    renamed: str = ""
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unit: str = "rows"

    def lines(self) -> Iterator[str]:
        """Summarise the detected columns in readable lines."""
        yield f"{self.rows:,} {self.unit}; dataset config: {self.dataset_config}"
        if self.columns:
            told = ", ".join(f"{name} = {column}" for name, column in self.columns.items())
            yield f"columns: {told}" + (f" ({self.form})" if self.form else "")
        yield "splits: " + ", ".join(f"{name} {count:,}" for name, count in self.splits.items())
        yield from self.notes
        if self.unused:
            yield f"not read, since their names name no split: {', '.join(self.unused)}"
        if self.renamed:
            yield f"{self.renamed} repeats: rows are named by file and row number"
        if self.languages:
            told = ", ".join(f"{name} {n:,}" for name, n in self.languages.items())
            yield "languages of the texts: " + told
        if self.duplicates:
            yield f"{self.duplicates:,} rows repeat a text or an image of another row"
        for label, counts in self.labels.items():
            whole = sum(counts.values())
            shares = (f"{value} {100 * n / whole:.1f} %" for value, n in counts.items())
            yield f"{label}: " + ", ".join(shares)


@dataclass(frozen=True, slots=True)
class AddedSet:
    """One data set of a tree: its name, folder, counts, or the reason why it was not registered.

    ``note`` names missing images.
    """

    name: str
    folder: str
    memes: int
    splits: Mapping[str, int]
    images: str
    problem: str = ""
    note: str = ""


def tabulate_sets(sets: Sequence[AddedSet]) -> Table:
    """Tabulate the data sets of a tree."""
    rows = [
        (
            one.name,
            f"{one.memes:,}",
            ", ".join(f"{split} {count:,}" for split, count in one.splits.items()),
            one.images,
            "not registered" if one.problem else "registered",
        )
        for one in sets
    ]
    columns = ("name", ">memes", "splits", "images", "result")
    return Table(columns, tuple(rows), f"{len(sets)} data sets")


def write_own_config(found: FoundSet, columns: LabelledColumns, name: str) -> OwnTable:
    """Detect the columns of a data set and write its dataset config."""
    first = next(iter(found.files.values()))[0]
    row = _read_first(found, columns.encoding)
    known = find_columns(first, row, columns)
    if any(task == name for task in complete_tasks(name)):
        raise InputError(f"the name {name} is taken by a benchmark", hint="rename the file")
    long = find_long_table(found, row, known, columns.id)
    if long is not None:
        known = replace(known, id="" if long.item == known.text else long.item)
        names = dict.fromkeys((*known.labels, *known.votes))
        labels = name_apart([find_label(first, row, label) for label in names])
    else:
        labels = [find_label(first, row, label) for label in known.labels]
        labels = name_apart(labels + [find_votes(row, column) for column in known.votes])
    counted = _count(found, known, labels, long)
    known = _check_ids(first, known, counted, given=bool(columns.id))
    if counted.votes is not None:
        labels = counted.votes.describe(known.votes)
    path = find_own_dataset_configs() / f"{name}.toml"
    body, config = _dump_dataset_config(found, known, counted, labels)
    make_card(name, config)  # an error here leaves nothing behind
    replace_file(path, body.encode(), "dataset config")
    told = {n: c for n, c in config.columns.model_dump().items() if c}
    separated = first.suffix.lower() in (".csv", ".tsv") and not found.form
    return OwnTable(
        name,
        path,
        counted.rows,
        dict(counted.splits),
        dict(counted.scripts.most_common()),
        counted.duplicates,
        {label.column: dict(counted.values[label.column].most_common()) for label in labels},
        told | {f"label {label.key}": label.column for label in labels},
        detect_form(first, encoding=columns.encoding).words if separated else "",
        f"column {counted.renamed!r}" if counted.renamed else "",
        () if found.form else tuple(path.name for path in found.unused[:_SHOWN]),
        tuple(_tell(found, counted, labels)),
        "memes" if long is not None or found.form else "rows",
    )


def _check_ids(
    first: Path, known: LabelledColumns, counted: _Counted, *, given: bool
) -> LabelledColumns:
    """Return the columns without that of ids, if these repeat; raise an error for two labels."""
    # Numbers that start again in each split are no ids, nor is an image with several texts.
    if not given and (counted.shared or (counted.disputed and known.id == known.image)):
        counted.renamed = known.id
        return replace(known, id="")
    if counted.disputed:
        raise DataError(
            first.name,
            f"rows with the {known.id} {counted.disputed!r} have different labels",
            hint="name the column of annotators (--annotator) if each row is one vote; else give"
            " one row per meme, with a list of votes (--votes), or name other ids (--id)",
        )
    return known


def _tell(found: FoundSet, counted: _Counted, labels: Sequence[OwnLabel]) -> Iterator[str]:
    """Describe how class folders, values of the split column and rows of votes were read."""
    if found.form == CLASS_FOLDERS:
        above = any(found.files) and "; splits are the names of the folders above"
        yield f"class folders: each image has the name of its folder as its label{above or ''}"
        if found.unlabelled:
            yield f"folders without labels: {', '.join(found.unlabelled)}"
        if found.unused:
            left = [path.relative_to(found.root).as_posix() for path in found.unused[:_SHOWN]]
            told = "images that are not read, since they are in no folder of a label"
            yield f"{told}: {', '.join(left)}"
    if counted.split_values:
        named = ", ".join(f"{value} = {split}" for value, split in counted.split_values.items())
        yield f"values of the split column: {named}"
    if counted.votes is not None:
        yield from counted.votes.tell(labels)


def write_tree_config(config: DatasetConfig, found: FoundSet, place: str, name: str) -> Path:
    """Write the dataset config of one set of a tree, from the config of such trees."""
    files = {split or "test": tuple(found.list_names(split)) for split in found.files}
    made = config.model_copy(
        update={"title": f"{config.title}: {place}", "files": files, "tree": False, "counts": {}}
    )
    path = find_own_dataset_configs() / f"{name}.toml"
    replace_file(path, dump_config(made).encode(), "dataset config")
    return path


def _read_first(found: FoundSet, encoding: str) -> TableRow:
    path = next(iter(found.files.values()))[0]
    for _, row in read_data_file(found.root, path, found.form, encoding):
        return row
    raise DataError(path.name, "has no rows", hint="give a table with one row per meme")


@dataclass(slots=True)
class _Counted:
    """The counts of one pass over the rows.

    ``shared`` counts ids of an earlier split, ``disputed`` is an id with two labels in one split,
    ``renamed`` a column of ids that repeat. ``split_values`` are the values of the split column
    that mean a split of another name.
    """

    rows: int = 0
    splits: Counter[str] = field(default_factory=Counter)
    scripts: Counter[str] = field(default_factory=Counter)
    duplicates: int = 0
    shared: int = 0
    disputed: str = ""
    renamed: str = ""
    split_values: dict[str, str] = field(default_factory=dict)
    votes: VoteFacts | None = None
    values: dict[str, Counter[str]] = field(default_factory=dict)


def _read_all(
    found: FoundSet, known: LabelledColumns, labels: Sequence[OwnLabel], long: LongTable | None
) -> Iterator[tuple[str, str, TableRow]]:
    """Yield the split of the file, its name ('' for joined rows) and the cells of each meme."""
    if long is not None:
        for split, row in read_joined(found, known, labels, long):
            yield split, "", row
        return
    for split, paths in found.files.items():
        for path in paths:
            for _, row in read_data_file(found.root, path, found.form, known.encoding):
                yield split, path.name, row


def _count(
    found: FoundSet, known: LabelledColumns, labels: Sequence[OwnLabel], long: LongTable | None
) -> _Counted:
    """Count rows, splits, scripts, duplicates and label values; rows are not kept."""
    counted = _Counted(values={label.column: Counter() for label in labels})
    counted.votes = VoteFacts(long, labels) if long is not None else None
    named = bool([split for split in found.files if split])
    with SeenKeys() as seen, SeenKeys() as ids:
        for split, file, row in _read_all(found, known, labels, long):
            counted.rows += 1
            given = split if named else _find_split(counted, row, known.split)
            counted.splits[given] += 1
            if name := _take(row, known.id):
                gold = "\0".join(look_up(row, label.column) or "" for label in labels)
                _count_id(counted, name, (given, gold, _tell_content(file, row, known)), ids)
            if counted.votes is not None:
                counted.votes.add(row)
            _count_row(counted, row, known, labels, seen)
    if "" in counted.splits:
        hint = "fill it, or name another split column with --split-column NAME"
        problem = f"{counted.splits['']} rows have no value in the column {known.split!r}"
        raise DataError(next(iter(found.files.values()))[0].name, problem, hint=hint)
    for label in labels:
        counts = counted.values[label.column]
        for folder in found.unlabelled:
            del counts[folder]
        least = 1 if label.several else 2
        listed = label.votes and long is None
        if not listed and not least <= len(counts) <= _MOST_VALUES * (4 if least == 1 else 1):
            raise DataError(
                next(iter(found.files.values()))[0].name,
                f"column {label.column!r} has {len(counts)} different values",
                hint=f"a label column has 2 to {_MOST_VALUES} values: name another column",
            )
    return counted


def _find_split(counted: _Counted, row: TableRow, column: str) -> str:
    """Return the split of a row: train, validation and test have several usual names."""
    if not column:
        return "test"
    value = row.get(column, "")
    split = read_split(value, whole=True) or value
    if split != value:
        counted.split_values[value] = split
    return split


def _count_id(counted: _Counted, name: str, facts: tuple[str, str, str], ids: SeenKeys) -> None:
    """Compare split, labels and content of a row with those of the first row that has its id."""
    digest = blake2b(facts[2].encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    earlier = ids.add(name, "\0".join((facts[0], digest, facts[1])))
    if earlier is None:
        return
    split, content, gold = earlier.split("\0", 2)
    if split != facts[0]:
        counted.shared += 1
    elif content != digest and (gold == facts[1] or facts[2].startswith(_SAMPLE)):
        counted.shared += 1  # another meme: keys of samples are unique only within one archive
    elif gold != facts[1]:
        counted.disputed = counted.disputed or name


def _take(row: TableRow, column: str) -> str:
    """Return a cell, also one inside of records; empty without a column."""
    return (look_up(row, column) or "") if column else ""


def _tell_content(file: str, row: TableRow, known: LabelledColumns) -> str:
    """Return what distinguishes two memes of one id: their texts and images, or their archives."""
    archive = f"{_SAMPLE}{file}" if known.id == _SAMPLE else ""
    return "\0".join((archive, _take(row, known.text), _take(row, known.image)))


def _count_row(
    counted: _Counted,
    row: TableRow,
    known: LabelledColumns,
    labels: Sequence[OwnLabel],
    seen: SeenKeys,
) -> None:
    text = _take(row, known.text)
    if known.text:
        counted.scripts[_tell_script(text)] += 1
    keys = [(name, _take(row, name).strip()) for name in (known.text, known.image) if name]
    new = [seen.add(f"{name}\0{value}") is None for name, value in keys if value]
    counted.duplicates += not all(new)
    for label in labels:
        cell = look_up(row, label.column) or ""
        listed = label.several or label.votes or counted.votes is not None
        values = load_list(cell) if listed else [cell]
        for value in values if isinstance(values, list) else [cell]:
            for one in value if isinstance(value, list) else [value]:
                name = one.get(label.record_field, "") if isinstance(one, dict) else one
                if name not in ("", None) and len(counted.values[label.column]) <= 200:
                    counted.values[label.column][label.values.get(str(name), str(name))] += 1


def _tell_script(text: str) -> str:
    """Guess the language of texts from their script; Latin letters count as English."""
    return read_script(text) or (_LATIN if any(map(str.isalpha, text)) else "no letters")


def _pick_languages(scripts: Counter[str]) -> list[str]:
    whole = sum(scripts.values())
    names = {"en": _LATIN, "zh": "zh"}
    return [key for key, name in names.items() if scripts[name] > _SHARE * whole] or ["en"]


def _dump_dataset_config(
    found: FoundSet, known: LabelledColumns, counted: _Counted, labels: Sequence[OwnLabel]
) -> tuple[str, DatasetConfig]:
    names = {"id": known.id, "text": known.text, "image": known.image}
    named = bool([split for split in found.files if split])
    if not named and known.split:
        names["split"] = known.split
    paths = [name for split in found.files for name in found.list_names(split)]
    files = {split: tuple(found.list_names(split) if named else paths) for split in counted.splits}
    whole = ", ".join(paths[:3]) + (", …" if len(paths) > 3 else "")
    facts = {
        "title": Path(paths[0]).stem
        if len(paths) == 1 and not named and not found.form
        else found.root.name,
        "summary": f"Images in the folders {whole}." if found.form else f"The table {whole}.",
        "languages": _pick_languages(counted.scripts),
        "source": "your own table",
        "licence": "unknown",
        "citation": "none",
        "files": files,
        "format": found.form,
        "encoding": known.encoding,
        "split_values": counted.split_values,
        "columns": {name: column for name, column in names.items() if column},
        "label": {label.key: _describe_label(label, found.unlabelled) for label in labels},
    }
    config = DatasetConfig.model_validate(facts)
    return dump_config(config), config


def _describe_label(label: OwnLabel, unlabelled: Sequence[str]) -> dict[str, object]:
    facts: dict[str, object] = {"what": label.column}
    if not label.votes or "prefix" in label.votes:
        facts["column"] = label.column
    if unlabelled:
        facts["leave_out"] = unlabelled
    if label.votes:
        facts["votes"] = dict(label.votes)
    if label.record_field:
        facts["key"] = label.record_field
    if label.several:
        facts["several"] = True
        if not label.votes:
            facts["question"] = f"Which of these labels fit: {label.column}?"
    if label.values:
        facts["values"] = dict(label.values)
    return facts


def dump_config(config: DatasetConfig) -> str:
    """Write a dataset config as TOML; JSON strings are valid TOML strings."""
    lines = ["# Written by 'memantics data add'; docs/how-to/use-your-data.md explains the fields."]
    facts = config.model_dump(mode="json", exclude_defaults=True)
    tables = {name: facts.pop(name, {}) for name in ("label", "free_text")}
    for split, paths in facts.pop("files").items():
        lines.append(f"files.{_write_toml(split)} = {_write_toml(paths)}")
    lines[1:1] = [f"{name} = {_write_toml(value)}" for name, value in facts.items()]
    for table, entries in tables.items():
        for key, entry in entries.items():
            lines += ["", f"[{table}.{_write_toml(key)}]"]
            lines += [f"{name} = {_write_toml(value)}" for name, value in entry.items()]
    return "\n".join(lines) + "\n"


def _write_toml(value: object) -> str:
    """Write a value in one line of TOML.

    >>> _write_toml({"a": ["x", 1], "b": {}})
    '{ "a" = ["x", 1], "b" = {} }'
    """
    if isinstance(value, dict):
        inner = ", ".join(f"{_write_toml(str(k))} = {_write_toml(v)}" for k, v in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_write_toml, value))}]"
    return orjson.dumps(value).decode().replace("\x7f", "\\u007f")
