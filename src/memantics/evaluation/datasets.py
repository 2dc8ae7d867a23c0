"""List benchmarks, data sets and model types, and register dataset releases or your own tables.

``data add FILE`` detects the columns of a table and writes its dataset config.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, overload

import orjson
from pydantic import JsonValue

from memantics.benchmarks.registry import (
    Benchmark,
    find_benchmark,
    find_benchmarks,
    find_dataset_configs,
    find_own_dataset_configs,
    find_source,
    find_tasks,
)
from memantics.core.data import DataKind, Found, Source, Statistic
from memantics.core.errors import DataError, InputError, MissingExtra, UnknownName
from memantics.core.files import replace_file
from memantics.core.language import read_script
from memantics.core.parameters import Argument, DataFlag, Flag, MadeBy
from memantics.core.records import Item
from memantics.core.registry import Registered, find_registered, read_registry, write_registered
from memantics.core.result import Result, Table, html_table, make_frame, show_cell, to_plain
from memantics.core.tables import TABLE_ENDINGS, TableRow, read_rows
from memantics.evaluation.facts import Scope
from memantics.evaluation.options import complete_tasks
from memantics.evaluation.tasks import pose_task
from memantics.models.kinds import MODEL_KINDS

_IDS, _SPLITS = ("id", "ID", "item", "name"), ("split", "set", "partition")
_MOST_VALUES = 26
_SHARE = 0.05
_LATIN = "Latin letters"


@dataclass(frozen=True, slots=True)
class LabelledColumns:
    """Names of the columns of a table; empty names are detected where possible."""

    labels: Sequence[str] = ()
    image: str = ""
    text: str = ""
    id: str = ""
    split: str = ""


@dataclass(frozen=True, slots=True)
class OwnTable(Result):
    """The detected columns of a user's table, and the dataset config written for it."""

    name: str
    dataset_config: Path
    rows: int
    splits: dict[str, int]
    languages: dict[str, int]
    duplicates: int
    labels: dict[str, dict[str, int]]

    def lines(self) -> Iterator[str]:
        """Summarise the detected columns in readable lines."""
        yield f"{self.rows:,} rows; dataset config: {self.dataset_config}"
        yield "splits: " + ", ".join(f"{name} {count:,}" for name, count in self.splits.items())
        if self.languages:
            told = (f"{name} {n:,}" for name, n in self.languages.items())
            yield "languages of the texts: " + ", ".join(told)
        if self.duplicates:
            yield f"{self.duplicates:,} rows repeat a text or an image of another row"
        for label, counts in self.labels.items():
            whole = sum(counts.values())
            shares = (f"{value} {100 * n / whole:.1f} %" for value, n in counts.items())
            yield f"{label}: " + ", ".join(shares)


def is_table(word: str) -> bool:
    """Whether the first argument of ``data add`` is a table rather than a benchmark name."""
    return Path(word).suffix.lower() in TABLE_ENDINGS and Path(word).is_file()


def write_dataset_config(file: Path, columns: LabelledColumns) -> OwnTable:
    """Detect the columns of a table and write its dataset config, named after the file."""
    rows = [row for _, row in read_rows(file)]
    if not rows:
        raise DataError(file.name, "has no rows", hint="give a table with one row per meme")
    known = _find_columns(file, rows[0], columns)
    name = re.sub(r"[^a-z0-9_]+", "_", file.stem.lower()).strip("_") or "table"
    if any(task == name for task in complete_tasks(name)):
        raise InputError(f"the name {name} is taken by a benchmark", hint="rename the file")
    labels = {label: _count_values(file, rows, label) for label in known.labels}
    splits = (
        Counter(row.get(known.split, "") for row in rows) if known.split else {"test": len(rows)}
    )
    if "" in splits:
        hint = "fill it, or name another split column with --split-column NAME"
        raise DataError(
            file.name, f"{splits['']} rows have no value in the column {known.split!r}", hint=hint
        )
    scripts = Counter(_tell_script(row[known.text]) for row in rows) if known.text else Counter()
    told = scripts.most_common()
    dataset_config = find_own_dataset_configs() / f"{name}.toml"
    body = _dump_dataset_config(file, known, list(splits), _pick_languages(scripts), labels)
    replace_file(dataset_config, body.encode(), "dataset config")
    return OwnTable(
        name,
        dataset_config,
        len(rows),
        dict(splits),
        dict(told),
        _count_duplicates(rows, known),
        labels,
    )


