"""Dataset configs: a data set of labelled memes, described in a few lines of TOML.

A dataset config names the files of each split, the columns for id, text and image, and the labels:
a column with a value, or columns that are flags. It defines the reader, the summary of ``data
add``, the labels that classifiers learn, and a task for each single-valued label.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

import orjson
from pydantic import Field, JsonValue

from memantics.benchmarks.card import Card, CardLanguage, ReleaseCard, SampleCard, TaskCard
from memantics.benchmarks.factories import (
    LETTERS,
    Prompts,
    accuracy_score,
    choice_task,
    letter_field,
)
from memantics.benchmarks.plugin import BenchmarkPlugin, TaskSetup
from memantics.benchmarks.published import Expected
from memantics.core.data import Found, Skip, Source, checksum, inside, read_toml
from memantics.core.errors import DataError, UnknownName
from memantics.core.labels import LabelledMeme, LabelSource, name_group
from memantics.core.records import Closed, Form, Item, Outcome, Score
from memantics.core.tables import TableRow, read_rows
from memantics.core.task import Task
from memantics.metrics.classification import (
    count_classes,
    f1,
    macro_metrics,
    multiclass_intervals,
)

_IMAGES = ("images", "Images", "img", "Labelled Images", ".")
# Depth below the given folder at which data files of a clone are searched.
_DEEPEST = 3
_ORIGINS = ("source", "author", "date", "template_cluster")
_PLACEHOLDER = re.compile(r"\{(.+?)\}")


class Columns(Closed):
    """The columns of a table; ``split`` is set if a table contains several splits.

    ``a|b`` means the first of these columns that a file has; ``folder/{a}.jpg`` inserts the value
    of a cell. Without ``id``, a row is named by its file and row number. The columns for disjoint
    splits (``source``, ``author``, ``date``, ``template_cluster``) have these names by default.
    """

    id: str = ""
    text: str = ""
    image: str = ""
    split: str = ""
    source: str = ""
    author: str = ""
    date: str = ""
    template_cluster: str = ""


class LabelConfig(Closed):
    """A label definition: a column (or one position of a list in it), or columns that are flags.

    ``values`` renames and restricts the label values; ``leave_out`` are values that mean "no
    label".
    """

    what: str
    question: str = ""
    column: str = ""
    place: int | None = None
    flags: tuple[str, ...] = ()
    values: dict[str, str] = Field(default_factory=dict)
    leave_out: tuple[str, ...] = ()
    several: bool = False
    topic: str = ""


class DatasetConfig(Closed):
    """A data set; ``counts`` are the numbers of memes per split in the complete release."""

    title: str
    summary: str
    languages: tuple[CardLanguage, ...]
    source: str
    licence: str
    citation: str
    warning: str = ""
    canary: str = ""
    files: dict[str, tuple[str, ...]]
    format: Literal["", "jsonl", "csv", "tsv"] = ""
    columns: Columns
    counts: dict[str, int] = Field(default_factory=dict)
    label: dict[str, LabelConfig] = Field(min_length=1)


def read_dataset_config(path: Path) -> DatasetConfig:
    """Read and validate a dataset config; an error names the invalid key."""
    return read_toml(
        path,
        DatasetConfig,
        "the dataset config is not UTF-8 TOML",
        "see docs/how-to/use-your-data.md",
    )


@dataclass(frozen=True, slots=True)
class ConfiguredMeme:
    """One row of a data set: text, image, labels by name, and ``origin`` columns."""

    id: str
    text: str
    image: Path | None
    split: str
    labels: Mapping[str, tuple[str, ...]]
    names_image: bool = True
    origin: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConfiguredRelease:
    """One copy of a data set that has a dataset config."""

    source: Source
    files: tuple[Path, ...]
    memes: tuple[ConfiguredMeme, ...]
    skips: tuple[Skip, ...]


def open_dataset_config(dataset_config: DatasetConfig, source: Source) -> ConfiguredRelease:
    """Read every file of a data set; errors name the file and row that differ from the config."""
    found = [
        (split, path)
        for split, names in dataset_config.files.items()
        for name in names
        for path in _find_files(source.root, name)
    ]
    if not found:
        names = [name for file in dataset_config.files.values() for name in file]
        raise DataError(
            source.root,
            f"{dataset_config.title} was not found: expected {', '.join(names)}",
            hint="give the folder that contains these files",
        )
    memes: dict[str, ConfiguredMeme] = {}
    skips: list[Skip] = []
    for split, path in found:
        for number, row in read_rows(
            path, ending=dataset_config.format and f".{dataset_config.format}"
        ):
            if dataset_config.columns.split and row.get(dataset_config.columns.split, "") != split:
                continue  # the row belongs to another split of the same table
            meme = _read_row(dataset_config, source, split, path, (number, row))
            if meme.id in memes:
                skips.append(Skip(path.name, str(number), "the id appears more than once"))
            else:
                memes[meme.id] = meme
    if not memes:
        raise DataError(source.root, "contains no meme", hint="download the file again")
    return ConfiguredRelease(
        source, tuple(dict.fromkeys(p for _, p in found)), tuple(memes.values()), tuple(skips)
    )


def _find_files(root: Path, name: str) -> list[Path]:
    """Find the files of a data set at the configured path, else in the first subfolder."""
    found = [root / name]
    for depth in range(_DEEPEST + 1):
        if found := [path for path in found if path.is_file()]:
            break
        found = sorted(root.glob("*/" * depth + name))
    return [path for path in found if path.is_file() and path.parent == found[0].parent]


def _read_row(
    dataset_config: DatasetConfig,
    source: Source,
    split: str,
    path: Path,
    numbered: tuple[int, TableRow],
) -> ConfiguredMeme:
    number, row = numbered
    columns = dataset_config.columns
    called = f"{path.stem}-{number}" if not columns.id else _take(row, columns.id, path, number)
    text, picture = (_take(row, name, path, number) for name in (columns.text, columns.image))
    labels = {n: _read_label(label, row, path, number) for n, label in dataset_config.label.items()}
    image = _find_image(source, picture, path.parent)
    origin = {name: row.get(getattr(columns, name) or name, "") for name in _ORIGINS}
    return ConfiguredMeme(called, text, image, split, labels, bool(picture), origin)


def _take(row: TableRow, column: str, path: Path, number: int) -> str:
    """Return a table cell by column name, by ``a|b``, or by a pattern with ``{a}``."""
    if not column or column in row:
        return row[column] if column else ""
    if "{" in column:
        return _PLACEHOLDER.sub(
            lambda placeholder: _take(row, placeholder[1], path, number), column
        )
    found = [row[name] for name in column.split("|") if name in row]
    if not found:
        raise DataError(path.name, f"has no column {column!r}", row=number)
    return found[0]


def _read_label(label: LabelConfig, row: TableRow, path: Path, number: int) -> tuple[str, ...]:
    """Return the labels of a row; empty if an unlabelled split has no label column."""
    if label.flags:
        return tuple(name for name in label.flags if row.get(name) in ("1", "1.0", "true", "True"))
    values = [
        label_value
        for label_value in _cut(row.get(label.column, ""))
        if label_value not in label.leave_out
    ]
    if label.place is not None:
        values = values[label.place : label.place + 1]
    for label_value in values:
        if label.values and label_value not in label.values:
            raise DataError(
                path.name,
                f"column {label.column!r}: unknown value {label_value!r}",
                row=number,
                hint=f"known: {', '.join(label.values)}",
            )
    return tuple(label.values.get(label_value, label_value) for label_value in values)


def _cut(cell: str) -> list[str]:
    if not cell.startswith("["):
        return [cell] if cell else []
    try:
        return [str(value) for value in orjson.loads(cell)]
    except orjson.JSONDecodeError:
        return [cell]


def _find_image(source: Source, name: str, beside: Path) -> Path | None:
    """Return the path of a meme's image: in the given folder, else in the usual places."""
    if not name:
        return None
    places = [folder / place for folder in (source.root, beside) for place in _IMAGES]
    roots = [source.images] if source.images else places
    for root in roots:
        for relative in (name, Path(name).name):
            path = inside(root, relative)
            if path.is_file():
                return path
    return None


