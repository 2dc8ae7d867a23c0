"""Prediction-powered estimates: equal to ppi-python, by meme, with weights, and honest at the ends.

The expected values are of ppi-python 0.2.3. They are computed again where ``make clients`` has
installed it, or where the environment variable PPI_PYTHON names a Python that has it.
"""

from __future__ import annotations

import math
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest

from memantics.metrics.interval import unvaried_span, wilson
from memantics.metrics.paired import compare_means
from memantics.metrics.prediction_powered import (
    RatedItems,
    draw_items,
    estimate_mean,
    expected_half_width,
    pair_items,
    selection_probabilities,
)
from tests.serve.clients import FOLDER

NAN = math.nan
PPI_PYTHON = Path(os.environ.get("PPI_PYTHON") or FOLDER / "ppi" / "bin" / "python")
# The estimate with a tuned weight and with weight 1, and the standard error with a tuned weight.
PUBLISHED = {
    ("graded", 30, 200, "perfect"): (2.57571906133, 2.69411764706, 0.0998989607),
    ("graded", 30, 200, "good"): (2.51757480474, 2.64509803922, 0.128812510352),
    ("graded", 30, 200, "lenient"): (2.53522767934, 2.64901960784, 0.125350934254),
    ("graded", 30, 200, "unrelated"): (2.34168697666, 2.4, 0.215574394036),
    ("graded", 30, 200, "adversarial"): (2.33333333333, 1.97254901961, 0.217732421581),
    ("graded", 120, 400, "perfect"): (2.65013544938, 2.66428571429, 0.0681357548659),
    ("graded", 120, 400, "good"): (2.63023160654, 2.6369047619, 0.0750110789574),
    ("graded", 120, 400, "lenient"): (2.6439879552, 2.65833333333, 0.0790971367575),
    ("graded", 120, 400, "unrelated"): (2.6170209807, 2.62976190476, 0.124771621935),
    ("graded", 120, 400, "adversarial"): (2.61666666667, 2.56904761905, 0.1248239501),
    ("binary", 30, 200, "perfect"): (0.692291020365, 0.658823529412, 0.0346867570563),
    ("binary", 30, 200, "good"): (0.770921264146, 0.774509803922, 0.0574001740982),
    ("binary", 30, 200, "lenient"): (0.758874702077, 0.754901960784, 0.0644200367543),
    ("binary", 30, 200, "unrelated"): (0.766666666667, 0.783333333333, 0.0772202237951),
    ("binary", 30, 200, "adversarial"): (0.766666666667, 0.874509803922, 0.0772202237951),
    ("binary", 120, 400, "perfect"): (0.660081204199, 0.657142857143, 0.023685734879),
    ("binary", 120, 400, "good"): (0.655632592593, 0.642857142857, 0.0352559517822),
    ("binary", 120, 400, "lenient"): (0.679402877085, 0.688095238095, 0.0382815164932),
    ("binary", 120, 400, "unrelated"): (0.666666666667, 0.66994047619, 0.0430331482912),
    ("binary", 120, 400, "adversarial"): (0.666666666667, 0.67619047619, 0.0430331482912),
}
_SCRIPT = """
import sys, json
import numpy as np
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate
found = {}
for name, (y, f, u) in json.load(sys.stdin).items():
    y, f, u = map(np.array, (y, f, u))
    low, high = (float(np.squeeze(end)) for end in ppi_mean_ci(y, f, u, alpha=0.05))
    found[name] = [
        float(np.squeeze(ppi_mean_pointestimate(y, f, u))),
        float(np.squeeze(ppi_mean_pointestimate(y, f, u, lam=1))),
        (high - low) / 2 / 1.959963984540054,
    ]
print(json.dumps(found))
"""