def _find_columns(file: Path, row: TableRow, wanted: LabelledColumns) -> LabelledColumns:
    """Find the columns that the user named, and detect the others by their column names."""
    for named in (*wanted.labels, wanted.image, wanted.text, wanted.id, wanted.split):
        if named and named not in row:
            raise UnknownName(f"column of {file.name}:", named, row)
    if not wanted.labels:
        hint = f"name the label column with --label NAME; columns: {', '.join(list(row)[:12])}"
        raise InputError(f"{file.name}: no label column was found", hint=hint)
    if not (wanted.text or wanted.image):
        hint = "name one with --text NAME or --image NAME"
        raise InputError(
            f"{file.name}: neither a text column nor an image column was found", hint=hint
        )
    found = wanted.id or next((name for name in _IDS if name in row), "") or wanted.image
    if not found:
        raise InputError(f"{file.name}: no id column was found", hint="name it with --id NAME")
    split = wanted.split or next((name for name in _SPLITS if name in row), "")
    return LabelledColumns(wanted.labels, wanted.image, wanted.text, found, split)


def _count_values(file: Path, rows: Sequence[TableRow], label: str) -> dict[str, int]:
    counts = Counter(row.get(label, "") for row in rows)
    del counts[""]
    if not 2 <= len(counts) <= _MOST_VALUES:
        raise DataError(
            file.name,
            f"column {label!r} has {len(counts)} different values",
            hint=f"a label column has 2 to {_MOST_VALUES} values: name another column",
        )
    return dict(counts.most_common())


def _count_duplicates(rows: Sequence[TableRow], known: LabelledColumns) -> int:
    """Count rows that repeat the text or image of an earlier row."""
    seen: set[tuple[str, str]] = set()
    count = 0
    for row in rows:
        keys = {(name, row[name].strip()) for name in (known.text, known.image) if name}
        keys = {key for key in keys if key[1]}
        count += bool(keys & seen)
        seen |= keys
    return count


def _tell_script(text: str) -> str:
    """Guess the language of texts from their script; Latin letters count as English."""
    return read_script(text) or (_LATIN if any(map(str.isalpha, text)) else "no letters")


def _pick_languages(scripts: Counter[str]) -> list[str]:
    whole = sum(scripts.values())
    names = {"en": _LATIN, "zh": "zh"}
    return [key for key, name in names.items() if scripts[name] > _SHARE * whole] or ["en"]


def _dump_dataset_config(
    file: Path,
    known: LabelledColumns,
    splits: Sequence[str],
    languages: Sequence[str],
    labels: dict[str, dict[str, int]],
) -> str:
    """Write the dataset config as TOML; JSON strings are valid TOML strings."""

    def text(value: object) -> str:
        return orjson.dumps(value).decode()

    names = {"id": known.id, "text": known.text, "image": known.image, "split": known.split}
    told = ", ".join(f"{name} = {text(value)}" for name, value in names.items() if value)
    lines = [
        "# Written by 'memantics data add'; docs/how-to/use-your-data.md explains the fields.",
        f"title = {text(file.stem)}",
        f"summary = {text(f'The table {file.name}.')}",
        f"languages = {text(list(languages))}",
        'source = "your own table"',
        'licence = "unknown"',
        'citation = "none"',
        *(f"files.{text(split)} = [{text(file.name)}]" for split in splits),
        f"columns = {{ {told} }}",
    ]
    for label in labels:
        key = re.sub(r"[^A-Za-z0-9_]+", "_", label).strip("_").lower() or "label"
        lines += ["", f"[label.{text(key)}]", f"what = {text(label)}", f"column = {text(label)}"]
    return "\n".join(lines) + "\n"


_SHOWN = 5


