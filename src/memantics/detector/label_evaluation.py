"""How good an expert is: figures with clustered intervals, by class, beside trivial answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memantics.core.records import Score
from memantics.core.result import Result, Table
from memantics.detector.evaluation import percent, show_span
from memantics.detector.examples import Loaded
from memantics.detector.fast import LabelPrediction
from memantics.metrics.weighted import Case, Figure, Measure, measure


@dataclass(frozen=True, slots=True)
class LabelEvaluation(Result):
    """Figures on labelled memes.

    ``figures`` are accuracy, macro-F1 and calibration error; where several labels can hold, each
    label is a question of its own and the figures are means over labels. ``classes`` has F1 (and
    AUROC where several can hold) of each class, ``baselines`` the accuracy and macro-F1 of answers
    that look at no meme.
    """

    label: str
    count: int
    groups: int
    figures: tuple[Score, ...]
    classes: tuple[Score, ...]
    baselines: Mapping[str, tuple[float, float]]

    def find(self, key: str) -> float | None:
        """One figure by its key: ``accuracy``, ``macro_f1``, ``auroc``, ``calibration_error``."""
        return next((score.value for score in self.figures if score.key == key), None)

    def table(self, title: str = "") -> Table:
        """Every figure in per cent with its interval."""
        rows = [
            (
                score.label or "all",
                score.key.replace("_", " "),
                percent(score.value),
                show_span(score),
                str(score.n),
            )
            for score in (*self.figures, *self.classes)
        ]
        for name, (right, macro) in self.baselines.items():
            rows.append(("baseline", name, percent(right), f"macro-F1 {percent(macro)}", ""))
        return Table(("class", "figure", ">value", ">95 %", ">n"), tuple(rows), title)

    def _repr_html_(self) -> str:
        return self.table(f"{self.label}: {self.count:,} memes")._repr_html_()


def evaluate_labels(
    data: Loaded, said: Sequence[LabelPrediction], draws: int = 1000
) -> LabelEvaluation:
    """Figures with 95 % intervals; groups are drawn as wholes."""
    if data.labels.several:
        figures, classes = _rate_several(data, said, draws)
    else:
        figures, classes = _rate_one(data, said, draws)
    return LabelEvaluation(
        label=data.labels.name,
        count=len(data.examples),
        groups=len(set(data.groups)),
        figures=figures,
        classes=classes,
        baselines=_rate_baselines(data),
    )


def list_cases(data: Loaded, said: Sequence[LabelPrediction], label: str = "") -> list[Case]:
    """Judged cases: of one label, or whether ``label`` holds where several can."""
    cases = []
    for place, prediction in enumerate(said):
        gold, group, name = data.gold[place], data.groups[place], data.examples[place].id
        if label:
            yes = "yes" if label in gold else "no"
            held = "yes" if label in prediction.labels else "no"
            cases.append(Case(name, group, yes, held, prediction.chances[label]))
        else:
            cases.append(Case(name, group, gold[0], prediction.label, prediction.probability))
    return cases


Scores = tuple[tuple[Score, ...], tuple[Score, ...]]


def _rate_one(data: Loaded, said: Sequence[LabelPrediction], draws: int) -> Scores:
    cases = list_cases(data, said)
    figures = [
        _score(key, measure(cases, Figure(key), draws=draws))
        for key in ("accuracy", "macro_f1", "calibration_error")
    ]
    known = Counter(gold[0] for gold in data.gold)
    classes = [
        _score("f1", measure(cases, Figure("f1", name), draws=draws), name, known[name])
        for name in data.labels.classes
        if known[name]
    ]
    return tuple(figures), tuple(classes)


def _rate_several(data: Loaded, said: Sequence[LabelPrediction], draws: int) -> Scores:
    classes: list[Score] = []
    means: dict[str, list[float]] = {}
    for name in data.labels.classes:
        cases = list_cases(data, said, name)
        positives = sum(case.gold == "yes" for case in cases)
        for key in ("auroc", "f1", "macro_f1", "accuracy", "calibration_error"):
            shown = key in ("auroc", "f1")
            found = measure(cases, Figure(key, "yes"), draws=draws if shown else 0)
            if found.value is not None:
                means.setdefault(key, []).append(found.value)
            if shown:
                classes.append(_score(key, found, name, positives))
    figures = [
        Score(key, float(np.mean(values)), len(data.examples)) for key, values in means.items()
    ]
    return tuple(figures), tuple(classes)


def _score(key: str, found: Measure, label: str = "", n: int | None = None) -> Score:
    by = "class" if label else ""
    return Score(
        key, found.value, found.cases if n is None else n, found.low, found.high, by, label
    )


def _rate_baselines(data: Loaded) -> dict[str, tuple[float, float]]:
    """Accuracy and macro-F1 of always the commonest label, and of labels drawn by their shares."""
    size = len(data.gold)
    if data.labels.several:
        shares = [sum(name in gold for gold in data.gold) / size for name in data.labels.classes]
        never = [(1 - p, (1 - p) * 2 / (2 - p) / 2) for p in shares]
        return {
            "never any": (
                float(np.mean([a for a, _ in never])),
                float(np.mean([m for _, m in never])),
            )
        }
    known = Counter(gold[0] for gold in data.gold)
    top = max(known.values()) / size
    drawn = sum((count / size) ** 2 for count in known.values())
    return {
        "always the commonest": (top, 2 * top / (1 + top) / len(known)),
        "drawn by shares": (drawn, 1 / len(known)),
    }
