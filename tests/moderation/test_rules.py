"""Rules that choose an operating point, on both sides of every target."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_score, recall_score

from memantics.core.errors import InputError
from memantics.moderation.operating_points import OperatingPoint
from memantics.moderation.rules import (
    HeldOutScores,
    choose_point,
    count_scores,
    describe_point,
    expect,
    list_thresholds,
    read_rule,
    read_scores,
)

# Ten memes: harmful at .9, .8, .6, .3; harmless at .7, .5, .4, .2, .1, .05.
SAID = [
    *((value, True) for value in (0.9, 0.8, 0.6, 0.3)),
    *((value, False) for value in (0.7, 0.5, 0.4, 0.2, 0.1, 0.05)),
]
SCORES = count_scores(SAID)


def choose(rule: str, volume: str = "", threshold: float = 0.5) -> OperatingPoint:
    return choose_point(SCORES, rule, volume, threshold)


@pytest.mark.parametrize(
    ("rule", "threshold"),
    [
        ("precision=1", 0.701),
        ("precision=0.75", 0.501),
        ("precision=0.76", 0.701),
        ("recall=0.75", 0.6),
        ("recall=0.76", 0.3),
        ("recall=1", 0.3),
    ],
)
def test_precision_takes_the_lowest_and_recall_the_highest_threshold(
    rule: str, threshold: float
) -> None:
    assert choose(rule) == OperatingPoint(threshold, rule=rule)


@pytest.mark.slow
def test_precision_and_recall_are_those_of_scikit_learn() -> None:
    truth = [harmful for _, harmful in SAID]
    for threshold, precision, recall in list_thresholds(SCORES):
        said = [value >= threshold for value, _ in SAID]
        assert precision == pytest.approx(precision_score(truth, said))
        assert recall == pytest.approx(recall_score(truth, said))


@pytest.mark.parametrize(
    ("budget", "reviewed"), [("0/day", 0), ("99/day", 0), ("100/day", 1), ("300/day", 3)]
)
def test_reviews_spend_no_more_than_the_budget(budget: str, reviewed: int) -> None:
    point = choose(f"reviews={budget}", "1000/day", threshold=0.55)
    found = expect(SCORES, point)
    assert round((found.reviewed.value or 0) * 10) == reviewed
    assert (point.volume, point.rule) == ("1000/day", f"reviews={budget}")
    if point.review_range is not None:
        assert point.review_range[0] <= 0.55 <= point.review_range[1]


def test_a_small_budget_is_spent_near_the_threshold_or_the_user_is_told() -> None:
    # Three memes in each bin, but one meme at .487: a budget of one of 300 reviews only that one.
    crowd = [(n / 1000, n % 2 == 0) for n in range(400, 500) if n != 487 for _ in range(3)]
    scores = count_scores([*crowd, (0.487, True), *[(0.1, False)] * 2])
    point = choose_point(scores, "reviews=1/day", "300/day", 0.45)
    assert (point.threshold, point.review_range) == (0.488, (0.487, 0.488))
    assert (expect(scores, point).reviewed.value or 0) * 300 == pytest.approx(1)
    assert not any(line.startswith("warning: no meme") for line in describe_point(scores, point))
    far = choose_point(scores, "reviews=1/day", "300/day", 0.43)  # .487 is not near .43
    assert (far.threshold, far.review_range) == (0.43, None)
    (warning,) = (x for x in describe_point(scores, far) if x.startswith("warning: no meme"))
    assert "has more memes than reviews=1/day allows; allow more reviews" in warning


def find_cost(scores: HeldOutScores, low: int, high: int, costs: tuple[float, ...]) -> float:
    miss, false_positive, review = costs
    both = np.array(scores.harmful) + np.array(scores.harmless)
    return float(
        miss * sum(scores.harmful[:low])
        + review * both[low:high].sum()
        + false_positive * sum(scores.harmless[high:])
    )


@given(
    said=st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=30),
    costs=st.tuples(*[st.sampled_from([0.0, 0.2, 1.0, 10.0])] * 3),
)
def test_the_cheapest_bands_are_found(
    said: list[tuple[int, bool]], costs: tuple[float, float, float]
) -> None:
    said = [*said, (0, False), (9, True)]
    scores = count_scores([(place / 10, harmful) for place, harmful in said])
    rule = "cost=miss:{:g},false_positive:{:g},review:{:g}".format(*costs)
    point = choose_point(scores, rule, "", 0.5)
    low, high = point.review_range or (point.threshold, point.threshold)
    steps = range(0, 1001, 100)
    pairs = ((a, b) for a, b in itertools.product(steps, steps) if a <= b)
    best = min(find_cost(scores, a, b, costs) for a, b in pairs)
    assert find_cost(scores, round(low * 1000), round(high * 1000), costs) == pytest.approx(best)


@pytest.mark.parametrize(
    "rule",
    [
        *("", "precision", "precision=", "precision=0", "precision=1.1", "precision=x"),
        *("recall=nan", "f1=0.5", "cost=", "cost=miss:1", "cost=miss:1,false_positive:1,review:x"),
        *("cost=miss:1,false_positive:1,review:1,miss:2", "reviews=50", "reviews=50/day"),
    ],
)
def test_what_is_not_a_rule_is_refused_with_examples(rule: str) -> None:
    with pytest.raises(InputError, match=r"precision=0\.9|reviews=50/day"):
        read_rule(rule)


@pytest.mark.parametrize("volume", ["", "20000", "20000/week", "0/day", "x/day"])
def test_reviews_need_the_volume_of_the_same_time(volume: str) -> None:
    with pytest.raises(InputError, match="needs the number of memes in the same time"):
        read_rule("reviews=50/day", volume)


def test_a_target_that_no_threshold_reaches_names_the_highest() -> None:
    scores = count_scores([(0.9, False), (0.5, True)])
    with pytest.raises(InputError, match=r"no threshold reaches precision 0.9 .* is 0\.50"):
        choose_point(scores, "precision=0.9", "", 0.5)
    # The nearest useful thresholds are named, as for a rule that gives a useless one.
    with pytest.raises(InputError) as caught:
        choose_point(scores, "precision=0.9", "", 0.5)
    assert "recall of at least 50 %: 0.001 (precision 50.0 %, recall 100.0 %)" in str(caught.value)
    for useless in (None, count_scores([]), count_scores([(0.5, True)])):
        with pytest.raises(InputError, match="no held-out predictions"):
            choose_point(useless, "recall=0.5", "", 0.5)


def test_expected_counts_are_of_all_memes_and_errors_of_their_class() -> None:
    found = expect(SCORES, OperatingPoint(0.65, (0.35, 0.65)))
    assert (found.allowed.value, found.reviewed.value, found.blocked.value) == (0.4, 0.3, 0.3)
    assert (found.missed.value, found.recall.value) == (0.25, 0.5)
    assert found.precision.value == pytest.approx(2 / 3)
    assert found.false_positives.value == pytest.approx(1 / 6)
    lines = describe_point(SCORES, replace(OperatingPoint(0.65, (0.35, 0.65)), volume="200/day"))
    assert "threshold 0.65, review band 0.35 to 0.65: on 10 held-out memes precision" in lines[0]
    assert lines[1].startswith("expect of 200 memes per day: 80 (")
    assert lines[2].startswith("errors: 25.0 % (")


def test_a_point_that_finds_hardly_any_offers_the_nearest_useful_ones() -> None:
    said = [(0.99, True), *((0.6, True) for _ in range(99)), *((0.55, False) for _ in range(50))]
    scores = count_scores([*said, (0.61, False)])
    lines = describe_point(scores, OperatingPoint(0.95))
    assert any("99.0 % of harmful memes are allowed" in line for line in lines)
    # The same threshold is the nearest one for each recall: it is listed once.
    (line,) = (line for line in lines if "nearest useful threshold" in line)
    assert "of at least 50 %: 0.551 (precision 99.0 %, recall 100.0 %)" in line
    assert not any("warning" in line for line in describe_point(scores, OperatingPoint(0.6)))
    # A point that sends most memes to people is no help either.
    lines = describe_point(scores, OperatingPoint(0.95, (0.1, 0.95)))
    assert any("99.3 % of all memes need human review" in line for line in lines)
    assert sum("nearest useful threshold" in line for line in lines) == 1
    assert describe_point(None, OperatingPoint(0.5)) == [
        "threshold 0.5: precision and recall on held-out memes are unknown"
    ]
    assert describe_point(None, OperatingPoint(0.9, (0.1, 0.2)))[1].startswith("note: memes from")


def test_nearest_useful_thresholds_are_distinct() -> None:
    said = [(0.95, True)] * 20 + [(0.9, False)] * 5 + [(0.8, True)] * 60 + [(0.7, False)] * 40
    lines = describe_point(count_scores([*said, *([(0.1, True)] * 20)]), OperatingPoint(0.99))
    found = [line.partition("at least ")[2] for line in lines if "nearest useful" in line]
    assert found == [
        "10 %: 0.901 (precision 100.0 %, recall 20.0 %)",
        "50 %: 0.701 (precision 94.1 %, recall 80.0 %)",
    ]


def test_counts_are_stored_and_read_back() -> None:
    assert read_scores(SCORES.dump(), "d.zip") == SCORES
    assert read_scores(None, "d.zip") is None
    for damaged in ("x", [[1, 2]], [[1000, 1, 1]], [[0, -1, 0]], 7):
        with pytest.raises(InputError, match=r"counts on held-out memes in d\.zip cannot be read"):
            read_scores(damaged, "d.zip")
