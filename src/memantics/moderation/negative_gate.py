"""Errors of word lists and a classifier that estimate whether captions are negative."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from memantics.core.errors import InputError, UnknownName
from memantics.core.parameters import Flag
from memantics.core.result import Result, Table
from memantics.metrics.weighted import Case, Measure, MetricName, MetricSpec, measure
from memantics.moderation.classifier import find_labelled
from memantics.moderation.detector import LabelArgument
from memantics.moderation.evaluation import percent
from memantics.moderation.examples import Loaded
from memantics.moderation.training import PartFlag
from memantics.understanding.reappraisal.negative import estimate_negative

YES, NO = "negative", "not negative"
GATE_METRICS: tuple[MetricName, ...] = ("recall", "precision", "f1", "false_positive_rate")
NegativeClasses = Annotated[
    Sequence[str] | None,
    Flag(
        "Value of the label that means negative; repeatable. Default: the values that end in"
        " 'negative'."
    ),
]


@dataclass(frozen=True, slots=True)
class GateErrors(Result):
    """Errors of one way to find negative memes: word lists, classifier, or both as in the gate."""

    way: str
    recall: Measure
    precision: Measure
    f1: Measure
    false_positive_rate: Measure


@dataclass(frozen=True, slots=True)
class NegativeGate(Result):
    """Errors of the gate on labelled memes, with 95% confidence intervals clustered by group.

    ``negative`` are the values of the label that mean negative, ``count`` the number of such memes.
    """

    data: str
    memes: int
    count: int
    negative: tuple[str, ...]
    rows: tuple[GateErrors, ...]
    notes: tuple[str, ...]

    def table(self) -> Table:
        """Show recall, precision, F1 and false positive rate in per cent."""
        title = f"{self.data}: {self.memes:,} memes, {self.count:,} negative"
        rows = tuple(
            (row.way, *(_show(getattr(row, name)) for name in GATE_METRICS)) for row in self.rows
        )
        columns = ("way", *(name.replace("_", " ") for name in GATE_METRICS))
        return Table(columns, rows, title=title)


def measure_negative(
    label: LabelArgument,
    *,
    data: Annotated[
        str | None,
        Flag(
            "Labelled memes: sample, release (the official data), or a table with a column named"
            " like the label. Default: the registered release, else the sample."
        ),
    ] = None,
    split: PartFlag = "all",
    negative: NegativeClasses = None,
) -> NegativeGate:
    """Measure how well the word lists and the built-in classifier recognise negative memes.

    The gate counts a meme as negative if its word lists or its classifier say so. Its shipped
    classifier was fitted on the development sets of PunMemeCN and MER-Bench, so metrics on all of
    these data are too high; docs/research/reappraisal-negative.md has those of the locked test set.

    Args:
        label: Label, such as ``punmemecn/sentiment_type`` or ``memes.csv/COLUMN``.
        data: Labelled memes. Default: the registered release, else the sample.
        split: Split of a release.
        negative: Values of the label that mean negative.

    Returns:
        Recall, precision, F1 and false positive rate of the lists, the classifier and the gate.

    Raises:
        InputError: The label has no value that means negative, or several values per meme.

    Example:
        >>> gate = measure_negative("punmemecn/sentiment_type", data="sample")
        >>> [row.way for row in gate.rows]
        ['word lists', 'classifier', 'gate']
    """
    loaded = find_labelled(label, data=data, split=split)
    wanted = _choose_classes(loaded, negative)
    cases: dict[str, list[Case]] = {}
    for example, gold, group in zip(loaded.examples, loaded.gold, loaded.groups, strict=True):
        found = estimate_negative([" ".join(example.text.split())])
        truth = YES if gold[0] in wanted else NO
        for way, said in (
            ("word lists", found.listed),
            ("classifier", found.classified),
            ("gate", found.negative),
        ):
            case = Case(example.id, group, truth, YES if said else NO)
            cases.setdefault(way, []).append(case)
    rows = tuple(
        GateErrors(way, *(measure(sample, MetricSpec(name, YES)) for name in GATE_METRICS))
        for way, sample in cases.items()
    )
    count = sum(gold[0] in wanted for gold in loaded.gold)
    notes = (f"negative: {', '.join(wanted)}", *loaded.notes)
    return NegativeGate(loaded.name, len(loaded.examples), count, wanted, rows, notes)


def _choose_classes(loaded: Loaded, given: Sequence[str] | None) -> tuple[str, ...]:
    classes = loaded.labels.classes
    if loaded.labels.several:
        raise InputError(
            f"{loaded.name} has several labels per meme", hint="use a label with one value per meme"
        )
    for name in given or ():
        if name not in classes:
            raise UnknownName(f"value of {loaded.name}:", name, classes)
    found = tuple(given or _find_negative(classes))
    if not found or len(found) == len(classes):
        raise InputError(
            f"{loaded.name}: no value, or every value, means negative",
            hint=f"name it with --negative, one of {', '.join(classes)}",
        )
    return found


def _find_negative(classes: Sequence[str]) -> Iterator[str]:
    for name in classes:
        plain = name.casefold()
        if plain.endswith("negative") and not plain.startswith(("not ", "non")):
            yield name


def _show(found: Measure) -> str:
    if found.value is None:
        return "–"
    span = (
        "" if found.low is None or found.high is None
        else f" ({percent(found.low)}–{percent(found.high)})"
    )  # fmt: skip
    return f"{percent(found.value)}{span}"
