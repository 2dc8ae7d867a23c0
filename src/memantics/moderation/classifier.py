"""Classifiers for labels other than harm: training, prediction, default classifier per topic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast, get_args

import orjson

from memantics.benchmarks.registry import (
    Benchmark,
    describe_data,
    find_benchmark,
    find_benchmarks,
    find_dataset_configs,
    find_source,
)
from memantics.core.data import DataKind, checksum_rows, cut_split, inside
from memantics.core.errors import InputError, UnknownName, require_known
from memantics.core.ids import escape_id, read_id
from memantics.core.labels import ClassifierPrediction, LabelledMeme
from memantics.core.lines import TextChoice
from memantics.core.registry import home
from memantics.core.result import Result, Table
from memantics.core.tables import TABLE_ENDINGS, TableRow, check_size, read_rows
from memantics.core.text import cut_off
from memantics.models.embedders import LOCAL
from memantics.moderation.classifiers import (
    ask,
    find_accuracy,
    forget_in_use,
    list_in_use,
    set_in_use,
)
from memantics.moderation.columns import TableColumns
from memantics.moderation.data import ExampleLike, put_captions
from memantics.moderation.detect import TrainedDetector
from memantics.moderation.examples import METADATA, Example, Loaded
from memantics.moderation.explanation import LabelExplanation, explain_label
from memantics.moderation.fast import LabelPrediction
from memantics.moderation.judges import FastJudge, open_classifier
from memantics.moderation.labels import LabelEvaluation, evaluate_labels, gather_examples
from memantics.moderation.training import TrainOptions, train_judge

# Labelled memes are named ``NAME/LABEL``: a label of a benchmark, or a column of a table.

_APART = "|"  # separates several labels in one cell
_GIVEN = (
    "text", "group", "text_caption", "image_caption", "split", "source", "author", "date",
    "template_cluster",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LabelInfo(Result):
    """A label that a classifier can be trained on, and whether its data are registered."""

    name: str
    what: str
    topic: str
    several: bool


def list_labels() -> list[LabelInfo]:
    """List the ``NAME/LABEL`` pairs of all benchmarks that a classifier can be trained on."""
    return [
        LabelInfo(f"{name}/{label}", source.what, source.topic, source.several)
        for name, benchmark in (find_benchmarks() | find_dataset_configs()).items()
        if benchmark.runnable
        for label, source in benchmark.plugin.labels.items()
    ]


def tabulate_labels(known: Iterable[LabelInfo]) -> Table:
    """Show the labels as a table."""
    return Table(("name", "what", "topic"), tuple((o.name, o.what, o.topic) for o in known))


def find_labelled(
    name: str,
    *,
    data: str | None = None,
    split: str = "all",
    classes: tuple[str, ...] | None = None,
    captions: Path | None = None,
) -> Loaded:
    """Load labelled memes by ``NAME/LABEL``.

    Args:
        name: ``NAME/LABEL``; NAME is a benchmark, a table, or a folder with metadata.
        data: ``release``, ``sample``, or a table with a column LABEL. Default: the registered
            release, else the benchmark's sample.
        split: A split of the release, or FILE:PART of a file that ``audit --resplit`` wrote.
        classes: The classes of the classifier that is evaluated on the data.
        captions: A file from ``build captions``; its captions replace those in the data.

    Raises:
        InputError: If the name, label or split does not exist.
    """
    head, _, label = name.rpartition("/")
    cut, split = cut_split(split)
    if data is not None and data not in get_args(DataKind):
        head, data = data, None
    place = Path(head)
    if head and (place.is_dir() or place.suffix.lower() in TABLE_ENDINGS):
        loaded = _read_table(place, label, classes)
    elif not head:
        offered = [info.name for info in list_labels() if info.name.startswith(f"{label}/")]
        hint = f"such as {', '.join(offered)}" if offered else "such as mer_bench/emotion"
        raise InputError(f"{name!r} is not of the form NAME/LABEL", hint=f"use NAME/LABEL, {hint}")
    else:
        kind = cast("DataKind | None", data)
        loaded = _read_benchmark(find_benchmark(head), label, kind, split, classes)
    loaded = loaded if captions is None else put_captions(loaded, captions)
    return loaded if cut is None else loaded.keep_part(*cut)


def read_memes(data: str) -> Loaded:
    """Read memes from a table or a folder with metadata, without labels."""
    table = _find_table(Path(data))
    memes = [_make(number, row, "", table) for number, row in read_table_rows(table)]
    return Loaded(
        table.name,
        tuple(
            Example(meme.id, meme.text, meme.text_caption, meme.image_caption, meme.image)
            for meme in memes
        ),
    )


def _read_benchmark(
    benchmark: Benchmark,
    label: str,
    data: DataKind | None,
    split: str,
    classes: tuple[str, ...] | None,
) -> Loaded:
    name = benchmark.card.name
    known = benchmark.plugin.labels
    require_known(f"label of {name}:", label, known)
    source = find_source(benchmark, data)
    memes = list(known[label].read(benchmark.open(source)))
    splits = {meme.split for meme in memes}
    if split != "all":
        memes = [meme for meme in memes if meme.split == split]
        if not memes:
            raise UnknownName(f"split of {name}/{label}:", split, sorted({"all", *splits} - {""}))
    facts = describe_data(benchmark, source)
    part = "" if split == "all" else f", split {split}"
    made = gather_examples(memes, f"{name}/{label}", several=known[label].several, classes=classes)
    return replace(
        made,
        name=f"{name}/{label}{part}",
        topic=known[label].topic or label,
        licence=facts.licence or "not stated",
        checksum=f"{facts.checksum}/{label}/{split}",
        sample=facts.kind == "sample",
    )


def _find_table(place: Path) -> Path:
    table = place
    if place.is_dir():
        table = next((place / name for name in METADATA if (place / name).is_file()), place)
    if not table.is_file():
        raise InputError(
            f"{place} contains no table", hint=f"add a file ending in {', '.join(TABLE_ENDINGS)}"
        )
    return table


def _read_table(place: Path, label: str, classes: tuple[str, ...] | None) -> Loaded:
    table = _find_table(place)
    rows = read_table_rows(table, label)
    columns = list(rows[0][1]) if rows else []
    for needed in ("text", label):
        require_known(f"column of {table.name}:", needed, columns)
    memes = [_make(number, row, label, table) for number, row in rows if row.get(label)]
    several = any(_has_several(row.get(label, "")) for _, row in rows)
    made = gather_examples(memes, f"{table.name}/{label}", several=several, classes=classes)
    return replace(
        made, topic=label, checksum=f"{checksum_rows(dict(row) for _, row in rows)}/{label}"
    )


def read_table_rows(table: Path, label: str = "") -> list[tuple[int, TableRow]]:
    """Read the rows of a table, with the columns of ids, texts and images under these names.

    The delimiter and the encoding of separated values are detected, as by ``data add``.
    """
    check_size(table)
    rows = list(read_rows(table, detect=table.suffix.lower() in (".csv", ".tsv")))
    header = [name for name in (rows[0][1] if rows else ()) if name != label]
    roles = {name: role for role, name in TableColumns().find(header).items()}
    return [(n, {roles.get(name, name): cell for name, cell in row.items()}) for n, row in rows]


def _make(number: int, row: TableRow, label: str, table: Path) -> LabelledMeme:
    named = row.get("image") or ""
    image = inside(table.parent, named) if named else None
    return LabelledMeme(
        id=read_id(row["id"], table.name, number)
        if row.get("id")
        else escape_id(Path(named).stem or str(number)),
        labels=_cut(row[label]) if label else (),
        image=image if image is not None and image.is_file() else None,
        **{name: row.get(name, "") for name in _GIVEN},  # type: ignore[arg-type]
    )


def _has_several(cell: str) -> bool:
    return _APART in cell or cell.startswith("[")


def _cut(cell: str) -> tuple[str, ...]:
    """Split a cell into labels; a list in a JSON table is written as JSON.

    >>> _cut("angry"), _cut("race|sex"), _cut('["race", "sex"]'), _cut("[]")
    (('angry',), ('race', 'sex'), ('race', 'sex'), ())
    """
    if cell.startswith("["):
        try:
            return tuple(str(value) for value in orjson.loads(cell))
        except orjson.JSONDecodeError:
            return (cell,)
    return tuple(part.strip() for part in cell.split(_APART) if part.strip())


_WIDTH = 48
ClassifierOptions = TrainOptions  # the public name for labels other than harm


class Classifier(TrainedDetector[LabelEvaluation]):
    """A trained classifier for a label other than harm, kept loaded."""

    word = "classifier"
    machine: FastJudge

    def __init__(self, machine: FastJudge, path: Path | None = None) -> None:
        super().__init__(machine, machine.detector.labels.name, path)

    @property
    def label(self) -> str:
        """The label it was trained on, as ``NAME/LABEL``."""
        return self.name

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes that it predicts."""
        return self.labels.classes

    @property
    def accuracy(self) -> float | None:
        """Accuracy on held-out training memes with a confident prediction; None if unknown."""
        return find_accuracy(self)

    @classmethod
    def train(cls, data: str | Loaded, options: TrainOptions | None = None) -> Classifier:
        """Train a classifier on ``NAME/LABEL``: a label of a benchmark, or a column of a table."""
        options = options or TrainOptions()
        judge, loaded, found, card = train_judge(
            data if isinstance(data, Loaded) else load_labelled(data, options), options
        )
        assert isinstance(found, LabelEvaluation)
        made = cls(judge)
        made.record_training(loaded, found, card)
        return made

    @classmethod
    def load(
        cls, path: str | Path, embedder: Path | None = None, pictures: Path | None = None
    ) -> Classifier:
        """Open a classifier by file, or by the ``NAME/LABEL`` that it was trained on.

        ``embedder`` and ``pictures`` are the folders of the text and image encoders that it was
        trained with. Raises InputError if there is no such classifier.
        """
        place = find_classifier(path)
        return cls(open_classifier(place, embedder, pictures), place)

    def save(self, path: str | Path | None = None) -> Path:
        """Write the classifier as one file with its model card, and return the path.

        By default the file goes to the place where its NAME/LABEL is looked up.
        """
        target = place_classifier(self.label) if path is None else Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        self.path = super().save(target)
        return target

    def predict(self, items: ExampleLike | Sequence[ExampleLike] | Loaded) -> list[LabelPrediction]:
        """Predict labels of texts, image files (read by OCR) or examples; one result per item."""
        examples = items.examples if isinstance(items, Loaded) else self.prepare(items)
        return self.machine.classify(examples)

    def judge(self, text: str, language: str = "") -> ClassifierPrediction:
        """Predict the label of one text, with the classifier's measured accuracy.

        The label is ``unknown`` if the text is empty, in another language, or too uncertain.
        """
        return ask(self, text, language)

    def explain(self, item: ExampleLike, label: str = "") -> LabelExplanation:
        """Compute feature attributions for a label, by default the most probable one."""
        (example,) = self.machine.look(self.prepare(item))
        return explain_label(self.machine.detector, example, self.machine.embedder, label)

    def evaluate(
        self, data: str | Loaded, *, split: str = "all", kind: str | None = None
    ) -> LabelEvaluation:
        """Evaluate on labelled memes, with 95 % confidence intervals clustered by group."""
        if isinstance(data, str):
            data = find_labelled(data, data=kind, split=split, classes=self.classes)
        return evaluate_labels(data, self.machine.classify(data.examples))

    def prepare(
        self, items: ExampleLike | Sequence[ExampleLike], taken: TextChoice = "caption"
    ) -> tuple[Example, ...]:
        """Convert texts and image files to examples; raise InputError for one without text."""
        examples = super().prepare(items, taken)
        for example in examples:
            if example.empty and not self.reads(example):
                raise InputError(f"meme {example.id} has no text to classify", hint="give a text")
        return examples


