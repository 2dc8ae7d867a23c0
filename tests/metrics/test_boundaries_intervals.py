"""Intervals against a plain loop over the same resamples, and both sides of their thresholds."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from memantics.metrics import interval
from memantics.metrics.agreement import cohen_kappa, krippendorff_alpha, mean_cohen_kappa
from memantics.metrics.classification import (
    BinaryCounts,
    ClassCounts,
    balanced_accuracy,
    binary_intervals,
    binary_macro_f1,
    count_classes,
    f1,
    macro_interval,
    macro_metrics,
    multiclass_intervals,
    precision,
)
from memantics.metrics.interval import (
    bootstrap,
    bootstrap_items,
    resample_sums,
    sum_by_cluster,
    wilson,
)
from memantics.metrics.reappraisal import KEYS, Formula, components, summarise

DRAWS = 2000
CHANCE = random.Random(4)
GOLD = [CHANCE.choice("pn") for _ in range(60)]
SAID = [truth if CHANCE.random() < 0.7 else CHANCE.choice(["p", "n", None]) for truth in GOLD]
MEMES = [place // 3 for place in range(60)]


def draw_items(count: int, resamples: int = DRAWS) -> list[list[int]]:
    """How often each cluster is drawn, by the documented generator."""
    weights = np.random.default_rng([0, 0]).multinomial(
        count, np.full(count, 1 / count), size=resamples
    )
    return [list(map(int, row)) for row in weights]


def span(values: Sequence[float | None]) -> tuple[float, float]:
    low, high = np.percentile([value for value in values if value is not None], [2.5, 97.5])
    return float(low), float(high)


def cell(truth: str, said: str | None) -> int:
    if truth == "p":
        return 0 if said == "p" else 1
    return 2 if said == "n" else 3


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("precision", precision),
        ("f1", f1),
        ("macro_f1", binary_macro_f1),
        ("balanced_accuracy", balanced_accuracy),
    ],
)
def test_binary_intervals_are_near_a_bootstrap(
    name: str, metric: Callable[[BinaryCounts], float | None]
) -> None:
    """Away from 0 and 1, with many memes: Wilson's method and resampling agree."""
    gold, said = GOLD * 10, SAID * 10
    memes = [place // 3 for place in range(600)]
    values = []
    for times in draw_items(200, 500):
        cells = [0, 0, 0, 0, 0, 0]
        for truth, guess, meme in zip(gold, said, memes, strict=True):
            cells[cell(truth, guess)] += times[meme]
            if guess is None:
                cells[4 if truth == "p" else 5] += times[meme]
        values.append(metric(BinaryCounts(*cells)))
    found = getattr(binary_intervals(gold, said, "p", memes), name)
    assert found == pytest.approx(span(values), abs=0.015)


def test_a_perfect_f1_has_an_interval_with_a_width() -> None:
    """12 of 12: F1 is 2 J / (1 + J) of a proportion J, whose interval is that of statsmodels."""
    gold = ["p"] * 12 + ["n"] * 30
    found = binary_intervals(gold, gold, "p", list(range(42)))
    low, high = proportion_confint(12, 12, method="wilson")
    assert found.f1 == pytest.approx((2 * low / (1 + low), 2 * high / (1 + high)))
    assert found.precision == pytest.approx((low, high))
    for one in (found.macro_f1, found.balanced_accuracy):
        assert one is not None
        assert 0.7 < one[0] < 0.95
        assert one[1] == pytest.approx(1.0)
    many = multiclass_intervals(gold, gold, ["n", "p"], list(range(42)))
    assert many.f1 == pytest.approx(found.macro_f1)
    assert many.f1_by_class["p"] == pytest.approx(found.f1)
    mean = bootstrap(np.ones((12, 2)), lambda sums: sums[:, 0] / sums[:, 1])
    assert mean == pytest.approx((low, high))


def test_rates_are_of_their_own_class() -> None:
    found = binary_intervals(GOLD, SAID, "p", list(range(60)))
    hits = [said == truth for truth, said in zip(GOLD, SAID, strict=True) if truth == "p"]
    misses = [said == truth for truth, said in zip(GOLD, SAID, strict=True) if truth == "n"]
    assert found.tpr == wilson(sum(hits), len(hits))
    assert found.tnr == wilson(sum(misses), len(misses))
    assert binary_intervals(["p"] * 3, ["p"] * 3, "p", "abc").tnr is None


def test_multiclass_intervals_are_near_a_bootstrap() -> None:
    classes = ["a", "b", "c"]
    chance = random.Random(8)
    gold = [chance.choice(classes) for _ in range(600)]
    said = [truth if chance.random() < 0.6 else chance.choice([*classes, None]) for truth in gold]
    memes = [place // 2 for place in range(600)]
    rows = np.zeros((600, 9))
    for row, truth, guess in zip(rows, gold, said, strict=True):
        for place, count in enumerate(count_classes([truth], [guess], classes).values()):
            row[place], row[3 + place], row[6 + place] = count.tp, count.fp, count.fn
    drawn = next(iter(resample_sums(sum_by_cluster(rows, memes), 1000)))
    means: list[list[float | None]] = [[], [], [], []]
    for row in drawn.astype(int).reshape(1000, 3, 3):
        cells = {name: ClassCounts(*map(int, row[:, place])) for place, name in enumerate(classes)}
        metrics = macro_metrics(cells)
        values = (metrics.precision, metrics.recall, metrics.f1, f1(cells["b"]))
        for kept, value in zip(means, values, strict=True):
            kept.append(value)
    found = multiclass_intervals(gold, said, classes, memes)
    spans = [found.precision, found.recall, found.f1, found.f1_by_class["b"]]
    assert spans == [pytest.approx(span(values), abs=0.012) for values in means]


def test_a_class_with_one_member_has_a_wide_interval() -> None:
    gold = ["a"] * 299 + ["b"]
    found = multiclass_intervals(gold, gold, ["a", "b"], list(range(300)))
    assert found.f1_by_class["b"] == pytest.approx((2 * 0.2065 / 1.2065, 1.0), abs=1e-3)
    assert found.f1 is not None
    assert found.f1[0] < 0.7
    unasked = multiclass_intervals(["a"] * 9, ["a"] * 9, ["a", "z"], list(range(9)))
    assert unasked.f1 == unasked.f1_by_class["a"]
    assert unasked.f1_by_class["z"] is None
    assert multiclass_intervals(["a"] * 9, ["a"] * 9, ["a"], ["one"] * 9).f1 is None


def test_draws_come_in_pieces_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = np.array([[1.0, 2.0], [3.0, 1.0], [0.0, 5.0]])
    whole = list(resample_sums(sums, 10))
    assert [len(piece) for piece in whole] == [10]
    monkeypatch.setattr(interval, "_MOST_WEIGHTS", 12)
    pieces = list(resample_sums(sums, 10))
    assert [len(piece) for piece in pieces] == [4, 4, 2]
    first = np.random.default_rng([0, 0]).multinomial(3, [1 / 3] * 3, size=4) @ sums
    last = np.random.default_rng([0, 2]).multinomial(3, [1 / 3] * 3, size=2) @ sums
    assert np.array_equal(pieces[0], first)
    assert np.array_equal(pieces[2], last)
    other = next(iter(resample_sums(sums, 4, 7)))
    assert np.array_equal(
        other, np.random.default_rng([7, 0]).multinomial(3, [1 / 3] * 3, size=4) @ sums
    )


def test_a_statistic_that_is_never_defined_has_no_interval() -> None:
    nothing = np.zeros((5, 2))
    assert bootstrap(nothing, lambda s: s[:, 0] / s[:, 1]) is None
    assert bootstrap(np.ones((1, 2)), lambda s: s[:, 0] / s[:, 1]) is None
    assert bootstrap(np.ones((2, 2)), lambda s: s[:, 0] / s[:, 1]) == wilson(2, 2)
    fives = np.array([[5.0, 1.0]] * 4)
    assert bootstrap(fives, lambda s: s[:, 0] / s[:, 1]) is None  # no bounds of this value
    assert bootstrap(fives, lambda s: s[:, 0] / s[:, 1], bounds=(1.0, 5.0)) == pytest.approx(
        (5 - 4 * 3.8415 / 7.8415, 5.0), abs=1e-4
    )


def test_a_macro_interval_averages_over_kinds() -> None:
    hits = [True, False, True, True, False, True, False, True]
    kinds = ["x", "y"] * 4
    memes = [0, 0, 1, 1, 2, 2, 3, 3]
    found = macro_interval(hits, kinds, memes)
    # Both rates are 3 of 4 and 2 of 4; their misses are in different memes.
    assert found is not None
    assert found[0] < 0.625 < found[1]
    many = macro_interval(hits * 60, kinds * 60, [place // 2 for place in range(480)])
    rows = np.array([[h and k == "x", h and k == "y", k == "x", k == "y"]
                     for h, k in zip(hits * 60, kinds * 60, strict=True)], float)  # fmt: skip
    sums = sum_by_cluster(rows, [place // 2 for place in range(480)])
    drawn = next(iter(resample_sums(sums, 2000)))
    values = (drawn[:, 0] / drawn[:, 2] + drawn[:, 1] / drawn[:, 3]) / 2
    assert many == pytest.approx(span(values.tolist()), abs=0.012)
    assert macro_interval([], [], []) is None


UNITS = np.random.default_rng(3).random((12, 8))
RUNS = [[0], [0, 1], [1], [0], [1, 1], [0], [1], [0], [], [1], [0, 1], [0]]
TEMPLATES = [place // 2 for place in range(12)]


def plain_summary(weights: Sequence[float], combine: str = "soft") -> dict[str, list[float]]:
    """All figures of both runs by loops; ``weights`` says how often each judgement is drawn."""
    each = components(UNITS, Formula(combine))  # type: ignore[arg-type]
    found: dict[str, list[float]] = {key: [] for key in KEYS}
    for run in (0, 1):
        times = np.array([w * runs.count(run) for w, runs in zip(weights, RUNS, strict=True)])
        if not times.sum():
            continue
        means = (times[:, None] * UNITS).sum(axis=0) / times.sum()
        own = (times[:, None] * each).sum(axis=0) / times.sum()
        late = components(means[None], Formula(combine))[0]  # type: ignore[arg-type]
        for key, value in zip(KEYS, [*means, *own, *late], strict=True):
            found[key].append(float(value))
    return found


@pytest.mark.parametrize("combine", ["soft", "product"])
def test_metrics_of_reappraisal_equal_a_loop(combine: str) -> None:
    summary = summarise(UNITS, RUNS, TEMPLATES, Formula(combine), resamples=60)  # type: ignore[arg-type]
    assert summary is not None
    assert (summary.judged, summary.runs) == (11, 2)
    plain = plain_summary([1.0] * 12, combine)
    drawn: dict[str, list[float]] = {key: [] for key in KEYS}
    for times in draw_items(6, 60):
        for key, values in plain_summary([times[t] for t in TEMPLATES], combine).items():
            if values:
                drawn[key].append(sum(values) / len(values))
    for key, metric in summary.metrics.items():
        assert metric.value == pytest.approx(np.mean(plain[key]), abs=1e-12), key
        assert metric.sd == pytest.approx(np.std(plain[key], ddof=1), abs=1e-12), key
        assert (metric.low, metric.high) == pytest.approx(span(drawn[key]), abs=1e-9), key


def test_a_draw_without_a_run_averages_over_the_others() -> None:
    """Each template is in one run only: some draws leave a run, or all but one, empty."""
    units = np.array([[0.2] * 8, [0.8] * 8])
    summary = summarise(units, [[0], [1]], ["a", "b"], resamples=200)
    assert summary is not None
    assert summary.metrics["vgq"].value == pytest.approx(0.5)
    assert summary.metrics["vgq"].low == pytest.approx(0.2)
    assert summary.metrics["vgq"].high == pytest.approx(0.8)


def test_one_template_has_no_interval_and_one_run_no_deviation() -> None:
    alone = summarise(UNITS[:2], [[0], [0]], ["a", "a"])
    assert alone is not None
    assert {(f.sd, f.low, f.high) for f in alone.metrics.values()} == {(None, None, None)}
    pair = summarise(UNITS[:2], [[0], [0]], ["a", "b"])
    assert pair is not None
    assert pair.metrics["tas"].low is not None
    assert summarise(UNITS[:2], [[], []], ["a", "b"]) is None


def test_agreement_leaves_out_what_one_did_not_rate() -> None:
    first, second = ["a", "b", "a", None, "b"], ["a", "b", "b", "a", None]
    assert cohen_kappa(first, second) == cohen_kappa(["a", "b", "a"], ["a", "b", "b"])
    assert cohen_kappa(["a", None], [None, "a"]) is None
    assert cohen_kappa(["a", "a"], ["a", "a"]) is None
    assert mean_cohen_kappa([["a", "a"], ["a", "a"]]) is None
    assert krippendorff_alpha([["a", None], ["b", None]]) is None
    assert krippendorff_alpha([["a", "a"], ["a", "a"]]) is None
    assert krippendorff_alpha([["a", "b"]]) == pytest.approx(0.0)
    with pytest.raises(TypeError, match="'a'"):
        krippendorff_alpha([["a", "b"], ["a", "a"]], "ordinal")


def test_ordinal_agreement_goes_by_rank() -> None:
    rows: list[list[int | None]] = [[1, 2, 2], [3, 3, 4], [1, 1, 10], [4, 4, 4], [2, 3, None]]
    stretched = [[one and one**3 for one in row] for row in rows]
    ranks = krippendorff_alpha(rows, "ordinal")
    assert ranks == pytest.approx(krippendorff_alpha(stretched, "ordinal"))
    assert krippendorff_alpha(rows, "interval") != pytest.approx(ranks)


def test_any_statistic_is_resampled_as_sums_are(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    values = rng.random(90)
    clusters = [int(name) for name in rng.integers(0, 25, 90)]
    sums = sum_by_cluster(np.column_stack([values, np.ones(90)]), clusters)

    def mean(places: Sequence[int]) -> float:
        return float(values[list(places)].mean())

    by_sums = bootstrap(sums, lambda drawn: drawn[:, 0] / drawn[:, 1], resamples=300)
    assert bootstrap_items(clusters, mean, resamples=300) == pytest.approx(by_sums)
    # In pieces, as for very many clusters: other resamples, nearly the same interval.
    monkeypatch.setattr("memantics.metrics.interval._MOST_WEIGHTS", 25 * 70)
    assert bootstrap_items(clusters, mean, resamples=300) == pytest.approx(by_sums, abs=0.03)


def test_an_interval_of_any_statistic_needs_two_clusters_and_defined_draws() -> None:
    counts: list[int] = []

    def note(places: Sequence[int]) -> float | None:
        counts.append(len(places))
        assert list(places) == sorted(places)
        return float(len(counts)) if len(counts) > 100 else (None if len(counts) % 2 else math.nan)

    # The 102nd call is that with all items, whose value the interval includes.
    assert bootstrap_items("aab", note, resamples=101) == (101.0, 102.0)
    # Two clusters of two and one items, drawn twice.
    assert set(counts) == {2, 3, 4}
    assert bootstrap_items("aab", lambda _: None, resamples=9) is None
    assert bootstrap_items("aaa", lambda _: 1.0) is None
    assert bootstrap_items("ab", lambda _: 1.0, resamples=0) is None
    assert bootstrap_items("ab", lambda _: 1.0, resamples=1) == wilson(2, 2)
    assert bootstrap_items("ab", lambda _: 1.0, resamples=1, bounds=None) is None
