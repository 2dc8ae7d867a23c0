"""Beam search for word sequences that are homophones of the caption."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import NamedTuple

import numpy as np

from memantics.understanding.phonetics.caption import (
    LOANS,
    SpokenCaption,
    find_phonemes,
    speak_phonemes,
)
from memantics.understanding.phonetics.language import UNKNOWN, LanguageModel, State
from memantics.understanding.phonetics.pinyin import (
    KNOWN_SYLLABLES,
    MAX_WORD,
    Costs,
    NearSyllables,
    PinyinLexicon,
    measure_distance,
)
from memantics.understanding.phonetics.senses import rate_drawable

REACH = 1.3  # maximum sound distance of a single syllable
SPAN_REACH = 1.7  # maximum sound distance of a word
_COSTS = Costs(change=1.4, tone=0.25, sound=3.0, common=1.0)
_ARCS, _BEAM = 40, 24
_FOREIGN = -4.5  # log10 score of a word that the caption writes in letters or digits
_LOAN = -5.5
_LOAN_REACH = 0.5
_LISTED = -6.5  # log10 score of a dictionary word without a language-model entry
_BOOST, _WIDTH = 2.0, 5.0


@dataclass(frozen=True, slots=True)
class PathWord:
    """A word of a reading over syllables ``start`` to ``end``; ``kept`` if written this way."""

    word: str
    start: int
    end: int
    kept: bool


@dataclass(frozen=True, slots=True)
class Path:
    """A complete homophone reading: text, words, language-model score and total score."""

    text: str
    pieces: tuple[PathWord, ...]
    common: float
    total: float


class _Partial(NamedTuple):
    """A partial reading as a linked list of tuples, since a search creates millions of them."""

    total: float
    common: float
    state: State
    piece: PathWord | None
    before: _Partial | None

    def pieces(self) -> tuple[PathWord, ...]:
        """Return the words of the partial reading in order."""
        chain: list[PathWord] = []
        here: _Partial | None = self
        while here is not None and here.piece is not None:
            chain.append(here.piece)
            here = here.before
        return tuple(reversed(chain))


class _Front:
    """The partial readings that end at one position, with their best total score."""

    __slots__ = ("best", "entries")

    def __init__(self) -> None:
        self.best = -math.inf
        self.entries: dict[str, _Partial] = {}

    def rank(self, count: int) -> list[tuple[str, _Partial]]:
        """Return the best partial readings, best first."""
        return nlargest(count, self.entries.items(), key=lambda entry: entry[1].total)


class Lattice:
    """A language model with its pronunciation index; ``listed`` are further dictionary words."""

    def __init__(self, model: LanguageModel, listed: Iterable[str] = ()) -> None:
        self.model = model
        more = [word for word in listed if model.weigh(word) <= UNKNOWN]
        common = np.concatenate([model.common, np.full(len(more), _LISTED, np.float32)])
        words = [*model.words, *more]
        self.lexicon = PinyinLexicon(words, common)
        self._loans = list(_speak_loans())

    def rate_firmness(self, character: str) -> float:
        """Return the cost of replacing a character: high if frequent, low if drawable."""
        if not character:
            return 0.5
        everyday = max(0.2, 1 + 0.3 * (self.model.weigh(character) + 4.0))
        return everyday * (1 - 0.35 * rate_drawable(character))

    def list_near(self, script: SpokenCaption) -> list[NearSyllables | None]:
        """List similar-sounding syllables for each syllable; None for unpronounced tokens."""
        return [
            self.lexicon.list_near(
                slot.sounds,
                ord(slot.simple) if slot.simple else 0,
                REACH,
                self.rate_firmness(slot.simple),
                slot.others,
            )
            if slot.sounds
            else None
            for slot in script.slots
        ]

    def search(self, script: SpokenCaption, limit: int) -> list[Path]:
        """Return the best homophone readings; they may include the written caption itself."""
        syllables = self.list_near(script)
        count = len(syllables)
        starts = _token_starts(script)
        # Long captions get a narrower beam, which bounds the time per caption.
        beam = max(6, min(_BEAM, 300 // max(count, 1)))
        fronts = [_Front() for _ in range(count + 1)]
        fronts[0].entries[""] = _Partial(0.0, 0.0, self.model.begin(), None, None)
        for i in range(count):
            ranked = fronts[i].rank(beam)
            fronts[i] = _Front()
            if not ranked:
                continue
            arcs = list(self._arcs(script, syllables, i, starts))
            for piece, cost in arcs:
                self._extend(ranked, piece, cost, fronts[piece.end], syllables[i] is None)
        ends = [
            (p.total + last, text, p.common + last, p)
            for text, p in fronts[count].rank(2 * limit)
            for last in (self.model.end(p.state),)
        ]
        best = nlargest(limit, ends, key=lambda end: end[0])
        return [Path(text, p.pieces(), common, total) for total, text, common, p in best]

    def read_plainly(self, script: SpokenCaption) -> Path:
        """Segment the written caption into the most probable words."""
        starts = _token_starts(script)
        fronts = [_Front() for _ in range(len(script.slots) + 1)]
        fronts[0].entries[""] = _Partial(0.0, 0.0, self.model.begin(), None, None)
        for i, end in starts.items():
            ranked = fronts[i].rank(1)
            slot = script.slots[i]
            word = slot.simple or script.tokens[slot.token].text
            self._extend(ranked, PathWord(word, i, end, True), 0.0, fronts[end], not slot.sounds)
            word = ""
            for later in script.slots[i : i + MAX_WORD]:
                word += later.simple
                if not later.simple or (len(word) > 1 and self.model.weigh(word) <= UNKNOWN):
                    if not later.simple:
                        break
                    continue
                if len(word) > 1:
                    piece = PathWord(word, i, i + len(word), False)
                    self._extend(ranked, piece, 0.0, fronts[piece.end], False)
        ((text, best),) = fronts[-1].rank(1)
        last = self.model.end(best.state)
        return Path(text, best.pieces(), best.common + last, best.total + last)

    def _extend(
        self,
        ranked: Sequence[tuple[str, _Partial]],
        piece: PathWord,
        cost: float,
        front: _Front,
        silent: bool,
    ) -> None:
        step, word = self.model.step, piece.word
        foreign = word[0] < "\u3400"  # the token consists of letters, digits or signs
        fixed = 0.0 if silent else _FOREIGN if piece.kept else _LOAN
        # Upper bound of a word's score; readings far below the best are dropped.
        hope = 0.0 if silent or foreign else min(0.0, self.model.weigh(word) + _BOOST)
        for text, partial in ranked:
            if partial.total - cost + hope < front.best - _WIDTH:
                break
            if silent or foreign:
                score, state = fixed, self.model.begin()
            else:
                score, state = step(partial.state, word)
            total = partial.total + score - cost
            longer = text + word
            old = front.entries.get(longer)
            if old is None or old.total < total:
                front.entries[longer] = _Partial(
                    total, partial.common + score, state, piece, partial
                )
                front.best = max(front.best, total)

    def _arcs(
        self,
        script: SpokenCaption,
        syllables: Sequence[NearSyllables | None],
        i: int,
        starts: dict[int, int],
    ) -> Iterable[tuple[PathWord, float]]:
        if i in starts:
            token = script.tokens[script.slots[i].token]
            word = script.slots[i].simple or token.text
            if len(word) != 1 or syllables[i] is None or starts[i] > i + 1 or not word.isalpha():
                yield PathWord(token.text, i, starts[i], True), 0.0
            else:
                yield PathWord(word, i, i + 1, True), 0.0
        if syllables[i] is None:
            return
        run: list[NearSyllables] = []
        for here in syllables[i:]:
            if here is None:
                break
            run.append(here)
        for length, matches in enumerate(self.lexicon.find(run, _COSTS, SPAN_REACH, _ARCS), 1):
            for match in matches:
                yield PathWord(match.word, i, i + length, False), match.cost
        yield from self._loan_arcs(script, i, len(run))

    def _loan_arcs(
        self, script: SpokenCaption, i: int, room: int
    ) -> Iterable[tuple[PathWord, float]]:
        for word, syllables in self._loans:
            if len(syllables) > room:
                continue
            distance = 0.0
            for offset, options in enumerate(syllables):
                slot = script.slots[i + offset]
                distance += min(
                    cost + measure_distance(sound.syllable, option)
                    for sound, cost in slot.sounds.items()
                    for option in options
                )
                if distance > _LOAN_REACH or not slot.simple:
                    break
            else:
                change = _COSTS.change * len(syllables) + _COSTS.sound * distance
                yield PathWord(word, i, i + len(syllables), False), change


def _token_starts(script: SpokenCaption) -> dict[int, int]:
    """Map the first syllable of each token to the syllable after its last."""
    starts: dict[int, int] = {}
    first = 0
    for i in range(1, len(script.slots) + 1):
        if i == len(script.slots) or script.slots[i].token != script.slots[first].token:
            starts[first] = i
            first = i
    return starts


def _speak_loans() -> Iterable[tuple[str, tuple[frozenset[str], ...]]]:
    for loan in LOANS:
        parts = [find_phonemes(word) for word in loan.split()]
        if all(parts):
            syllables = [s for part in parts for s in speak_phonemes(part, KNOWN_SYLLABLES)]
            if len(syllables) > 1:
                yield loan, tuple(syllables)