def make(kind: str, rated: int, total: int, judge: str) -> RatedItems:
    """Ratings and marks by integer arithmetic, so that every machine has the same."""
    places = [(i * i * 7 + i * 3 + i // 5) % 11 for i in range(total)]
    graded = kind == "graded"
    top, bottom = (5.0, 1.0) if graded else (1.0, 0.0)
    ratings = [1.0 + v * 4 // 10 if graded else float(v < 7) for v in places]
    marks = {
        "perfect": ratings,
        "good": [
            v if i % 4 else min(top, v + 1) if i % 8 else max(bottom, v - 1)
            for i, v in enumerate(ratings)
        ],
        "lenient": [min(top, v + 1) if i % 3 else v for i, v in enumerate(ratings)],
        "unrelated": [bottom + (i * 13 % 17) * (top - bottom) / 16 for i in range(total)],
        "adversarial": [top + bottom - v for v in ratings],
    }[judge]
    known = [v if i < rated else NAN for i, v in enumerate(ratings)]
    return RatedItems(marks, known, range(total), (bottom, top), not graded)


@pytest.mark.parametrize("case", PUBLISHED)
def test_estimates_equal_ppi_python(case: tuple[str, int, int, str]) -> None:
    items = make(*case)
    tuned, fixed, error = PUBLISHED[case]
    found = estimate_mean(items)
    whole = estimate_mean(items, weight=1.0)
    assert found is not None
    assert whole is not None
    assert found.powered.value == pytest.approx(tuned, rel=1e-9)
    assert whole.powered.value == pytest.approx(fixed, rel=1e-9)
    assert found.plain_error == pytest.approx(error, rel=1e-9)
    assert 0 <= found.weight <= 1
    assert found.powered.error is not None
    # The corrections for few ratings only widen the interval.
    assert found.powered.error > found.plain_error


@pytest.mark.skipif(not PPI_PYTHON.is_file(), reason="ppi-python is missing: make clients")
def test_recorded_values_are_those_of_ppi_python() -> None:
    data = {}
    for case in PUBLISHED:
        items = make(*case)
        rated = case[1]
        data["-".join(map(str, case))] = (
            list(items.ratings[:rated]), list(items.marks[:rated]), list(items.marks[rated:])
        )  # fmt: skip
    done = subprocess.run(
        [PPI_PYTHON, "-c", _SCRIPT],
        input=orjson.dumps(data),
        capture_output=True,
        check=True,
    )
    for (case, values), found in zip(
        PUBLISHED.items(), orjson.loads(done.stdout).values(), strict=True
    ):
        assert found == pytest.approx(values, rel=1e-9), case


def test_an_adversarial_judge_leaves_the_mean_of_people() -> None:
    items = make("graded", 60, 400, "adversarial")
    found = estimate_mean(items)
    assert found is not None
    assert found.weight == 0
    assert found.powered == found.people
    assert found.gain == 1.0
    useful = estimate_mean(make("graded", 60, 400, "good"))
    assert useful is not None
    assert useful.gain is not None
    assert useful.gain > 2
    assert useful.judge.value == pytest.approx(np.mean(make("graded", 60, 400, "good").marks))


def test_people_alone_have_the_interval_of_wilson() -> None:
    items = replace(make("binary", 30, 30, "good"), marks=[NAN] * 30)
    found = estimate_mean(items)
    assert found is not None
    hits = sum(items.ratings)
    assert (found.people.low, found.people.high) == pytest.approx(wilson(hits, 30))
    assert found.powered == found.people


@pytest.mark.parametrize("rating", [1.0, 5.0])
def test_equal_ratings_have_an_interval_with_a_width(rating: float) -> None:
    items = RatedItems([rating] * 100, [rating] * 30 + [NAN] * 70, range(100), (1.0, 5.0))
    found = estimate_mean(items)
    assert found is not None
    span = unvaried_span((rating - 1) / 4, 30, (0.0, 1.0))
    assert span is not None
    assert found.powered.low == pytest.approx(1 + 4 * span[0])
    assert found.powered.high == pytest.approx(1 + 4 * span[1])


def test_items_of_one_meme_count_as_one() -> None:
    """Each item twice gives the same estimate and interval as once, if memes are given."""
    once = make("graded", 40, 200, "good")
    twice = RatedItems(
        [m for m in once.marks for _ in range(2)],
        [r for r in once.ratings for _ in range(2)],
        [meme for meme in once.memes for _ in range(2)],
        once.scale,
    )
    one, other = estimate_mean(once), estimate_mean(twice)
    assert one is not None
    assert other is not None
    assert other.powered.value == pytest.approx(one.powered.value)
    assert other.powered.error == pytest.approx(one.powered.error)
    assert (other.rated, other.rated_memes) == (80, 40)
    apart = estimate_mean(replace(twice, memes=range(400)))
    assert apart is not None
    assert apart.powered.error is not None
    assert apart.powered.error < 0.8 * (one.powered.error or 0)


def test_a_paired_difference_with_all_ratings_is_that_of_the_jackknife() -> None:
    one, other = make("graded", 80, 80, "good"), make("graded", 80, 80, "perfect")
    found = estimate_mean(pair_items(one, replace(other, ratings=one.marks)))
    assert found is not None
    assert found.powered.value == pytest.approx(np.mean(np.subtract(one.marks, one.ratings)))
    expected = compare_means([*one.ratings], [*one.marks], [str(n) for n in range(80)])
    assert expected is not None
    assert found.powered.error == pytest.approx(expected.error, rel=1e-9)


def test_known_probabilities_undo_a_biased_selection() -> None:
    """Weights make the estimate unbiased where items with high ratings are selected more often."""
    rng = np.random.default_rng(5)
    truth = np.asarray(rng.integers(1, 6, 400), float)
    marks = np.asarray(np.clip(truth + rng.integers(-1, 2, 400), 1.0, 5.0), float)
    chances = selection_probabilities(truth**2, 80)
    assert chances.sum() == pytest.approx(80)
    weighted, plain, covered = [], [], 0
    for seed in range(60):
        drawn = draw_items(chances, seed)
        assert len(drawn) == 80
        ratings = np.full(400, NAN)
        ratings[drawn] = truth[drawn]
        items = RatedItems(marks, ratings, range(400), (1.0, 5.0), probabilities=chances)
        found = estimate_mean(items, weight=0.0)
        powered = estimate_mean(items)
        assert found is not None
        assert powered is not None
        weighted.append(found.powered.value)
        plain.append(truth[drawn].mean())
        assert powered.powered.low is not None
        assert powered.powered.high is not None
        covered += powered.powered.low <= truth.mean() <= powered.powered.high
    assert np.mean(weighted) == pytest.approx(truth.mean(), abs=0.1)
    assert np.mean(plain) > truth.mean() + 0.3
    assert covered >= 56


def test_too_few_ratings_have_no_interval() -> None:
    found = estimate_mean(RatedItems([1, 2, 3], [1, 2, NAN], range(3), (1.0, 5.0)))
    assert found is not None
    assert found.powered.low is None
    assert estimate_mean(RatedItems([1, 2], [NAN, NAN], range(2), (1.0, 5.0))) is None


@pytest.mark.parametrize("budget", [1, 17, 40, 60])
def test_a_budget_is_spent_exactly(budget: int) -> None:
    doubt = [float(n % 7) ** 3 for n in range(50)]
    chances = selection_probabilities(doubt, budget)
    assert chances.sum() == pytest.approx(min(budget, 50))
    assert (chances > 0).all()
    assert (chances <= 1).all()
    assert all(len(draw_items(chances, seed)) == min(budget, 50) for seed in range(20))
    counts = np.bincount([place for s in range(400) for place in draw_items(chances, s)], None, 50)
    assert np.abs(counts / 400 - chances).max() < 0.12


def test_a_judge_that_follows_people_needs_fewer_ratings() -> None:
    widths = [expected_half_width(1.2, r, 100, 1000, (1.0, 5.0)) for r in (0.0, 0.5, 0.9)]
    assert widths == sorted(widths, reverse=True)
    assert widths[2] < 0.6 * widths[0]
    assert expected_half_width(9.0, 0.0, 3, 9, (0.0, 1.0)) == 0.5


@pytest.mark.slow
def test_rare_ratings_at_the_ends_of_a_scale_are_counted_though_none_was_seen() -> None:
    """The interval of thirty ratings of a skewed scale covered 93 % of the means."""
    rng = np.random.default_rng(54)
    levels, held, repeats = np.arange(5.0), 0, 4000
    chances = np.array([0.02, 0.03, 0.05, 0.15, 0.75])
    for _ in range(repeats):
        ratings = np.concatenate([rng.choice(levels, 30, p=chances), np.full(90, NAN)])
        items = RatedItems(rng.choice(levels, 120), ratings, range(120), (0.0, 4.0))
        found = estimate_mean(items)
        assert found is not None
        assert found.people.low is not None
        assert found.people.high is not None
        held += found.people.low <= float(chances @ levels) <= found.people.high
    assert 0.945 <= held / repeats <= 0.965


def test_differences_count_no_unseen_end() -> None:
    """The ends of a difference are twice as far away, and two systems rarely reach them."""
    one = make("graded", 40, 200, "good")
    same = pair_items(one, replace(one, ratings=[4.0 - r for r in one.ratings]))
    assert same.paired
    plain, counted = estimate_mean(same), estimate_mean(replace(same, paired=False))
    assert plain is not None
    assert counted is not None
    assert (plain.people.error or 0) < (counted.people.error or 0)
