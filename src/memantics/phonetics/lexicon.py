"""Words by their sound: given what is heard, the words that sound the same or nearly so.

All arrays: a word of n characters has one row in the table of length n, sorted by its syllables
packed into one integer, so that a search is a few binary searches and the memory stays small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from memantics.phonetics.sound import SyllableSound, list_sounds, measure_distance, phrase_sounds

MAX_WORD = 6
_BITS = 9
RARE_READING = 0.3  # what it costs to take a character in its second reading, per rank

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """The words of one length, sorted by key. ``codes`` and ``tones`` have one row per word."""

    keys: Ints
    codes: npt.NDArray[np.uint32]
    tones: npt.NDArray[np.uint8]
    common: Floats
    rare: Floats


@dataclass(frozen=True, slots=True, eq=False)
class HeardSyllable:
    """What is heard at one position: near syllables with their distances, tones, character."""

    ids: Ints
    distances: Floats
    tones: int
    code: int
    firmness: float


@dataclass(frozen=True, slots=True)
class Costs:
    """What it costs a word to differ from what was written, per character."""

    change: float
    tone: float
    sound: float
    common: float


@dataclass(frozen=True, slots=True)
class Match:
    """A word that may stand in a span. ``cost`` is what its sound and its changes cost."""

    word: str
    cost: float


class SoundLexicon:
    """An index of words by sound; ``common`` is the log10 probability of each word."""

    def __init__(self, words: Sequence[str], common: Sequence[float] | Floats) -> None:
        self._ids: dict[str, int] = {}
        self._near: dict[tuple[int, float], tuple[Ints, Floats]] = {}
        weights = np.asarray(common, dtype=np.float32)
        lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
        self._tables: dict[int, _Table] = {}
        for length in range(1, MAX_WORD + 1):
            chosen = np.flatnonzero(lengths == length)
            if len(chosen):
                some = [words[i] for i in chosen.tolist()]
                self._tables[length] = self._build(some, weights[chosen], length)
        self._prefixes = {depth: self._collect_prefixes(depth) for depth in range(1, MAX_WORD)}

    def _id(self, syllable: str) -> int:
        return self._ids.setdefault(syllable, len(self._ids) + 1)

    def _build(self, words: list[str], weights: Floats, length: int) -> _Table:
        codes = np.frombuffer("".join(words).encode("utf-32-le"), dtype=np.uint32)
        rows = codes.reshape(-1, length)
        unique, inverse = np.unique(rows, return_inverse=True)
        usual = [(list_sounds(chr(code)) or (None,))[0] for code in unique]
        ids = np.array([self._id(s.syllable) if s else 0 for s in usual])[inverse]
        tones = np.array([s.tone if s else 0 for s in usual], dtype=np.uint8)[inverse]
        ids, tones = ids.reshape(-1, length), tones.reshape(-1, length)
        rare = np.zeros(len(words), dtype=np.float32)
        if length == 1:
            more = list(_other_readings(words))
            where = np.array([i for i, _, _ in more], dtype=np.int64)
            ids = np.vstack([ids, [[self._id(s.syllable)] for _, s, _ in more]])
            tones = np.vstack([tones, np.array([[s.tone] for _, s, _ in more], dtype=np.uint8)])
            rare = np.concatenate([rare, np.array([r for _, _, r in more], dtype=np.float32)])
            rows = np.vstack([rows, rows[where]])
            weights = np.concatenate([weights, weights[where]])
        else:
            unusual = phrase_sounds()
            for i, word in enumerate(words):
                if word in unusual:
                    ids[i] = [self._id(s.syllable) for s in unusual[word]]
                    tones[i] = [s.tone for s in unusual[word]]
        keys = np.zeros(len(ids), dtype=np.int64)
        for column in ids.T:
            keys = (keys << _BITS) | column
        known: npt.NDArray[np.bool_] = np.all(ids > 0, axis=1)
        order = np.argsort(keys, kind="stable")
        order = order[known[order]]
        return _Table(keys[order], rows[order], tones[order], weights[order], rare[order])

    def _collect_prefixes(self, depth: int) -> Ints:
        parts = [
            np.unique(table.keys >> (_BITS * (length - depth)))
            for length, table in self._tables.items()
            if length > depth
        ]
        return np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)

    def hear(
        self, sounds: Mapping[SyllableSound, float], code: int, reach: float, firmness: float = 1.0
    ) -> HeardSyllable:
        """All syllables within ``reach`` of the given sounds (each with its own cost)."""
        best: dict[int, float] = {}
        tones = 0
        for sound, cost in sounds.items():
            tones |= 1 << sound.tone
            ids, distances = self._neighbours(sound.syllable, reach)
            for number, distance in zip(ids.tolist(), distances.tolist(), strict=True):
                best[number] = min(best.get(number, 9.0), distance + cost)
        return HeardSyllable(
            np.fromiter(best, dtype=np.int64, count=len(best)),
            np.fromiter(best.values(), dtype=np.float32, count=len(best)),
            tones,
            code,
            firmness,
        )

    @lru_cache(maxsize=2048)  # noqa: B019 -- a lexicon lives as long as the process
    def _neighbours(self, syllable: str, reach: float) -> tuple[Ints, Floats]:
        near = [(n, measure_distance(syllable, other)) for other, n in self._ids.items()]
        near = [(n, d) for n, d in near if d <= reach]
        return (
            np.array([n for n, _ in near], dtype=np.int64),
            np.array([d for _, d in near], dtype=np.float32),
        )

    def find(
        self, heard: Sequence[HeardSyllable], costs: Costs, reach: float, keep: int
    ) -> list[list[Match]]:
        """The best words for each span that starts at the first position, by length."""
        found: list[list[Match]] = []
        keys = np.zeros(1, dtype=np.int64)
        distances = np.zeros(1, dtype=np.float32)
        for depth, here in enumerate(heard[:MAX_WORD], 1):
            keys = ((keys << _BITS)[:, None] | here.ids[None, :]).ravel()
            distances = (distances[:, None] + here.distances[None, :]).ravel()
            inside = distances <= reach
            keys, distances = keys[inside], distances[inside]
            found.append(self._match(keys, distances, heard[:depth], costs, keep))
            if depth == MAX_WORD or not len(keys):
                break
            prefixes = self._prefixes[depth]
            if not len(prefixes):
                break
            spots = np.searchsorted(prefixes, keys).clip(max=len(prefixes) - 1)
            live = prefixes[spots] == keys
            keys, distances = keys[live], distances[live]
        return found

    def _match(
        self, keys: Ints, distances: Floats, heard: Sequence[HeardSyllable], costs: Costs, keep: int
    ) -> list[Match]:
        table = self._tables.get(len(heard))
        if table is None or not len(keys):
            return []
        left = np.searchsorted(table.keys, keys, side="left")
        counts = np.searchsorted(table.keys, keys, side="right") - left
        total = int(counts.sum())
        if not total:
            return []
        starts = np.repeat(left - (np.cumsum(counts) - counts), counts)
        rows = starts + np.arange(total)
        written = np.array([h.code for h in heard], dtype=np.uint32)
        changed = table.codes[rows] != written
        allowed = np.array([h.tones for h in heard], dtype=np.int64)
        off = changed & ((allowed >> table.tones[rows]) & 1 == 0)
        sounds = np.repeat(distances, counts) + table.rare[rows] * changed.any(axis=1)
        sounds[~changed.any(axis=1)] = 0.0
        firmness = np.array([costs.change * h.firmness for h in heard], dtype=np.float32)
        cost = changed @ firmness + costs.tone * off.sum(axis=1) + costs.sound * sounds
        value = costs.common * table.common[rows] - cost
        if total > keep:
            best = np.argpartition(-value, keep)[:keep]
            rows, cost = rows[best], cost[best]
        matches: dict[str, float] = {}
        for codes, price in zip(table.codes[rows], cost.tolist(), strict=True):
            word = codes.tobytes().decode("utf-32-le")
            matches[word] = min(price, matches.get(word, price))
        return [Match(word, price) for word, price in matches.items()]


def _other_readings(words: Sequence[str]) -> list[tuple[int, SyllableSound, float]]:
    return [
        (i, sound, RARE_READING * rank)
        for i, word in enumerate(words)
        for rank, sound in enumerate(list_sounds(word))
        if rank
    ]
