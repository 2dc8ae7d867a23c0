"""All items of a project with their answers, and live figures for the lead."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import JsonValue
from sqlalchemy.engine import Connection

from memantics.annotate import queries
from memantics.annotate.context import load, load_list
from memantics.annotate.records import (
    AccuracyDrift,
    Disagreement,
    FieldAgreement,
    Rights,
    record_of,
)
from memantics.annotate.resolution import ResolutionCase, count_right
from memantics.annotate.tasks import Seat, labels_of, make_case, read_seat, read_shown
from memantics.annotate.workflow import Level, Workflow, WorkflowField
from memantics.core.queue import Shown
from memantics.metrics import agreement as metric


@dataclass(frozen=True, slots=True)
class SeatedItem:
    """One item with its seats. ``times`` are when each seat was answered."""

    row: Any
    seats: Sequence[Seat]
    times: dict[int, float]
    seconds: dict[int, float]
    training: frozenset[int]
    shown: tuple[Shown, ...]

    @property
    def labels(self) -> frozenset[str]:
        """The labels of what is shown."""
        return labels_of(self.shown)

    @property
    def case(self) -> ResolutionCase:
        """The item as resolution sees it, training answers left out."""
        real = [seat for seat in self.seats if seat.id not in self.training]
        return make_case(self.row, real, self.labels)

    def answered(self) -> Iterator[Seat]:
        """The seats with an answer that counts."""
        return (seat for seat in self.seats if seat.done and seat.answer is not None)


@dataclass(frozen=True, slots=True)
class Person:
    """A member under their pseudonym."""

    user: int
    pseudonym: str
    name: str
    training: Any


def gather(connection: Connection, rights: Rights, *, answered: bool = False) -> list[SeatedItem]:
    """Every item of a project, in order, training items too; ``answered``: only done seats."""
    key = {"project": rights.id}
    query = queries.PROJECT_ANSWERS if answered else queries.PROJECT_SEATS
    rows: dict[int, list[Any]] = defaultdict(list)
    for row in query.all(connection, key):
        rows[row.item_id].append(row)
    found = []
    for item in queries.ITEMS.all(connection, key):
        mine = rows[item.id]
        found.append(
            SeatedItem(
                item,
                [read_seat(row) for row in mine],
                {row.id: row.submitted_at for row in mine if row.submitted_at is not None},
                {row.id: row.seconds for row in mine if row.seconds is not None},
                frozenset(row.id for row in mine if row.training_round),
                read_shown(item.shown),
            )
        )
    return found


def read_people(connection: Connection, rights: Rights) -> dict[int, Person]:
    """The members of a project by account."""
    rows = queries.PEOPLE.all(connection, {"project": rights.id})
    return {row.user: record_of(Person, row) for row in rows}


_WINDOW = 10
Ratings = Mapping[int, JsonValue]


def measure_agreement(
    workflow: Workflow, items: Sequence[SeatedItem]
) -> tuple[FieldAgreement, ...]:
    """Every field of every stage at which several people answer apart; ``*`` is all as one."""
    figures: list[FieldAgreement] = []
    for place, stage in enumerate(workflow.stages):
        if stage.kind not in ("independent", "review") or stage.people < 2:
            continue
        fields = [field for field in workflow.stage_fields(place) if field.scale_level != "none"]
        units = [row for item in items if len(row := _answers(item, place)) > 1]
        for field in fields:
            rows = list(_units_of(field, units))
            figures.append(_figure(stage.id, field.id, rows, field.scale_level))
        if len(fields) > 1:
            names = [field.id for field in fields]
            whole = [
                {user: _label([answer.get(name) for name in names]) for user, answer in row.items()}
                for row in units
            ]
            figures.append(_figure(stage.id, "*", whole, "nominal"))
    return tuple(figures)


def _answers(item: SeatedItem, stage: int) -> dict[int, Mapping[str, JsonValue]]:
    return {
        seat.user: seat.answer
        for seat in item.answered()
        if seat.stage == stage
        and seat.id not in item.training
        and seat.user is not None
        and seat.answer is not None
    }


def _units_of(
    field: WorkflowField, units: Sequence[Mapping[int, Mapping[str, JsonValue]]]
) -> Iterator[Ratings]:
    """One unit an item; a field asked for each element of a list gives one unit an element."""
    for row in units:
        if not field.each:
            yield {u: answer[field.id] for u, answer in row.items() if field.id in answer}
            continue
        lists = {u: a[field.id] for u, a in row.items() if isinstance(a.get(field.id), list)}
        longest = max((len(v) for v in lists.values() if isinstance(v, list)), default=0)
        for place in range(longest):
            yield {
                u: values[place]
                for u, values in lists.items()
                if isinstance(values, list) and place < len(values)
            }


def _figure(stage: str, field: str, units: Sequence[Ratings], level: Level) -> FieldAgreement:
    users = sorted({user for unit in units for user in unit})
    rows = [[_rating(unit.get(user)) for user in users] for unit in units]
    rated = [row for row in rows if sum(one is not None for one in row) > 1]
    kind: metric.Level = level if level != "none" else "nominal"
    return FieldAgreement(
        stage=stage,
        field=field,
        items=len(rated),
        people=len(users),
        pairwise=metric.pairwise_agreement(rated),
        complete=metric.complete_agreement(rated),
        cohen=metric.mean_cohen_kappa(rated),
        fleiss=metric.fleiss_kappa(rated),
        alpha=metric.krippendorff_alpha(rated, kind),
        level=kind,
    )


def _rating(value: JsonValue) -> metric.Label | None:
    return value if value is None or isinstance(value, str | int | float) else _label(value)


def _label(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def find_disagreements(
    workflow: Workflow, items: Sequence[SeatedItem], people: Mapping[int, Person]
) -> Iterator[Disagreement]:
    """Items on which people who answered apart differ, with who said what."""
    for item in items:
        differing: dict[str, tuple[tuple[str, JsonValue], ...]] = {}
        notes: list[tuple[str, str]] = []
        for place, stage in enumerate(workflow.stages):
            if stage.kind not in ("independent", "review"):
                continue
            answers = _answers(item, place)
            for field in workflow.stage_fields(place):
                votes = tuple(
                    (people[user].pseudonym, answer.get(field.id))
                    for user, answer in answers.items()
                )
                if field.scale_level != "none" and len({_label(vote) for _, vote in votes}) > 1:
                    differing[field.id] = votes
                if field.kind in ("text", "longtext"):
                    notes += [(who, text) for who, text in votes if isinstance(text, str) and text]
        if differing:
            row = item.row
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
                max(_split([vote for _, vote in votes]) for votes in differing.values()),
            )


def _split(votes: Sequence[JsonValue]) -> float:
    """The share of votes that are not with the largest group.

    >>> _split(["sad", "sad", "angry", None])
    0.5
    """
    most = Counter(map(_label, votes)).most_common(1)[0][1]
    return 1 - most / len(votes)


def measure_drift(
    workflow: Workflow, items: Sequence[SeatedItem], people: Mapping[int, Person]
) -> tuple[AccuracyDrift, ...]:
    """Each person's accuracy on items with known answers, in the order they gave them."""
    fields = workflow.training.fields if workflow.training else workflow.stages[0].fields
    graded = tuple(name for name in fields if workflow.field(name).scale_level != "none")
    hits: dict[int, list[tuple[float, bool]]] = {user: [] for user in people}
    for item in items:
        if item.row.gold is None:
            continue
        gold = load(item.row.gold)
        for seat in item.answered():
            if seat.stage == 0 and seat.user in hits:
                right = all(count_right(gold, seat.answer or {}, graded).values())
                hits[seat.user].append((item.times.get(seat.id, 0.0), right))
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
