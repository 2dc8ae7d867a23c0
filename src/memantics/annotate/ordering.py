"""Which items come first: those on which people will likely differ, and that are unlike others.

How far people will differ on an item is estimated from the votes on items with similar texts. A
random share of items is dealt out evenly among the others in an order of its own, so that figures
over that share do not depend on the votes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
import sqlalchemy as sa

from memantics.annotate import queries, schema
from memantics.annotate.consensus import SeatedItem, answers_at, gather, split_of
from memantics.annotate.context import Visit
from memantics.annotate.project_settings import in_share
from memantics.annotate.records import Rights
from memantics.metrics.interval import Floats

EVERY = 25
_WIDTH = 512
_GREEDY = 1000
_PRIOR = 1.0


def rearrange(visit: Visit) -> None:
    """Give the seats of unfinished items their places in the order that the project wants."""
    rights = visit.rights
    items = [item for item in gather(visit, answered=True) if not item.row.training_round]
    order = {item.row.id: item.row.number for item in items}
    if rights.settings.order == "informative":
        names = {item.row.item_key: item.row.id for item in items}
        ranked = rank_items(
            {item.row.item_key: _text_of(item) for item in items},
            {
                item.row.item_key: _split(item, rights)
                for item in items
                if answers_at(item, rights.workflow.judging)
            },
            rights.settings.random_share,
        )
        order = {names[key]: place for place, key in enumerate(ranked, 1)}
    seats = schema.seats
    change = sa.update(seats).where(seats.c.item_id == sa.bindparam("item"))
    places = [{"item": item, "new_place": place} for item, place in order.items()]
    if places:
        visit.connection.execute(change.values(place=sa.bindparam("new_place")), places)


def is_due(visit: Visit) -> bool:
    """Whether so many answers have come in that the order should follow them."""
    if visit.rights.settings.order != "informative":
        return False
    return int(queries.COUNT_DONE.value(visit.connection, visit.key)) % EVERY == 0


def _text_of(item: SeatedItem) -> str:
    values = [entry.value for entry in item.shown]
    texts = [value if isinstance(value, str) else " ".join(value) for value in values]
    return " ".join(texts) or str(item.row.item_key)


def _split(item: SeatedItem, rights: Rights) -> float:
    """The largest share of people outside the majority, over fields."""
    flow = rights.workflow
    said = list(answers_at(item, flow.judging).values())
    fields = [one.id for one in flow.stage_fields(flow.judging) if one.scale_level != "none"]
    return max((split_of([answer.get(name) for answer in said]) for name in fields), default=0.0)


def rank_items(
    texts: Mapping[str, str], splits: Mapping[str, float], random_share: float
) -> list[str]:
    """All keys in order: what people have begun, then the most informative and the random share.

    ``splits`` are items with votes: the share of people outside the majority.

    >>> texts = {"a": "rude joke about taxes", "b": "a cat sleeps", "c": "rude joke about tax"}
    >>> rank_items(texts, {"a": 0.5}, 0)
    ['a', 'b', 'c']
    """
    keys = [key for key in texts if key not in splits]
    drawn = sorted((key for key in keys if in_share(key, "random", random_share)), key=_chance)
    rest = [key for key in keys if not in_share(key, "random", random_share)]
    ranked = _rank(rest, texts, splits)
    merged: list[str] = []
    due = len(drawn) / len(keys) if keys else 0.0
    while ranked or drawn:
        mine = drawn and (not ranked or due >= 1)
        merged.append(drawn.pop(0) if mine else ranked.pop(0))
        due += random_share - bool(mine)
    return [key for key in texts if key in splits] + merged


def _rank(rest: Sequence[str], texts: Mapping[str, str], splits: Mapping[str, float]) -> list[str]:
    """Greedily the item with the largest expected split that is least like those before it."""
    if not rest:
        return []
    here = _vectors([texts[key] for key in rest])
    seen = [key for key in splits if key in texts]
    there = _vectors([texts[key] for key in seen])
    likeness = np.clip(here @ there.T, 0, 1) ** 2 if seen else np.zeros((len(rest), 0))
    votes = np.array([splits[key] for key in seen])
    mean = float(votes.mean()) if seen else 0.5
    expected = (likeness @ votes + _PRIOR * mean) / (likeness.sum(axis=1) + _PRIOR)
    covered = likeness.max(axis=1) if seen else np.zeros(len(rest))
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
    """Texts by their runs of three characters, hashed; of length one."""
    rows = np.zeros((len(texts), _WIDTH))
    for row, text in zip(rows, texts, strict=True):
        padded = f"  {text.casefold()} "
        for start in range(len(padded) - 2):
            digest = hashlib.blake2b(padded[start : start + 3].encode(), digest_size=2).digest()
            row[int.from_bytes(digest, "big") % _WIDTH] += 1
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def _chance(key: str) -> str:
    return hashlib.sha256(f"order:{key}".encode()).hexdigest()
