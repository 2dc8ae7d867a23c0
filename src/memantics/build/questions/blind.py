"""The critic that asks a model: can a question be solved without the meme, or against the facts?

``blind`` asks twice, from the wording alone, with the options in two orders: who finds the key
both times did not guess. ``told`` asks once with all that is known and no meme: an answer other
than the key says that the knowledge contradicts it. ``seen`` asks once with the meme and nothing
that is known: whether the knowledge was needed is noted.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from memantics.build.extract.chain import in_order
from memantics.build.questions.asking import LETTERS, QuestionSubject, ask_blind, ask_seen, ask_told
from memantics.build.questions.assembly import AssembledQuestion
from memantics.build.questions.records import QuestionSettings
from memantics.core.records import Request
from memantics.core.step import Asker, Step
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


Orders = tuple[tuple[int, ...], tuple[int, ...]]


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
    """Try every item, many at once; ``blind_only`` where only its options have changed."""
    tries = _try_blind if blind_only else _try
    jobs = (tries(asker, item, subjects[item.slot.meme], settings) for item in items)
    trials = [trial async for trial in in_order(jobs, _WINDOW)]
    return {item.id: trial for item, trial in zip(items, trials, strict=True)}


async def _try(
    asker: Asker, item: AssembledQuestion, subject: QuestionSubject, settings: QuestionSettings
) -> BlindTrial:
    first, second = _draw_orders(item, settings)
    question = item.draft.question

    def told(texts: Sequence[str]) -> Request:
        return ask_told(question, texts, settings, subject)

    def seen(texts: Sequence[str]) -> Request:
        return ask_seen(question, texts, settings, subject)

    trial = await _try_blind(asker, item, subject, settings)
    if trial.solved_blindly:
        return trial  # it goes, whatever else would be found
    return replace(
        trial,
        told=await _choose(asker, item, settings, ("told", first), told),
        seen=await _choose(asker, item, settings, ("seen", second), seen),
    )


async def _try_blind(
    asker: Asker, item: AssembledQuestion, _: QuestionSubject, settings: QuestionSettings
) -> BlindTrial:
    first, second = _draw_orders(item, settings)

    def blind(texts: Sequence[str]) -> Request:
        return ask_blind(item.draft.question, texts, settings)

    once = await _choose(asker, item, settings, ("blind-1", first), blind)
    twice = await _choose(asker, item, settings, ("blind-2", second), blind)
    return BlindTrial((once, twice))


def _draw_orders(item: AssembledQuestion, settings: QuestionSettings) -> Orders:
    """Two orders of the options; the key stands at different places in them."""
    key = 0 if item.correct is not None else 3
    chance = random.Random(f"{settings.seed}/trial/{item.id}")
    first = chance.sample(range(4), 4)
    second = chance.sample(range(4), 4)
    while second.index(key) == first.index(key):
        second = chance.sample(range(4), 4)
    return tuple(first), tuple(second)


async def _choose(
    asker: Asker,
    item: AssembledQuestion,
    settings: QuestionSettings,
    way: tuple[str, tuple[int, ...]],
    ask: Callable[[Sequence[str]], Request],
) -> bool | None:
    name, order = way
    texts = [*(option.text for option in item.shown), settings.none_text]
    listed = [texts[place] for place in order]
    step = Step(f"{item.id}/{name}", ask(listed), partial(read_letter, options=listed), 2)
    taken = await asker.take(step)
    if taken.value is None:
        return None
    return order[LETTERS.index(taken.value)] == (0 if item.correct is not None else 3)
