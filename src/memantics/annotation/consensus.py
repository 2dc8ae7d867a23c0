"""Items of a project with their annotations, disagreements and accuracy over time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from memantics.annotation import queries
from memantics.annotation.aggregation import AggregationCase, count_right, label_key, label_text
from memantics.annotation.context import Visit, load, load_list
from memantics.annotation.errors import FieldValues
from memantics.annotation.records import AccuracyDrift, Disagreement, record_of
from memantics.annotation.tasks import Assignment, make_case, read_assignment, read_shown
from memantics.annotation.workflow import Workflow
from memantics.core.queue import Shown
from memantics.core.records import Closed


@dataclass(frozen=True, slots=True)
class AssignedItem:
    """One item with its assignments."""

    row: Any
    assignments: Sequence[Assignment]

    @property
    def shown(self) -> tuple[Shown, ...]:
        """Return the texts shown with the item."""
        return read_shown(self.row.shown)

    @property
    def case(self) -> AggregationCase:
        """Return the input of the aggregation, without training answers."""
        return make_case(self.row, self.assignments)

    @property
    def last_at(self) -> float:
        """Return the time of the last answer, in seconds since 1970."""
        return max((assignment.submitted_at or 0.0 for assignment in self.assignments), default=0.0)

    def answered(self, *, training: bool = True) -> Iterator[Assignment]:
        """Yield the answered assignments, by default including those of training rounds."""
        done = (
            assignment
            for assignment in self.assignments
            if assignment.done and assignment.answer is not None
        )
        return (assignment for assignment in done if training or not assignment.training_round)


@dataclass(frozen=True, slots=True)
class Person:
    """A member of a project with pseudonym, name, training state and roles."""

    user: int
    pseudonym: str
    name: str
    training: Any
    roles: str


def gather(visit: Visit, *, answered: bool = False) -> list[AssignedItem]:
    """Return every item of a project in order, including training items.

    With ``answered``, only answered assignments are read.
    """
    query = queries.PROJECT_ANSWERS if answered else queries.PROJECT_ASSIGNMENTS
    assignments: dict[int, list[Assignment]] = defaultdict(list)
    for row in query.all(visit.connection, visit.key):
        assignments[row.item_id].append(read_assignment(row))
    return [
        AssignedItem(row, assignments[row.id])
        for row in queries.ITEMS.all(visit.connection, visit.key)
    ]


def read_people(visit: Visit) -> dict[int, Person]:
    """Return the members of a project by account id."""
    rows = queries.PEOPLE.all(visit.connection, visit.key)
    return {row.user: record_of(Person, row) for row in rows}


_WINDOW = 10


def answers_at(item: AssignedItem, stage: int) -> dict[int, Mapping[str, JsonValue]]:
    """Return each annotator's answer to an item at a stage, without training answers."""
    return {
        assignment.user: assignment.answer
        for assignment in item.answered(training=False)
        if assignment.stage == stage
        and assignment.user is not None
        and assignment.answer is not None
    }


def find_disagreements(
    workflow: Workflow, items: Sequence[AssignedItem], people: Mapping[int, Person]
) -> Iterator[Disagreement]:
    """Yield items on which independent annotators differ, with each annotator's values."""
    for item in items:
        differing: dict[str, tuple[tuple[str, JsonValue], ...]] = {}
        notes: list[tuple[str, str]] = []
        for place, _ in workflow.independent_stages:
            answers = answers_at(item, place)
            for field in workflow.stage_fields(place):
                votes = tuple(
                    (people[user].pseudonym, answer.get(field.id))
                    for user, answer in answers.items()
                )
                if field.scale_level != "none" and len({label_key(vote) for _, vote in votes}) > 1:
                    differing[field.id] = votes
                if field.kind in ("text", "longtext"):
                    notes += [(who, text) for who, text in votes if isinstance(text, str) and text]
        if differing:
            row, (decision, decidable) = item.row, _find_decision(workflow, item)
            images = tuple(load_list(row.images))
            yield Disagreement(
                row.id,
                row.number,
                row.item_key,
                row.group_key,
                images,
                differing,
                row.state,
                item.shown,
                tuple(notes),
                max(split_of([vote for _, vote in votes]) for votes in differing.values()),
                item.last_at,
                decision,
                decidable,
            )


def _find_decision(workflow: Workflow, item: AssignedItem) -> tuple[FieldValues | None, bool]:
    """Return the adjudicator's answer, and whether an item can be adjudicated now."""
    stages = workflow.stages
    deciding = [n for n, one in enumerate(stages) if one.kind == "adjudicate" and not one.blind]
    said = [assignment.answer for assignment in item.answered() if assignment.stage in deciding]
    votes = len(answers_at(item, workflow.main_stage))
    enough = votes >= workflow.annotators_at(workflow.main_stage, item.row.item_key)
    return (said[-1] if said else None), bool(deciding and not said and enough)


class DisagreementFilter(Closed):
    """Filter for disagreements by annotators, field, label and time; empty fields match all."""

    people: tuple[str, ...] = ()
    field: str = ""
    label: str = ""
    since: float = 0

    def fits(self, one: Disagreement) -> bool:
        """Return whether an item matches the filter."""
        for name, votes in one.fields.items():
            said = [vote for who, vote in votes if not self.people or who in self.people]
            differ = len({label_key(vote) for vote in said}) > 1
            named = not self.label or self.label in map(label_text, said)
            if differ and named and self.field in ("", name):
                return one.at >= self.since
        return False


def split_of(votes: Sequence[JsonValue]) -> float:
    """Return the proportion of annotations outside the most frequent value.

    >>> split_of(["sad", "sad", "angry", None])
    0.5
    """
    most = Counter(map(label_key, votes)).most_common(1)[0][1]
    return 1 - most / len(votes)


def measure_drift(
    workflow: Workflow, items: Sequence[AssignedItem], people: Mapping[int, Person]
) -> tuple[AccuracyDrift, ...]:
    """Return each annotator's accuracy on items with known answers, in order of time."""
    fields = workflow.training.fields if workflow.training else workflow.stages[0].fields
    graded = tuple(name for name in fields if workflow.field(name).scale_level != "none")
    hits: dict[int, list[tuple[float, bool]]] = {user: [] for user in people}
    for item in items:
        if item.row.gold is None:
            continue
        gold = load(item.row.gold)
        for assignment in item.answered():
            if assignment.stage == 0 and assignment.user in hits:
                right = all(count_right(gold, assignment.answer or {}, graded).values())
                hits[assignment.user].append((assignment.submitted_at or 0.0, right))
    return tuple(_drift(people[user], sorted(rows)) for user, rows in hits.items() if rows)


def _drift(person: Person, rows: Sequence[tuple[float, bool]]) -> AccuracyDrift:
    right = [hit for _, hit in rows]
    windows = [right[start : start + _WINDOW] for start in range(0, len(right), _WINDOW)]
    return AccuracyDrift(
        person=person.pseudonym,
        name=person.name,
        items=len(right),
        accuracy=sum(right) / len(right),
        windows=tuple(sum(window) / len(window) for window in windows),
        training=person.training,
    )
