"""The figures of a reappraisal against the formulas, written out plainly, and other libraries."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gmean, hmean
from sklearn.metrics import cohen_kappa_score

from memantics.metrics.reappraisal import (
    COMPONENTS,
    KEYS,
    METRICS,
    Formula,
    agree,
    align_target,
    combine_fidelity,
    components,
    keep_content,
    shift_strength,
    summarise,
    unit,
)

SHARE = st.floats(0, 1)
RATING = st.integers(1, 5)


def plainly(vgq: float, vea: float, tgq: float, tea: float, lc: float, hgq: float, ppe: float,
            pes: float) -> tuple[float, float, float, float]:  # fmt: skip
    """The definition for one sample, step by step."""
    tas = ppe * (0.0 if vea + tea <= 1e-12 else 2 * vea * tea / (vea + tea + 1e-12))
    cfs = lc * (max(vgq, 1e-12) * max(tgq, 1e-12) * max(hgq, 1e-12)) ** (1 / 3)
    sss = 1 - math.exp(-3 * pes)
    f = 1e-3
    joint = ((f + tas) * (f + cfs) * (f + sss)) ** (1 / 3)
    return tas, cfs, sss, max(0.0, min(1.0, (joint - f) / (1 - f)))


def draw_units(count: int, seed: int = 1) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    chance = np.random.default_rng(seed)
    rows = chance.integers(0, 5, size=(count, 8)) / 4
    for column in (METRICS.index("lc"), METRICS.index("ppe")):
        rows[:, column] = chance.integers(0, 2, size=count)
    return rows


def test_components_are_those_of_the_definition() -> None:
    units = draw_units(400)
    expected = [plainly(*row) for row in units.tolist()]
    assert components(units) == pytest.approx(np.array(expected), abs=1e-6)


def test_means_agree_with_scipy() -> None:
    chance = np.random.default_rng(2)
    a, b, c = chance.uniform(0.01, 1, size=(3, 200))
    assert align_target(1, a, b) == pytest.approx(hmean([a, b]), abs=1e-9)
    assert keep_content(1, a, b, c) == pytest.approx(gmean([a, b, c]), abs=1e-9)


def test_a_worked_example() -> None:
    """VGQ 4, VEA 5, TGQ 3, TEA 4, LC yes, HGQ 4, hit, PES 4; RFS with 40 decimal digits."""
    units = np.array([[0.75, 1.0, 0.5, 0.75, 1.0, 0.75, 1.0, 0.75]])
    tas, cfs, sss, rfs = components(units)[0]
    assert tas == pytest.approx(6 / 7, abs=1e-6)
    assert cfs == pytest.approx(0.28125 ** (1 / 3), abs=1e-6)
    assert sss == pytest.approx(0.8946007754, abs=1e-6)
    assert rfs == pytest.approx(0.7957721768, abs=1e-9)


def test_bounds() -> None:
    best = components(np.ones((1, 8)))[0]
    assert best == pytest.approx([1.0, 1.0, 1 - math.exp(-3), 0.98410541], abs=1e-7)
    assert components(np.zeros((1, 8)))[0] == pytest.approx([0, 0, 0, 0], abs=1e-11)
    missed = np.ones((1, 8))
    missed[0, METRICS.index("ppe")] = 0
    assert components(missed)[0, 3] == pytest.approx(0.0975, abs=1e-4)
    assert components(missed, Formula("product"))[0, 3] == 0


@given(SHARE, SHARE, SHARE)
def test_the_soft_conjunction_stays_in_range_and_grows(a: float, b: float, c: float) -> None:
    value = float(combine_fidelity(a, b, c))
    assert 0 <= value <= 1
    assert value <= float(combine_fidelity(min(1, a + 0.1), b, c)) + 1e-12
    assert float(combine_fidelity(a, b, c, "product")) == pytest.approx(a * b * c)


@given(st.lists(RATING, min_size=1, max_size=20))
def test_normalising_a_mean_is_the_mean_of_normalised(ratings: list[int]) -> None:
    assert float(unit(statistics.fmean(ratings))) == pytest.approx(float(unit(ratings).mean()))


def test_sample_level_and_run_level_are_both_there_and_differ() -> None:
    units = draw_units(60)
    found = summarise(units, [[0]] * 60, list(range(60)))
    assert found is not None
    per_sample = components(units).mean(axis=0)
    of_means = plainly(*units.mean(axis=0).tolist())
    for place, name in enumerate(COMPONENTS):
        assert found.metrics[name].value == pytest.approx(per_sample[place], abs=1e-9)
        assert found.metrics[f"{name}_run"].value == pytest.approx(of_means[place], abs=1e-6)
    assert abs(found.metrics["rfs"].value - found.metrics["rfs_run"].value) > 0.01
    assert found.metrics["rfs"].sd is None
    assert (found.judged, found.runs) == (60, 1)


def test_runs_are_averaged_and_their_sd_is_unbiased() -> None:
    """A pair that a run drew twice counts twice there; the sd of a rating is the raw one / 4."""
    units = draw_units(30, seed=3)
    chance = np.random.default_rng(4)
    drawn = [chance.integers(0, 30, size=12).tolist() for _ in range(10)]
    runs: list[list[int]] = [[] for _ in range(30)]
    for run, own in enumerate(drawn):
        for index in own:
            runs[index].append(run)
    found = summarise(units, runs, list(range(30)))
    assert found is not None
    assert found.runs == 10
    assert found.judged == len({index for own in drawn for index in own})
    means = [units[own].mean(axis=0) for own in drawn]
    for place, name in enumerate(METRICS):
        values = [float(mean[place]) for mean in means]
        metric = found.metrics[name]
        assert metric.value == pytest.approx(statistics.fmean(values))
        assert metric.sd == pytest.approx(statistics.stdev(values))
    ratings = [float(1 + 4 * mean[0]) for mean in means]
    assert found.metrics["vgq"].sd == pytest.approx(statistics.stdev(ratings) / 4)
    by_run = [plainly(*mean.tolist())[3] for mean in means]
    assert found.metrics["rfs_run"].value == pytest.approx(statistics.fmean(by_run), abs=1e-6)
    assert found.metrics["rfs_run"].sd == pytest.approx(statistics.stdev(by_run), abs=1e-6)
    by_sample = [float(components(units[own])[:, 3].mean()) for own in drawn]
    assert found.metrics["rfs"].value == pytest.approx(statistics.fmean(by_sample), abs=1e-9)


def test_intervals_hold_the_value_and_know_the_memes() -> None:
    units = np.repeat(draw_units(40), 3, axis=0)
    alone = summarise(units, [[0]] * 120, list(range(120)))
    clustered = summarise(units, [[0]] * 120, [index // 3 for index in range(120)])
    assert alone is not None
    assert clustered is not None
    for key in KEYS:
        metric = clustered.metrics[key]
        assert metric.low is not None
        assert metric.high is not None
        assert metric.low - 1e-9 <= metric.value <= metric.high + 1e-9 or key.endswith("_run")
    assert width(clustered, "vgq") > 1.3 * width(alone, "vgq")


def width(summary: object, key: str) -> float:
    metric = summary.metrics[key]  # type: ignore[attr-defined]
    return float(metric.high - metric.low)


def test_nothing_is_nothing() -> None:
    assert summarise(np.zeros((0, 8)), [], []) is None
    assert summarise(np.ones((2, 8)), [[], []], ["a", "b"]) is None
    one = summarise(np.ones((1, 8)), [[0]], ["a"])
    assert one is not None
    assert one.metrics["rfs"].low is None


@pytest.mark.parametrize("seed", range(5))
def test_kappa_agrees_with_sklearn(seed: int) -> None:
    chance = np.random.default_rng(seed)
    one: Sequence[bool] = (chance.random(50) < 0.6).tolist()
    other: Sequence[bool] = [a if chance.random() < 0.7 else not a for a in one]
    found = agree(one, other)
    assert found is not None
    assert found.kappa == pytest.approx(cohen_kappa_score(one, other))


def test_shift_saturates() -> None:
    assert shift_strength([0, 0.25, 0.5, 1]) == pytest.approx(
        [0.0, 0.5276334473, 0.7768698399, 0.9502129316]
    )
