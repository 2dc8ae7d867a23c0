"""Macro figures and F1 of each class against scikit-learn and a plain bootstrap."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from memantics.metrics.classification import (
    binary_intervals,
    class_precision,
    class_recall,
    count_classes,
    f1,
    macro_figures,
    multiclass_intervals,
)
from memantics.metrics.interval import Floats, bootstrap

CLASSES = ("none", "targeted", "offence", "sexual")
rows = st.lists(
    st.tuples(st.sampled_from(CLASSES), st.sampled_from([*CLASSES, None])), min_size=1, max_size=60
)


@given(rows)
def test_figures_equal_scikit_learn(pairs: list[tuple[str, str | None]]) -> None:
    gold, said = [g for g, _ in pairs], [p for _, p in pairs]
    occurring = [name for name in CLASSES if name in gold or name in said]
    counts = count_classes(gold, said, CLASSES)
    # For scikit-learn no answer is a label of its own that no mean asks about.
    answers = [p or "no answer" for p in said]
    expected = sk.precision_recall_fscore_support(
        gold, answers, labels=occurring, zero_division=0.0
    )
    for name, p, r, f in zip(occurring, *expected[:3], strict=True):
        own = (class_precision(counts[name]), class_recall(counts[name]), f1(counts[name]))
        assert own == pytest.approx((p, r, f))
    macro = macro_figures(counts)
    means = [float(np.mean(column)) for column in expected[:3]]
    assert [macro.precision, macro.recall, macro.f1] == pytest.approx(means)
    assert all(f1(counts[name]) is None for name in CLASSES if name not in occurring)


def test_no_answer_lowers_recall_and_never_precision() -> None:
    answered = count_classes(["a", "a", "b"], ["a", "b", "b"], ("a", "b"))
    silent = count_classes(["a", "a", "b"], ["a", None, "b"], ("a", "b"))
    assert class_recall(answered["a"]) == class_recall(silent["a"]) == 0.5
    assert (class_precision(answered["b"]), class_precision(silent["b"])) == (0.5, 1.0)


def test_nothing_has_no_figures() -> None:
    counts = count_classes([], [], CLASSES)
    assert macro_figures(counts).f1 is None
    spans = multiclass_intervals([], [], CLASSES, [])
    assert spans.f1 is None
    assert spans.f1_by_class == dict.fromkeys(CLASSES)


def test_intervals_are_those_of_a_plain_bootstrap() -> None:
    draw = random.Random(5)
    gold = draw.choices(CLASSES, (60, 20, 15, 5), k=500)
    said = [g if draw.random() < 0.7 else draw.choice(CLASSES) for g in gold]
    spans = multiclass_intervals(gold, said, CLASSES, list(range(500)))
    cells = np.zeros((500, 12))
    for row, truth, guess in zip(cells, gold, said, strict=True):
        row[CLASSES.index(truth) + (0 if truth == guess else 8)] = 1
        if truth != guess:
            row[4 + CLASSES.index(guess)] = 1

    def macro(sums: Floats) -> Floats:
        tp, fp, fn = sums[:, :4], sums[:, 4:8], sums[:, 8:]
        means: Floats = (2 * tp / (2 * tp + fp + fn)).mean(axis=1)
        return means

    plain = bootstrap(cells, macro, draws=4000)
    assert plain is not None
    assert spans.f1 == pytest.approx(plain, abs=0.006)


def test_two_classes_agree_with_the_binary_figures() -> None:
    draw = random.Random(8)
    gold = draw.choices(["harmful", "harmless"], k=300)
    said = [g if draw.random() < 0.8 else draw.choice(["harmful", "harmless"]) for g in gold]
    many = multiclass_intervals(gold, said, ("harmful", "harmless"), list(range(300)))
    two = binary_intervals(gold, said, "harmful", list(range(300)))
    assert many.f1 is not None
    assert two.macro_f1 is not None
    assert many.f1 == pytest.approx(two.macro_f1, abs=0.01)
    assert many.f1_by_class["harmful"] == pytest.approx(two.f1, abs=0.01)


def test_items_of_one_meme_make_intervals_wider() -> None:
    gold, said = ["a", "b"] * 40, (["a", "b"] * 3 + ["b", "a"]) * 10
    alone = multiclass_intervals(gold, said, ("a", "b"), list(range(80)))
    together = multiclass_intervals(gold, said, ("a", "b"), [place // 8 for place in range(80)])
    wide = multiclass_intervals(
        gold, gold[:40] + said[:40], ("a", "b"), [i // 40 for i in range(80)]
    )
    assert alone.f1 is not None
    assert wide.f1 is not None
    assert together.f1 == (0.75, 0.75)  # every cluster is alike: nothing varies
    assert wide.f1[1] - wide.f1[0] > alone.f1[1] - alone.f1[0]


def test_a_class_that_vanishes_from_a_draw_does_not_lift_the_mean() -> None:
    spans = multiclass_intervals(["a"] * 8 + ["b"], ["a"] * 9, ("a", "b"), list(range(9)))
    assert spans.f1 is not None
    assert spans.f1[1] < 0.5
    lonely = multiclass_intervals(
        list("abcdefghijkl"), [None] * 12, "abcdefghijkl", list(range(12))
    )
    assert lonely.f1 is None  # all twelve survive in no draw