def survey_dataset_config(release: ConfiguredRelease) -> Found:
    """Summarise a copy of a data set: counts by split and label, checksum, and missing files."""
    memes = release.memes
    counts = Counter(f"split {meme.split}" for meme in memes)
    images = sum(meme.image is not None for meme in memes)
    expected = sum(meme.names_image for meme in memes)
    note = "This copy contains no images: models get the text only."
    return Found(
        records=len(memes),
        counts={"memes": len(memes), **counts},
        files=tuple(path.name for path in release.files),
        checksum=checksum(release.files, release.source.root),
        images_found=images,
        images_expected=expected,
        skips=release.skips,
        notes=(note,) if expected and not images else (),
    )


def count_dataset_config(
    dataset_config: DatasetConfig, release: ConfiguredRelease
) -> dict[str, JsonValue]:
    """Count the memes of each split that the dataset config lists."""
    counts = Counter(meme.split for meme in release.memes) | {"all": len(release.memes)}
    return {f"memes.{split}": counts.get(split) for split in dataset_config.counts}


def list_expected(dataset_config: DatasetConfig) -> tuple[Expected, ...]:
    """Return the counts of memes that a complete release should have."""
    return tuple(
        Expected(
            key=f"memes.{split}",
            title=f"Memes, {split}",
            paper=count,
            known=count,
            digits=None,
            definition="rows of the split with a unique id",
        )
        for split, count in dataset_config.counts.items()
    )


