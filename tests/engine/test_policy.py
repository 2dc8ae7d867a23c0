"""What the policy for invalid answers leaves to score."""

from __future__ import annotations

import pytest

from memantics.core.records import Form, Item, Outcome, Status
from memantics.core.task import InvalidPolicy
from memantics.evaluation.scoring import count_statuses, keep_scored


@pytest.mark.parametrize(
    ("status", "wrong", "drop"),
    [
        ("answered", True, True),
        ("refused", True, False),
        ("unparsed", True, False),
        ("failed", False, False),
    ],
)
def test_a_failed_call_is_never_scored(status: Status, wrong: bool, drop: bool) -> None:
    outcome = Outcome(Item("i", "m", "A", Form("", ())), status)
    assert keep_scored([outcome], InvalidPolicy(then="wrong")) == [outcome] * wrong
    assert keep_scored([outcome], InvalidPolicy(then="drop")) == [outcome] * drop
    assert count_statuses([outcome])[status] == 1
