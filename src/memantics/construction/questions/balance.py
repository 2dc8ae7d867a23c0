"""Remove answer cues: adjust questions until option length and a blind solver reach chance level.

A blind solver is a classifier that sees only the wording. First, options are replaced: by a spare
distractor of the same question, then by the correct answer to a similar question about another
meme. Items that still reveal their answer are rejected. Every choice depends on the seed, so the
same drafts give the same set.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from memantics.construction.questions.assembly import AssembledQuestion
from memantics.construction.questions.critic import fold
from memantics.construction.questions.lending import OptionPool
from memantics.construction.questions.records import (
    QuestionOption,
    QuestionSettings,
    RejectedQuestion,
    draw,
)
from memantics.construction.questions.solver import (
    FEWEST,
    SolverResult,
    fair_chance,
    solve_blindly,
)
from memantics.metrics.rounding import settle
from memantics.understanding.knowledge.records import Knowledge

FAIR_LENGTH = 1 / 3
_ROUNDS = 16
_REPEATS = 2
# The target is well inside the tolerance, so that another solver also stays inside it.
_AIM = 0.4
_TELLING = "its wording reveals the correct option to a solver without the meme"
Remedy = Literal["exchange", "both", "drop"]


@dataclass(slots=True)
class QuestionSet:
    """Hold the current questions and the rejected ones."""

    items: dict[str, AssembledQuestion]
    rejected: list[RejectedQuestion] = field(default_factory=list)
    exchanged: int = 0

    @property
    def paired(self) -> set[str]:
        """Questions that belong to a pair; if one of them is removed, the pair is incomplete."""
        seconds = [item for item in self.items.values() if item.slot.pair in self.items]
        return {name for item in seconds for name in (item.id, item.slot.pair)}


def remove_cues(
    items: Sequence[AssembledQuestion],
    knowledge: Mapping[str, Knowledge],
    settings: QuestionSettings,
) -> QuestionSet:
    """Remove answer cues from a set; sets with fewer than 100 questions are not changed."""
    state = QuestionSet({item.id: item for item in items})
    if len(items) < FEWEST:
        return state
    pool = OptionPool(items, knowledge, settings.seed)
    _replace_recurring(state, pool, settings)
    for _ in range(3):
        _balance_lengths(state, pool, settings)
        _balance_shortest(state, pool, settings)
        _trim(state, settings)
        if not _balance_wording(state, pool, settings):
            break
    for _ in range(2):
        _trim(state, settings)
        _drop_telling(state, settings)
    _trim(state, settings)
    return state


def _drop_telling(state: QuestionSet, settings: QuestionSettings) -> None:
    """Reject questions that the blind solver still answers, the most confident ones first."""
    for number in range(_ROUNDS // 2):
        items = list(state.items.values())
        solved = solve_blindly(items, settings.seed + 100 + number, 2 * _REPEATS)
        excess = solved.accuracy - fair_chance(items) if solved is not None else 0.0
        if solved is None or excess <= settings.tolerance * _AIM:
            return
        paired = state.paired
        surest = np.argsort(-settle(solved.margins), kind="stable")
        telling = [n for n in surest if items[n].id not in paired]
        for place in telling[: math.ceil(0.7 * excess * len(items))]:
            _drop(state, items[place].id, _TELLING)
        bound_none(state, settings)


def _trim(state: QuestionSet, settings: QuestionSettings) -> None:
    trim_shortest(state, settings)
    trim_lengths(state, settings)
    bound_none(state, settings)


def bound_none(state: QuestionSet, settings: QuestionSettings) -> None:
    """Reject "None of the others" items while their proportion exceeds the limit."""
    without = [item for item in state.items.values() if item.correct is None]
    without.sort(key=lambda item: draw(2**60, settings.seed, "bound", item.id))
    while len(without) > settings.none_proportion * len(state.items) + 1e-9:
        _drop(
            state,
            without.pop().id,
            "'None of the others' is the correct option in too many questions",
        )


@dataclass(slots=True)
class Lengths:
    """Count how often the correct option is the longest or the shortest.

    Items whose correct option is "None of the others" are not counted.
    """

    keyed: int = 0
    single: int = 0
    longest: int = 0
    shortest: int = 0

    @classmethod
    def of(cls, items: Iterable[AssembledQuestion]) -> Lengths:
        """Count the lengths of items."""
        lengths = cls()
        for item in items:
            lengths.count(item, 1)
        return lengths

    def count(self, item: AssembledQuestion, sign: int) -> None:
        """Add an item (``sign`` 1) or remove it (``sign`` -1)."""
        if item.correct is not None:
            self.keyed += sign
            self.single += sign * item.has_longest
            self.longest += sign * item.key_is_longest
            self.shortest += sign * item.key_is_shortest

    @property
    def rate(self) -> float:
        """Proportion of items whose correct option is strictly the longest of the three."""
        return self.longest / self.keyed if self.keyed else FAIR_LENGTH

    @property
    def rate_shortest(self) -> float:
        """Proportion of items whose correct option is strictly the shortest of the three."""
        return self.shortest / self.keyed if self.keyed else FAIR_LENGTH

    @property
    def fair(self) -> float:
        """Expected proportion if length carries no information; ties have no longest option."""
        return FAIR_LENGTH * self.single / self.keyed if self.keyed else FAIR_LENGTH

    def edge(self, tolerance: float) -> float:
        """Return the largest accepted deviation from the expected rate: at least one item."""
        return max(0.8 * tolerance, 1 / self.keyed) if self.keyed else 1.0

    def aim(self, tolerance: float) -> float:
        """Return the target rate: between the expected rate and one third."""
        return min(FAIR_LENGTH, self.fair + _AIM * tolerance)


def _replace_recurring(state: QuestionSet, pool: OptionPool, settings: QuestionSettings) -> None:
    """Replace options that recur in many drafts and are never correct."""
    drafts = [item.draft.wrong for item in state.items.values()]
    counts = Counter(fold(option.text) for wrong in drafts for option in wrong)
    most = max(2, math.ceil(0.01 * len(state.items)))
    seen: Counter[str] = Counter()
    for item in _shuffled(state.items.values(), settings, "recurring"):
        dead = {option.text for option in item.draft.wrong if counts[fold(option.text)] > most}
        shown = {option.text for option in item.wrong} & dead
        seen.update(fold(text) for text in shown)
        spared = {text for text in shown if seen[fold(text)] <= most}
        state.items[item.id] = item.without(dead - spared)
        for option in item.wrong:
            if option.text not in dead - spared:
                continue
            size = len(item.draft.correct)
            if not _exchange(state, pool, item.id, option, _between(0.5 * size, 1.5 * size + 8)):
                count = counts[fold(option.text)]
                _drop(state, item.id, f"option {option.text!r} appears in {count} questions")
                break


def _balance_lengths(state: QuestionSet, pool: OptionPool, settings: QuestionSettings) -> None:
    """Exchange options until the correct option is the longest in about one third of items."""
    keyed = [item for item in state.items.values() if item.correct is not None]
    now, slack = Lengths.of(keyed), settings.tolerance * _AIM
    for item in _shuffled(keyed, settings, "lengths"):
        size, aim = len(item.draft.correct), now.aim(settings.tolerance)
        if now.rate > aim + slack and item.key_is_longest:
            shortest = min(item.wrong, key=lambda option: len(option.text))
            _exchange(state, pool, item.id, shortest, _between(size + 1, 1.5 * size + 8))
        elif now.rate < aim - slack / 2 and not item.key_is_longest:
            for option in item.wrong:
                if len(option.text) >= size:
                    _exchange(state, pool, item.id, option, _between(0.5 * size, size - 1))
        if not state.items[item.id].has_longest:
            _untie(state, pool, state.items[item.id], up=now.rate >= aim)
        now.count(item, -1)
        now.count(state.items[item.id], 1)


def _balance_shortest(state: QuestionSet, pool: OptionPool, settings: QuestionSettings) -> None:
    """Balance the shortest option without changing whether the correct option is the longest."""
    keyed = [item for item in state.items.values() if item.correct is not None]
    now, slack = Lengths.of(keyed), settings.tolerance * _AIM
    for item in _shuffled(keyed, settings, "shortest"):
        size = len(item.draft.correct)
        near, far = sorted(item.wrong, key=lambda option: len(option.text))
        if now.rate_shortest > FAIR_LENGTH + slack and item.key_is_shortest:
            _exchange(state, pool, item.id, near, _between(0.5 * size, size - 1))
        elif now.rate_shortest < FAIR_LENGTH - slack and len(near.text) < size < len(far.text):
            _exchange(state, pool, item.id, near, _between(size + 1, 1.5 * size + 8))
        now.count(item, -1)
        now.count(state.items[item.id], 1)


def trim_shortest(state: QuestionSet, settings: QuestionSettings) -> None:
    """Reject items whose correct option is the shortest, while there are too many of them."""
    now = Lengths.of(state.items.values())
    paired = state.paired
    order = _shuffled(state.items.values(), settings, "trim shortest")
    for item in sorted(order, key=lambda item: item.id in paired):
        edge = now.edge(settings.tolerance)
        if now.rate_shortest > FAIR_LENGTH + edge and item.key_is_shortest:
            now.count(item, -1)
            _drop(state, item.id, "its correct option is the shortest, as in too many questions")


def _untie(state: QuestionSet, pool: OptionPool, item: AssembledQuestion, *, up: bool) -> None:
    """Break a tie for the longest option by exchanging distractors."""
    top = max(len(option.text) for option in item.shown)
    tied = [option for option in item.wrong if len(option.text) == top]
    if up or len(item.draft.correct) < top:
        _exchange(state, pool, item.id, tied[0], _between(top + 1, 1.5 * top + 8))
        return
    for option in tied:
        _exchange(state, pool, item.id, option, _between(0.5 * top, top - 1))


def trim_lengths(state: QuestionSet, settings: QuestionSettings) -> None:
    """Reject items until the correct option is the longest as often as expected."""
    now = Lengths.of(state.items.values())
    paired = state.paired
    order = _shuffled(state.items.values(), settings, "trim")
    for item in sorted(order, key=lambda item: item.id in paired):
        edge = now.edge(settings.tolerance)
        if now.rate > now.fair + edge and item.key_is_longest:
            reason = "its correct option is the longest, as in too many questions"
        elif now.rate < now.fair - edge and item.has_longest and not item.key_is_longest:
            reason = "its correct option is not the longest, as in too many questions"
        else:
            continue
        if item.correct is not None:
            now.count(item, -1)
            _drop(state, item.id, reason)


def _balance_wording(state: QuestionSet, pool: OptionPool, settings: QuestionSettings) -> bool:
    """Replace options of, or reject, questions that the blind solver answers; report any change."""
    changed = False
    for number in range(_ROUNDS):
        items = list(state.items.values())
        # The folds differ each time, so that the solver must fail on more than one split.
        solved = solve_blindly(items, settings.seed + number, _REPEATS)
        if solved is None:
            return changed
        excess = solved.accuracy - fair_chance(items)
        if abs(excess) <= settings.tolerance * _AIM:
            return changed
        changed = True
        count = max(1, math.ceil(0.7 * abs(excess) * len(items)))
        if excess > 0:
            # Exchanges may cycle, so the last rounds reject the most confident answers.
            last = number >= 3 * _ROUNDS // 4
            mode: Remedy = "drop" if last else "both" if number >= _ROUNDS // 4 else "exchange"
            _obscure(state, pool, items, solved, (count, mode))
        else:
            _restore(state, pool, items, solved, count)
    return changed


def _obscure(
    state: QuestionSet,
    pool: OptionPool,
    items: Sequence[AssembledQuestion],
    solved: SolverResult,
    plan: tuple[int, Remedy],
) -> None:
    """Add a stronger distractor to the items answered most confidently, or reject the item."""
    spared = state.paired
    count, remedy = plan
    for place in np.argsort(-settle(solved.margins), kind="stable")[:count]:
        item = items[place]
        if solved.margins[place] <= 0:
            return
        if remedy == "drop" and item.id not in spared:
            _drop(state, item.id, _TELLING)
            continue
        first = 0 if item.correct is None else 1
        weakest = min(range(len(item.wrong)), key=lambda n: solved.scores[place, first + n])
        old = item.wrong[weakest]
        done = _exchange(state, pool, item.id, old, _same_rank(item, old)) or _exchange(
            state, pool, item.id, old, _same_longest(item, old)
        )
        if not done and remedy == "both" and item.id not in spared:
            _drop(state, item.id, _TELLING)


def _restore(
    state: QuestionSet,
    pool: OptionPool,
    items: Sequence[AssembledQuestion],
    solved: SolverResult,
    count: int,
) -> None:
    """Undo replacements, because too many options from other questions also reveal the answer."""
    for place in np.argsort(settle(solved.margins), kind="stable"):
        if count <= 0:
            return
        item = items[place]
        lent = [option for option in item.wrong if option.role == "borrowed"]
        for option in item.spares if lent else ():
            if _same_rank(item, lent[0])(option.text):
                pool.take_back(lent[0])
                state.items[item.id] = item.swap(lent[0], option)
                count -= 1
                break


def _same_rank(item: AssembledQuestion, old: QuestionOption) -> Callable[[str], bool]:
    """Return a test for texts that keep the length rank of the option they replace."""
    if item.correct is None:
        rest = max((len(option.text) for option in item.wrong if option is not old), default=0)
        return _between(0.5 * rest, 1.5 * rest + 8)
    size = len(item.correct.text)
    if len(old.text) < size:
        return _between(0.5 * size, size - 1)
    return _between(size + (len(old.text) > size), 1.5 * size + 8)


def _same_longest(item: AssembledQuestion, old: QuestionOption) -> Callable[[str], bool]:
    """Return a test for texts that keep whether the correct option is the longest."""
    if item.correct is None:
        return _same_rank(item, old)
    rest = max((len(option.text) for option in item.wrong if option is not old), default=0)
    size = len(item.correct.text)
    if item.key_is_longest:
        return _between(0.5 * size, size - 1)
    return _between(0.5 * size if rest >= size else size, 1.5 * size + 8)


def _between(low: float, high: float) -> Callable[[str], bool]:
    return lambda text: low <= len(text) <= high


def _exchange(
    state: QuestionSet,
    pool: OptionPool,
    name: str,
    old: QuestionOption,
    fits: Callable[[str], bool],
) -> bool:
    item = state.items[name]
    taken = {len(option.text) for option in item.shown if option is not old}
    # Avoid ties: equal lengths are a cue, too.
    new = pool.lend(item, old, lambda text: len(text) not in taken and fits(text))
    new = new or pool.lend(item, old, fits)
    if new is None:
        return False
    pool.take_back(old)
    state.items[name] = item.swap(old, new)
    state.exchanged += 1
    return True


def _drop(state: QuestionSet, name: str, reason: str) -> None:
    item = state.items.pop(name)
    slot = item.slot
    state.rejected.append(
        RejectedQuestion(slot.id, slot.meme, slot.dimension, "answer cues", reason, item.draft)
    )


def _shuffled(
    items: Iterable[AssembledQuestion], settings: QuestionSettings, what: str
) -> list[AssembledQuestion]:
    return sorted(items, key=lambda item: draw(2**60, settings.seed, what, item.id))
