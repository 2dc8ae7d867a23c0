"""All items of a project with their answers, read at one moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from memantics.annotate import queries
from memantics.annotate.intake import labels_of
from memantics.annotate.records import Rights, record_of
from memantics.annotate.resolution import Case
from memantics.annotate.seating import Seat, make_case, read_seat
from memantics.annotate.tasks import read_shown
from memantics.core.queue import Shown


@dataclass(frozen=True, slots=True)
class Gathered:
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
    def case(self) -> Case:
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


def gather(connection: Connection, rights: Rights, *, answered: bool = False) -> list[Gathered]:
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
            Gathered(
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