BenchmarkArgument = Annotated[str, Argument("Benchmark, such as mquest.")]


@dataclass(frozen=True, slots=True)
class BenchmarkInfo(Result):
    """A benchmark, its tasks, and its registered release, if any."""

    name: str
    title: str
    languages: tuple[str, ...]
    tasks: tuple[str, ...]
    runnable: bool
    release: Registered | None


@dataclass(frozen=True, slots=True)
class ModelKindInfo(Result):
    """One type of model: the form of its names, and the backend that answers."""

    name: str
    what: str


def list_benchmarks() -> list[BenchmarkInfo]:
    """List the built-in benchmarks, those in ``$MEMANTICS_BENCHMARKS``, and published ones.

    A dataset config is listed once a copy of its data is registered.

    Returns:
        One record per benchmark: name, title, tasks, languages and the registered release.

    Example:
        >>> [benchmark.name for benchmark in mm.list_benchmarks()]  # doctest: +SKIP
        ['memeintent', 'mer_bench', 'mquest', 'punmemecn', 'toxicn_mm']
    """
    registered = read_registry()
    dataset_configs = {
        name: dataset_config
        for name, dataset_config in find_dataset_configs().items()
        if name in registered
    }
    return [
        BenchmarkInfo(
            name,
            benchmark.card.title,
            tuple(benchmark.card.languages),
            tuple(f"{name}/{task.name}" for task in benchmark.card.task),
            benchmark.runnable,
            registered.get(name),
        )
        for name, benchmark in (find_benchmarks() | dataset_configs).items()
    ]


def tabulate_benchmarks(known: Sequence[BenchmarkInfo]) -> Table:
    """Make the table of benchmarks, tasks and release folders."""
    rows = []
    for info in known:
        tasks, entry = ", ".join(task.partition("/")[2] for task in info.tasks), info.release
        where = f"{entry.records:,} in {entry.root}" if entry else "sample only"
        rows.append((info.name, tasks if info.runnable else f"({tasks}: read only)", where))
    return Table(("benchmark", "tasks", "release"), tuple(rows))


def list_models() -> list[ModelKindInfo]:
    """List the model kinds and their names.

    Returns:
        One record per model type. For a plug-in that cannot be loaded, the record gives the reason.

    Example:
        >>> [kind.name for kind in mm.list_models()][:1]  # doctest: +SKIP
        ['openai/NAME']
    """
    return [
        ModelKindInfo(f"{name}/…", str(kind))
        if isinstance(kind, InputError)
        else ModelKindInfo(kind.example, kind.what)
        for name, kind in MODEL_KINDS.all()
    ]


@dataclass(frozen=True, slots=True)
class Dataset(Result, Sequence[Item]):
    """The items of a task, each with images, question and gold answer."""

    task: str
    split: str
    data: DataKind
    items: tuple[Item, ...]

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, place: int | slice) -> Item | tuple[Item, ...]:
        return self.items[place]

    def __len__(self) -> int:
        return len(self.items)

    def rows(self) -> list[dict[str, JsonValue]]:
        """One flat record per item."""
        return [_flatten(item) for item in self.items]

    def to_pandas(self) -> Any:
        """Convert to a data frame with one row per item."""
        return make_frame(self.rows())

    def to_hf(self) -> Any:
        """Convert to a ``datasets.Dataset`` whose column ``image`` holds the images."""
        try:
            import datasets
        except ImportError:
            raise MissingExtra("Hugging Face data sets", "frames") from None
        made = datasets.Dataset.from_list(self.rows())
        return made.cast_column("image", datasets.Image()) if len(self) else made

    def _repr_html_(self) -> str:
        title = f"<p>{self.task}, split {self.split}, {self.data} data: {len(self)} items</p>"
        return title + "".join(html_table(_flatten(item)) for item in self.items[:_SHOWN])


