"""Rules of resolution that no shipped workflow reaches at their edges."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from memantics.annotation.resolution import Ballot, ResolutionCase, needs_adjudication, resolve
from memantics.annotation.workflow import Workflow, parse_workflow

HEAD = """
name = "tiny"
title = { en = "Tiny" }
instructions = { en = "Judge." }
"""
NUMBER = """
[[fields]]
id = "score"
kind = "scale"
low = 0
high = 20
label = { en = "Score" }
"""
STAGE = """
[[stages]]
id = "rate"
kind = "independent"
people = 4
title = { en = "Rate" }
fields = ["score"]
"""
DECIDE = """
[[stages]]
id = "decide"
kind = "adjudicate"
role = "adjudicator"
title = { en = "Decide" }
fields = ["score"]

[[resolve]]
fields = ["score"]
stage = "rate"
rule = "majority"
tie = "adjudicate"
"""


def workflow(rule: str) -> Workflow:
    text = f'{HEAD}{NUMBER}{STAGE}[[resolve]]\nfields = ["score"]\nstage = "rate"\n{rule}'
    return parse_workflow(text, "tiny.toml")


def settle(rule: str, *scores: JsonValue) -> dict[str, JsonValue]:
    ballots = [Ballot(0, seat, {"score": one}) for seat, one in enumerate(scores)]
    found = resolve(workflow(rule), ResolutionCase("i", "g", {}, ballots))
    return {**found.values, **{f"~{name}": value for name, value in found.details.items()}}


def test_mean_and_median_differ_where_votes_are_skewed() -> None:
    assert settle('rule = "mean"', 1, 2, 3, 18) == {"score": 6.0, "~n:score": 4}
    assert settle('rule = "median"', 1, 2, 3, 18) == {"score": 2.5, "~n:score": 4}
    assert settle('rule = "median"', 7) == {"score": 7.0, "~n:score": 1}


@pytest.mark.parametrize(
    ("scores", "majority", "plurality"),
    [
        ((1, 1, 2), 1, 1),
        ((1, 1, 2, 2), None, None),
        ((1, 1, 2, 3), None, 1),
        ((1, 1, 2, 3, 3), None, None),
        ((1, 1, 1, 2, 2), 1, 1),
        ((1,), 1, 1),
    ],
)
def test_half_is_no_majority_and_a_tie_no_plurality(
    scores: tuple[int, ...], majority: int | None, plurality: int | None
) -> None:
    assert settle('rule = "majority"', *scores).get("score") == majority
    assert settle('rule = "plurality"', *scores).get("score") == plurality


def test_what_a_tie_leads_to_is_said_by_the_rule() -> None:
    tied = (5, 5, 17, 17)
    assert settle('rule = "majority"\ntie = "first"', *tied)["score"] == 5
    assert settle('rule = "majority"\ntie = "longest"', *tied)["score"] == 17
    assert settle('rule = "longest"', 5, 17, 18)["score"] == 17
    text = f"{HEAD}{NUMBER}{STAGE}{DECIDE}"
    rules = parse_workflow(text, "tiny.toml")
    ballots = [Ballot(0, seat, {"score": one}) for seat, one in enumerate(tied)]
    assert needs_adjudication(rules, ResolutionCase("i", "g", {}, ballots))
    assert not needs_adjudication(rules, ResolutionCase("i", "g", {}, ballots[:3]))
    open_case = resolve(rules, ResolutionCase("i", "g", {}, ballots))
    assert (open_case.kept, open_case.reason) == (False, "no majority")
    assert open_case.details["tied"] is True
    ruled = resolve(rules, ResolutionCase("i", "g", {}, [*ballots, Ballot(1, 0, {"score": 6})]))
    assert (ruled.kept, ruled.values, ruled.details["adjudicated"]) == (True, {"score": 6}, True)
    assert "tied" not in ruled.details
