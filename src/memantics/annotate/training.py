"""Training rounds: items with known answers, before anybody touches the real ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from memantics.annotate import schema
from memantics.annotate.context import Rights, load
from memantics.annotate.errors import TrainingFailed
from memantics.annotate.records import Actor, Feedback, TrainingState
from memantics.annotate.resolution import count_right
from memantics.annotate.statement import Statement
from memantics.annotate.workflow import Training

_members = schema.memberships
_NEXT = Statement(
    "SELECT i.id, i.group_key, i.number FROM items i WHERE i.project_id = :project"
    " AND i.training_round = :round"
    " AND NOT EXISTS (SELECT 1 FROM seats s WHERE s.item_id = i.id AND s.user_id = :user)"
    " AND NOT EXISTS (SELECT 1 FROM skips k WHERE k.project_id = :project AND k.user_id = :user"
    " AND k.group_key = i.group_key) ORDER BY i.number LIMIT 1"
)
_ANSWERS = Statement(
    "SELECT i.gold, s.answer FROM seats s JOIN items i ON i.id = s.item_id"
    " WHERE s.user_id = :user AND s.project_id = :project AND s.training_round = :round"
    " AND s.state = 'done' ORDER BY s.submitted_at, s.id"
)
_HELD = Statement(
    "SELECT 1 AS held FROM seats WHERE user_id = :user AND project_id = :project"
    " AND training_round = :round AND state = 'leased'"
)
_ROUND = Statement(
    "SELECT COUNT(*) FROM items WHERE project_id = :project AND training_round = :round"
)
_SEAT = sa.insert(schema.seats)


def rules_for(rights: Rights, stages: list[int]) -> Training | None:
    """The training that stands between a person and the first stage; None: nothing does."""
    if rights.training == "passed" or not rights.settings.training or 0 not in stages:
        return None
    return rights.workflow.training


def next_training_seat(
    connection: Connection, actor: Actor, rights: Rights, rules: Training, until: float
) -> int | None:
    """A seat at the next training item; None: this project has none, go on to real work."""
    if rights.training == "failed":
        accuracy = _accuracy(connection, actor, rights, rules)[0]
        raise TrainingFailed(accuracy, rules.threshold)
    key = {"project": rights.project, "user": actor.id, "round": rights.training_round}
    row = _NEXT.one(connection, key)
    if row is None:
        return _go_on(connection, actor, rights, rules, until)
    if rights.training != "running":
        _set(connection, actor.id, rights.project, training="running")
    entry = {
        "project_id": rights.project,
        "item_id": row.id,
        "group_key": row.group_key,
        "stage": 0,
        "seat": actor.id,
        "place": row.number,
        "training_round": rights.training_round,
        "state": "leased",
        "user_id": actor.id,
        "lease_until": until,
        "version": 0,
    }
    made = connection.execute(_SEAT, entry).inserted_primary_key
    assert made is not None
    return int(made[0])


def _go_on(
    connection: Connection, actor: Actor, rights: Rights, rules: Training, until: float
) -> int | None:
    """No item is left in this round: skipped ones may have ended it."""
    key = {"project": rights.project, "round": rights.training_round}
    here = _ROUND.value(connection, key)
    if not here:
        return None
    accuracy, state, number = judge_round(connection, actor, rights, rules)
    if state == "failed":
        raise TrainingFailed(accuracy, rules.threshold)
    if state == "passed":
        return None
    again = _moved(rights, state, number)
    return next_training_seat(connection, actor, again, rules, until)


def _moved(rights: Rights, state: TrainingState, number: int) -> Rights:
    return replace(rights, training=state, training_round=number)


def judge_round(
    connection: Connection, actor: Actor, rights: Rights, rules: Training
) -> tuple[float, TrainingState, int]:
    """Close a round: passed, on to the next, or failed."""
    accuracy, answered = _accuracy(connection, actor, rights, rules)
    number = rights.training_round
    state: TrainingState = "running"
    following = _ROUND.value(connection, {"project": rights.project, "round": number + 1})
    if answered and accuracy >= rules.threshold:
        state = "passed"
    elif number < rules.rounds and following:
        number += 1
    else:
        state = "failed"
    _set(connection, actor.id, rights.project, training=state, training_round=number)
    return accuracy, state, number


def give_feedback(
    connection: Connection, actor: Actor, rights: Rights, item: Any, answer: dict[str, Any]
) -> Feedback:
    """What a training answer was worth; the last one of a round closes it."""
    rules = rights.workflow.training
    assert rules is not None
    gold = load(item.gold)
    right = count_right(gold, answer, rules.fields)
    key = {"project": rights.project, "user": actor.id, "round": rights.training_round}
    state: TrainingState = "running"
    if not (_NEXT.one(connection, key) or _HELD.one(connection, key)):
        accuracy, state, _ = judge_round(connection, actor, rights, rules)
    else:
        accuracy = _accuracy(connection, actor, rights, rules)[0]
    shown = rules.feedback
    return Feedback(gold if shown else {}, right if shown else {}, accuracy, state)


def _accuracy(
    connection: Connection, actor: Actor, rights: Rights, rules: Training
) -> tuple[float, int]:
    """The share of items of this round with every training field right."""
    key = {"project": rights.project, "user": actor.id, "round": rights.training_round}
    hits = [
        all(count_right(load(row.gold), load(row.answer), rules.fields).values())
        for row in _ANSWERS.all(connection, key)
    ]
    return (sum(hits) / len(hits) if hits else 0.0), len(hits)


def training_counts(connection: Connection, actor: Actor, rights: Rights) -> tuple[int, int]:
    """How many items of the round are answered, and how many it has."""
    key = {"project": rights.project, "user": actor.id, "round": rights.training_round}
    done = len(_ANSWERS.all(connection, key))
    return done, int(_ROUND.value(connection, key))


def _set(connection: Connection, user: int, project: int, **values: object) -> None:
    mine = sa.and_(_members.c.project_id == project, _members.c.user_id == user)
    connection.execute(sa.update(_members).where(mine).values(**values))
