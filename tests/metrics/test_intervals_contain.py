"""Every interval contains the value that it describes, whatever the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from memantics.benchmarks.dataset_answers import score_several
from memantics.benchmarks.dataset_config import LabelConfig
from memantics.benchmarks.factories import mean_score, score_choices
from memantics.benchmarks.punmemecn.detection import score as score_puns
from memantics.benchmarks.toxicn_mm.plugin import score_detection, score_type
from memantics.core.records import Form, Item, Outcome, Score
from memantics.evaluation.metrics import METRICS, Metric, apply_metrics
from memantics.metrics.agreement import spearman, spearman_span
from memantics.metrics.classification import (
    accuracy_by,
    balanced_accuracy,
    binary_intervals,
    binary_macro_f1,
    count_binary,
    count_classes,
    f1,
    macro,
    macro_interval,
    macro_metrics,
    multiclass_intervals,
    precision,
    tnr,
    tpr,
)
from memantics.metrics.interval import clustered_wilson
from memantics.metrics.paired import compare_auroc, compare_hits, compare_means
from memantics.metrics.weighted import Case, MetricName, MetricSpec, measure

Rows = list[tuple[str, str | None, int]]
GOLD = ("pun", "non-pun")
TYPES = ("none", "targeted", "offence", "sexual", "dispirited")
FORM = Form("?", ())
LABELS = st.lists(st.sampled_from("abc"), unique=True)


def draw(gold: Sequence[str]) -> st.SearchStrategy[Rows]:
    """Gold answer, given answer and meme of some items."""
    row = st.tuples(st.sampled_from(gold), st.sampled_from([*gold, None]), st.integers(0, 12))
    return st.lists(row, min_size=1, max_size=40)


def answer(rows: Rows, tags: dict[str, str] | None = None) -> list[Outcome]:
    return [
        Outcome(
            Item(str(n), str(meme), gold, FORM, tags=tags or {}),
            "unparsed" if said is None else "answered",
            said,
        )
        for n, (gold, said, meme) in enumerate(rows)
    ]


def check(value: float | None, span: tuple[float | None, float | None] | None) -> None:
    if span is None or span[0] is None or span[1] is None or value is None:
        return
    assert all(map(math.isfinite, (value, span[0], span[1])))
    assert span[0] - 1e-9 <= value <= span[1] + 1e-9, (value, span)


def check_scores(scores: Sequence[Score]) -> None:
    for score in scores:
        check(score.value, score.interval)


@given(draw(GOLD))
def test_binary_metrics(rows: Rows) -> None:
    gold, said, memes = ([row[n] for row in rows] for n in range(3))
    counts, spans = count_binary(gold, said, "pun"), binary_intervals(gold, said, "pun", memes)
    check(tpr(counts), spans.tpr)
    check(tnr(counts), spans.tnr)
    check(precision(counts), spans.precision)
    check(f1(counts), spans.f1)
    check(binary_macro_f1(counts), spans.macro_f1)
    check(balanced_accuracy(counts), spans.balanced_accuracy)


@given(draw(TYPES))
def test_multiclass_metrics(rows: Rows) -> None:
    gold, said, memes = [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows]
    counts = count_classes(gold, said, TYPES)
    means, spans = macro_metrics(counts), multiclass_intervals(gold, said, TYPES, memes)
    check(means.precision, spans.precision)
    check(means.recall, spans.recall)
    check(means.f1, spans.f1)
    for name in TYPES:
        check(f1(counts[name]), spans.f1_by_class[name])
    hits = [g == s for g, s in zip(gold, said, strict=True)]
    check(sum(hits) / len(hits), clustered_wilson(hits, memes))
    check(macro(accuracy_by(hits, gold)), macro_interval(hits, gold, memes))


@pytest.mark.parametrize(
    ("scorer", "gold"),
    [
        (score_puns, GOLD),
        (score_detection, ("harmful", "harmless")),
        (score_type, TYPES),
        (score_choices, ("A", "B", "C", "D")),
    ],
)
@given(data=st.data())
def test_scores_of_tasks(
    scorer: Callable[[Sequence[Outcome]], Sequence[Score]],
    gold: tuple[str, ...],
    data: st.DataObject,
) -> None:
    check_scores(list(scorer(answer(data.draw(draw(gold)), {"role": "pun"}))))


@given(draw(GOLD))
def test_metrics_that_a_user_adds(rows: Rows) -> None:
    metrics = [metric for _, metric in METRICS.all() if isinstance(metric, Metric)]
    few = [Metric(m.name, m.what, m.compute, resamples=12, bounds=m.bounds) for m in metrics]
    scores, failure = apply_metrics(few, answer(rows))
    assert failure is None
    assert len(scores) == len(metrics)
    check_scores(scores)


@pytest.mark.parametrize(
    "name",
    get_args(MetricName),
)
@given(data=st.data())
def test_weighted_metrics(name: MetricName, data: st.DataObject) -> None:
    rows = data.draw(draw(GOLD))
    chances = data.draw(st.lists(st.floats(0, 1), min_size=len(rows), max_size=len(rows)))
    cases = [
        Case(str(n), str(meme), gold, said, chance)
        for n, ((gold, said, meme), chance) in enumerate(zip(rows, chances, strict=True))
    ]
    positive = "" if name in ("accuracy", "macro_f1", "mean") else "pun"
    found = measure(cases, MetricSpec(name, positive), resamples=60)
    check(found.value, (found.low, found.high))


@given(st.lists(st.tuples(LABELS, LABELS, st.integers(0, 9)), min_size=1, max_size=12))
def test_several_labels_per_item(rows: list[tuple[list[str], list[str], int]]) -> None:
    outcomes = [
        Outcome(Item(str(n), str(meme), [*gold], FORM), "answered", [*said])
        for n, (gold, said, meme) in enumerate(rows)
    ]
    label = LabelConfig(what="labels", several=True)
    scores = score_several(label, outcomes)
    check_scores(scores)
    names = sorted({name for gold, said, _ in rows for name in (*gold, *said)})
    if names:
        truth = [[n in gold for n in names] for gold, _, _ in rows]
        guess = [[n in said for n in names] for _, said, _ in rows]
        for average in ("macro", "micro"):
            expected = f1_score(truth, guess, average=average, zero_division=0)
            assert scores[average == "micro"].value == pytest.approx(expected)


def make_calibrated(n: int, shift: float, seed: int = 0) -> list[Case]:
    rng = np.random.default_rng(seed)
    chances = rng.random(n)
    held = rng.random(n) < np.clip(chances + shift, 0, 1)
    return [
        Case(str(k), str(k), "yes" if yes else "no", "yes", float(p))
        for k, (yes, p) in enumerate(zip(held, chances, strict=True))
    ]


def test_the_calibration_error_of_a_calibrated_model() -> None:
    """Noise raises it above 0; percentiles of resamples were 1.8 to 4.8 around a value of 1.1."""
    contained = 0
    for seed in range(40):
        cases = make_calibrated(400, 0, seed)
        found = measure(cases, MetricSpec("calibration_error", "yes"), resamples=100)
        assert found.value is not None
        assert found.low is not None
        assert found.high is not None
        assert found.low <= found.value <= found.high < 0.2
        contained += found.low == 0
    assert contained >= 34


def test_the_calibration_error_of_a_model_that_is_off() -> None:
    found = measure(
        make_calibrated(2000, 0.3), MetricSpec("calibration_error", "yes"), resamples=300
    )
    assert found.low is not None
    assert found.high is not None
    assert 0.15 < found.low < 0.255 < found.high < 0.32  # 0.255: 0.3, less where it ends at 1


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(0, 9)), min_size=1))
def test_means_and_correlations(rows: list[tuple[float, float, int]]) -> None:
    first, second, memes = ([row[n] for row in rows] for n in range(3))
    check_scores([mean_score("mean", first, list(map(str, memes)))])
    check(spearman(first, second), spearman_span(first, second, memes, resamples=40))
    found = compare_means(first, second, memes)
    if found is not None:
        check(found.difference, (found.low, found.high))


@given(draw(GOLD))
def test_differences(rows: Rows) -> None:
    gold, said, memes = ([row[n] for row in rows] for n in range(3))
    hits = [g == s for g, s in zip(gold, said, strict=True)]
    found = compare_hits(hits, hits[::-1], memes)
    if found is not None:
        check(found.difference, (found.low, found.high))
    truth = np.array([g == "pun" for g in gold], np.int64)
    rng = np.random.default_rng(len(rows))
    tables = [rng.dirichlet([1, 1], len(rows)) for _ in range(2)]
    area = compare_auroc(tables[0], tables[1], truth, memes)
    if area is not None:
        check(area.difference, (area.low, area.high))
