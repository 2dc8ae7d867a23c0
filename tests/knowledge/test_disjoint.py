"""``sh:disjoint``: opposite relations between the same two things contradict each other."""

from __future__ import annotations

import pytest

from memantics.understanding.knowledge.records import TERM
from tests.knowledge.test_validation import CAPTION, KNIGHT, add, assert_agreement, changed

_PAIRS = [("isLeftOf", "isRightOf"), ("isAbove", "isBelow"), ("isInFrontOf", "isBehind")]


@pytest.mark.parametrize(("one", "other"), _PAIRS)
def test_a_thing_is_not_on_both_sides_of_another(one: str, other: str) -> None:
    store = changed([add(KNIGHT, f"{TERM}{name}", CAPTION) for name in (one, other)])
    found = [breach for breach in assert_agreement(store) if "contradict" in breach.message]
    assert [breach.message for breach in found] == [
        f"{one} and {other} of the same thing contradict each other"
    ]


@pytest.mark.parametrize(("one", "other"), _PAIRS)
def test_the_inverse_relation_is_consistent(one: str, other: str) -> None:
    """A is left of B, and B is right of A: the same fact from both ends."""
    quads = [add(KNIGHT, f"{TERM}{one}", CAPTION), add(CAPTION, f"{TERM}{other}", KNIGHT)]
    found = assert_agreement(changed(quads))
    assert not [breach for breach in found if "contradict" in breach.message]


def test_each_thing_is_compared_with_itself_only() -> None:
    from tests.knowledge.test_validation import DUEL_SCENE

    quads = [
        add(KNIGHT, f"{TERM}isLeftOf", CAPTION),
        add(KNIGHT, f"{TERM}isRightOf", DUEL_SCENE),
    ]
    found = assert_agreement(changed(quads))
    assert not [breach for breach in found if "contradict" in breach.message]