def load_labelled(name: str, options: TrainOptions, classes: Sequence[str] | None = None) -> Loaded:
    """Load labelled memes by ``NAME/LABEL``, with the split and captions of the options."""
    split, known = options.split or "all", tuple(classes) if classes else None
    captions = options.captions
    return find_labelled(name, data=options.data, split=split, classes=known, captions=captions)


def place_classifier(label: str) -> Path:
    """Return the default path of a classifier trained on ``NAME/LABEL``."""
    stem = re.sub(r"[^\w.-]+", "-", label).strip("-.") or "classifier"
    return home() / "classifiers" / f"{stem}.zip"


def find_classifier(name: str | Path) -> Path:
    """Find the file of a classifier by path, or by the ``NAME/LABEL`` that it was trained on."""
    path = Path(name)
    if path.is_file():
        return path
    trained = place_classifier(str(name))
    if trained.is_file():
        return trained
    raise InputError(
        f"no classifier at {name}",
        hint=f"give a file, or train one with 'memantics classifier train {name}'",
    )


def use_classifier(path: str | Path) -> tuple[str, Path]:
    """Make a classifier the default for its topic in analyze, screen and others.

    Returns the topic and the path. Raises InputError if the classifier needs an encoder folder,
    which other commands cannot open.
    """
    place = find_classifier(path).absolute()
    classifier = Classifier.load(place)
    needed = classifier.machine.detector.embedder
    if LOCAL in needed:
        raise InputError(
            f"{place.name} needs the encoder {needed}, which other commands cannot open",
            hint="use it with 'classifier predict', or train one without an encoder folder",
        )
    set_in_use(classifier.topic, place)
    return classifier.topic, place


