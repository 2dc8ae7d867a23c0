"""Figures at their edges: one class, one rater, ties, very many memes."""

from __future__ import annotations

import numpy as np
import pytest

from memantics.metrics import text as constant
from memantics.metrics.agreement import complete_agreement, krippendorff_alpha
from memantics.metrics.classification import BinaryCounts, balanced_accuracy
from memantics.metrics.comparison import holm, paired_t_test
from memantics.metrics.interval import resample_sums
from memantics.metrics.reappraisal import Formula, align_target, combine_fidelity, components
from memantics.metrics.text import find_best_constant, find_constant_text


def test_complete_agreement_counts_units_on_which_all_agree() -> None:
    agreed = [["a", "a"], ["b", "b", "b"], ["a", "a"]]
    assert complete_agreement([*agreed, ["a", "b"]]) == 0.75
    assert complete_agreement([["a", "b"], ["a", "b", "c"]]) == 0.0
    assert complete_agreement([["a"], [None, "b"]]) is None


def test_alpha_is_undefined_where_all_say_the_same() -> None:
    assert krippendorff_alpha([["a", "a"], ["a", "a"]]) is None
    assert krippendorff_alpha([["a", "a"], ["b", "b"]]) == pytest.approx(1.0)
    assert krippendorff_alpha([["a"], ["b"]]) is None


def test_balanced_accuracy_needs_both_classes() -> None:
    assert balanced_accuracy(BinaryCounts(tp=3, fn=1, tn=0, fp=0)) is None
    assert balanced_accuracy(BinaryCounts(tp=0, fn=0, tn=3, fp=1)) is None
    assert balanced_accuracy(BinaryCounts(tp=3, fn=1, tn=1, fp=1)) == pytest.approx(0.625)


def test_corrected_values_keep_their_places_and_stay_below_one() -> None:
    assert holm([0.04, 0.01]) == [0.04, 0.02]
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([0.0, 0.0]) == [0.0, 0.0]


def test_whole_numbers_are_compared_as_numbers() -> None:
    assert paired_t_test([0, 1, 0, 2], [1, 1, 1, 2]) == paired_t_test(
        [0.0, 1.0, 0.0, 2.0], [1.0, 1.0, 1.0, 2.0]
    )


def test_clusters_are_drawn_by_kind_where_that_is_asked_for() -> None:
    sums = np.array([[1.0, 1.0]] * 30 + [[0.0, 1.0]] * 30)
    by_kind = np.concatenate(list(resample_sums(sums, 400, 3, by_kind=True)))
    alone = np.concatenate(list(resample_sums(sums, 400, 3, by_kind=False)))
    chosen = np.concatenate(list(resample_sums(sums, 400, 3)))
    assert by_kind.shape == alone.shape == (400, 2)
    assert np.array_equal(chosen, alone)  # few clusters are drawn one by one
    assert not np.array_equal(by_kind, alone)
    assert by_kind[:, 1].tolist() == [60.0] * 400
    assert by_kind[:, 0].mean() == pytest.approx(30, abs=1)


TEXTS = [["the meme mocks me"], ["the meme mocks me too"], ["a cat", "the meme mocks you"]]


def test_the_best_text_of_many_memes_is_grown_on_a_part_and_measured_on_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = find_best_constant(TEXTS)
    assert whole is not None
    assert find_constant_text(TEXTS) == whole.text == "the meme mocks me"
    assert whole.value == pytest.approx((1 + 8 / 9 + 0.75) / 3)
    monkeypatch.setattr(constant, "_MOST", 3)
    assert find_best_constant(TEXTS) == whole
    monkeypatch.setattr(constant, "_MOST", 2)
    # Grown on the first and the third meme, its mean is over all three.
    part = find_best_constant(TEXTS)
    assert part is not None
    assert sorted(part.text.split()) == ["me", "meme", "mocks", "the", "you"]
    assert part.value == pytest.approx((8 / 9 + 8 / 10 + 8 / 9) / 3)
    assert find_best_constant([]) is None
    assert find_constant_text([]) is None
    assert find_constant_text([["!"]]) is None


def test_a_target_is_missed_where_both_emotions_are() -> None:
    assert float(align_target(1, 0.0, 0.0)) == 0.0
    assert float(align_target(1, 1e-12, 0.0)) == 0.0
    assert float(align_target(1, 1, 1)) == pytest.approx(1.0)


def test_parts_are_combined_softly_unless_a_product_is_asked_for() -> None:
    assert float(combine_fidelity(1, 1, 0)) == float(combine_fidelity(1, 1, 0, "soft"))
    assert float(combine_fidelity(1, 1, 0, "product")) == 0.0
    assert float(combine_fidelity(1, 1, 0)) > 0.0
    assert float(combine_fidelity([1], [1], [1])[0]) == pytest.approx(1.0)
    units = np.full((2, 8), 0.5)
    assert np.array_equal(components(units), components(units, Formula("soft")))
    assert not np.array_equal(components(units), components(units, Formula("product")))
