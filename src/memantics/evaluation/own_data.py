"""Data sets without a dataset config: detect files, splits and columns, and write the config.

``data add PATH`` finds the tables below a path, their splits by name, and their columns by name and
content. Everything ambiguous is asked for in one line. The column of labels is never guessed.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from memantics.benchmarks.dataset_config import DatasetConfig
from memantics.benchmarks.dataset_reader import look_up, parse_cell
from memantics.benchmarks.dataset_tasks import make_card
from memantics.benchmarks.registry import find_own_dataset_configs
from memantics.core.errors import DataError, InputError, UnknownName
from memantics.core.files import replace_file
from memantics.core.language import read_script
from memantics.core.members import BYTES, read_class_names
from memantics.core.result import Result, Table
from memantics.core.seen import SeenKeys
from memantics.core.separated import detect_form
from memantics.core.tables import DATA_ENDINGS, TableRow, read_rows
from memantics.evaluation.options import complete_tasks

_IDS = ("id", "ID", "Id", "id_EXIST", "item", "name", "post_id", "__key__", "key", "编号", "序号")
_SPLITS = ("split", "set", "partition")
_TEXTS = (
    *("text", "caption", "ocr", "ocr_text", "text_corrected", "sentence", "Text", "OCR"),
    *("文本", "文字", "图中文字", "标题"),
)
_IMAGES = (
    *("image", "img", "file_name", "image_name", "img_path", "image_path", "file", "picture"),
    *("图片", "图像", "文件名", "图片名", "图片路径"),
)
_WORDS = {
    "train": ("train", "training", "trainval"),
    "validation": ("val", "valid", "validation", "dev", "development"),
    "test": ("test", "testing"),
}
_SPLIT_OF = {word: split for split, words in _WORDS.items() for word in words}
_NO_TABLES = {"dataset_infos.json", "package.json", "state.json", "dataset_info.json"}
_DEEPEST, _MOST_FILES = 5, 20_000
_MOST_VALUES = 26
_SHARE = 0.05
_LATIN = "Latin letters"
_SHOWN = 5  # unused files that are named


@dataclass(frozen=True, slots=True)
class LabelledColumns:
    """Names of the columns of a table; empty names are detected where possible.

    ``votes`` are columns with a list of labels, one per annotator. ``encoding`` is that of a table
    of separated values.
    """

    labels: Sequence[str] = ()
    image: str = ""
    text: str = ""
    id: str = ""
    split: str = ""
    votes: Sequence[str] = ()
    encoding: str = ""


@dataclass(frozen=True, slots=True)
class FoundSet:
    """The tables of one data set: its folder, and the files of each split ('' if not named).

    ``unused`` are tables beside those of splits, such as a list of sources.
    """

    root: Path
    files: Mapping[str, tuple[Path, ...]]
    unused: tuple[Path, ...] = ()

    def list_names(self, split: str) -> list[str]:
        """Return the files of a split relative to the folder."""
        return [path.relative_to(self.root).as_posix() for path in self.files[split]]


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

    def lines(self) -> Iterator[str]:
        """Summarise the detected columns in readable lines."""
        yield f"{self.rows:,} rows; dataset config: {self.dataset_config}"
        if self.columns:
            told = ", ".join(f"{name} = {column}" for name, column in self.columns.items())
            yield f"columns: {told}" + (f" ({self.form})" if self.form else "")
        yield "splits: " + ", ".join(f"{name} {count:,}" for name, count in self.splits.items())
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
    """One data set of a tree: its name, folder, counts, or the reason why it was not registered."""

    name: str
    folder: str
    memes: int
    splits: Mapping[str, int]
    images: str
    problem: str = ""


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


def is_table(word: str) -> bool:
    """Whether the first argument of ``data add`` is a table rather than a benchmark name."""
    return Path(word).suffix.lower() in DATA_ENDINGS and Path(word).is_file()


def name_split(path: Path, root: Path) -> tuple[str, Path]:
    """Return the split that a file is named after ('' for none), and the folder of its data set.

    >>> name_split(Path("/d/en/harm/val-00000-of-00002.parquet"), Path("/d"))
    ('validation', PosixPath('/d/en/harm'))
    >>> name_split(Path("/d/data/train/metadata.csv"), Path("/d"))
    ('train', PosixPath('/d'))
    """
    folder = path.parent
    split = _read_split(path.stem)
    while folder != root and (_read_split(folder.name, whole=True) or folder.name == "data"):
        split = split or _read_split(folder.name, whole=True)
        folder = folder.parent
    return split, folder


def _read_split(name: str, *, whole: bool = False) -> str:
    words = [name.lower()] if whole else re.split(r"[^a-z]+", name.lower())
    return next((_SPLIT_OF[word] for word in words if word in _SPLIT_OF), "")


def find_sets(folder: Path) -> list[FoundSet]:
    """Find the data sets below a folder: tables that belong together, by folder and split."""
    found: dict[Path, dict[str, list[Path]]] = {}
    count = 0
    for place, folders, names in os.walk(folder):
        depth = len(Path(place).relative_to(folder).parts)
        folders[:] = sorted(n for n in folders if depth < _DEEPEST and not n.startswith("."))
        for name in sorted(names):
            path = Path(place, name)
            if path.suffix.lower() not in DATA_ENDINGS or name in _NO_TABLES or name[0] == ".":
                continue
            count += 1
            if count > _MOST_FILES:
                raise InputError(f"{folder} contains more than {_MOST_FILES:,} tables")
            split, root = name_split(path, folder)
            found.setdefault(root, {}).setdefault(split, []).append(path)
    return [_choose(root, splits) for root, splits in found.items()]


def _choose(root: Path, splits: dict[str, list[Path]]) -> FoundSet:
    """Return the files of each split; raise an error if several forms of a split exist."""
    unused = splits.pop("", []) if len(splits) > 1 else []
    for split, paths in splits.items():
        endings = sorted({path.suffix.lower() for path in paths})
        if len(endings) > 1 or (not split and len(paths) > 1 and ".tar" not in endings):
            named = ", ".join(path.name for path in paths[:5])
            told = f"the split {split}" if split else "the data"
            raise InputError(
                f"{root}: {told} could be any of {named}", hint="give the one file to use"
            )
    order = ("train", "validation", "test", "")
    files = {split: tuple(splits[split]) for split in order if split in splits}
    return FoundSet(root, files, tuple(unused))


def write_own_config(found: FoundSet, columns: LabelledColumns, name: str) -> OwnTable:
    """Detect the columns of a data set and write its dataset config."""
    first = next(iter(found.files.values()))[0]
    row = _read_first(first, columns.encoding)
    known = _find_columns(first, row, columns)
    if any(task == name for task in complete_tasks(name)):
        raise InputError(f"the name {name} is taken by a benchmark", hint="rename the file")
    labels = [_find_label(first, row, label) for label in known.labels]
    labels = _name_apart(labels + [_find_votes(row, column) for column in known.votes])
    counted = _count(found, known, labels)
    # Numbers that start again in each split are no ids, nor is an image with several texts.
    repeats = counted.shared or (counted.disputed and known.id == known.image)
    renamed = known.id if repeats and not columns.id else ""
    if renamed:
        known = replace(known, id="")
    elif counted.disputed:
        raise DataError(
            first.name,
            f"rows with the {known.id} {counted.disputed!r} have different labels",
            hint="give one row per meme, with a list of votes (--votes), or name other ids (--id)",
        )
    path = find_own_dataset_configs() / f"{name}.toml"
    body, config = _dump_dataset_config(found, known, counted, labels)
    make_card(name, config)  # an error here leaves nothing behind
    replace_file(path, body.encode(), "dataset config")
    told = {n: c for n, c in config.columns.model_dump().items() if c}
    form = (
        detect_form(first, encoding=columns.encoding).words
        if first.suffix.lower() in (".csv", ".tsv")
        else ""
    )
    return OwnTable(
        name,
        path,
        counted.rows,
        dict(counted.splits),
        dict(counted.scripts.most_common()),
        counted.duplicates,
        {label.column: dict(counted.values[label.column].most_common()) for label in labels},
        told | {f"label {label.key}": label.column for label in labels},
        form,
        f"column {renamed!r}" if renamed else "",
        tuple(path.name for path in found.unused[:_SHOWN]),
    )


def write_tree_config(config: DatasetConfig, found: FoundSet, place: str, name: str) -> Path:
    """Write the dataset config of one set of a tree, from the config of such trees."""
    files = {split or "test": tuple(found.list_names(split)) for split in found.files}
    made = config.model_copy(
        update={"title": f"{config.title}: {place}", "files": files, "tree": False, "counts": {}}
    )
    path = find_own_dataset_configs() / f"{name}.toml"
    replace_file(path, dump_config(made).encode(), "dataset config")
    return path


def make_name(text: str) -> str:
    """Return a name of a data set made from the name of a file or folder.

    >>> make_name("My memes"), make_name("en/Hateful-Memes")
    ('my_memes', 'en_hateful_memes')
    """
    return re.sub(r"[^a-z0-9_]+", "_", text.lower()).strip("_") or "table"


def _read_first(path: Path, encoding: str) -> TableRow:
    for _, row in read_rows(path, detect=True, encoding=encoding):
        return row
    raise DataError(path.name, "has no rows", hint="give a table with one row per meme")


def _find_columns(file: Path, row: TableRow, wanted: LabelledColumns) -> LabelledColumns:
    """Find the columns that the user named, and detect the others by their column names."""
    named = [name for name in row if not name.endswith(BYTES)]
    for column in (wanted.image, wanted.text, wanted.id, wanted.split, *wanted.votes):
        if column and column not in row and column + BYTES not in row:
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
    found = wanted.id or next((name for name in _IDS if name in row and name not in taken), "")
    if not found and image and image not in embedded:
        found = image
    split = wanted.split or next((name for name in row if name.lower() in _SPLITS), "")
    return replace(wanted, image=image, text=text, id=found, split=split)


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
class _Label:
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


def _name_apart(labels: Sequence[_Label]) -> list[_Label]:
    """Number the labels whose names in the config would be equal."""
    taken = Counter[str]()
    named = []
    for label in labels:
        taken[label.key] += 1
        count = taken[label.key]
        named.append(replace(label, key=f"{label.key}_{count}") if count > 1 else label)
    return named


def _find_label(file: Path, row: TableRow, name: str) -> _Label:
    key = _make_key(name)
    column, dot, inner = name.partition(".")
    records = bool(dot) and name not in row and row.get(column, "").startswith("[")
    nested = bool(dot) and row.get(column, "").startswith("{")
    if name not in row and not records and not nested:
        raise UnknownName(f"column of {file.name}:", name, [c for c in row if BYTES not in c])
    names = read_class_names(file, name) if file.suffix.lower() == ".parquet" else ()
    votes = {"prefix": f"{name}:"} if any(c.startswith(f"{name}:") for c in row) else {}
    if records:
        return _Label(column, key, several=True, record_field=inner)
    several = row.get(name, "").startswith("[")
    if several and len(_list_annotators(row, name)) > 0:
        return _find_votes(row, name)
    return _Label(
        name, key, several, values={str(place): one for place, one in enumerate(names)}, votes=votes
    )


def _find_votes(row: TableRow, column: str) -> _Label:
    """Detect the lists of annotators and of their attributes: those named ``…annotators``."""
    key = _make_key(column)
    cell = _load(row[column])
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
    return _Label(column, key, several=any(isinstance(v, list) for v in cell), votes=votes)


def _list_annotators(row: TableRow, column: str) -> list[str]:
    """Return the lists of annotators and their attributes, which are as long as that of votes."""
    cell = _load(row[column])
    size = len(cell) if isinstance(cell, list) else -1
    found = []
    for name, other in row.items():
        values = _load(other) if name != column and "annotator" in name.lower() else None
        if isinstance(values, list) and len(values) == size:
            found.append(name)
    return found


def _load(cell: str) -> object:
    return parse_cell(cell) if cell.startswith("[") else None


@dataclass(slots=True)
class _Counted:
    """The counts of one pass over the rows.

    ``shared`` counts ids of an earlier split, ``disputed`` is an id with two labels in one split.
    """

    rows: int = 0
    splits: Counter[str] = field(default_factory=Counter)
    scripts: Counter[str] = field(default_factory=Counter)
    duplicates: int = 0
    shared: int = 0
    disputed: str = ""
    values: dict[str, Counter[str]] = field(default_factory=dict)


def _count(found: FoundSet, known: LabelledColumns, labels: Sequence[_Label]) -> _Counted:
    """Count rows, splits, scripts, duplicates and label values; rows are not kept."""
    counted = _Counted(values={label.column: Counter() for label in labels})
    named = bool([split for split in found.files if split])
    with SeenKeys() as seen, SeenKeys() as ids:
        for split, paths in found.files.items():
            for path in paths:
                for _, row in read_rows(path, detect=True, encoding=known.encoding):
                    counted.rows += 1
                    given = split if named else row.get(known.split, "") if known.split else "test"
                    counted.splits[given] += 1
                    if name := row.get(known.id, "") if known.id else "":
                        gold = "\0".join(look_up(row, label.column) or "" for label in labels)
                        _count_id(counted, name, (given, gold), ids)
                    _count_row(counted, row, known, labels, seen)
    if "" in counted.splits:
        hint = "fill it, or name another split column with --split-column NAME"
        problem = f"{counted.splits['']} rows have no value in the column {known.split!r}"
        raise DataError(next(iter(found.files.values()))[0].name, problem, hint=hint)
    for label in labels:
        counts = counted.values[label.column]
        least = 1 if label.several else 2
        if not label.votes and not least <= len(counts) <= _MOST_VALUES * (4 if least == 1 else 1):
            raise DataError(
                next(iter(found.files.values()))[0].name,
                f"column {label.column!r} has {len(counts)} different values",
                hint=f"a label column has 2 to {_MOST_VALUES} values: name another column",
            )
    return counted


def _count_id(counted: _Counted, name: str, facts: tuple[str, str], ids: SeenKeys) -> None:
    """Compare split and labels of a row with those of the first row that has its id."""
    earlier = ids.add(name, "\0".join(facts))
    if earlier is None:
        return
    split, _, gold = earlier.partition("\0")
    if split != facts[0]:
        counted.shared += 1
    elif gold != facts[1]:
        counted.disputed = counted.disputed or name


def _count_row(
    counted: _Counted,
    row: TableRow,
    known: LabelledColumns,
    labels: Sequence[_Label],
    seen: SeenKeys,
) -> None:
    text = row.get(known.text, "") if known.text else ""
    if known.text:
        counted.scripts[_tell_script(text)] += 1
    keys = [(name, row.get(name, "").strip()) for name in (known.text, known.image) if name]
    new = [seen.add(f"{name}\0{value}") is None for name, value in keys if value]
    counted.duplicates += not all(new)
    for label in labels:
        cell = look_up(row, label.column) or ""
        values = _load(cell) if label.several or label.votes else [cell]
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
    found: FoundSet, known: LabelledColumns, counted: _Counted, labels: Sequence[_Label]
) -> tuple[str, DatasetConfig]:
    names = {"id": known.id, "text": known.text, "image": known.image}
    named = bool([split for split in found.files if split])
    if not named and known.split:
        names["split"] = known.split
    paths = [name for split in found.files for name in found.list_names(split)]
    files = {split: tuple(found.list_names(split) if named else paths) for split in counted.splits}
    whole = ", ".join(paths[:3]) + (", …" if len(paths) > 3 else "")
    facts = {
        "title": Path(paths[0]).stem if len(paths) == 1 and not named else found.root.name,
        "summary": f"The table {whole}.",
        "languages": _pick_languages(counted.scripts),
        "source": "your own table",
        "licence": "unknown",
        "citation": "none",
        "files": files,
        "encoding": known.encoding,
        "columns": {name: column for name, column in names.items() if column},
        "label": {label.key: _describe_label(label) for label in labels},
    }
    config = DatasetConfig.model_validate(facts)
    return dump_config(config), config


def _describe_label(label: _Label) -> dict[str, object]:
    facts: dict[str, object] = {"what": label.column}
    if not label.votes or "prefix" in label.votes:
        facts["column"] = label.column
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
    return orjson.dumps(value).decode()
