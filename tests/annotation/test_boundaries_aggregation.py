"""Rules of resolution that no shipped workflow reaches at their edges."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from memantics.annotation.aggregation import (
    AggregationCase,
    StageAnnotation,
    aggregate,
    needs_adjudication,
)
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
annotators = 4
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

[[aggregate]]
fields = ["score"]
stage = "rate"
rule = "majority"
tie = "adjudicate"
"""


def workflow(rule: str) -> Workflow:
    text = f'{HEAD}{NUMBER}{STAGE}[[aggregate]]\nfields = ["score"]\nstage = "rate"\n{rule}'
    return parse_workflow(text, "tiny.toml")


def settle(rule: str, *scores: JsonValue) -> dict[str, JsonValue]:
    annotations = [StageAnnotation(0, slot, {"score": one}) for slot, one in enumerate(scores)]
    found = aggregate(workflow(rule), AggregationCase("i", "g", {}, annotations))
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
    annotations = [StageAnnotation(0, slot, {"score": one}) for slot, one in enumerate(tied)]
    assert needs_adjudication(rules, AggregationCase("i", "g", {}, annotations))
    assert not needs_adjudication(rules, AggregationCase("i", "g", {}, annotations[:3]))
    open_case = aggregate(rules, AggregationCase("i", "g", {}, annotations))
    assert (open_case.kept, open_case.reason) == (False, "no majority")
    assert open_case.details["tied"] is True
    ruled = aggregate(
        rules, AggregationCase("i", "g", {}, [*annotations, StageAnnotation(1, 0, {"score": 6})])
    )
    assert (ruled.kept, ruled.values, ruled.details["adjudicated"]) == (True, {"score": 6}, True)
    assert "tied" not in ruled.details