def _flatten(item: Item) -> dict[str, JsonValue]:
    options = [
        f"{option.key}. {option.text}" for part in item.form.fields for option in part.options
    ]
    return {
        "id": item.id,
        "meme": item.group,
        "image": str(item.images[0].path) if item.images else None,
        "images": [str(image.path) for image in item.images],
        "question": item.form.question,
        "options": list(options),
        "gold": item.gold if isinstance(item.gold, str | int | float) else _write(item.gold),
        **{f"context.{name}": text for name, text in item.form.context.items()},
        **{f"tag.{name}": text for name, text in item.tags.items()},
    }


def _write(gold: JsonValue) -> JsonValue:
    """Convert lists and records to text, since a column contains values of one type."""
    import orjson

    return None if gold is None else orjson.dumps(gold).decode()


def load_dataset(
    name: str,
    *,
    split: str | None = None,
    data: DataKind | None = None,
    task: str | None = None,
) -> Dataset:
    """Load the items of a benchmark's task.

    Args:
        name: ``NAME`` or ``NAME/TASK``.
        split: A named part of the data. Default: the task's default split.
        data: ``release`` or ``sample``. Default: a registered release, else the sample data.
        task: The task, if ``name`` has none. Default: the benchmark's first.

    Returns:
        The items as a sequence; ``to_pandas()`` and ``to_hf()`` convert it.

    Raises:
        UnknownName: The benchmark or task does not exist.
        DataError: The data are missing or damaged.

    Example:
        >>> data = mm.load_dataset("punmemecn", split="test")  # doctest: +SKIP
        >>> len(data), data[0]  # doctest: +SKIP
    """
    found = find_tasks([name if task is None else f"{name}/{task}"])[0]
    posed = pose_task(found, {}, Scope(data, split))
    return Dataset(found.name, posed.split, posed.data.kind, tuple(posed.task.items()))


@dataclass(frozen=True, slots=True)
class Survey(Result):
    """The content of a copy of a benchmark's data, with recomputed statistics of the paper."""

    benchmark: Benchmark
    data: DataKind
    found: Found
    statistics: tuple[Statistic, ...]
    told: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, JsonValue]:
        """Convert to plain data."""
        release = self.benchmark.card.release
        return {
            "benchmark": self.benchmark.card.name,
            "data": self.data,
            "records": self.found.records,
            "complete": release.complete if release else None,
            "checksum": self.found.checksum,
            "found": to_plain(self.found),
            "statistics": to_plain(self.statistics),
        }


def tabulate_statistics(rows: Sequence[Statistic]) -> Table:
    """Tabulate statistics beside the paper's; ``*`` marks those that need the complete release."""
    columns = ("metric", ">paper", ">this copy", "verdict")
    return Table(columns, tuple(map(_show_statistic, rows)), "Recomputed from this copy")


def _show_statistic(row: Statistic) -> tuple[str, ...]:
    paper = row.paper if row.paper is not None else row.known
    mark = "" if row.paper is not None or row.known is None else "*"
    return row.title, show_cell(paper) + mark, show_cell(row.value), row.verdict


def describe_found(survey: Survey) -> Iterator[str]:
    """Describe a copy of the data: its size, then counts, repairs, excluded rows and notes."""
    found, card = survey.found, survey.benchmark.card
    size, release = f"{found.records:,}", card.release
    if survey.data == "sample":
        size += " (sample, not the release)"
    elif release is not None and found.records < release.complete:  # 0: the images were not counted
        size += f" of {release.complete:,}: an incomplete copy, so counts differ from the paper"
    yield f"{card.title}: {size}"
    yield ", ".join(f"{name} {count:,}" for name, count in found.counts.items())
    if found.images_expected:
        yield f"images: {found.images_found:,} of {found.images_expected:,}"
    for what, count in found.repairs.items():
        yield f"repaired: {what}: {count:,}"
    for reason, count in Counter(skip.reason for skip in found.skips).items():
        yield f"excluded: {count:,} × {reason}"
    yield from survey.told
    yield from (f"note: {note}" for note in found.notes)


def survey_data(name: BenchmarkArgument, data: DataFlag = None) -> Survey:
    """Read a benchmark's data and recompute the paper's statistics from them."""
    benchmark = find_benchmark(name)
    return _survey(benchmark, find_source(benchmark, data))


