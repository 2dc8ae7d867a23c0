"""Borrowed distractors: correct answers about other memes, used as wrong options for this meme.

Only answers to the same kind of question and of the same form are borrowed. An option of another
kind could be ruled out without the meme.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from memantics.construction.questions.assembly import AssembledQuestion
from memantics.construction.questions.critic import alike, content, find_support, fold, tokens
from memantics.construction.questions.records import (
    QuestionOption,
    QuestionSettings,
    RejectedQuestion,
    draw,
)
from memantics.understanding.knowledge.records import Knowledge

_MOST_USES = 4
_AT_A_GLANCE = frozenset({"Scene", "SemioticProjection", "TargetCommunity", "VisualMaterial"})
_COMMON = 0.02
_SAME_ASKED = 0.5  # proportion of shared words above which two questions ask the same
_ASKS = re.compile(
    r"\b(who|whom|whose|what|which|when|where|why|how)\b|为什么|怎么|如何|什么|哪|谁|几|多少", re.I
)
# First words that mark the form of an answer: a purpose, a manner, a role, a statement.
_LEADING = (
    "to by with for because from in on at as like that when if it they he she we you i "
    "nobody everybody somebody"
)
_LEADS = frozenset(_LEADING.split(" "))


@lru_cache(maxsize=65_536)
def find_form(answer: str) -> str:
    """Return the form of an answer, judged by its first word.

    >>> [find_form(text) for text in ("A cat", "By copying", "Counting sheep", "Fans of films")]
    ['thing', 'by', 'doing', 'name']
    """
    first = next(iter(tokens(answer)), "")
    if first in ("a", "an", "the"):
        return "thing"
    if first in _LEADS:
        return first
    return "doing" if first.endswith("ing") and len(first) > 5 else "name"


@lru_cache(maxsize=65_536)
def _split(question: str) -> tuple[str, frozenset[str]]:
    """Return the question word (who, which, …) and the other words; numbers are ignored."""
    word = _ASKS.search(question)
    asked = word.group(0).casefold() if word else ""
    return asked, frozenset(
        term for term in content(question) if not term.isdigit() and term != asked
    )


def ask_alike(one: str, other: str) -> bool:
    """Return whether two questions ask for the same kind of answer.

    >>> ask_alike("Who is attacked here?", "Who is being attacked?")
    True
    >>> ask_alike("Who is being attacked?", "Who is meant to enjoy the meme?")
    False
    """
    (first, these), (second, those) = _split(one), _split(other)
    if first != second:
        return False
    return len(these & those) >= _SAME_ASKED * min(len(these), len(those)) > 0


class _Offer(NamedTuple):
    text: str
    origin: str
    meme: str
    question: str

    @property
    def name(self) -> str:
        """Id under which the uses of an option are counted, since memes may share a text."""
        return fold(self.text)


class OptionPool:
    """Hold the correct answers of all drafts by dimension, with a limit on their reuse."""

    def __init__(
        self, items: Sequence[AssembledQuestion], knowledge: Mapping[str, Knowledge], seed: int
    ) -> None:
        self._offers: dict[tuple[str, str], list[_Offer]] = {}
        for item in items:
            draft = item.draft
            offer = _Offer(draft.correct, item.id, item.slot.meme, draft.question)
            form = (item.slot.dimension, find_form(draft.correct))
            self._offers.setdefault(form, []).append(offer)
        words = Counter(word for item in items for word in content(item.draft.correct))
        # A word that many answers share does not identify one of them.
        self._common = {word for word, n in words.items() if n > max(3, _COMMON * len(items))}
        self._knowledge = knowledge
        self._seed = seed
        self._uses: Counter[str] = Counter()

    def lend(
        self,
        item: AssembledQuestion,
        old: QuestionOption,
        fits: Callable[[str], bool],
        *,
        spares: bool = True,
    ) -> QuestionOption | None:
        """Return a replacement for a distractor.

        Spare distractors of the same question come first, then answers to questions about other
        memes.

        A spare may share words with the correct option, since its writer meant it to be wrong. Two
        implausible options are never shown together.
        """
        far = any(one.role == "implausible" for one in item.wrong if one is not old)
        for spare in item.spares if spares else ():
            if far and spare.role == "implausible":
                continue
            if spare.text != old.text and fits(spare.text) and self._is_new(item, old, spare.text):
                return spare
        form = (item.slot.dimension, find_form(item.draft.correct))
        offers = [
            offer
            for offer in self._offers.get(form, ())
            if offer.meme != item.slot.meme
            and self._uses[offer.name] < _MOST_USES
            and fits(offer.text)
            and ask_alike(offer.question, item.draft.question)
        ]
        offers.sort(key=lambda o: (self._uses[o.name], draw(2**60, self._seed, item.id, o.origin)))
        for offer in offers:
            if self._suits(item, old, offer.text):
                self._uses[offer.name] += 1
                return QuestionOption(offer.text, "borrowed", offer.origin)
        return None

    def take_back(self, choice: QuestionOption) -> None:
        """Make a borrowed option that is no longer used available again."""
        if choice.origin:
            self._uses[fold(choice.text)] -= 1

    def _is_new(self, item: AssembledQuestion, old: QuestionOption, text: str) -> bool:
        others = [item.draft.correct, *(one.text for one in item.wrong if one is not old)]
        return not any(alike(text, other) for other in others)

    def _suits(self, item: AssembledQuestion, old: QuestionOption, text: str) -> bool:
        """Return whether a text is new for a question and wrong for its meme.

        Shared words and the knowledge graph decide whether it is wrong.
        """
        if not self._is_new(item, old, text):
            return False
        # An answer about another meme that shares a specific word may be correct here, too.
        if (content(text) & content(item.draft.correct)) - self._common:
            return False
        known = self._knowledge.get(item.slot.meme)
        if known is None:
            return True
        cited = [known.by_key[key] for key in item.draft.cites if key in known.by_key]
        return find_support(text, [*known.of(item.slot.dimension), *cited]) is None


class Completed(NamedTuple):
    """Store completed items, rejected items, and the number of borrowed options."""

    items: list[AssembledQuestion]
    rejected: list[RejectedQuestion]
    lent: int


def complete(
    items: Sequence[AssembledQuestion],
    knowledge: Mapping[str, Knowledge],
    settings: QuestionSettings,
) -> Completed:
    """Fill missing distractors with borrowed ones; reject items that cannot be completed."""
    pool = OptionPool(items, knowledge, settings.seed)
    done: list[AssembledQuestion] = []
    rejected: list[RejectedQuestion] = []
    lent = 0
    for item in items:
        full = item
        for empty in [option for option in item.wrong if not option.text]:
            new = _lend_fitting(pool, full, empty)
            if new is None:
                break
            full, lent = full.swap(empty, new), lent + 1
        if all(option.text for option in full.wrong):
            done.append(full)
            continue
        slot, reason = item.slot, "it lacks distractors, and no similar question provides one"
        rejected.append(
            RejectedQuestion(slot.id, slot.meme, slot.dimension, "lending", reason, item.draft)
        )
    return Completed(done, rejected, lent)


def borrow_one(pool: OptionPool, item: AssembledQuestion) -> AssembledQuestion | None:
    """Return the question with one borrowed distractor; None if none is available.

    The other distractor stays: it is plausible for a reader who saw the meme but did not understand
    it.
    """
    old = next((o for o in item.wrong if o.role != "plausible"), item.wrong[-1])
    new = _lend_fitting(pool, item, old, spares=False)
    return None if new is None else item.swap(old, new)


def borrow_others(pool: OptionPool, item: AssembledQuestion) -> AssembledQuestion | None:
    """Return the question with all distractors borrowed; None if none is available.

    This is not done for dimensions that one look at the image answers, because the answer for
    another meme is then obviously wrong.
    """
    if item.slot.dimension in _AT_A_GLANCE:
        return None
    made = item
    for old in item.wrong:
        new = _lend_fitting(pool, made, old, spares=False)
        made = made if new is None else made.swap(old, new)
    return None if made is item else made


def _lend_fitting(
    pool: OptionPool, item: AssembledQuestion, old: QuestionOption, *, spares: bool = True
) -> QuestionOption | None:
    """Borrow an option of similar length if there is one, else any."""
    size = len(item.draft.correct)
    near = pool.lend(
        item, old, lambda text: 0.5 * size <= len(text) <= 1.5 * size + 8, spares=spares
    )
    return near or pool.lend(item, old, lambda _: True, spares=spares)
