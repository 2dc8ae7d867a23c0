"""Baselines without the meme: a solver trained on the wording, and attempts by a language model.

The solver is trained on the set itself, with group-disjoint folds by meme, and never sees a meme.
Chance level is one in four. A model is tried in three ways. ``blind`` asks twice from the wording
alone, with two option orders; a correct answer in both is unlikely by chance. ``known`` asks once
with the known facts but without the meme; a wrong answer means that the facts contradict the
correct option. ``seen`` asks once with the meme alone, and shows whether the facts were needed. One
call contains several questions: about different memes for ``blind``, about one meme for the others.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memantics.benchmarks.parsing import parse_letter
from memantics.construction.questions.asking import (
    LETTERS,
    Posed,
    QuestionSubject,
    ask_blind,
    ask_known,
    ask_seen,
)
from memantics.construction.questions.assembly import AssembledQuestion
from memantics.construction.questions.critic import alike, content, tokens
from memantics.construction.questions.records import QuestionSettings, draw
from memantics.core.model import Asker, Step
from memantics.core.records import Closed, Request
from memantics.core.reply import read_object
from memantics.core.task import Unparsed
from memantics.understanding.extraction.chain import in_order

CHANCE = 0.25


def fair_chance(items: Sequence[AssembledQuestion]) -> float:
    """Return the accuracy of a guess that knows only how often "none" is correct.

    One in four if "none" is correct in a quarter of the questions, one in three if it never is.
    """
    denied = sum(item.correct is None for item in items) / len(items) if items else CHANCE
    return max(denied, (1 - denied) / 3)


_FOLDS = 5
# With fewer items, the confidence interval around chance level exceeds the tolerance.
FEWEST = 100
_STEPS = 60
_RATE = 0.1
OptionFeatures = dict[str, float]
Numbers = NDArray[np.int64]
OptionOrder = tuple[int, ...]
PoseQuestion = Callable[[Posed, QuestionSettings, QuestionSubject], Request]


@dataclass(frozen=True, slots=True)
class SolverResult:
    """Store solver results per item: proportion of repeats solved and mean margin.

    ``scores`` are the probabilities of the three shown options and of "none", per item.
    """

    accuracy: float
    right: NDArray[np.float64]
    margins: NDArray[np.float64]
    scores: NDArray[np.float64]


def solve_blindly(
    items: Sequence[AssembledQuestion], seed: int = 0, repeats: int = 1
) -> SolverResult | None:
    """Cross-validate the solver on items; None if there are too few."""
    memes = {item.slot.meme for item in items}
    if len(items) < FEWEST or len(memes) < _FOLDS:
        return None
    rows = _number([describe(item) for item in items])
    keys = np.array([0 if item.correct is not None else 3 for item in items])
    scores = np.zeros((repeats, len(items), 4))
    for repeat in range(repeats):
        folds = np.array([draw(_FOLDS, seed, repeat, item.slot.meme) for item in items])
        for fold in np.unique(folds):
            held = folds == fold
            weights = _learn(rows.of(~held), keys[~held])
            scores[repeat, held] = _softmax(rows.of(held).weigh(weights))
    place = np.broadcast_to(keys[None, :, None], (repeats, len(items), 1))
    key_scores = np.take_along_axis(scores, place, axis=2)[:, :, 0]
    rest = scores.copy()
    np.put_along_axis(rest, place, -1.0, axis=2)
    margins = key_scores - rest.max(axis=2)
    # A tie counts as half a correct answer.
    right = np.where(margins > 1e-9, 1.0, np.where(margins > -1e-9, 0.5, 0.0))
    return SolverResult(
        float(right.mean()), right.mean(axis=0), margins.mean(axis=0), scores.mean(0)
    )


class _Rows(NamedTuple):
    """Hold option features of items: four consecutive rows per item.

    ``sizes`` is the number of features per row; no row is empty.
    """

    names: Numbers
    values: NDArray[np.float64]
    sizes: Numbers
    known: int

    def of(self, items: NDArray[np.bool_]) -> _Rows:
        """Return the rows of the selected items."""
        rows = np.repeat(items, 4)
        kept = np.repeat(rows, self.sizes)
        return _Rows(self.names[kept], self.values[kept], self.sizes[rows], self.known)

    def weigh(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted sum of each row, items x options."""
        starts = np.cumsum(self.sizes) - self.sizes
        return np.add.reduceat(weights[self.names] * self.values, starts).reshape(-1, 4)