def read_labels(name: str, release: ConfiguredRelease) -> Iterator[LabelledMeme]:
    """Return memes with their values of one label; memes with the same text form a group."""
    labelled = {meme.split for meme in release.memes if meme.labels[name]}
    for meme in release.memes:
        if meme.split in labelled:
            group = name_group(meme.text) or meme.id
            named, text, image = meme.labels[name], meme.text, meme.image
            yield LabelledMeme(
                meme.id, text, named, group, image=image, split=meme.split, **meme.origin
            )


def make_plugin(dataset_config: DatasetConfig) -> BenchmarkPlugin[ConfiguredRelease]:
    """Return the benchmark plugin of a dataset config: reader, summary, labels and tasks."""
    return BenchmarkPlugin(
        open_release=partial(open_dataset_config, dataset_config),
        survey=survey_dataset_config,
        statistics=partial(count_dataset_config, dataset_config),
        make_task=partial(_make_task, dataset_config),
        labels={
            name: LabelSource(
                label_config.what,
                partial(read_labels, name),
                label_config.several,
                label_config.topic or name,
            )
            for name, label_config in dataset_config.label.items()
        },
    )


def make_card(name: str, dataset_config: DatasetConfig) -> Card:
    """Return a dataset card with a task (default split ``test``) per single-valued label."""
    tasks = [
        TaskCard(
            name=label,
            title=label_config.what,
            main="macro_f1",
            unit="memes",
            baselines=("baseline/majority", "baseline/random"),
            splits=(*sorted(dataset_config.files, key=lambda file: file != "test"), "all"),
        )
        for label, label_config in dataset_config.label.items()
        if not label_config.several
    ]
    release = ReleaseCard(
        source=dataset_config.source,
        revision="as downloaded",
        licence=dataset_config.licence,
        unit="memes",
        complete=sum(dataset_config.counts.values()),
        obtain=f"{dataset_config.source}; then run 'memantics data add {name} DIR'",
    )
    return Card(
        name=name,
        title=dataset_config.title,
        summary=dataset_config.summary,
        languages=dataset_config.languages,
        warning=dataset_config.warning,
        canary=dataset_config.canary,
        citation=dataset_config.citation,
        release=release,
        sample=SampleCard(licence="none"),
        task=tuple(tasks),
    )


def _make_task(dataset_config: DatasetConfig, setup: TaskSetup) -> Task:
    label = dataset_config.label[setup.card.name]
    prompts = setup.prompts
    told = {"text": prompts["given_text"]}
    used = Prompts(prompts["label"], prompts["again"], facts=told)
    return choice_task(
        setup, partial(_list_items, dataset_config, label, setup), prompts=used, score=_score_labels
    )


def _list_items(
    dataset_config: DatasetConfig, label: LabelConfig, setup: TaskSetup
) -> Iterator[Item]:
    """Yield one item per labelled meme: its image, if available, and its text."""
    name = setup.card.name
    release = open_dataset_config(dataset_config, setup.need_source())
    memes = [
        meme
        for meme in release.memes
        if setup.split in (meme.split, "all") and len(meme.labels[name]) == 1
    ]
    if not memes:
        known = sorted({meme.split for meme in release.memes})
        raise UnknownName(f"labelled split of {setup.name}:", setup.split, known)
    counts = Counter(meme.labels[name][0] for meme in release.memes if meme.labels[name])
    classes = [
        label_value
        for label_value in (label.values.values() or sorted(counts))
        if label_value in counts
    ]
    if len(classes) > len(LETTERS):
        raise DataError(
            dataset_config.title,
            f"label {name} has {len(classes)} values, too many for one question",
        )
    keys = dict(zip(classes, LETTERS, strict=False))
    field = letter_field(classes, keys[counts.most_common(1)[0][0]])
    question = label.question or f"Which label fits: {label.what}?"
    for meme in memes:
        picture = setup.picture(meme.image, meme.id) if meme.image else None
        context = {"text": meme.text} if meme.text else {}
        form = Form(question, (field,), context=context)
        tags = {"class": meme.labels[name][0]}
        images = (picture,) if picture else ()
        yield Item(meme.id, meme.id, keys[meme.labels[name][0]], form, images, tags)


def _score_labels(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    """Return macro-F1, accuracy, and F1 per class of a labelling task."""
    names = {str(o.item.gold): o.item.tags["class"] for o in outcomes}
    gold = [names[str(o.item.gold)] for o in outcomes]
    said = [names.get(str(o.value)) if o.status == "answered" else None for o in outcomes]
    classes = sorted(names.values())
    counts = count_classes(gold, said, classes)
    spans = multiclass_intervals(gold, said, classes, [o.item.group for o in outcomes])
    size = len(outcomes)
    low, high = spans.f1 or (None, None)
    rows = [Score("macro_f1", macro_metrics(counts).f1, size, low, high)]
    rows.append(accuracy_score("accuracy", outcomes))
    for name in classes:
        low, high = spans.f1_by_class[name] or (None, None)
        rows.append(Score("f1", f1(counts[name]), gold.count(name), low, high, "class", name))
    return tuple(rows)
