"""List benchmarks, data sets and model types, and register dataset releases or your own tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, overload

import orjson
from pydantic import JsonValue

from memantics.benchmarks.dataset_config import DatasetConfig, read_dataset_config
from memantics.benchmarks.dataset_reader import ConfiguredRelease, probe_dataset_config
from memantics.benchmarks.published import TRUNCATES
from memantics.benchmarks.registry import (
    Benchmark,
    add_published,
    find_benchmark,
    find_benchmarks,
    find_dataset_configs,
    find_own_dataset_configs,
    find_source,
    find_tasks,
)
from memantics.core.data import DataKind, Found, Source, Statistic
from memantics.core.errors import InputError, MissingExtra
from memantics.core.files import read_regular, replace_file
from memantics.core.parameters import Argument, DataFlag, Flag, MadeBy
from memantics.core.records import Item
from memantics.core.registry import Registered, find_registered, read_registry, write_registered
from memantics.core.result import Result, Table, html_table, make_frame, show_cell, to_plain
from memantics.evaluation.data_page import write_page
from memantics.evaluation.facts import Scope
from memantics.evaluation.own_columns import LabelledColumns, make_columns
from memantics.evaluation.own_data import AddedSet, write_own_config, write_tree_config
from memantics.evaluation.own_files import (
    FoundSet,
    find_class_folders,
    find_sets,
    is_table,
    make_name,
    name_split,
)
from memantics.evaluation.recognition import (
    UNPACK,
    are_disjoint,
    choose_own,
    explain_misfit,
    list_packed,
    prefer_specific,
    recognise,
)
from memantics.evaluation.tasks import pose_task
from memantics.models.kinds import MODEL_KINDS

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
        >>> [benchmark.name for benchmark in mm.list_benchmarks()]
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
        >>> [kind.name for kind in mm.list_models()][:1]
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
        >>> data = mm.load_dataset("punmemecn", split="test")
        >>> len(data), data[0].id, data[0].gold
        (9, 'CN90003', 'pun')
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
    sets: tuple[AddedSet, ...] = ()
    profile: tuple[str, ...] = ()
    page: Path | None = None
    split: str = ""

    @property
    def command(self) -> str:
        """The command that scores a baseline on the data, with a split that has labels."""
        split = f" --split {self.split}" if self.split else ""
        name = self.benchmark.card.name
        return f"memantics run {name} --model baseline/majority --data release{split}"

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
            **({"sets": to_plain(self.sets)} if self.sets else {}),
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
        size += f" of {release.complete:,}: an incomplete copy, not compared with the paper"
    yield f"{card.title}: {size}"
    yield ", ".join(f"{name} {count:,}" for name, count in found.counts.items())
    if found.images_expected:
        yield f"images: {found.images_found:,} of {found.images_expected:,}"
    for what, count in found.repairs.items():
        yield f"repaired: {what}: {count:,}"
    for reason, count in Counter(skip.reason for skip in found.skips).items():
        yield f"excluded: {count:,} × {reason}"
    yield from survey.told
    yield from survey.profile
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
    called: Annotated[
        str, Flag("Name of your data set. Default: that of the file or folder.", flags="--name")
    ] = "",
) -> Survey:
    """Check and register an official release; for your own data, write a dataset config.

    Args:
        name: A benchmark, or a path: a table, a folder of tables, or a tree of data sets.
        folder: The folder of the release, if ``name`` is a benchmark.
        images: The folder of images. Default: images are searched beside the tables.
        columns: The columns of your own data. Default: detected, except for labels.
        called: The name of your own data set. Default: made from the file or folder.

    Returns:
        The content of the data. ``sets`` lists the data sets of a tree, one per folder.

    Raises:
        InputError: The data are not recognised, or something about them is ambiguous.

    Example:
        >>> survey = add_release("mquest", Path("clone"))  # doctest: +SKIP
    """
    images = _find_folder(images) if images else None
    if folder is not None:
        if is_table(name):
            raise InputError("a table needs no folder", hint=f"memantics data add {name} --label …")
        place = _find_folder(folder)
        if (published := add_published(place)) is not None and published.card.name == name:
            return _survey(published, published.sample())
        return _register(name, Source("release", place, images))
    path = Path(name)
    if path.is_file() and not is_table(name):
        raise InputError(f"{path.name} is not a table that can be read", hint=UNPACK)
    if not path.is_dir() and not is_table(name):
        known = "give the folder you cloned or unpacked, or a table (.csv, .tsv, .json, .jsonl)"
        raise InputError(
            f"the folder of {name} is missing", hint=f"memantics data add NAME FOLDER: {known}"
        )
    return _add_path(path.resolve(), images, columns or LabelledColumns(), called)


def _add_path(path: Path, images: Path | None, columns: LabelledColumns, called: str) -> Survey:
    """Register the data at a path: with a known config, as a tree, or as data of your own."""
    root = path if path.is_dir() else path.parent
    if (published := add_published(root)) is not None:
        return _survey(published, published.sample())
    name = make_name(called or (path.stem if path.is_file() else path.name))
    misfits: dict[str, str] = {}
    recognised = [] if columns.given else choose_own(recognise(path, misfits), name, called)
    recognised = prefer_specific(recognised, root)
    if len(recognised) > 1 and are_disjoint(recognised, root):
        return _add_all(recognised, root, images)
    if len(recognised) == 1:
        survey = _register(recognised[0], Source("release", root, images))
        return replace(survey, told=(f"recognised by its files: {recognised[0]}",))
    if path.is_file():
        split = name_split(path, root)[0]
        found = [FoundSet(root, {split: (path,)})]
    else:
        found = find_sets(path)
        if not (found or recognised) and (folders := find_class_folders(path)) is not None:
            found = [folders]
    packed = [] if recognised or found else list_packed(path)
    if packed:
        raise InputError(f"{path} contains no table, but {', '.join(packed)}", hint=UNPACK)
    if not (recognised or found) and len(misfits) == 1:
        raise explain_misfit(misfits)
    if recognised or not found:
        problem = (
            "several data sets have files with these names"
            if recognised
            else "no data set has these files"
        )
        names = ", ".join(recognised or sorted(find_benchmarks() | find_dataset_configs()))
        hint = f"run memantics data add NAME {root}, where NAME is one of {names}"
        raise InputError(f"the data set in {path} is not recognised: {problem}", hint=hint)
    try:
        if len(found) > 1:
            return _add_tree(path, found, images, columns, called)
        return _add_own(replace(found[0], root=root), images, columns, name)
    except InputError as error:
        if columns.given or len(misfits) != 1:
            raise
        raise explain_misfit(misfits, f"; as data of your own: {error}") from error


def _add_all(names: Sequence[str], root: Path, images: Path | None) -> Survey:
    """Register several data sets of one folder."""
    surveys = [_register(name, Source("release", root, images)) for name in names]
    sets = [_describe_added(n, ".", survey) for n, survey in zip(names, surveys, strict=True)]
    return replace(surveys[-1], sets=tuple(sets))


def _describe_added(name: str, place: str, survey: Survey) -> AddedSet:
    found = survey.found
    splits = {k.removeprefix("split "): n for k, n in found.counts.items() if k != "memes"}
    pictures = f"{found.images_found:,} of {found.images_expected:,}"
    missing = found.notes[-1] if found.images_found < found.images_expected else ""
    return AddedSet(name, place, found.records, splits, pictures, note=missing)


def _add_own(found: FoundSet, images: Path | None, columns: LabelledColumns, name: str) -> Survey:
    """Register one data set without a config; a config for trees also fits one folder."""
    entry = read_registry().get(name)
    if entry is not None and entry.root != found.root and entry.root.is_dir():
        raise InputError(
            f"the name {name} belongs to the data in {entry.root}",
            hint="name these data with --name NAME",
        )
    known = None if columns.given else _find_tree_config(found)
    path = find_own_dataset_configs() / f"{name}.toml"
    before = read_regular(path) if path.is_file() else None
    try:
        if known is not None:
            write_tree_config(known, found, found.root.name, name)
            told = [f"recognised by its columns: {known.title}"]
        else:
            told = list(write_own_config(found, columns, name).lines())
        survey = _register(name, Source("release", found.root, images))
    except InputError:
        # An earlier registration of these data stays as it was.
        if before is not None:
            replace_file(path, before, "dataset config")
        else:
            path.unlink(missing_ok=True)
        raise
    return replace(survey, told=tuple(told))


def _find_tree_config(found: FoundSet) -> DatasetConfig | None:
    """Return the dataset config for trees of data sets whose columns a folder has."""
    for benchmark in find_dataset_configs().values():
        if benchmark.dataset_config is None:
            continue
        config = read_dataset_config(benchmark.dataset_config)
        if config.tree:
            files = {split or "test": tuple(found.list_names(split)) for split in found.files}
            with suppress(InputError):
                probe_dataset_config(
                    config.model_copy(update={"files": files}), Source("release", found.root)
                )
                return config
    return None


def _add_tree(
    root: Path,
    found: Sequence[FoundSet],
    images: Path | None,
    columns: LabelledColumns,
    called: str,
) -> Survey:
    """Register every data set of a tree; those that cannot be read are listed with the reason."""
    sets: list[AddedSet] = []
    last: Survey | None = None
    for one in found:
        place = one.root.relative_to(root).as_posix()
        first = called or root.name
        name = make_name(first if place == "." else f"{first}_{place}")
        try:
            last = _add_own(one, images, columns, name)
            sets.append(_describe_added(name, place, last))
        except InputError as error:
            sets.append(AddedSet(name, place, 0, {}, "", str(error)))
    if last is None:
        raise InputError(
            f"{root}: none of {len(found)} data sets could be read; {sets[0].folder}:"
            f" {sets[0].problem}",
            hint="name the label column with --label NAME",
        )
    return replace(last, sets=tuple(sets), told=())


def _register(name: str, source: Source) -> Survey:
    survey = _survey(find_benchmark(name), source)
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
    if survey.benchmark.dataset_config is None:
        return survey
    profile, page = write_page(name)
    lines = tuple(profile.lines())
    return replace(survey, page=page, profile=lines, split=_find_split(survey.benchmark, source))


def _find_split(benchmark: Benchmark, source: Source) -> str:
    """Return the first split with labels if the default split has none, else ''."""
    release = benchmark.open(source)
    assert isinstance(release, ConfiguredRelease)
    default = benchmark.card.task[0].splits[0]
    tally = release.tally
    labelled = {split for _, split, _ in tally.labels} or set(tally.splits)
    first = next((split for split in release.config.files if split in labelled), "")
    return "" if default in labelled else first


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
    statistics: Iterable[Statistic] = benchmark.compare(benchmark.recompute(release))
    found, official = benchmark.survey(release), benchmark.card.release
    if source.kind == "sample" or (official is not None and found.records < official.complete):
        statistics = map(_do_not_compare, statistics)
    return Survey(benchmark, source.kind, found, tuple(statistics))


def _do_not_compare(row: Statistic) -> Statistic:
    """Mark statistics as not comparable: the data are only a part of the release."""
    if row.verdict not in ("reproduced", "differs"):
        return row
    return replace(row, verdict="not compared", note=row.note.removesuffix(TRUNCATES).strip())


def _find_folder(path: Path) -> Path:
    if not path.is_dir():
        raise InputError(f"no such folder: {path}", hint="give the folder you cloned or unpacked")
    return path.resolve()