def _number(items: Sequence[Sequence[OptionFeatures]]) -> _Rows:
    """Encode feature names as integers."""
    known: dict[str, int] = {}
    rows = [row for item in items for row in item]
    names = [known.setdefault(name, len(known)) for row in rows for name in row]
    values = [value for row in rows for value in row.values()]
    sizes = np.array([len(row) for row in rows])
    return _Rows(np.array(names), np.array(values), sizes, len(known))


def _learn(rows: _Rows, keys: Numbers) -> NDArray[np.float64]:
    """Fit a linear option score whose softmax within an item matches the answers (Adam, L2)."""
    weights, speed, scale = (np.zeros(rows.known) for _ in range(3))
    truth = np.eye(4)[keys]
    for step in range(1, _STEPS + 1):
        errors = np.repeat(_softmax(rows.weigh(weights)) - truth, rows.sizes)
        slope = np.bincount(rows.names, errors * rows.values, rows.known) + weights
        speed = 0.9 * speed + 0.1 * slope
        scale = 0.99 * scale + 0.01 * slope**2
        weights -= _RATE * (speed / (1 - 0.9**step)) / (np.sqrt(scale / (1 - 0.99**step)) + 1e-8)
    return weights


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def describe(item: AssembledQuestion) -> tuple[OptionFeatures, ...]:
    """Return features of the four options, "none" last; none of them describes the meme."""
    return _describe(item.draft.question, tuple(option.text for option in item.shown))


# Cached: the removal of answer cues asks for the features of unchanged items many times.
@lru_cache(maxsize=8_192)
def _describe(question: str, texts: tuple[str, ...]) -> tuple[OptionFeatures, ...]:
    return tuple(_list_features(content(question), texts))


def _list_features(asked: frozenset[str], texts: Sequence[str]) -> Iterator[OptionFeatures]:
    lengths = [len(text) for text in texts]
    mean = sum(lengths) / 3
    for place, text in enumerate(texts):
        others = [len_ for n, len_ in enumerate(lengths) if n != place]
        rest = [content(other) for n, other in enumerate(texts) if n != place]
        yield {
            **_words("w", text),
            "length": lengths[place] / mean - 1 if mean else 0.0,
            "long": float(lengths[place] > max(others)),
            "short": float(lengths[place] < min(others)),
            "asked": _overlap(content(text), asked),
            "alike": max(_overlap(content(text), other) for other in rest),
            "comma": float("," in text or "，" in text),
            "capital": float(text[:1].isupper()),
            "stop": float(text.endswith((".", "。"))),
            "size": min(2.0, lengths[place] / 40),
            "option": 1.0,
        }
    spread = (max(lengths) - min(lengths)) / mean if mean else 0.0
    yield {
        **{name: 1.0 for text in texts for name in _words("n", text)},
        "none": 1.0,
        "none size": min(2.0, mean / 40),
        "none spread": min(2.0, spread),
        "none asked": max(_overlap(content(text), asked) for text in texts),
    }


def _words(kind: str, text: str) -> Mapping[str, float]:
    found = tokens(text)
    if not found:
        return {}
    named = {f"{kind}:{word}": 1.0 for word in found}
    return named | {f"{kind}^{found[0]}": 1.0, f"{kind}${found[-1]}": 1.0}


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one) if one else 0.0


_WINDOW = 256


@dataclass(frozen=True, slots=True)
class BlindTrial:
    """Store a model's answers without the meme or the known facts; None: unreadable reply."""

    blind: tuple[bool | None, bool | None]
    known: bool | None = None
    seen: bool | None = None

    @property
    def solved_blindly(self) -> bool:
        """Whether the wording alone gave the correct option, in both option orders."""
        return self.blind == (True, True)

    @property
    def contradicted(self) -> bool:
        """Whether the known facts lead to an option other than the correct one."""
        return self.known is False


class SaidLetters(Closed):
    """Schema of the letters for several questions, in order."""

    answers: list[str]


