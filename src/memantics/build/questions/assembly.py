"""Items on their way to questions: which options stand beside the key, and where the key stands."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memantics.build.questions.records import (
    WRONG,
    DraftQuestion,
    QuestionDraft,
    QuestionOption,
    QuestionSettings,
    Slot,
    Written,
)
from memantics.build.questions.slots import draw
from memantics.build.questions.writing import Drafted

_WITH_KEY: tuple[Written, ...] = ("plausible", "implausible")


@dataclass(frozen=True, slots=True)
class Item:
    """A drafted question with the wrong options that it shows.

    ``correct`` is None where "None of the others" is the key. ``notes`` are what the critic found
    worth telling.
    """

    drafted: Drafted
    draft: QuestionDraft
    correct: QuestionOption | None
    wrong: tuple[QuestionOption, ...]
    notes: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The id of its slot."""
        return self.drafted.slot.id

    @property
    def slot(self) -> Slot:
        """What it was planned as."""
        return self.drafted.slot

    @property
    def shown(self) -> tuple[QuestionOption, ...]:
        """The three options that say something, the right one first if it is there."""
        return self.wrong if self.correct is None else (self.correct, *self.wrong)

    @property
    def key_is_longest(self) -> bool:
        """Whether the right option is strictly longer than the other two."""
        if self.correct is None:
            return False
        return len(self.correct.text) > max(len(own.text) for own in self.wrong)

    @property
    def key_is_shortest(self) -> bool:
        """Whether the right option is strictly shorter than the other two."""
        if self.correct is None:
            return False
        return len(self.correct.text) < min(len(own.text) for own in self.wrong)

    @property
    def has_longest(self) -> bool:
        """Whether one of the three options is strictly longer than the other two."""
        sizes = sorted(len(own.text) for own in self.shown)
        return sizes[-1] > sizes[-2]

    def swap(self, old: QuestionOption, new: QuestionOption) -> Item:
        """The same item with another wrong option."""
        return replace(self, wrong=tuple(new if own is old else own for own in self.wrong))


def make_item(drafted: Drafted, draft: QuestionDraft, *, none_is_key: bool) -> Item:
    """An item with the options that its draft has for it."""
    roles = WRONG if none_is_key else _WITH_KEY
    wrong = tuple(QuestionOption(draft.text_of(role), role) for role in roles)
    correct = None if none_is_key else QuestionOption(draft.correct, "correct")
    return Item(drafted, draft, correct, wrong)


def deal_items(drafted: Sequence[Drafted], settings: QuestionSettings) -> list[Item]:
    """Make items; the given share of them, drawn by the seed, has no right option."""
    usable = [(own, own.draft) for own in drafted if own.draft is not None]
    order = sorted(usable, key=lambda pair: draw(2**60, settings.seed, "none", pair[0].slot.id))
    count = round(settings.none_share * len(order))
    without = {own.slot.id for own, _ in order[:count]}
    return [make_item(own, draft, none_is_key=own.slot.id in without) for own, draft in usable]


def finish(items: Sequence[Item], settings: QuestionSettings) -> list[DraftQuestion]:
    """Shuffle options: the key comes equally often at every place, the others at random."""
    chance = random.Random(f"{settings.seed}/places")
    deck = [place % 4 for place in range(len(items))]
    chance.shuffle(deck)
    return [_finish(item, place, settings) for item, place in zip(items, deck, strict=True)]


def _finish(item: Item, place: int, settings: QuestionSettings) -> DraftQuestion:
    none = QuestionOption(settings.none_text, "none")
    key = item.correct or none
    others = [own for own in (*item.shown, none) if own is not key]
    random.Random(f"{settings.seed}/{item.id}").shuffle(others)
    options = (*others[:place], key, *others[place:])
    slot, draft = item.slot, item.draft
    return DraftQuestion(
        slot.id,
        slot.meme,
        slot.dimension,
        draft.question,
        options,
        place,
        draft.explanation,
        draft.cites,
        slot.focus,
        settings.seed,
        settings.language,
        slot.pair,
        item.drafted.provenance,
        item.notes,
    )
