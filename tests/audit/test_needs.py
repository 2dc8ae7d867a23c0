"""What needs words and picture together, from outcomes whose truth is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from memantics.core.records import Item, Outcome, Score
from memantics.evaluation.audits.blind import (
    PICTURE_ALONE,
    WORDS_ALONE,
    judge_contamination,
    judge_needs,
)
from tests.audit.toys import make_items

ITEMS = make_items(100)


def answer(solves: Callable[[int], bool], items: Sequence[Item] = ITEMS) -> list[Outcome]:
    return [
        Outcome(item, "answered", item.gold if solves(place) else "none")
        for place, item in enumerate(items)
    ]


def test_the_share_that_needs_both() -> None:
    found = judge_needs(
        "toy/qa",
        "m",
        answer(lambda n: n < 80),
        {WORDS_ALONE: answer(lambda n: n < 40), PICTURE_ALONE: answer(lambda n: 30 <= n < 50)},
    )
    assert found is not None
    # Of 80 solved, 40 are solved by words and ten more by the picture.
    assert (found.score.value, found.score.n, found.verdict) == (0.3, 100, "sound")
    rows = {row.label: row.value for row in found.rows}
    assert rows["text only"] == 0.4
    assert rows["text only, score drop"] == 0.4
    assert rows["image only"] == 0.2


def test_little_is_worth_knowing_on_one_side_of_a_tenth_alone() -> None:
    plain, none = answer(lambda n: n < 80), answer(lambda _: False)
    for words, verdict in (
        (answer(lambda n: n < 72), "sound"),
        (answer(lambda n: n < 73), "worth knowing"),
    ):
        found = judge_needs("t", "m", plain, {WORDS_ALONE: words, PICTURE_ALONE: none})
        assert found is not None
        assert found.verdict == verdict


def test_conditions_are_compared_on_shared_items() -> None:
    half = answer(lambda _: True, ITEMS[:50])
    perturbed = {WORDS_ALONE: half, PICTURE_ALONE: answer(lambda _: False)}
    found = judge_needs("t", "m", answer(lambda _: True), perturbed)
    assert found is not None
    assert found.score.n == 50
    assert judge_needs("t", "m", half, {WORDS_ALONE: half}) is None
    assert judge_needs("t", "m", half, {**perturbed, PICTURE_ALONE: []}) is None


@pytest.mark.parametrize(
    ("low", "canary", "verdict"),
    [
        (0.019, 0.0, "sound"),
        (0.02, 0.0, "worth knowing"),
        (0.099, None, "worth knowing"),
        (0.1, 0.0, "broken"),
        (0.0, 1.0, "broken"),
    ],
)
def test_what_is_known_by_heart(low: float, canary: float | None, verdict: str) -> None:
    recalled = {"contamination=caption": Score("recalled", 0.3, 50, low, 0.5)}
    recalled |= {"contamination=canary": Score("recalled", canary, 1)}
    found = judge_contamination("toy/qa", "m", recalled, answer(lambda n: n < 40))
    assert found is not None
    assert found.verdict == verdict
    rows = {row.label: row.value for row in found.rows}
    assert rows["second halves of captions"] == 0.3
    assert rows["question and options alone"] == 0.4
    # A set without a canary string was not asked about one.
    assert ("the canary string" in rows) == (canary is not None)


def test_nothing_is_said_of_memory_that_was_not_asked() -> None:
    assert judge_contamination("toy/qa", "m", {}) is None
    assert (
        judge_contamination("toy/qa", "m", {"contamination=id": Score("recalled", None, 0)}) is None
    )
