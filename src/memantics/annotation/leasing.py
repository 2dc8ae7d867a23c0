"""Assignment of items to annotators: roles, distinct people, limits, leases, training, item order.

With the order ``uncertainty``, annotators first get items with high expected disagreement that
differ from other items. Disagreement is estimated from the annotations of items with similar texts.
A random part of the items keeps a random order and is mixed in evenly, so that metrics over that
part are not biased by the selection.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sqlalchemy as sa

from memantics.annotation import queries, schema
from memantics.annotation.aggregation import count_right
from memantics.annotation.consensus import AssignedItem, answers_at, gather, split_of
from memantics.annotation.context import DAY, Visit, iso, load
from memantics.annotation.database import insert_row
from memantics.annotation.errors import LimitReached, TrainingFailed
from memantics.annotation.membership import change_member
from memantics.annotation.project_settings import is_sampled
from memantics.annotation.records import Feedback, Rights, TrainingState
from memantics.annotation.workflow import TrainingRounds
from memantics.metrics.rounding import Floats

EVERY = 25
_WIDTH = 512
_GREEDY = 1000
_PRIOR = 1.0


def rearrange(visit: Visit) -> None:
    """Set the order of unfinished assignments as the project's settings require.

    The caller holds the lock of the project.
    """
    rights = visit.rights
    if not visit.context.db.sqlite:
        queries.LOCK_ALL_ITEMS.all(visit.connection, visit.key)
    items = [item for item in gather(visit, answered=True) if not item.row.training_round]
    order = {item.row.id: item.row.number for item in items}
    if rights.settings.order == "uncertainty":
        names = {item.row.item_key: item.row.id for item in items}
        ranked = rank_items(
            {item.row.item_key: _text_of(item) for item in items},
            {
                item.row.item_key: _split(item, rights)
                for item in items
                if answers_at(item, rights.workflow.main_stage)
            },
            rights.settings.random_proportion,
        )
        order = {names[key]: place for place, key in enumerate(ranked, 1)}
    assignments = schema.assignments
    change = sa.update(assignments).where(assignments.c.item_id == sa.bindparam("item"))
    places = [{"item": item, "new_place": place} for item, place in order.items()]
    if places:
        visit.connection.execute(change.values(place=sa.bindparam("new_place")), places)


def is_due(visit: Visit) -> bool:
    """Return whether enough new answers have arrived to update the order."""
    if visit.rights.settings.order != "uncertainty":
        return False
    return int(queries.COUNT_DONE.value(visit.connection, visit.key)) % EVERY == 0


def _text_of(item: AssignedItem) -> str:
    values = [entry.value for entry in item.shown]
    texts = [value if isinstance(value, str) else " ".join(value) for value in values]
    return " ".join(texts) or str(item.row.item_key)


def _split(item: AssignedItem, rights: Rights) -> float:
    """Return the largest proportion of annotators outside the majority, over all fields."""
    flow = rights.workflow
    said = list(answers_at(item, flow.main_stage).values())
    fields = [one.id for one in flow.stage_fields(flow.main_stage) if one.scale_level != "none"]
    return max((split_of([answer.get(name) for answer in said]) for name in fields), default=0.0)


def rank_items(
    texts: Mapping[str, str], splits: Mapping[str, float], random_proportion: float
) -> list[str]:
    """Return all keys in order: items with annotations, then ranked and random items mixed.

    ``splits`` gives, for items with annotations, the proportion of annotators outside the majority.

    >>> texts = {"a": "rude joke about taxes", "b": "a cat sleeps", "c": "rude joke about tax"}
    >>> rank_items(texts, {"a": 0.5}, 0)
    ['a', 'b', 'c']
    """
    keys = [key for key in texts if key not in splits]
    drawn = sorted(
        (key for key in keys if is_sampled(key, "random", random_proportion)), key=_chance
    )
    rest = [key for key in keys if not is_sampled(key, "random", random_proportion)]
    ranked = _rank(rest, texts, splits)
    merged: list[str] = []
    due = len(drawn) / len(keys) if keys else 0.0
    while ranked or drawn:
        mine = drawn and (not ranked or due >= 1)
        merged.append(drawn.pop(0) if mine else ranked.pop(0))
        due += random_proportion - bool(mine)
    return [key for key in texts if key in splits] + merged


def _rank(rest: Sequence[str], texts: Mapping[str, str], splits: Mapping[str, float]) -> list[str]:
    """Rank items greedily by expected disagreement and by distance from earlier items."""
    if not rest:
        return []
    here = _vectors([texts[key] for key in rest])
    seen = [key for key in splits if key in texts]
    there = _vectors([texts[key] for key in seen])
    similarity = np.clip(here @ there.T, 0, 1) ** 2 if seen else np.zeros((len(rest), 0))
    votes = np.array([splits[key] for key in seen])
    mean = float(votes.mean()) if seen else 0.5
    expected = (similarity @ votes + _PRIOR * mean) / (similarity.sum(axis=1) + _PRIOR)
    covered = similarity.max(axis=1) if seen else np.zeros(len(rest))
    left = np.ones(len(rest), bool)
    found: list[str] = []
    for _ in range(min(len(rest), _GREEDY)):
        worth = np.where(left, np.round(expected * (1 - covered / 2), 9), -1)
        best = int(worth.argmax())
        left[best] = False
        found.append(rest[best])
        covered = np.maximum(covered, np.clip(here @ here[best], 0, 1) ** 2)
    return found + [rest[place] for place in np.argsort(-expected, kind="stable") if left[place]]


def _vectors(texts: Sequence[str]) -> Floats:
    """Return unit vectors of hashed character trigrams."""
    rows = np.zeros((len(texts), _WIDTH))
    for row, text in zip(rows, texts, strict=True):
        padded = f"  {text.casefold()} "
        for start in range(len(padded) - 2):
            digest = hashlib.blake2b(padded[start : start + 3].encode(), digest_size=2).digest()
            row[int.from_bytes(digest, "big") % _WIDTH] += 1
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def _chance(key: str) -> str:
    return hashlib.sha256(f"order:{key}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Exposure:
    """Number of items that a person saw, and the limits; 0 means no limit.

    ``today`` is counted for the stricter limit: the project's, or the person's own limit over all
    projects.
    """

    today: int
    week: int
    again: bool
    daily_limit: int
    weekly_limit: int


def stages_for(rights: Rights) -> list[int]:
    """Return the stages that a person may work at, last stage first."""
    flow = rights.workflow
    return [place for place in range(len(flow.stages)) if flow.admits(place, rights.roles)][::-1]


def find_lease(visit: Visit, stages: list[int]) -> int | None:
    """Return the assignment that a person already holds, or None."""
    rows = queries.HELD_ASSIGNMENTS.all(visit.connection, visit.key)
    return next((row.id for row in rows if row.stage in stages), None)


class Leasing:
    """Finds free assignments and remembers each annotator's position in the queue."""

    def __init__(self) -> None:
        self._hints: dict[tuple[int, int, int], int] = {}

    def claim(self, visit: Visit, stages: list[int]) -> int | None:
        """Assign an open item, or one with an expired lease; return None if there is none."""
        for stage in stages:
            row = self._find(visit, stage)
            if row is not None:
                self._remember(visit, stage, row.place)
                take_assignment(visit, row.id)
                return int(row.id)
        return None

    def _find(self, visit: Visit, stage: int) -> Any:
        hint = self._hints.get((visit.actor.id, visit.rights.id, stage), 0)
        values = _bind(visit, stage) | {"now": visit.now}
        searches = [(False, hint), (False, 0), (True, 0)] if hint else [(False, 0), (True, 0)]
        for expired, start in searches:
            query = queries.find_free_assignment(**_separation(visit, stage), expired=expired)
            found = query.one(visit.connection, values | {"start": start})
            if found is not None:
                return found
        return None

    def _remember(self, visit: Visit, stage: int, place: int) -> None:
        if visit.rights.settings.order == "uncertainty":
            return  # the order changes with the annotations
        if len(self._hints) > 100_000:
            self._hints.clear()
        self._hints[visit.actor.id, visit.rights.id, stage] = place


