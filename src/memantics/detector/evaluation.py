"""How good a detector is: the paper's Table 5, parts of the data, calibration, baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memantics.core.records import Score
from memantics.detector.calibration import calibration_error, reliability
from memantics.detector.examples import LABELS, MODALITIES, TYPES, Example, need_labels
from memantics.detector.fast import Prediction
from memantics.metrics import classification
from memantics.metrics.interval import wilson


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All figures, and what draws and browses them.

    ``harmful`` and ``types`` hold precision, recall, macro-F1 and F1 by class; ``recalls`` the
    share of harmful memes that is found, by where the harm lies; ``curve`` mean chance, share of
    harmful memes and count in bins.
    """

    count: int
    harmful: tuple[Score, ...]
    types: tuple[Score, ...]
    recalls: tuple[Score, ...]
    baselines: Mapping[str, tuple[float, float | None]]
    curve: tuple[tuple[float, float, int], ...]
    calibration_error: float

    def find(self, key: str, section: str = "harmful") -> float | None:
        """One figure by its key (``macro_f1``) from ``harmful`` or ``types``."""
        scores = self.harmful if section == "harmful" else self.types
        return next((score.value for score in scores if score.key == key), None)


def evaluate(examples: Sequence[Example], predictions: Sequence[Prediction]) -> Evaluation:
    """Figures with 95 % intervals.

    Precision is the share of claims that are right, recall the share of memes that are found.
    """
    need_labels(examples, "the data")
    gold = [LABELS[int(e.label or 0)] for e in examples]
    said = [p.name for p in predictions]
    chances = [p.probability for p in predictions]
    truth = [int(e.label or 0) for e in examples]
    curve = tuple(reliability(chances, truth))
    return Evaluation(
        count=len(examples),
        harmful=_score(gold, said, LABELS),
        types=_score_types(examples, predictions),
        recalls=_score_recalls(examples, predictions),
        baselines=_score_baselines(examples),
        curve=curve,
        calibration_error=calibration_error(curve),
    )


def _score(gold: Sequence[str], said: Sequence[str], classes: Sequence[str]) -> tuple[Score, ...]:
    counts = classification.count_classes(gold, said, classes)
    macro = classification.macro_figures(counts)
    spans = classification.multiclass_intervals(gold, said, classes, list(range(len(gold))))
    n = len(gold)

    def make(key: str, value: float | None, span: tuple[float, float] | None) -> Score:
        low, high = span or (None, None)
        return Score(key, value, n, low, high)

    rows = [
        make("precision", macro.precision, spans.precision),
        make("recall", macro.recall, spans.recall),
        make("macro_f1", macro.f1, spans.f1),
    ]
    rows += [
        make(f"f1/{name}", classification.f1(counts[name]), spans.f1_by_class[name])
        for name in classes
    ]
    return tuple(rows)


def _score_types(
    examples: Sequence[Example], predictions: Sequence[Prediction]
) -> tuple[Score, ...]:
    pairs = [
        (e.type, p.type)
        for e, p in zip(examples, predictions, strict=True)
        if e.type is not None and p.type is not None
    ]
    # Harmless memes are of type none without anybody saying so: alone they measure nothing.
    if all(gold == "none" for gold, _ in pairs):
        return ()
    return _score([str(gold) for gold, _ in pairs], [str(said) for _, said in pairs], TYPES)


def _score_recalls(
    examples: Sequence[Example], predictions: Sequence[Prediction]
) -> tuple[Score, ...]:
    parts: list[tuple[str, str, Callable[[Example], bool]]] = [
        *(("modality", m, lambda e, m=m: e.modality == m) for m in MODALITIES),
        *(("type", t, lambda e, t=t: e.type == t) for t in TYPES[1:]),
    ]
    found = []
    for by, label, keep in parts:
        said = [
            p.label for e, p in zip(examples, predictions, strict=True) if e.label == 1 and keep(e)
        ]
        if said:
            low, high = wilson(sum(said), len(said)) or (None, None)
            rate = sum(said) / len(said)
            found.append(Score("recall", rate, len(said), low, high, by, label))
    return tuple(found)


def _score_baselines(examples: Sequence[Example]) -> dict[str, tuple[float, float | None]]:
    """Macro-F1 of answers that look at no meme: harmful or not, and types where all are known.

    For the random one these are the figures that it reaches on average.
    """
    rate = sum(int(e.label or 0) for e in examples) / len(examples)
    kinds = [str(e.type) for e in examples if e.type is not None]
    shares = [kinds.count(kind) / len(kinds) for kind in TYPES if kind in kinds]
    whole = bool(kinds) and len(kinds) >= 0.99 * len(examples)
    none = kinds.count("none") / len(kinds) if kinds else 0.0
    # Claiming a class at random by its share p hits p of it: precision, recall and F1 are p.
    values = {
        "always harmless": ((1 - rate) * 2 / (2 - rate) / 2, 2 * none / (1 + none)),
        "always harmful": (2 * rate / (1 + rate) / 2, None),
        "random by shares": (0.5, sum(shares)),
    }
    return {
        name: (first, second / len(shares) if whole and second is not None else None)
        for name, (first, second) in values.items()
    }
