"""A required field that nobody filled needs a decision, but only if the item was annotated."""

from __future__ import annotations

from memantics.annotation.aggregation import AggregationCase, StageAnnotation, aggregate
from memantics.annotation.workflow import parse_workflow
from tests.annotation.test_boundaries_aggregation import DECIDE, HEAD, NUMBER, STAGE

REQUIRED = parse_workflow(f"{HEAD}{NUMBER}{STAGE}{DECIDE}", "tiny.toml")
OPTIONAL = parse_workflow(f"{HEAD}{NUMBER}required = false\n{STAGE}{DECIDE}", "tiny.toml")


def test_an_item_without_annotations_is_not_disputed() -> None:
    assert aggregate(REQUIRED, AggregationCase("i", "g", {}, [])).reason == ""


def test_an_annotated_item_without_the_required_value_is_disputed() -> None:
    annotations = [StageAnnotation(0, slot, {}) for slot in range(4)]
    case = AggregationCase("i", "g", {}, annotations)
    assert aggregate(REQUIRED, case).reason
    assert aggregate(OPTIONAL, case).reason == ""
