from __future__ import annotations

from dataclasses import replace

import pytest
from scipy import stats

from memantics.core.finding import Finding
from memantics.core.records import Field, Option
from memantics.evaluation.audits.options import chi_square_p, find_never_correct, find_option_flaws
from tests.audit.toys import Flaws, make_exam, make_items


def find(flaws: Flaws, key: str, n: int = 120) -> Finding:
    found = [own for own in find_option_flaws(make_exam(make_items(n, flaws))) if own.key == key]
    assert len(found) == 1
    return found[0]


def test_an_option_that_is_never_right_is_dead() -> None:
    own = find(Flaws(dead=True), "options.never_correct")
    assert own.verdict == "broken"
    assert (own.score.value, own.score.n, own.expected) == (0.0, 120, 0.25)
    assert "one in 3, not one in 4" in own.meaning
    assert find_never_correct(make_exam(make_items(120, Flaws(dead=True)))) == {
        "none of the others"
    }


def test_a_recurring_option_that_is_right_as_often_as_others_is_not_dead() -> None:
    items = make_items(120, Flaws(dead=True))
    revived = [
        type(item)(item.id, item.group, "D" if number % 4 == 0 else item.gold, item.form)
        for number, item in enumerate(items)
    ]
    exam = make_exam(revived)
    assert find_never_correct(exam) == frozenset()
    own = next(own for own in find_option_flaws(exam) if own.key == "options.never_correct")
    assert own.verdict == "sound"
    assert own.score.value == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.0, "sound"), (0.08, "worth knowing"), (0.8, "broken")]
)
def test_long_keys_are_noticed(share: float, verdict: str) -> None:
    own = find(Flaws(long_keys=share), "options.length", n=2000)
    assert own.verdict == verdict
    assert own.expected is not None
    assert own.expected <= 0.25


def test_ties_are_expected_to_have_no_longest() -> None:
    """Two options are longest everywhere, so no key can be strictly the longest."""
    items = make_items(40)
    options = tuple(
        Option(key, text) for key, text in zip("ABCD", ("aa", "bb", "c", "d"), strict=True)
    )
    tied = [
        replace(
            item,
            form=replace(
                item.form,
                fields=(
                    Field(
                        "a",
                        "choice",
                        tuple(replace(o, text=f"{o.text}{n:02}") for o in options),
                    ),
                ),
            ),
        )
        for n, item in enumerate(items)
    ]
    own = next(o for o in find_option_flaws(make_exam(tied)) if o.key == "options.length")
    assert (own.score.value, own.expected, own.verdict) == (0.0, 0.0, "sound")


def test_the_dead_option_does_not_count_when_lengths_are_compared() -> None:
    own = find(Flaws(dead=True), "options.length", n=600)
    assert own.expected is not None
    assert 0.15 < own.expected <= 1 / 3
    assert own.verdict == "sound"


@pytest.mark.parametrize(("first", "verdict"), [(0.0, "sound"), (0.5, "broken")])
def test_keys_at_one_place_are_noticed(first: float, verdict: str) -> None:
    own = find(Flaws(first=first), "options.position", n=400)
    assert own.verdict == verdict
    assert len(own.rows) == 4
    assert sum(row.value or 0 for row in own.rows) == pytest.approx(1)


@pytest.mark.parametrize("counts", [[10, 20], [5, 5, 9], [25, 30, 20, 25], [1, 2, 3, 4, 40], [7]])
def test_chi_square_agrees_with_scipy(counts: list[int]) -> None:
    expected = stats.chisquare(counts).pvalue if len(counts) > 1 else 1.0
    assert chi_square_p(counts) == pytest.approx(expected, rel=1e-9)
