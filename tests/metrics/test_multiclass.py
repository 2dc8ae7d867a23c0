"""Macro figures and F1 of each class against scikit-learn and a plain bootstrap."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from memantics.metrics.classification import (
    AveragedClasses,
    binary_intervals,
    binary_macro_f1,
    count_binary,
    count_classes,
    f1,
    macro_f1,
    macro_metrics,
    multiclass_intervals,
    place_macro_f1,
    split_confusions,
)
from memantics.metrics.interval import bootstrap
from memantics.metrics.paired import macro_f1_metric
from memantics.metrics.rounding import Floats
from memantics.metrics.weighted import Case, MetricSpec, prepare
from tests.places import ROOT

CLASSES = ("none", "targeted", "offence", "sexual")
rows = st.lists(
    st.tuples(st.sampled_from(CLASSES), st.sampled_from([*CLASSES, None])), min_size=1, max_size=60
)


@given(rows)
def test_metrics_equal_scikit_learn(pairs: list[tuple[str, str | None]]) -> None:
    gold, said = [g for g, _ in pairs], [p for _, p in pairs]
    occurring = [name for name in CLASSES if name in gold or name in said]
    counts = count_classes(gold, said, CLASSES)
    # For scikit-learn no answer is a label of its own that no mean asks about.
    answers = [p or "no answer" for p in said]
    expected = sk.precision_recall_fscore_support(
        gold, answers, labels=occurring, zero_division=0.0
    )
    for name, value in zip(occurring, expected[2], strict=True):
        assert f1(counts[name]) == pytest.approx(value)
    macro = macro_metrics(counts)
    means = [float(np.mean(column)) for column in expected[:3]]
    assert [macro.precision, macro.recall, macro.f1] == pytest.approx(means)
    assert all(f1(counts[name]) is None for name in CLASSES if name not in occurring)


def expect_macro_f1(gold: Sequence[str], said: Sequence[str | None]) -> float:
    answers = [guess or "no answer" for guess in said]
    occurring = sorted({*gold, *said} - {None}, key=str)
    return float(sk.f1_score(gold, answers, labels=occurring, average="macro", zero_division=0.0))


@given(rows)
def test_every_way_to_macro_f1_is_that_of_scikit_learn(
    pairs: list[tuple[str, str | None]],
) -> None:
    gold, said = [g for g, _ in pairs], [p for _, p in pairs]
    expected = pytest.approx(expect_macro_f1(gold, said))
    assert macro_metrics(count_classes(gold, said, CLASSES)).f1 == expected
    cases = [Case(str(n), str(n), g, p) for n, (g, p) in enumerate(pairs)]
    assert prepare(cases, MetricSpec("macro_f1"))(np.ones(len(cases))) == expected
    assert macro_f1_metric(gold, said).value == expected
    two = [(g == "none", None if p is None else p == "none") for g, p in pairs]
    counts = count_binary([g for g, _ in two], [p for _, p in two], positive=True)
    names = ("no", "yes")
    assert binary_macro_f1(counts) == pytest.approx(
        expect_macro_f1([names[g] for g, _ in two], [p if p is None else names[p] for _, p in two])
    )
    answered = [(CLASSES.index(g), CLASSES.index(p)) for g, p in pairs if p is not None]
    if answered:
        truth, guess = np.array(answered, np.int64).T
        assert place_macro_f1(truth, guess, len(CLASSES)) == pytest.approx(
            sk.f1_score(truth, guess, average="macro", zero_division=0.0)
        )
        table = sk.confusion_matrix(truth, guess, labels=range(len(CLASSES)))
        many = macro_f1(*split_confusions(np.stack([table, np.zeros_like(table)])))
        assert many[0] == pytest.approx(place_macro_f1(truth, guess, len(CLASSES)))
        assert np.isnan(many[1])


def test_a_claimed_class_without_members_counts_and_an_absent_one_does_not() -> None:
    assert place_macro_f1(np.array([0, 0]), np.array([0, 0]), 3) == 1.0
    assert place_macro_f1(np.array([0, 0]), np.array([0, 2]), 3) == pytest.approx(2 / 3 / 2)
    assert binary_macro_f1(count_binary(["a"], ["a"], "a")) == 1.0
    assert binary_macro_f1(count_binary([], [], "a")) is None


def test_silence_about_negatives_does_not_raise_f1_of_the_positive_class() -> None:
    gold = ["p", "p", "n", "n"]
    silent, wrong = (count_binary(gold, ["p", "p", said, said], "p") for said in (None, "p"))
    assert f1(silent) == f1(wrong) == pytest.approx(2 / 3)
    assert binary_macro_f1(silent) == 0.5
    assert binary_macro_f1(wrong) == pytest.approx(1 / 3)


def test_no_answer_lowers_recall_and_never_precision() -> None:
    answered = macro_metrics(count_classes(["a", "a", "b"], ["a", "b", "b"], ("a", "b")))
    silent = macro_metrics(count_classes(["a", "a", "b"], ["a", None, "b"], ("a", "b")))
    assert answered.recall == silent.recall == 0.75
    assert (answered.precision, silent.precision) == (0.75, 1.0)


def test_nothing_has_no_metrics() -> None:
    counts = count_classes([], [], CLASSES)
    assert macro_metrics(counts).f1 is None
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

    plain = bootstrap(cells, macro, resamples=4000)
    assert plain is not None
    assert spans.f1 == pytest.approx(plain, abs=0.006)


def test_two_classes_agree_with_the_binary_metrics() -> None:
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
    # Every cluster is alike, so clustering adds nothing; an interval is never narrower for it.
    assert together.f1 == pytest.approx(alone.f1, abs=0.02)
    assert wide.f1[1] - wide.f1[0] > alone.f1[1] - alone.f1[0]


def test_a_class_with_one_missed_member_widens_the_interval_of_the_mean() -> None:
    spans = multiclass_intervals(["a"] * 8 + ["b"], ["a"] * 9, ("a", "b"), list(range(9)))
    assert spans.f1 is not None
    assert spans.f1_by_class["b"] is not None
    assert spans.f1_by_class["b"][0] == 0.0
    assert spans.f1[0] < 0.37
    assert spans.f1[1] > 0.85
    lonely = multiclass_intervals(
        list("abcdefghijkl"), [None] * 12, "abcdefghijkl", list(range(12))
    )
    assert lonely.f1 is not None
    assert lonely.f1[0] == 0.0


@given(rows, st.sampled_from(["occurring", "gold", "all"]))
def test_the_averaged_classes_are_an_option(
    pairs: list[tuple[str, str | None]], over: AveragedClasses
) -> None:
    """Which classes count is said by name, and equals the labels given to scikit-learn."""
    gold, said = [g for g, _ in pairs], [p for _, p in pairs]
    labels = {
        "occurring": sorted({*gold, *(p for p in said if p is not None)}),
        "gold": sorted(set(gold)),
        "all": list(CLASSES),
    }[over]
    guess = ["(none)" if p is None else p for p in said]
    found = macro_metrics(count_classes(gold, said, CLASSES), over)
    expected = sk.precision_recall_fscore_support(
        gold, guess, labels=labels, average="macro", zero_division=0.0
    )
    assert (found.precision, found.recall, found.f1) == pytest.approx(expected[:3])


def test_two_ways_that_disagreed_agree_by_name() -> None:
    """A class that is only predicted counts with 0, or not at all, by the name of the option."""
    gold, said = list("aaab"), list("aacb")
    counts = count_classes(gold, said, "abc")
    assert macro_metrics(counts, "gold").f1 == pytest.approx(0.9)
    assert macro_metrics(counts).f1 == pytest.approx(0.6)
    assert macro_metrics(count_classes(gold, said, "abcd"), "all").f1 == pytest.approx(0.45)


def test_f1_is_computed_in_the_metrics_package_only() -> None:
    """BERTScore's harmonic mean of two similarities is no F1 of classes."""
    formula = re.compile(r"2(\.0)? \* (\w+\.)?(tp|hits?|true_positives?|precision|p)\b")
    package = ROOT / "src" / "memantics"
    found = {
        path.relative_to(folder).as_posix()
        for folder in (package, ROOT / "research", ROOT / "perf")
        for path in folder.rglob("*.py")
        if path.parent != package / "metrics" and formula.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"models/semantic.py"}
