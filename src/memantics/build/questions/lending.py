"""Options lent from other memes: the right answer there is a wrong one here, in the same style.

Where answers do not suffice to complete an item, what is known about other memes is lent, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memantics.build.questions.asking import even_out
from memantics.build.questions.assembly import Item
from memantics.build.questions.critic import find_support
from memantics.build.questions.records import QuestionOption, QuestionSettings, SetAside
from memantics.build.questions.slots import draw
from memantics.build.questions.wording import alike, content, count_words, find_class_name, fold
from memantics.knowledge.records import Knowledge

_MOST_USES = 4
_COMMON = 0.02


@dataclass(frozen=True, slots=True)
class _Offer:
    text: str
    origin: str
    meme: str
    last: bool = False

    @property
    def name(self) -> str:
        """What is counted: memes may share a text."""
        return fold(self.text)


class OptionPool:
    """The right answers of all drafts, by dimension; each is lent a bounded number of times."""

    def __init__(
        self, items: Sequence[Item], knowledge: Mapping[str, Knowledge], seed: int
    ) -> None:
        self._offers: dict[str, list[_Offer]] = {}
        for item in items:
            offer = _Offer(item.draft.correct, item.id, item.slot.meme)
            self._offers.setdefault(item.slot.dimension, []).append(offer)
        words = Counter(word for item in items for word in content(item.draft.correct))
        # A word that many answers share tells nothing about one of them.
        self._common = {word for word, n in words.items() if n > max(3, _COMMON * len(items))}
        self._knowledge = knowledge
        self._seed = seed
        self._uses: Counter[str] = Counter()

    def add_labels(self, words: int) -> None:
        """Lend what individuals are called as well, up to so many words, after all answers."""
        for meme, known in self._knowledge.items():
            for own in known.individuals:
                if 1 <= count_words(own.label) <= words and not find_class_name(own.label):
                    offer = _Offer(even_out(own.label), f"{meme}/{own.key}", meme, last=True)
                    self._offers.setdefault(own.dimension, []).append(offer)

    def lend(
        self, item: Item, old: QuestionOption, fits: Callable[[str], bool]
    ) -> QuestionOption | None:
        """Another wrong option in the place of one; the item's own spare before a borrowed one."""
        spare = QuestionOption(item.draft.spare, "spare")
        unused = item.correct is not None and spare not in item.wrong
        if unused and spare.text and fits(spare.text) and self._suits(item, old, spare.text):
            return spare
        offers = [
            offer
            for offer in self._offers.get(item.slot.dimension, ())
            if offer.meme != item.slot.meme
            and self._uses[offer.name] < _MOST_USES
            and fits(offer.text)
        ]
        offers.sort(
            key=lambda o: (o.last, self._uses[o.name], draw(2**60, self._seed, item.id, o.origin))
        )
        for offer in offers:
            if self._suits(item, old, offer.text):
                self._uses[offer.name] += 1
                return QuestionOption(offer.text, "borrowed", offer.origin)
        return None

    def take_back(self, choice: QuestionOption) -> None:
        """An option that is no longer used may be lent again."""
        if choice.origin:
            self._uses[fold(choice.text)] -= 1

    def _suits(self, item: Item, old: QuestionOption, text: str) -> bool:
        """Whether a text is wrong here, as far as words and graph can tell, and new."""
        own = [item.draft.correct, *(one.text for one in item.wrong if one is not old)]
        if any(alike(text, other) for other in own):
            return False
        # An option that shares a telling word with the answer may well be right, too.
        if (content(text) & content(item.draft.correct)) - self._common:
            return False
        known = self._knowledge.get(item.slot.meme)
        if known is None:
            return True
        cited = [known.by_key[key] for key in item.draft.cites if key in known.by_key]
        return find_support(text, [*known.of(item.slot.dimension), *cited]) is None


@dataclass(frozen=True, slots=True)
class Completed:
    """Items that have all their options, those that could not get them, and how many were lent."""

    items: list[Item]
    aside: list[SetAside]
    lent: int


def complete(
    items: Sequence[Item], knowledge: Mapping[str, Knowledge], settings: QuestionSettings
) -> Completed:
    """Put lent options where drafts have none; an item that cannot be completed is set aside."""
    pool = OptionPool(items, knowledge, settings.seed)
    pool.add_labels(settings.words)
    done = Completed([], [], 0)
    lent = 0
    for item in items:
        full = item
        for empty in [own for own in item.wrong if not own.text]:
            new = _lend_fitting(pool, full, empty)
            if new is None:
                break
            full, lent = full.swap(empty, new), lent + 1
        if all(own.text for own in full.wrong):
            done.items.append(full)
            continue
        slot, reason = item.slot, "it lacks wrong options, and no other meme can lend one"
        done.aside.append(
            SetAside(slot.id, slot.meme, slot.dimension, "lending", reason, item.draft)
        )
    return Completed(done.items, done.aside, lent)


def _lend_fitting(pool: OptionPool, item: Item, empty: QuestionOption) -> QuestionOption | None:
    """One of about the length of the answer if there is one, else any."""
    size = len(item.draft.correct)
    near = pool.lend(item, empty, lambda text: 0.5 * size <= len(text) <= 1.5 * size + 8)
    return near or pool.lend(item, empty, lambda _: True)
