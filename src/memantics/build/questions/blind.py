"""The critic that asks a model: can a question be solved without the meme, or against the facts?

``blind`` asks twice, from the wording alone, with the options in two orders: who finds the key
both times did not guess. ``told`` asks once with all that is known and no meme: an answer other
than the key says that the knowledge contradicts it. ``seen`` asks once with the meme and nothing
that is known: whether the knowledge was needed is noted. Several questions go into one call:
blind ones about different memes, the others about one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memantics.build.extract.chain import in_order
from memantics.build.questions.asking import (
    LETTERS,
    Posed,
    QuestionSubject,
    ask_blind,
    ask_seen,
    ask_told,
)
from memantics.build.questions.assembly import AssembledQuestion
from memantics.build.questions.records import QuestionSettings
from memantics.core.closed import Closed
from memantics.core.records import Request
from memantics.core.reply import read_object
from memantics.core.step import Asker, Step
from memantics.core.task import Unparsed
from memantics.tasks.parse import parse_letter

_WINDOW = 256


@dataclass(frozen=True, slots=True)
class BlindTrial:
    """How a model did without what it should need; None: it gave no answer that could be read."""

    blind: tuple[bool | None, bool | None]
    told: bool | None = None
    seen: bool | None = None

    @property
    def solved_blindly(self) -> bool:
        """Whether the key was found from the wording alone, in both orders."""
        return self.blind == (True, True)

    @property
    def contradicted(self) -> bool:
        """Whether the knowledge leads to another option."""
        return self.told is False


class SaidLetters(Closed):
    """The letters of several questions, in their order."""

    answers: list[str]


Order = tuple[int, ...]
Ask = Callable[[Posed, QuestionSettings, QuestionSubject], Request]


def read_letter(text: str, options: Sequence[str] = ("",) * len(LETTERS)) -> str:
    r"""The letter of the option that a reply chooses, in any of the forms that runs read too.

    >>> read_letter("Answer: (B)"), read_letter("C. A cat"), read_letter("It frowns.\\nAnswer: D")
    ('B', 'C', 'D')
    """
    return parse_letter(text, dict(zip(LETTERS, options, strict=True)))


async def try_items(
    asker: Asker,
    items: Sequence[AssembledQuestion],
    subjects: Mapping[str, QuestionSubject],
    settings: QuestionSettings,
    *,
    blind_only: bool = False,
) -> dict[str, BlindTrial]:
    """Try every item, several in a call; ``blind_only`` where only its options have changed."""
    orders = {item.id: _draw_orders(item, settings) for item in items}

    async def ask(
        few: Sequence[AssembledQuestion], way: str, place: int, pose: Ask
    ) -> dict[str, bool | None]:
        groups = _spread(few, settings.at_once) if pose is ask_blind else _by_meme(few, settings)
        shown = {item.id: orders[item.id][place] for item in few}
        jobs = (_answer(asker, group, subjects, settings, (way, shown, pose)) for group in groups)
        return {
            name: found async for answered in in_order(jobs, _WINDOW) for name, found in answered
        }

    once = await ask(items, "blind-1", 0, ask_blind)
    twice = await ask(items, "blind-2", 1, ask_blind)
    trials = {item.id: BlindTrial((once[item.id], twice[item.id])) for item in items}
    # What is solved blindly goes, whatever else would be found.
    rest = [item for item in items if not trials[item.id].solved_blindly and not blind_only]
    told = await ask(rest, "told", 0, ask_told)
    seen = await ask(rest, "seen", 1, ask_seen)
    return trials | {
        item.id: replace(trials[item.id], told=told[item.id], seen=seen[item.id]) for item in rest
    }


def _spread(items: Sequence[AssembledQuestion], most: int) -> Iterator[list[AssembledQuestion]]:
    """Groups in which no meme comes twice: one question would tell about another."""
    rounds: dict[int, list[AssembledQuestion]] = {}
    met: Counter[str] = Counter()
    for item in items:
        rounds.setdefault(met[item.slot.meme], []).append(item)
        met[item.slot.meme] += 1
    for level in rounds.values():
        yield from (level[place : place + most] for place in range(0, len(level), most))


def _by_meme(
    items: Sequence[AssembledQuestion], settings: QuestionSettings
) -> Iterator[list[AssembledQuestion]]:
    memes: dict[str, list[AssembledQuestion]] = {}
    for item in items:
        memes.setdefault(item.slot.meme, []).append(item)
    for few in memes.values():
        yield from (
            few[place : place + settings.at_once] for place in range(0, len(few), settings.at_once)
        )


def _draw_orders(item: AssembledQuestion, settings: QuestionSettings) -> tuple[Order, Order]:
    """Two orders of the options; the key stands at different places in them."""
    key = 0 if item.correct is not None else 3
    chance = random.Random(f"{settings.seed}/trial/{item.id}")
    first = chance.sample(range(4), 4)
    second = chance.sample(range(4), 4)
    while second.index(key) == first.index(key):
        second = chance.sample(range(4), 4)
    return tuple(first), tuple(second)


async def _answer(
    asker: Asker,
    items: Sequence[AssembledQuestion],
    subjects: Mapping[str, QuestionSubject],
    settings: QuestionSettings,
    how: tuple[str, Mapping[str, Order], Ask],
) -> list[tuple[str, bool | None]]:
    """For each item whether its key was found; None where the reply could not be read."""
    way, orders, pose = how
    listed = [
        [
            [*(option.text for option in item.shown), settings.none_text][place]
            for place in orders[item.id]
        ]
        for item in items
    ]
    posed = [(item.draft.question, texts) for item, texts in zip(items, listed, strict=True)]

    def read(text: str) -> list[str]:
        if len(items) == 1:
            return [read_letter(text, listed[0])]
        said = read_object(text, SaidLetters).answers
        if len(said) != len(items):
            raise Unparsed(f"{len(items)} letters are needed, one for each question")
        return [read_letter(one, texts) for one, texts in zip(said, listed, strict=True)]

    request = pose(posed, settings, subjects[items[0].slot.meme])
    taken = await asker.take(Step(f"{items[0].id}/{way}", request, read, 2))
    if taken.value is None and len(items) > 1:  # one that gives orders spoils no other
        alone = [await _answer(asker, [item], subjects, settings, how) for item in items]
        return [found for few in alone for found in few]
    if taken.value is None:
        return [(items[0].id, None)]
    return [
        (item.id, orders[item.id][LETTERS.index(letter)] == (0 if item.correct is not None else 3))
        for item, letter in zip(items, taken.value, strict=True)
    ]
