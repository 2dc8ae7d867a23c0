"""The best constant text: what ROUGE-L gives to a reply that looks at no meme."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memantics.metrics.interval import Floats
from memantics.metrics.text import Stem, join_tokens, rouge_l, rouge_tokens

_CANDIDATES = 120
_BEAM = 4
_LONGEST = 16
_MOST = 2_000

Ints = NDArray[np.int32]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Constant:
    """A text, and its mean ROUGE-L F1 over memes (best reference of each)."""

    text: str
    value: float


@dataclass(frozen=True, slots=True)
class _Runs:
    """Entries sorted by a key, so that the maximum of each key is one ``reduceat``."""

    order: Places
    starts: Places
    keys: Places

    @classmethod
    def sort(cls, keys: Places) -> _Runs:
        order = np.argsort(keys, kind="stable")
        different, starts = np.unique(keys[order], return_index=True)
        return cls(order, starts, different)

    def maxima(self, values: NDArray[Any]) -> NDArray[Any]:
        found: NDArray[Any] = np.maximum.reduceat(values[self.order], self.starts)
        return found


@dataclass(frozen=True, slots=True)
class _References:
    """All references as numbers: one row each, padded with -1; ``starts`` is each meme's first.

    ``places`` are those of the words that are offered; ``by_row`` joins the same word in one
    reference, ``by_meme`` in the references of one meme.
    """

    words: Ints
    lengths: Ints
    starts: Places
    places: Places
    by_row: _Runs
    by_meme: _Runs


@dataclass(frozen=True, slots=True)
class _Draft:
    """A text so far."""

    words: tuple[int, ...]
    value: float


def correct_for_constant(
    values: Sequence[float | None], elsewhere: Sequence[float | None]
) -> list[float | None]:
    """Values on a scale where every constant reply gets 0 on average and a perfect one 1.

    ``elsewhere`` is what each reply gets on other memes, as a constant would; None: not scored.

    >>> correct_for_constant([0.75, 0.5, None], [0.5, 0.5, None])
    [0.5, 0.0, None]
    """
    known = [value for value in elsewhere if value is not None]
    room = 1 - math.fsum(known) / len(known) if known else 0.0
    return [
        None if value is None or other is None or room < 1e-9 else (value - other) / room
        for value, other in zip(values, elsewhere, strict=True)
    ]


def find_best_constant(
    references: Sequence[Sequence[str]], stem: Stem | None = None
) -> Constant | None:
    """Grow the text whose mean best-reference ROUGE-L F1 is highest, word by word (beam search).

    It is fitted to the very references it is scored on, so it shows what a reply can reach
    without any understanding; a longer search could only find a better one. None without
    references. Beyond ``_MOST`` memes it is grown on a part of them and its mean is over all.

    >>> found = find_best_constant([["the meme mocks me"], ["the meme mocks me too"]])
    >>> found.text, round(found.value, 3)
    ('the meme mocks me', 0.944)
    """
    asked = [texts for texts in references if texts]
    found = _search(_thin_out(asked), stem)
    if found is None or len(asked) <= _MOST:
        return found
    best = [max(rouge_l(found.text, text, stem).f1 for text in texts) for texts in asked]
    return Constant(found.text, math.fsum(best) / len(best))


def find_constant_text(references: Sequence[Sequence[str]], stem: Stem | None = None) -> str | None:
    """The text alone: over very many references, its mean takes longer than the search."""
    found = _search(_thin_out([texts for texts in references if texts]), stem)
    return found.text if found else None


def _thin_out(references: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """At most so many memes, evenly spaced: more would not change the text, only take longer."""
    return references[:: math.ceil(len(references) / _MOST)] if references else references


def _search(references: Sequence[Sequence[str]], stem: Stem | None) -> Constant | None:
    tokens = [[rouge_tokens(text, stem) for text in texts] for texts in references]
    if not any(words for texts in tokens for words in texts):
        return None
    counts = Counter(word for texts in tokens for words in texts for word in set(words))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    offered = min(_CANDIDATES, len(ranked))
    held = _number(tokens, {word: place for place, word in enumerate(ranked)}, offered)
    top = _Draft((), 0.0)
    beam = [top]
    for _ in range(_LONGEST):
        grown = {draft for old in beam for draft in _grow(old, held, offered)}
        beam = sorted(grown, key=lambda draft: (-draft.value, draft.words))[:_BEAM]
        if beam[0].value <= top.value:
            break
        top = beam[0]
    return Constant(_spell([ranked[word] for word in top.words], references, stem), top.value)


def _number(
    tokens: Sequence[Sequence[Sequence[str]]], numbers: dict[str, int], offered: int
) -> _References:
    rows = [words for texts in tokens for words in texts]
    words = np.full((len(rows), max(map(len, rows))), -1, np.int32)
    for row, names in zip(words, rows, strict=True):
        row[: len(names)] = [numbers[word] for word in names]
    starts = np.cumsum([0, *(len(texts) for texts in tokens[:-1])])
    lengths = np.array([len(names) for names in rows], np.int32)
    places = np.flatnonzero((words >= 0) & (words < offered))
    by_row = _Runs.sort(places // words.shape[1] * offered + words.ravel()[places])
    memes = np.repeat(np.arange(len(tokens)), [len(texts) for texts in tokens])
    by_meme = _Runs.sort(memes[by_row.keys // offered] * offered + by_row.keys % offered)
    return _References(words, lengths, starts, places, by_row, by_meme)


def _grow(draft: _Draft, held: _References, offered: int) -> Iterator[_Draft]:
    """The best words to put in at each place.

    A word that stands at j of a reference joins what the words before it share with the part
    before j and what the words after it share with the part behind j.
    """
    before = _tables(draft.words, held.words)
    after = [table[:, ::-1] for table in _tables(draft.words[::-1], held.words[:, ::-1])]
    whole = before[-1][:, -1]
    # 2 PR / (P + R) with P = common / own length and R = common / reference length.
    lengths = len(draft.words) + 1 + held.lengths
    plain = 2 * whole / lengths
    rows, found = np.divmod(held.by_row.keys, offered)
    for place in range(len(draft.words) + 1):
        joined = before[place][:, :-1] + 1 + after[len(draft.words) - place][:, 1:]
        common = np.maximum(held.by_row.maxima(joined.ravel()[held.places]), whole[rows])
        f1 = 2 * common / lengths[rows]
        likely = _find_likely(plain, f1, held, offered)
        table = np.repeat(plain[:, None], max(2, len(likely)), axis=1)
        columns = np.full(offered, -1)
        columns[likely] = np.arange(len(likely))
        kept = columns[found] >= 0
        table[rows[kept], columns[found[kept]]] = f1[kept]
        values = np.maximum.reduceat(table, held.starts, axis=0).mean(axis=0)[: len(likely)]
        for best in np.argsort(-values, kind="stable")[:_BEAM].tolist():
            words = (*draft.words[:place], int(likely[best]), *draft.words[place:])
            yield _Draft(words, float(values[best]))


def _find_likely(plain: Floats, f1: Floats, held: _References, offered: int) -> Places:
    """The words that may be among the best at a place: only they are worth their exact mean.

    A word gains, over the draft without it, only at memes that have it in a reference.
    """
    base = np.maximum.reduceat(plain, held.starts)
    memes, words = np.divmod(held.by_meme.keys, offered)
    gains = np.maximum(held.by_meme.maxima(f1) - base[memes], 0.0)
    total = np.bincount(words, gains, minlength=offered)
    bound = np.sort(total)[-min(_BEAM, offered)]
    return np.flatnonzero(total >= bound - 1e-9 * len(base))


def _tables(words: Sequence[int], references: Ints) -> list[Ints]:
    """Length of the common subsequence of each opening of both, for all references at once."""
    table = np.zeros((len(references), references.shape[1] + 1), np.int32)
    tables = [table]
    for word in words:
        grown = table.copy()
        grown[:, 1:] = np.maximum(table[:, 1:], table[:, :-1] + (references == word))
        table = np.maximum.accumulate(grown, axis=1)
        tables.append(table)
    return tables


def _spell(words: Sequence[str], references: Sequence[Sequence[str]], stem: Stem | None) -> str:
    """Words as people write them: a stem gets its commonest word back."""
    if stem is None:
        return join_tokens(words)
    spelled: dict[str, Counter[str]] = {}
    for text in (text for texts in references for text in texts):
        for plain, name in zip(rouge_tokens(text), rouge_tokens(text, stem), strict=True):
            spelled.setdefault(name, Counter())[plain] += 1
    return join_tokens([spelled[word].most_common(1)[0][0] for word in words])
