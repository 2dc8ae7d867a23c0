"""Rows of a file joined to the items of a task; what cannot be joined is listed, never guessed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from memantics.core.matching import image_key, item_images, question_key
from memantics.core.records import Item, Reply
from memantics.core.text import mask_unseen

# An answer that another tool wrote down, with all that says which item it belongs to.

AnswerFormat = Literal["inspect", "lmms-eval", "vlmevalkit", "openai-batch", "table"]
ANSWER_FORMATS: tuple[AnswerFormat, ...] = get_args(AnswerFormat)
Role = Literal["id", "image", "question", "answer", "gold", "gold_text"]
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """One row of a file of answers.

    ``place`` is the item's number, from 0, in the order in which the task has them; ``epoch`` says
    which time it was, from 1, that the tool asked everything. ``failure`` says why there is no
    answer: the tool's call failed. ``gold`` and ``gold_text`` are what the file takes for right;
    where they differ from ours, the row is about another question.
    """

    row: int
    reply: Reply
    id: str = ""
    place: int | None = None
    image: str = ""
    question: str = ""
    gold: str = ""
    gold_text: str = ""
    failure: str = ""
    epoch: int = 1


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row that no answer was taken from, and why."""

    row: int
    reason: str
    id: str = ""
    image: str = ""
    question: str = ""


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """How a file is read: its format (None: found out), which column is what, renamed values."""

    format: AnswerFormat | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)


_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Joined:
    """The answer of each item that has exactly one, and the rows that were left out.

    ``repeated`` rows say again, word for word, what an earlier row said.
    """

    answers: Mapping[str, GivenAnswer]
    left_out: tuple[LeftOut, ...]
    rows: int
    repeated: int = 0


class _Items:
    """The items of a task by id, by image and question, and by place."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.by_id = {item.id: item for item in items}
        self._order = items
        self._by_image: dict[str, list[Item]] = {}
        for item in items:
            for key in item_images(item):
                self._by_image.setdefault(key, []).append(item)

    def find(self, given: GivenAnswer) -> Item | str:
        """The item of a row, or why there is none."""
        if given.id and given.id in self.by_id:
            return self.by_id[given.id]
        if given.image:
            return self._find_by_image(given)
        if given.id:
            return "no item has this id"
        if given.place is not None and given.place < len(self._order):
            return self._order[given.place]
        return "no item stands at this place" if given.place is not None else "no id and no image"

    def _find_by_image(self, given: GivenAnswer) -> Item | str:
        found = self._by_image.get(image_key(given.image), [])
        if not found:
            return "no item is about this image"
        if given.question:
            wanted = question_key(given.question)
            found = [item for item in found if question_key(item.form.question) == wanted]
            if not found:
                return "this image has no such question"
        if len({item.id for item in found}) > 1:
            return f"ambiguous: {len(found)} items fit"
        return found[0]


def join_epochs(items: Sequence[Item], rows: Iterable[GivenAnswer]) -> list[Joined]:
    """Join the rows of each epoch to items, in the order of the epochs; one at least."""
    epochs: dict[int, list[GivenAnswer]] = {}
    for given in rows:
        epochs.setdefault(given.epoch, []).append(given)
    return [join(items, epochs[epoch]) for epoch in sorted(epochs)] or [join(items, ())]


def join(items: Sequence[Item], rows: Iterable[GivenAnswer]) -> Joined:
    """Join rows to items; an item about which two rows disagree gets no answer."""
    known, count, repeated = _Items(items), 0, 0
    held: dict[str, GivenAnswer] = {}
    disputed: dict[str, list[GivenAnswer]] = {}
    left_out: list[LeftOut] = []
    for given in rows:
        count += 1
        item = known.find(given)
        reason = item if isinstance(item, str) else _differs(item, given)
        if reason or isinstance(item, str):
            left_out.append(_leave(given, reason))
        elif item.id not in held:
            held[item.id] = given
        elif _same(held[item.id], given):
            repeated += 1
        elif given.failure:
            left_out.append(_leave(given, given.failure))
        elif held[item.id].failure:
            left_out.append(_leave(held[item.id], held[item.id].failure))
            held[item.id] = given
        else:
            disputed.setdefault(item.id, []).append(given)
    for name, others in disputed.items():
        several = [held.pop(name), *others]
        reason = f"ambiguous: {len(several)} rows answer item {name} differently"
        left_out += [_leave(given, reason) for given in several]
    left_out.sort(key=lambda omission: omission.row)
    return Joined(held, tuple(left_out), count, repeated)


def _same(first: GivenAnswer, second: GivenAnswer) -> bool:
    return (first.reply.text, first.failure) == (second.reply.text, second.failure)


def _differs(item: Item, given: GivenAnswer) -> str:
    """Whether the row takes another answer for right: then it is about another question."""
    if not isinstance(item.gold, str):
        return ""
    gold = given.gold.strip()
    if gold and gold.casefold() != item.gold.casefold():
        return f"gold answers differ: {gold!r} there, {item.gold!r} here"[:_SHOWN]
    texts = {o.key: o.text for field in item.form.fields for o in field.options}
    text = given.gold_text.strip()
    if text and item.gold in texts and question_key(text) != question_key(texts[item.gold]):
        return "the text of the right option differs"
    return ""


def _leave(given: GivenAnswer, reason: str) -> LeftOut:
    shown = (mask_unseen(text)[:_SHOWN] for text in (given.id, given.image, given.question))
    return LeftOut(given.row, mask_unseen(reason)[:_SHOWN], *shown)
