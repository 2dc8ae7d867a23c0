"""All items of a project with their answers, read at one moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from memantics.annotate.context import Rights
from memantics.annotate.intake import labels_of
from memantics.annotate.resolution import Case
from memantics.annotate.seating import Seat, make_case, read_seat
from memantics.annotate.statement import Statement
from memantics.annotate.tasks import read_shown
from memantics.core.queue import Shown

_ITEMS = Statement(
    "SELECT id, number, item_key, group_key, images, shown, prelabels, gold, hidden, state,"
    " training_round, created_at FROM items WHERE project_id = :project ORDER BY number"
)
_SEATS = (
    "SELECT id, item_id, stage, seat, state, user_id, lease_until, version, answer, submitted_at,"
    " seconds, training_round FROM seats WHERE project_id = :project"
)
_ALL = Statement(f"{_SEATS} ORDER BY item_id, stage, seat")
_DONE = Statement(f"{_SEATS} AND state = 'done' ORDER BY item_id, stage, seat")
_PEOPLE = Statement(
    "SELECT m.user_id, m.pseudonym, m.training, m.roles, u.name FROM memberships m"
    " JOIN users u ON u.id = m.user_id WHERE m.project_id = :project ORDER BY m.user_id"
)


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
    key = {"project": rights.project}
    rows: dict[int, list[Any]] = defaultdict(list)
    for row in (_DONE if answered else _ALL).all(connection, key):
        rows[row.item_id].append(row)
    found = []
    for item in _ITEMS.all(connection, key):
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
    rows = _PEOPLE.all(connection, {"project": rights.project})
    return {row.user_id: Person(row.user_id, row.pseudonym, row.name, row.training) for row in rows}