def add_release(
    name: Annotated[str, Argument("Benchmark (such as mquest), data folder, or table.")],
    folder: Annotated[
        Path | None,
        Argument("Folder with the downloaded or cloned release; not needed for a table."),
    ] = None,
    images: Annotated[Path | None, Flag("Image folder, if separate from the release.")] = None,
    columns: Annotated[LabelledColumns, MadeBy(make_columns)] | None = None,
) -> Survey:
    """Check and register an official release; for your own table, write a dataset config."""
    told: tuple[str, ...] = ()
    if is_table(name):
        if folder is not None:
            raise InputError("a table needs no folder", hint=f"memantics data add {name} --label …")
        made = write_dataset_config(Path(name), columns or LabelledColumns())
        told, folder, name = tuple(made.lines()), Path(name).resolve().parent, made.name
    elif folder is None:
        if not Path(name).is_dir():
            known = "give the folder you cloned or unpacked, or a table (.csv, .tsv, .json, .jsonl)"
            raise InputError(
                f"the folder of {name} is missing", hint=f"memantics data add NAME FOLDER: {known}"
            )
        folder, name = Path(name), _recognise(Path(name))
        told = (f"recognised by its files: {name}",)
    benchmark = find_benchmark(name)
    source = Source("release", _find_folder(folder), _find_folder(images) if images else None)
    survey = replace(_survey(benchmark, source), told=told)
    write_registered(
        Registered(
            name=name,
            root=source.root,
            images=source.images,
            records=survey.found.records,
            checksum=survey.found.checksum,
            added=datetime.now(UTC).isoformat(timespec="seconds"),
        )
    )
    return survey


def make_columns(
    label: Annotated[Sequence[str], Flag("Label column of your table; repeatable.")] = (),
    image: Annotated[str, Flag("Column with image files.", metavar="COLUMN")] = "",
    text: Annotated[str, Flag("Column with captions.", metavar="COLUMN")] = "",
    id: Annotated[  # noqa: A002 - the name of the flag
        str, Flag("Column with row ids. Default: id, else the image column.", metavar="COLUMN")
    ] = "",
    split_column: Annotated[
        str, Flag("Column with split names. Default: split.", metavar="COLUMN")
    ] = "",
) -> LabelledColumns:
    """Collect the column names that a user gives on the command line."""
    return LabelledColumns(tuple(label), image, text, id, split_column)


def check_release(name: BenchmarkArgument) -> tuple[Survey, Registered]:
    """Read a registered release again; its checksum may differ from the registered one."""
    entry = find_registered(name)
    return _survey(find_benchmark(name), entry.source), entry


def refuse_changed(survey: Survey, entry: Registered) -> None:
    """Raise an error if the files differ from those that were registered."""
    checksum = survey.found.checksum
    if checksum != entry.checksum:
        raise InputError(
            f"{entry.name}: the files changed since {entry.added} (checksum {checksum[:12]},"
            f" was {entry.checksum[:12]})",
            hint=f"to accept the change, run memantics data add {entry.name} {entry.root}",
        )


def _survey(benchmark: Benchmark, source: Source) -> Survey:
    release = benchmark.open(source)
    statistics = benchmark.compare(benchmark.recompute(release))
    return Survey(benchmark, source.kind, benchmark.survey(release), tuple(statistics))


def _recognise(folder: Path) -> str:
    """Find the data set whose files are in a folder; raise an error if none or several match."""
    known, found = find_benchmarks() | find_dataset_configs(), []
    for name, benchmark in known.items():
        with suppress(InputError):
            benchmark.open(Source("release", folder.resolve()))
            found.append(name)
    if len(found) != 1:
        problem = (
            "several data sets have files with these names"
            if found
            else "no data set has these files"
        )
        names = ", ".join(found or sorted(known))
        hint = f"run memantics data add NAME {folder}, where NAME is one of {names}"
        raise InputError(f"the data set in {folder} is not recognised: {problem}", hint=hint)
    return found[0]


def _find_folder(path: Path) -> Path:
    if not path.is_dir():
        raise InputError(f"no such folder: {path}", hint="give the folder you cloned or unpacked")
    return path.resolve()
