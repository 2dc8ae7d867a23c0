"""Aggregation of the individual annotations of one item into one value per field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import orjson
from pydantic import JsonValue

from memantics.annotation.errors import FieldValues
from memantics.annotation.records import AggregatedItem
from memantics.annotation.values import visible
from memantics.annotation.workflow import Rule, Workflow


@dataclass(frozen=True, slots=True)
class StageAnnotation:
    """Answer of one assignment. ``stage`` is the index of the stage in the workflow."""

    stage: int
    slot: int
    values: FieldValues


@dataclass(frozen=True, slots=True)
class AggregationCase:
    """Input of the aggregation of one item: id, drafts, annotations and expected labels."""

    item: str
    group: str
    prelabels: FieldValues
    annotations: Sequence[StageAnnotation]
    complete: bool = True
    labels: frozenset[str] = frozenset()


class _Tie(Exception):
    """Raised if a vote ends in a tie; the aggregation rule defines the next step."""


def state_before(
    workflow: Workflow, stage: int, case: AggregationCase, *, prelabels: bool
) -> FieldValues:
    """Return the field values at the start of a stage: drafts, then earlier sequential answers.

    ``prelabels`` is the project's setting that shows or hides model suggestions. Answers of the
    same sequential stage are included, since each annotator continues from the previous one.
    """
    start = workflow.stages[stage].start
    stages = workflow.stages[: stage + 1]
    usable = start == "drafts" or any(
        entry.start == "drafts" or (entry.start == "prelabels" and prelabels) for entry in stages
    )
    state: dict[str, JsonValue] = dict(case.prelabels) if usable else {}
    for annotation in _in_order(case.annotations):
        if annotation.stage <= stage and workflow.stages[annotation.stage].kind == "sequential":
            _lay_over(workflow, annotation, state)
    return state


def _lay_over(workflow: Workflow, annotation: StageAnnotation, state: dict[str, JsonValue]) -> None:
    """Replace the values of the stage's fields by an answer; empty fields are removed.

    A conditional field that was not shown keeps its value.
    """
    for name in workflow.stages[annotation.stage].fields:
        if name in annotation.values:
            state[name] = annotation.values[name]
        elif not workflow.field(name).show_if:
            state.pop(name, None)


def find_exclusion(workflow: Workflow, case: AggregationCase) -> str:
    """Return the reason for which annotators excluded an item, or an empty string.

    At a stage with several independent annotators, more than half must choose an excluding answer.
    """
    said: Counter[tuple[int, str]] = Counter()
    for annotation in _in_order(case.annotations):
        stage = workflow.stages[annotation.stage]
        apart = stage.kind in ("independent", "review")
        people = workflow.annotators_at(annotation.stage, case.item) if apart else 1
        for end in stage.exclude_if:
            if annotation.values.get(end.field) in end.values:
                said[annotation.stage, end.reason] += 1
                if 2 * said[annotation.stage, end.reason] > people:
                    return end.reason
    return ""


def needs_adjudication(workflow: Workflow, case: AggregationCase) -> bool:
    """Return whether a rule with tie = "adjudicate" finds a tie."""
    return _aggregate(workflow, case)[2]


def aggregate(
    workflow: Workflow, case: AggregationCase, *, prelabels: bool = True
) -> AggregatedItem:
    """Aggregate one item by the rules of its workflow."""
    end = find_exclusion(workflow, case)
    values, details, tied = _aggregate(workflow, case, prelabels=prelabels)
    deciding = [stage.kind == "adjudicate" and not stage.blind for stage in workflow.stages]
    ruling = [
        annotation for annotation in _in_order(case.annotations) if deciding[annotation.stage]
    ]
    if ruling:
        values |= ruling[-1].values
        values = _only_asked(workflow, values, case.labels, ruling[-1].stage)
        details["adjudicated"] = True
    elif tied:
        details["tied"] = True
    kept, reason = (False, end) if end else _judge(workflow, values)
    if not case.complete and not end:
        kept, reason = False, "not finished"
    elif tied and not ruling and not end:
        kept, reason = False, "no majority"
    return AggregatedItem(case.item, case.group, kept, values, reason, case.complete, details)


def _judge(workflow: Workflow, values: FieldValues) -> tuple[bool, str]:
    for name, wanted in workflow.keep.when.items():
        if values.get(name) not in wanted:
            return False, workflow.keep.reason
    if workflow.test and not workflow.test.passed(values):
        return False, workflow.test.reason
    return True, ""


def _only_asked(
    workflow: Workflow, values: FieldValues, labels: frozenset[str], stage: int
) -> dict[str, JsonValue]:
    """Drop values of fields that are not shown, given the adjudicated values.

    Example: if an adjudicator decides "not harmful", the type of harm is removed.
    """
    fields = workflow.stages[stage].fields
    asked = visible(workflow, fields, values, labels)
    return {name: value for name, value in values.items() if name in asked or name not in fields}


def _aggregate(
    workflow: Workflow, case: AggregationCase, *, prelabels: bool = True
) -> tuple[dict[str, JsonValue], dict[str, JsonValue], bool]:
    values: dict[str, JsonValue] = {}
    details: dict[str, JsonValue] = {}
    tied = False
    for rule in workflow.aggregate:
        for names in (rule.fields,) if rule.joint else tuple((name,) for name in rule.fields):
            # Example: the type of harm is aggregated only for items that are aggregated as harmful.
            if not _applies(workflow, rule, names, values, case.labels):
                continue
            try:
                values |= _apply(workflow, rule, names, case, details, prelabels=prelabels)
            except _Tie:
                tied |= rule.tie == "adjudicate"
                details[f"tie:{'+'.join(names)}"] = True
    return values, details, tied


def _applies(
    workflow: Workflow,
    rule: Rule,
    names: Sequence[str],
    values: FieldValues,
    labels: frozenset[str],
) -> bool:
    for name in names:
        field = workflow.field(name)
        if field.needs and field.needs.casefold() not in labels:
            return False
        if rule.rule == "last":
            continue  # corrections in sequential stages do not depend on conditions
        for other, wanted in field.show_if.items():
            value = values.get(other, False if workflow.field(other).kind == "boolean" else None)
            if value not in wanted:
                return False
    return True


def _apply(
    workflow: Workflow,
    rule: Rule,
    names: Sequence[str],
    case: AggregationCase,
    details: dict[str, JsonValue],
    *,
    prelabels: bool,
) -> dict[str, JsonValue]:
    stage = workflow.place(rule.stage)
    if rule.rule == "last":
        state = state_before(workflow, stage, case, prelabels=prelabels)
        return {name: state[name] for name in names if name in state}
    if rule.rule == "reviewed":
        return _filter_reviewed(workflow, rule, case, details, prelabels=prelabels)
    annotations = [
        annotation
        for annotation in _in_order(case.annotations)
        if annotation.stage == stage or workflow.stages[annotation.stage].blind
    ]
    votes = [
        tuple(annotation.values.get(name) for name in names)
        for annotation in annotations
        if any(name in annotation.values for name in names)
    ]
    if not votes:
        if any(workflow.field(name).required for name in names) and annotations:
            raise _Tie
        return {}
    if rule.rule in ("mean", "median"):
        return _average(rule, names, votes, details)
    winner = _longest(votes) if rule.rule == "longest" else _elect(rule, votes)
    if rule.rule in ("majority", "plurality"):
        details[f"counts:{'+'.join(names)}"] = _tally(votes)
    return {name: value for name, value in zip(names, winner, strict=True) if value is not None}


def _average(
    rule: Rule,
    names: Sequence[str],
    votes: Sequence[tuple[JsonValue, ...]],
    details: dict[str, JsonValue],
) -> dict[str, JsonValue]:
    how: Callable[[list[float]], float] = fmean if rule.rule == "mean" else median
    numbers = [float(vote[0]) for vote in votes if isinstance(vote[0], int | float)]
    details[f"n:{names[0]}"] = len(numbers)
    return {names[0]: float(how(numbers))} if numbers else {}


def _elect(rule: Rule, votes: Sequence[tuple[JsonValue, ...]]) -> tuple[JsonValue, ...]:
    """Return the winning value of a vote; values are compared by their JSON, lists included."""
    counts = Counter(map(label_key, votes))
    ranked = counts.most_common()
    best, count = ranked[0]
    unique = len(ranked) == 1 or ranked[1][1] < count
    if unique and (rule.rule == "plurality" or 2 * count > len(votes)):
        return next(vote for vote in votes if label_key(vote) == best)
    if rule.tie == "first":
        return votes[0]
    if rule.tie == "longest":
        top = [vote for vote in votes if counts[label_key(vote)] == count]
        return _longest(top)
    raise _Tie


def _longest(votes: Sequence[tuple[JsonValue, ...]]) -> tuple[JsonValue, ...]:
    """Return the longest text; of two equally long texts, the first."""
    return max(votes, key=lambda vote: sum(len(str(one or "")) for one in vote))


def _tally(votes: Sequence[tuple[JsonValue, ...]]) -> JsonValue:
    single = all(len(vote) == 1 for vote in votes)
    shown = [vote[0] if single else "-".join(str(one) for one in vote) for vote in votes]
    return dict(Counter(map(label_text, shown)))


def _filter_reviewed(
    workflow: Workflow,
    rule: Rule,
    case: AggregationCase,
    details: dict[str, JsonValue],
    *,
    prelabels: bool,
) -> dict[str, JsonValue]:
    """Drop list elements that any reviewer rated too low; if none is left, keep the best ones."""
    stage, name = workflow.place(rule.stage), rule.fields[0]
    state = state_before(workflow, stage, case, prelabels=prelabels)
    elements = state.get(name)
    if not isinstance(elements, list):
        return {}
    ratings = _ratings_by_element(case.annotations, stage, rule.by, len(elements))
    if not all(ratings):
        return {name: elements}
    means = [fmean(rated) for rated in ratings]
    kept = [place for place, rated in enumerate(ratings) if min(rated) >= rule.at_least]
    restored: list[int] = []
    if not kept and rule.restore and means:
        best = max(means)
        kept = restored = [place for place, mean in enumerate(means) if mean == best]
    details[f"means:{rule.by}"] = list(means)
    details[f"dropped:{name}"] = [one for place, one in enumerate(elements) if place not in kept]
    details[f"restored:{name}"] = [elements[place] for place in restored]
    return {name: [elements[place] for place in kept]}


def _ratings_by_element(
    annotations: Sequence[StageAnnotation], stage: int, by: str, count: int
) -> list[list[float]]:
    ratings: list[list[float]] = [[] for _ in range(count)]
    for annotation in annotations:
        given = annotation.values.get(by)
        if annotation.stage == stage and isinstance(given, list):
            for place, one in enumerate(given[:count]):
                if isinstance(one, int | float):
                    ratings[place].append(float(one))
    return ratings


def _in_order(annotations: Sequence[StageAnnotation]) -> list[StageAnnotation]:
    return sorted(annotations, key=lambda annotation: (annotation.stage, annotation.slot))


def label_key(vote: object) -> str:
    """Return a value as JSON, so that lists and combinations can be compared."""
    return orjson.dumps(vote, option=orjson.OPT_SORT_KEYS).decode()


def label_text(value: object) -> str:
    """Return a label for display: texts unchanged, other values as JSON."""
    return value if isinstance(value, str) else label_key(value)


def count_right(
    gold: FieldValues, answer: FieldValues, fields: Sequence[str]
) -> Mapping[str, bool]:
    """Return, per field with a gold value or an answer, whether both are equal.

    >>> count_right({"harmful": "no"}, {"harmful": "yes", "type": "offence"}, ["harmful", "type"])
    {'harmful': False, 'type': False}
    >>> count_right({"harmful": "no"}, {"harmful": "no"}, ["harmful", "type"])
    {'harmful': True}
    """
    asked = [name for name in fields if name in gold or name in answer]
    return {name: label_key(gold.get(name)) == label_key(answer.get(name)) for name in asked}
