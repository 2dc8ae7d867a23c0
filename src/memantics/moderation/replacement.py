"""Compare an old and a new detector on the same memes, and test the gain against shuffled labels.

Both detectors are compared by AUROC, which needs no threshold, and by precision and recall at one
operating point. The threshold of each detector comes from the stored rule; without a rule, both
thresholds flag equally many memes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from memantics.core.result import Result, Table
from memantics.metrics.interval import percentile_span
from memantics.metrics.rounding import Floats, Ints, settle
from memantics.metrics.weighted import Case, MetricSpec, prepare
from memantics.moderation.calibration import FoldScore
from memantics.moderation.examples import Example
from memantics.moderation.heads import FastSettings, fit_heads, split_inner
from memantics.moderation.judges import FastJudge
from memantics.moderation.kernel import Singles, Targets, make_targets
from memantics.moderation.operating_points import Rate, rate

RESAMPLES = 1000
# number of shuffles with a linear SVM, which is fitted again for each
SHUFFLES = {"kernel": 99, "svm": 19}
LEVEL = 0.05
BLOCK = 8  # number of memes with similar old scores among which labels are shuffled


@dataclass(frozen=True, slots=True)
class ReplacementComparison(Result):
    """Old and new detector on the same labelled memes.

    ``difference`` is the AUROC of the new detector minus that of the old one, with its paired 95 %
    confidence interval; None if the memes have only one label. Precision and recall are those at
    ``thresholds``, the old one first.
    """

    memes: int
    harmful: int
    auroc: tuple[float | None, float | None]
    difference: float | None
    low: float | None
    high: float | None
    thresholds: tuple[float, float]
    precision: tuple[Rate, Rate]
    recall: tuple[Rate, Rate]


@dataclass(frozen=True, slots=True)
class ShuffleTest(Result):
    """The gain of retraining, and the gains with shuffled labels of the annotated memes.

    ``p`` is the proportion of shuffles, the real labels included, with at least that gain; None if
    all labels are the same, so that shuffling changes nothing.
    """

    gain: float | None
    shuffles: int
    highest: float | None
    p: float | None


def compare_detectors(
    examples: Sequence[Example],
    old: Sequence[float],
    new: Sequence[float],
    thresholds: tuple[float, float],
) -> ReplacementComparison:
    """Compare the probabilities of two detectors for the same memes.

    >>> memes = [Example(str(n), "t", label=n % 2) for n in range(40)]
    >>> right, wrong = [n % 2 / 2 for n in range(40)], [0.5] * 40
    >>> found = compare_detectors(memes, wrong, right, (0.5, 0.5))
    >>> found.auroc, found.difference, found.recall[1].value
    ((0.5, 1.0), 0.5, 1.0)
    """
    truth = [int(e.label or 0) for e in examples]
    rates = [prepare(_make_cases(truth, said), MetricSpec("auroc", "1")) for said in (old, new)]
    whole = np.ones(len(truth))
    first, second = (one(whole) for one in rates)
    span: tuple[float | None, float | None] = (None, None)
    difference = None
    if first is not None and second is not None:
        difference = second - first
        drawn = np.random.default_rng(0).multinomial(
            len(truth), np.full(len(truth), 1 / len(truth)), size=RESAMPLES
        )
        pairs = [[one(row.astype(float)) for one in rates] for row in drawn]
        moved = [b - a for a, b in pairs if a is not None and b is not None]
        span = percentile_span(np.array(moved)) if len(moved) > RESAMPLES // 2 else (None, None)
    flags = [
        [settle(value) >= settle(threshold) for value in said]
        for said, threshold in zip((old, new), thresholds, strict=True)
    ]
    hits = [sum(f and t for f, t in zip(flagged, truth, strict=True)) for flagged in flags]
    return ReplacementComparison(
        len(truth),
        sum(truth),
        (first, second),
        difference,
        *span,
        thresholds,
        (rate(hits[0], sum(flags[0])), rate(hits[1], sum(flags[1]))),
        (rate(hits[0], sum(truth)), rate(hits[1], sum(truth))),
    )


def _make_cases(truth: Sequence[int], said: Sequence[float]) -> list[Case]:
    return [
        Case(str(n), str(n), str(label), "", probability=value)
        for n, (label, value) in enumerate(zip(truth, said, strict=True))
    ]


def match_threshold(old: Sequence[float], threshold: float, new: Sequence[float]) -> float:
    """Find the threshold at which the new detector flags as many memes as the old one does.

    Ties at the threshold are all flagged, so that the number may be higher.

    >>> match_threshold([0.9, 0.8, 0.1], 0.5, [0.3, 0.1, 0.2])
    0.2
    >>> match_threshold([0.1], 0.5, [0.3])
    1.0
    """
    count = sum(settle(value) >= settle(threshold) for value in old)
    return sorted(new, reverse=True)[count - 1] if count else 1.0


def measure_gain(
    judge: FastJudge,
    known: Sequence[Example],
    annotated: Sequence[Example],
    weights: Sequence[float],
    old: Sequence[float],
    ridge: float,
) -> ShuffleTest:
    """Test whether retraining gains more than with shuffled labels of the annotated memes.

    The gain is the AUROC of held-out predictions for the annotated memes minus that of the old
    detector. Labels are shuffled among memes with similar scores of the old detector, so that
    shuffled labels keep the accuracy of the old detector. Only information that the annotations add
    can therefore increase the AUROC. Predictions of a ridge regression are linear in the labels, so
    that one fit computes all shuffles, one per column.
    """
    labels = np.array([int(e.label or 0) for e in annotated])
    settings = replace(judge.detector.settings, ridges=(ridge,), copies=0.0)
    count = SHUFFLES[settings.solver]
    if len(set(labels.tolist())) < 2:
        return ShuffleTest(None, 0, None, None)
    generator = np.random.default_rng(0)
    columns = [labels, *(_shuffle(labels, old, generator) for _ in range(count))]
    table = _hold_out(judge, settings, known, annotated, weights, columns)
    gains = []
    for place, column in enumerate(columns):
        new = prepare(_make_cases(column.tolist(), _rank(table[:, place])), _AUROC)
        was = prepare(_make_cases(column.tolist(), old), _AUROC)
        whole = np.ones(len(labels))
        gains.append(settle((new(whole) or 0.0) - (was(whole) or 0.0)))
    real, *shuffled = gains
    reached = 1 + sum(gain >= real for gain in shuffled)
    return ShuffleTest(real, count, max(shuffled), reached / (count + 1))


_AUROC = MetricSpec("auroc", "1")


def _shuffle(labels: Ints, old: Sequence[float], generator: np.random.Generator) -> Ints:
    """Shuffle labels within blocks of memes with neighbouring scores of the old detector."""
    order = np.argsort(np.asarray(settle(np.asarray(old))), kind="stable")
    shuffled = labels.copy()
    for start in range(0, len(order), BLOCK):
        block = order[start : start + BLOCK]
        shuffled[block] = generator.permutation(labels[block])
    return shuffled


def _rank(scores: Floats) -> list[float]:
    """Map scores to values between 0 and 1 in the same order; AUROC depends only on the order."""
    return [float(value) for value in 1 / (1 + np.exp(-scores))]


def _hold_out(
    judge: FastJudge,
    settings: FastSettings,
    known: Sequence[Example],
    annotated: Sequence[Example],
    weights: Sequence[float],
    columns: Sequence[Ints],
) -> Floats:
    """Compute held-out scores of the annotated memes, one column per real or shuffled labelling."""
    examples = judge.look((*known, *annotated))
    base = np.array([int(e.label or 0) for e in known])
    signs = np.array([2.0 * np.concatenate([base, column]) - 1 for column in columns]).T
    heavy = np.array([*([1.0] * len(known)), *weights], np.float32)
    targets = Targets(
        tuple(map(str, range(len(columns)))),
        np.ascontiguousarray(signs, np.float32),
        make_targets(examples).weights * heavy,
    )
    strata = [f"{e.label}/{e.type}" for e in examples]
    folds = split_inner([e.id for e in examples], strata, settings, range(len(examples)))
    fitted = fit_heads(examples, targets, settings, [folds], _unrated, judge.embedder)
    return np.asarray(fitted.held_out[len(known) :], float)


def _unrated(_scores: Singles, _folds: Ints) -> FoldScore:
    return FoldScore(0.0, 0.0)


def tabulate(rows: Sequence[tuple[str, ReplacementComparison]]) -> Table:
    """Tabulate AUROC, precision and recall of both detectors, in per cent."""
    cells = []
    for name, found in rows:
        moved = "–" if found.difference is None else f"{100 * found.difference:+.1f}"
        if found.low is not None and found.high is not None:
            moved += f" ({100 * found.low:+.1f} to {100 * found.high:+.1f})"
        values = [
            " → ".join("–" if value is None else f"{100 * value:.1f}" for value in pair)
            for pair in (
                found.auroc,
                tuple(one.value for one in found.precision),
                tuple(one.value for one in found.recall),
            )
        ]
        counts = (f"{found.memes:,}", f"{found.harmful:,}")
        cells.append((name, *counts, values[0], moved, *values[1:]))
    columns = ("memes", ">n", ">harmful", ">AUROC", ">change", ">precision", ">recall")
    title = "Old → new detector on the same memes, in per cent; change of AUROC with 95 % CI"
    return Table(columns, tuple(cells), title)