def read_letter(text: str, options: Sequence[str] = ("",) * len(LETTERS)) -> str:
    r"""Return the letter that a reply chooses, in any form that runs accept.

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
    """Let a model try to answer every item, several per call.

    ``blind_only`` omits the tries with the facts or the image; it is for items whose options have
    changed.
    """
    trials = await try_blind(asker, items, subjects, settings)
    if blind_only:
        return trials
    # An item answered blindly is rejected in any case, so the other trials are skipped.
    rest = [item for item in items if not trials[item.id].solved_blindly]
    return trials | await try_facts(asker, rest, trials, subjects, settings)


async def try_blind(
    asker: Asker,
    items: Sequence[AssembledQuestion],
    subjects: Mapping[str, QuestionSubject],
    settings: QuestionSettings,
) -> dict[str, BlindTrial]:
    """Let a model answer every item twice from the wording alone, in batches of different memes."""
    orders = {item.id: draw_orders(item, settings) for item in items}
    found: list[dict[str, bool | None]] = []
    for place, way in enumerate(("blind-1", "blind-2")):
        groups = mix(items, settings.at_once, (settings.seed, way))
        shown = {item.id: orders[item.id][place] for item in items}
        jobs = (_answer(asker, few, subjects, settings, (way, shown, ask_blind)) for few in groups)
        found.append({n: right async for said in in_order(jobs, _WINDOW) for n, right in said})
    once, twice = found
    return {item.id: BlindTrial((once[item.id], twice[item.id])) for item in items}


async def try_facts(
    asker: Asker,
    items: Sequence[AssembledQuestion],
    trials: Mapping[str, BlindTrial],
    subjects: Mapping[str, QuestionSubject],
    settings: QuestionSettings,
) -> dict[str, BlindTrial]:
    """Let a model answer every item from the known facts alone, then from the image alone."""
    orders = {item.id: draw_orders(item, settings) for item in items}
    found: list[dict[str, bool | None]] = []
    for place, (way, asked) in enumerate((("known", ask_known), ("seen", ask_seen))):
        shown = {item.id: orders[item.id][place] for item in items}
        jobs = (
            _answer(asker, few, subjects, settings, (way, shown, asked))
            for few in _by_meme(items, settings)
        )
        found.append({n: right async for said in in_order(jobs, _WINDOW) for n, right in said})
    known, seen = found
    return {
        item.id: replace(trials[item.id], known=known[item.id], seen=seen[item.id])
        for item in items
    }


def mix(
    items: Sequence[AssembledQuestion], most: int, seed: object
) -> list[list[AssembledQuestion]]:
    """Return groups for blind calls, mixed over memes and dimensions.

    A group has one question of a meme at most, and no key that another question of the group has
    among its options: one question would hint at the answer of another.
    """
    groups: list[list[AssembledQuestion]] = []
    for item in sorted(items, key=lambda item: draw(2**60, seed, item.id)):
        free = [
            group
            for group in groups
            if len(group) < most and not any(_hints(item, other) for other in group)
        ]
        if not free:
            groups.append([item])
            continue
        dimension = item.slot.dimension
        best = min(free, key=lambda g: (sum(o.slot.dimension == dimension for o in g), len(g)))
        best.append(item)
    return groups


def _hints(one: AssembledQuestion, other: AssembledQuestion) -> bool:
    """Return whether one of two questions may reveal the answer of the other."""
    if one.slot.meme == other.slot.meme:
        return True
    return any(
        alike(first.draft.correct, option.text)
        for first, second in ((one, other), (other, one))
        for option in second.shown
    )


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


def draw_orders(
    item: AssembledQuestion, settings: QuestionSettings
) -> tuple[OptionOrder, OptionOrder]:
    """Return two option orders with the correct option at different positions."""
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
    how: tuple[str, Mapping[str, OptionOrder], PoseQuestion],
) -> list[tuple[str, bool | None]]:
    """Return per item whether the correct option was found; None if the reply is unreadable."""
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
    if (
        taken.value is None and len(items) > 1
    ):  # a question with injected instructions must not spoil the others
        alone = [await _answer(asker, [item], subjects, settings, how) for item in items]
        return [found for few in alone for found in few]
    if taken.value is None:
        return [(items[0].id, None)]
    return [
        (item.id, orders[item.id][LETTERS.index(letter)] == (0 if item.correct is not None else 3))
        for item, letter in zip(items, taken.value, strict=True)
    ]