def forget_classifier(topic: str) -> None:
    """Remove the default classifier of a topic; raise InputError if there is none."""
    if not forget_in_use(topic):
        known = ", ".join(list_in_use()) or "none is in use"
        raise InputError(f"no classifier is in use for {topic!r}", hint=f"in use: {known}")


def tabulate_used() -> Table:
    """List the default classifier of each topic with its labels, accuracy and file."""
    rows = []
    for topic, place in list_in_use().items():
        if not place.is_file():
            rows.append((topic, "gone", "–", "–", str(place)))
            continue
        classifier = Classifier.load(place)
        share = "–" if classifier.accuracy is None else f"{100 * classifier.accuracy:.1f} %"
        rows.append(
            (topic, classifier.label, ", ".join(classifier.classes)[:_WIDTH], share, str(place))
        )
    return Table(("topic", "classifier", "labels", ">held-out accuracy", "file"), tuple(rows))


def tabulate_predictions(
    examples: Sequence[Example], said: Sequence[LabelPrediction], most: int = 40
) -> Table:
    """Show the first predictions as a table, with the texts they are about."""
    rows = []
    for example, prediction in list(zip(examples, said, strict=True))[:most]:
        named, shown = ", ".join(prediction.labels) or "none", cut_off(example.text, _WIDTH)
        rows.append((named, f"{prediction.probability:.2f}", shown))
    return Table(("label", ">chance", "text"), tuple(rows))