def take_assignment(visit: Visit, assignment: int) -> None:
    """Lease a free assignment to a person."""
    queries.TAKE_ASSIGNMENT.run(
        visit.connection, visit.key | {"assignment": assignment, "until": visit.lease_end}
    )


def renew_lease(visit: Visit, assignment: int) -> None:
    """Extend the lease of an assignment."""
    queries.RENEW_LEASE.run(
        visit.connection, visit.key | {"assignment": assignment, "until": visit.lease_end}
    )


def _separation(visit: Visit, stage: int) -> dict[str, Any]:
    """Return the query parameters that exclude some annotators from a stage."""
    apart = len(visit.flow.excluded_stages(stage))
    return {"apart": apart, "exclude_uploader": visit.flow.stages[stage].exclude_uploader}


def _bind(visit: Visit, stage: int) -> dict[str, object]:
    apart = enumerate(visit.flow.excluded_stages(stage))
    return visit.key | {"stage": stage} | {f"apart{number}": place for number, place in apart}


def count_open(visit: Visit, stage: int) -> int:
    """Count the items that a person can still take at a stage, up to 1,000."""
    query = queries.count_free_assignments(**_separation(visit, stage))
    return int(query.value(visit.connection, _bind(visit, stage)))


def count_seen(visit: Visit, item: int = 0) -> Exposure:
    """Count the items that a person saw today and in the last seven days."""
    rights, settings = visit.rights, visit.rights.settings
    key = visit.key | {"today": int(visit.now // DAY), "item": item}
    row = queries.COUNT_SEEN.one(visit.connection, key)
    today, personal_limit = row.today, rights.preferences.daily_limit
    daily = settings.daily_limit if rights.daily_limit is None else rights.daily_limit
    weekly = settings.weekly_limit if rights.weekly_limit is None else rights.weekly_limit
    if personal_limit:
        everywhere = int(queries.COUNT_SEEN_EVERYWHERE.value(visit.connection, key))
        if not daily or personal_limit - everywhere < daily - today:
            today, daily = everywhere, personal_limit
    return Exposure(today, row.week, bool(row.again), daily, weekly)


def expose(visit: Visit, item: int) -> None:
    """Record that an item is shown; raise LimitReached at the daily or weekly limit."""
    seen = count_seen(visit, item)
    if seen.again:
        return
    day = int(visit.now // DAY)
    if seen.daily_limit and seen.today >= seen.daily_limit:
        raise LimitReached("day", seen.daily_limit, iso((day + 1) * DAY))
    if seen.weekly_limit and seen.week >= seen.weekly_limit:
        raise LimitReached("week", seen.weekly_limit, iso(_first_free_day(visit, day, seen) * DAY))
    entry = {"user_id": visit.actor.id, "project_id": visit.rights.id, "day": day}
    queries.ADD_SEEN.run(visit.connection, entry | {"item_id": item, "at": visit.now})


def _first_free_day(visit: Visit, today: int, seen: Exposure) -> int:
    """Return the day on which the weekly count falls below the limit again."""
    left = seen.week
    for row in queries.SEEN_BY_DAY.all(visit.connection, visit.key | {"today": today}):
        left -= row.items
        if left < seen.weekly_limit:
            return int(row.day) + 7
    return today + 7


def rules_for(rights: Rights, stages: list[int]) -> TrainingRounds | None:
    """Return the training that a person must pass before the first stage, or None."""
    if rights.training == "passed" or not rights.settings.training or 0 not in stages:
        return None
    return rights.workflow.training


def next_training_assignment(visit: Visit, rules: TrainingRounds) -> int | None:
    """Return an assignment for the next training item; None means real work can begin."""
    if visit.rights.training == "failed":
        accuracy = _accuracy(visit, rules)[0]
        if accuracy < rules.threshold:
            raise TrainingFailed(accuracy, rules.threshold)
        _set(visit, training="passed")  # the lead lowered the pass mark after the failure
        return None
    row = queries.NEXT_TRAINING.one(visit.connection, visit.key)
    if row is None:
        return _go_on(visit, rules)
    if visit.rights.training != "running":
        _set(visit, training="running")
    return insert_training_assignment(visit, row, visit.actor.id, visit.lease_end)


def insert_training_assignment(
    visit: Visit, item: Any, user: int, until: float | None = None
) -> int:
    """Create a training assignment for one person; its slot is the person's account id."""
    entry = {
        "project_id": visit.rights.id,
        "item_id": item.id,
        "group_key": item.group_key,
        "stage": 0,
        "slot": user,
        "place": item.number,
        "training_round": item.training_round,
        "state": "leased",
        "user_id": user,
        "lease_until": until,
        "version": 0,
    }
    return insert_row(visit.connection, schema.assignments, entry)


def _go_on(visit: Visit, rules: TrainingRounds) -> int | None:
    """Close a training round without open items and continue with the next round, if any."""
    if not queries.COUNT_TRAINING.value(visit.connection, visit.key):
        return None
    accuracy, state, number = judge_round(visit, rules)
    if state == "failed":
        raise TrainingFailed(accuracy, rules.threshold)
    if state == "passed":
        return None
    moved = replace(visit.rights, training=state, training_round=number)
    return next_training_assignment(replace(visit, rights=moved), rules)


def judge_round(visit: Visit, rules: TrainingRounds) -> tuple[float, TrainingState, int]:
    """Close a training round: passed, next round, or failed."""
    accuracy, answered = _accuracy(visit, rules)
    number = visit.rights.training_round
    state: TrainingState = "running"
    following = queries.COUNT_TRAINING.value(visit.connection, visit.key | {"round": number + 1})
    if answered and accuracy >= rules.threshold:
        state = "passed"
    elif number < rules.rounds and following:
        number += 1
    else:
        state = "failed"
    _set(visit, training=state, training_round=number)
    return accuracy, state, number


def give_feedback(visit: Visit, item: Any, answer: dict[str, Any]) -> Feedback:
    """Return the feedback on a training answer; the last answer closes the round."""
    rules = visit.flow.training
    assert rules is not None
    gold = load(item.gold)
    right = count_right(gold, answer, rules.fields)
    state: TrainingState = "running"
    left = (queries.NEXT_TRAINING, queries.TRAINING_HELD)
    if any(query.one(visit.connection, visit.key) for query in left):
        accuracy = _accuracy(visit, rules)[0]
    else:
        accuracy, state, _ = judge_round(visit, rules)
    shown = rules.feedback
    return Feedback(gold if shown else {}, right if shown else {}, accuracy, state)


def _accuracy(visit: Visit, rules: TrainingRounds) -> tuple[float, int]:
    """Return the proportion of items in this training round with every training field correct."""
    hits = [
        all(count_right(load(row.gold), load(row.answer), rules.fields).values())
        for row in queries.TRAINING_ANSWERS.all(visit.connection, visit.key)
    ]
    return (sum(hits) / len(hits) if hits else 0.0), len(hits)


def training_counts(visit: Visit) -> tuple[int, int]:
    """Return the number of answered items and of all items in the training round."""
    done = len(queries.TRAINING_ANSWERS.all(visit.connection, visit.key))
    return done, int(queries.COUNT_TRAINING.value(visit.connection, visit.key))


def _set(visit: Visit, **values: object) -> None:
    change_member(visit.connection, visit.rights.id, visit.actor.id, **values)
