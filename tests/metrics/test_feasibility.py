"""The checker finds what is impossible in the papers' tables, and never blames a true table."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memantics.metrics.classification import count_binary, count_classes, macro_metrics, tnr, tpr
from memantics.metrics.classification import f1 as f1_of
from memantics.metrics.feasibility import (
    Claims,
    f1_fits,
    find_violations,
    macro_f1_fits,
    share_fits,
    weighted_fits,
    whole_fits,
)

digits = st.integers(2, 4)
labels = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=80
)
bits = st.lists(st.booleans(), min_size=1, max_size=120)


def cut(value: float, places: int) -> float:
    """Print without rounding, as some papers do."""
    unit = 10.0**-places
    return math.floor(value / unit + 1e-9) * unit


@pytest.mark.parametrize(
    ("f1", "precision", "recall"),
    [(0.3646, 0.3566, 0.3623), (0.7904, 0.7817, 0.7932), (0.5736, 0.5768, 0.5694)],
    ids=["ResNet, type", "fusion with text captions, detection", "VisualGLM, detection"],
)
def test_three_macro_f1_of_toxicn_mm_are_impossible(
    f1: float, precision: float, recall: float
) -> None:
    assert not macro_f1_fits(f1, precision, recall, 4)


@pytest.mark.parametrize(
    ("whole", "parts"),
    [(0.1323, [0.1465, 0.1468]), (0.2286, [0.2280, 0.1783]), (0.8638, [0.8664, 0.9471])],
    ids=["BLIP2", "InstructBLIP", "Qwen2.5"],
)
def test_three_totals_of_m_quest_lie_outside_their_parts(whole: float, parts: list[float]) -> None:
    assert not whole_fits(whole, parts, 4)


@pytest.mark.parametrize("share", [0.1323, 0.2286, 0.8379, 0.8563, 0.8638])
def test_totals_of_m_quest_that_no_count_of_609_gives(share: float) -> None:
    assert not share_fits(share, 609, 4)


@pytest.mark.parametrize("share", [0.1465, 0.2280, 0.5016, 0.5472, 0.7198, 0.8013, 0.8436, 0.8664])
def test_toxicity_metrics_of_m_quest_are_counts_of_307(share: float) -> None:
    assert share_fits(share, 307, 4)


@given(labels, digits)
def test_true_macro_metrics_are_never_blamed(pairs: list[tuple[str, str]], places: int) -> None:
    found = macro_metrics(count_classes([g for g, _ in pairs], [p for _, p in pairs], "abc"))
    assert found.f1 is not None
    assert found.precision is not None
    assert found.recall is not None
    for show in (round, cut):
        f1, precision, recall = (
            float(show(value, places)) for value in (found.f1, found.precision, found.recall)
        )
        assert macro_f1_fits(f1, precision, recall, places)


@given(bits, bits, digits)
def test_true_shares_are_never_blamed(one: list[bool], two: list[bool], places: int) -> None:
    def share(hits: list[bool]) -> float:
        return sum(hits) / len(hits)

    for show in (round, cut):
        a, b, both = (show(share(hits), places) for hits in (one, two, one + two))
        assert share_fits(a, len(one), places)
        assert whole_fits(both, [a, b], places)
        assert weighted_fits(both, [(a, len(one)), (b, len(two))], places)


@given(bits, bits, digits)
def test_true_f1_is_never_blamed(puns: list[bool], others: list[bool], places: int) -> None:
    gold = [True] * len(puns) + [False] * len(others)
    counts = count_binary(gold, [*puns, *(not hit for hit in others)], positive=True)
    values = [f1_of(counts), tpr(counts), tnr(counts)]
    for show in (round, cut):
        f1, true, false = (show(value, places) for value in values if value is not None)
        assert f1_fits(f1, (true, false), (len(puns), len(others)), places)


def test_every_violation_of_a_row_is_told() -> None:
    metrics = {"accuracy": 0.1323, "toxicity_accuracy": 0.1465, "reasoning_accuracy": 0.1468}
    claims = Claims(
        digits=4,
        sizes={"accuracy": 609, "toxicity_accuracy": 307, "reasoning_accuracy": 302},
        parts={"accuracy": ("toxicity_accuracy", "reasoning_accuracy")},
    )
    assert find_violations(metrics, claims) == (
        "accuracy 0.1323 is outside the range of its parts, 0.1465 and 0.1468",
        "accuracy 0.1323 is not the mean of its parts at 307 and 302 items, 0.1466",
        "accuracy 0.1323 is not k/609 for any whole k",
        "reasoning_accuracy 0.1468 is not k/302 for any whole k",
    )
    (wrong,) = find_violations(
        {"f1": 0.9, "tpr": 0.853, "tnr": 0.739}, Claims(digits=3, classes=(652, 1304))
    )
    assert wrong == "F1 0.900 does not follow from TPR and TNR at (652, 1304) items"
    assert find_violations({"f1": 0.9}, Claims(digits=3, classes=(1, 2))) == ()
