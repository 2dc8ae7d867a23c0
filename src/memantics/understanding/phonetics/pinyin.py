"""Mandarin syllables, distances between them, and an index of words by pronunciation.

A phonetic distance of 0 means the same toneless syllable. About 0.4 means sounds that many speakers
do not distinguish (n/l, zh/z, in/ing). About 1 means one clearly different part. The index stores
the words of each length in arrays, sorted by their syllables packed into one integer. A search
needs a few binary searches and little memory.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memantics.core.data import toml_beside
from memantics.core.errors import need_offline
from memantics.metrics.rounding import Ints

_TONE_MARKS = {"\u0304": 1, "\u0301": 2, "\u030c": 3, "\u0300": 4}
_MAX_READINGS = 4
MAX_WORD = 6
_BITS = 9
RARE_READING = 0.3  # cost of a less usual pronunciation of a character, multiplied by its rank
Distances = npt.NDArray[np.float32]


def parse_table(text: str) -> dict[str, str]:
    """Parse pairs such as ``f=ai+fu``; a plus sign becomes a space in the value.

    >>> parse_table("a=ei f=ai+fu")
    {'a': 'ei', 'f': 'ai fu'}
    """
    pairs = (entry.partition("=") for entry in text.split())
    return {key: value.replace("+", " ") for key, _, value in pairs}


_INITIALS = (
    *("zh", "ch", "sh", "b", "p", "m", "f", "d", "t", "n", "l", "g", "k", "h"),
    *("j", "q", "x", "r", "z", "c", "s"),
)
# Full forms of syllables without an initial consonant and of shortened spellings.
_WHOLE = parse_table(
    "yi=i ya=ia yo=io ye=ie yao=iao you=iou yan=ian yang=iang yin=in ying=ing yong=iong yu=v "
    "yue=ve yuan=van yun=vn wu=u wa=ua wo=uo wai=uai wei=uei wan=uan wen=uen wang=uang weng=ueng"
)
_FULL = {"ui": "uei", "un": "uen", "iu": "iou"}
_BUZZ = frozenset(("zh", "ch", "sh", "r", "z", "c", "s"))

# Initials that dialects or fast speech merge, and similar initials.
_INITIAL_PAIRS = {
    **dict.fromkeys(("z zh", "c ch", "s sh"), 0.35),
    **dict.fromkeys(("l n", "f h"), 0.45),
    **dict.fromkeys(("l r",), 0.7),
    **dict.fromkeys(("b p", "d t", "g k", "j q", "ch zh", "c z"), 0.8),
    **dict.fromkeys(("j zh", "ch q", "sh x", "j z", "c q", "s x", "h k", "g h"), 0.8),
}
_CODA_PAIRS = {" n": 0.8, " ng": 0.9, "n ng": 0.35, "i u": 0.9, " i": 0.7, " u": 0.7, " r": 0.4}
_VOWEL_PAIRS = {"a e": 0.6, "e o": 0.5, "a o": 0.6, "e i": 0.6, "i v": 0.5, "i z": 0.5, "e z": 0.7}
_OTHER = 1.5
_VOWEL, _CODA, _MEDIAL = 0.9, 0.9, 0.6

KNOWN_SYLLABLES = frozenset(
    initial + final
    for initial, finals in toml_beside(__file__, "syllables.toml").items()
    for final in finals.split()
)
"""All toneless syllables of Mandarin, ü as v."""

MERGED = 0.5
"""Parts with at most this phonetic distance count as merged, not as different."""


class Syllable(NamedTuple):
    """A toneless syllable split into parts: ``zhuang`` is zh + u + a + ng."""

    initial: str
    medial: str
    vowel: str
    coda: str


@lru_cache(maxsize=2048)
def parse_syllable(text: str) -> Syllable:
    """Split a toneless syllable written in pinyin (ü as v).

    >>> parse_syllable("zhuang")
    Syllable(initial='zh', medial='u', vowel='a', coda='ng')
    >>> parse_syllable("yu") == parse_syllable("v"), parse_syllable("shi").vowel
    (True, 'z')
    """
    initial = "" if text in _WHOLE else next((i for i in _INITIALS if text.startswith(i)), "")
    final = _WHOLE.get(text, text[len(initial) :])
    final = _FULL.get(final, final)
    if initial in ("j", "q", "x") and final.startswith("u"):
        final = "v" + final[1:]
    if initial in _BUZZ and final == "i":
        return Syllable(initial, "", "z", "")
    coda = next((c for c in ("ng", "n", "r") if final.endswith(c)), "")
    body = final[: len(final) - len(coda)]
    if len(body) > 1 and body[-1] in "iuo" and body[-2] in "aeo":
        body, coda = body[:-1], "u" if body[-1] == "o" else body[-1]
    if body == "o" and coda == "ng":
        return Syllable(initial, "u", "e", "ng")
    if body == "io" and coda == "ng":
        return Syllable(initial, "v", "e", "ng")
    medial, vowel = (body[0], body[1:]) if len(body) > 1 else ("", body)
    return Syllable(initial, medial, vowel, coda)


def _pair(table: dict[str, float], first: str, second: str, other: float) -> float:
    if first == second:
        return 0.0
    return table.get(" ".join(sorted((first, second))), other)


@lru_cache(maxsize=1 << 18)
def measure_distance(first: str, second: str) -> float:
    """Compute the phonetic distance of two toneless syllables.

    >>> measure_distance("zheng", "zhen"), measure_distance("li", "ni"), measure_distance("a", "a")
    (0.35, 0.45, 0.0)
    >>> measure_distance("zheng", "ma") > 2
    True
    """
    if first == second:
        return 0.0
    a, b = parse_syllable(first), parse_syllable(second)
    initial = _pair(_INITIAL_PAIRS, a.initial, b.initial, _OTHER)
    medial = _MEDIAL if a.medial != b.medial else 0.0
    if {a.initial, b.initial} == {"f", "h"} and {a.medial, b.medial} == {"", "u"}:
        medial = 0.0  # "hua" and "fa" count as one merger, not as two differences
    vowel = _pair(_VOWEL_PAIRS, a.vowel, b.vowel, _VOWEL)
    coda = _pair(_CODA_PAIRS, a.coda, b.coda, _CODA)
    return round(initial + medial + vowel + coda, 3)


def describe_difference(first: str, second: str) -> str:
    """Name the differing parts of two syllables, for example "n/l merged".

    >>> describe_difference("zheng", "zhen"), describe_difference("hua", "fa")
    ('eng/en merged', 'hua/fa merged')
    >>> describe_difference("gui", "guai"), describe_difference("si", "si")
    ('ui/uai near', '')
    """
    if first == second:
        return ""
    a, b = parse_syllable(first), parse_syllable(second)
    head_a, head_b = first[: len(a.initial)], second[: len(b.initial)]
    tail_a, tail_b = first[len(a.initial) :], second[len(b.initial) :]
    word = "merged" if measure_distance(first, second) <= MERGED else "near"
    if head_a == head_b:
        return f"{tail_a}/{tail_b} {word}"
    if tail_a == tail_b:
        return f"{head_a or 'no initial'}/{head_b or 'no initial'} {word}"
    return f"{first}/{second} {word}"


@dataclass(frozen=True, slots=True)
class SyllableSound:
    """One pronounced syllable: toneless pinyin (ü as v) and a tone from 1 to 5."""

    syllable: str
    tone: int


@lru_cache(maxsize=4096)
def parse_marked(text: str) -> SyllableSound:
    """Parse a pinyin syllable with a tone mark.

    >>> parse_marked("lǜ"), parse_marked("de")
    (SyllableSound(syllable='lv', tone=4), SyllableSound(syllable='de', tone=5))
    """
    tone = 5
    letters: list[str] = []
    for mark in unicodedata.normalize("NFD", text):
        if mark in _TONE_MARKS:
            tone = _TONE_MARKS[mark]
        elif mark == "\u0308":
            letters[-1] = "v"
        elif mark != "\u0302":
            letters.append(mark)
    return SyllableSound("".join(letters), tone)


@lru_cache(maxsize=32768)
def list_sounds(character: str) -> tuple[SyllableSound, ...]:
    """List the pronunciations of a character, the most usual first; empty for non-characters.

    >>> [sound.syllable for sound in list_sounds("行")][:2], list_sounds("A")
    (['xing', 'hang'], ())
    """
    need_offline("pypinyin")
    from pypinyin.constants import PINYIN_DICT

    known: str = PINYIN_DICT.get(ord(character), "") if len(character) == 1 else ""
    if not known:
        return ()
    sounds = dict.fromkeys(parse_marked(part) for part in known.split(",") if part)
    return tuple(sounds)[:_MAX_READINGS]


def read_in_context(text: str) -> tuple[SyllableSound | None, ...]:
    """Return the pronunciation of each character in its context; None for other signs.

    >>> [s.syllable for s in read_in_context("银行行长") if s]
    ['yin', 'hang', 'hang', 'zhang']
    """
    need_offline("pypinyin")
    from pypinyin import Style, pinyin

    # The package pypinyin returns other signs unchanged, one by one, so positions stay equal.
    groups = pinyin(text, style=Style.TONE, errors=list)  # type: ignore[arg-type]  # its stubs leave lists out
    if len(groups) != len(text):  # pypinyin dropped or joined a character
        return tuple((list_sounds(character) or (None,))[0] for character in text)
    return tuple(
        parse_marked(group[0]) if list_sounds(character) else None
        for character, group in zip(text, groups, strict=True)
    )


def write_marked(sound: SyllableSound) -> str:
    """Write a syllable as pinyin with its tone mark.

    >>> [write_marked(SyllableSound(*said)) for said in (("lv", 4), ("jiu", 3), ("ma", 5))]
    ['lǜ', 'jiǔ', 'ma']
    """
    text = sound.syllable
    mark = next((m for m, tone in _TONE_MARKS.items() if tone == sound.tone), "")
    spot = next((text.index(v) for v in ("a", "e", "ou") if v in text), -1)
    if spot < 0:
        spot = max((i for i, letter in enumerate(text) if letter in "iouv"), default=-1)
    if spot >= 0:
        text = text[: spot + 1] + mark + text[spot + 1 :]
    return unicodedata.normalize("NFC", text.replace("v", "u\u0308"))


@cache
def phrase_sounds() -> dict[str, tuple[SyllableSound, ...]]:
    """Return words in which at least one character has an unusual pronunciation."""
    return dict(_unusual_phrases())


def _unusual_phrases() -> Iterator[tuple[str, tuple[SyllableSound, ...]]]:
    need_offline("pypinyin")
    from pypinyin.constants import PHRASES_DICT, PINYIN_DICT

    usual = {code: known.partition(",")[0] for code, known in PINYIN_DICT.items()}
    for phrase, parts in PHRASES_DICT.items():
        marked = [part[0] for part in parts]
        known = [usual.get(ord(character), "") for character in phrase]
        if marked != known and len(marked) == len(phrase):
            yield phrase, tuple(parse_marked(part) for part in marked)


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """The words of one length, sorted by syllables; ``codes`` and ``tones`` have a row per word."""

    keys: Ints
    codes: npt.NDArray[np.uint32]
    tones: npt.NDArray[np.uint8]
    common: Distances
    rare: Distances


@dataclass(frozen=True, slots=True, eq=False)
class NearSyllables:
    """The candidate syllables of one position, with distances, tones and character code.

    ``others`` are the codes of further characters that may be written there.
    """

    ids: Ints
    distances: Distances
    tones: int
    code: int
    firmness: float
    others: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs per character of a word that differs from the written one."""

    change: float
    tone: float
    sound: float
    common: float


@dataclass(frozen=True, slots=True)
class Match:
    """A word that sounds like a span of the caption.

    ``cost`` combines the phonetic distance and the number of changed characters.
    """

    word: str
    cost: float


NONE: Mapping[str, float] = {}


class PinyinLexicon:
    """An index of words by pronunciation; ``common`` is the log10 probability of each word."""

    def __init__(self, words: Sequence[str], common: Sequence[float] | Distances) -> None:
        self._ids: dict[str, int] = {}
        self._near: dict[tuple[int, float], tuple[Ints, Distances]] = {}
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

    def _build(self, words: list[str], weights: Distances, length: int) -> _Table:
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

    def list_near(
        self,
        sounds: Mapping[SyllableSound, float],
        code: int,
        reach: float,
        firmness: float = 1.0,
        others: Mapping[str, float] = NONE,
    ) -> NearSyllables:
        """Find all syllables within the phonetic distance ``reach`` of the given pronunciations."""
        best: dict[int, float] = {}
        tones = 0
        for sound, cost in sounds.items():
            tones |= 1 << sound.tone
            ids, distances = self._neighbours(sound.syllable, reach)
            for number, distance in zip(ids.tolist(), distances.tolist(), strict=True):
                best[number] = min(best.get(number, 9.0), distance + cost)
        return NearSyllables(
            np.fromiter(best, dtype=np.int64, count=len(best)),
            np.fromiter(best.values(), dtype=np.float32, count=len(best)),
            tones,
            code,
            firmness,
            tuple((ord(other), cost) for other, cost in others.items()),
        )

    @lru_cache(maxsize=2048)  # noqa: B019 -- a lexicon lives as long as the process
    def _neighbours(self, syllable: str, reach: float) -> tuple[Ints, Distances]:
        near = [(n, measure_distance(syllable, other)) for other, n in self._ids.items()]
        near = [(n, d) for n, d in near if d <= reach]
        return (
            np.array([n for n, _ in near], dtype=np.int64),
            np.array([d for _, d in near], dtype=np.float32),
        )

    def find(
        self, syllables: Sequence[NearSyllables], costs: Costs, reach: float, keep: int
    ) -> list[list[Match]]:
        """Find the best words that sound like the first syllables, by the number of syllables."""
        found: list[list[Match]] = []
        keys = np.zeros(1, dtype=np.int64)
        distances = np.zeros(1, dtype=np.float32)
        for depth, here in enumerate(syllables[:MAX_WORD], 1):
            keys = ((keys << _BITS)[:, None] | here.ids[None, :]).ravel()
            distances = (distances[:, None] + here.distances[None, :]).ravel()
            inside = distances <= reach
            keys, distances = keys[inside], distances[inside]
            found.append(self._match(keys, distances, syllables[:depth], costs, keep))
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
        self,
        keys: Ints,
        distances: Distances,
        syllables: Sequence[NearSyllables],
        costs: Costs,
        keep: int,
    ) -> list[Match]:
        table = self._tables.get(len(syllables))
        if table is None or not len(keys):
            return []
        left = np.searchsorted(table.keys, keys, side="left")
        counts = np.searchsorted(table.keys, keys, side="right") - left
        total = int(counts.sum())
        if not total:
            return []
        starts = np.repeat(left - (np.cumsum(counts) - counts), counts)
        rows = starts + np.arange(total)
        written = np.array([h.code for h in syllables], dtype=np.uint32)
        changed = table.codes[rows] != written
        allowed = np.array([h.tones for h in syllables], dtype=np.int64)
        swapped: Distances = np.zeros(len(rows), dtype=np.float32)
        if any(here.others for here in syllables):
            swapped = _take_others(table.codes[rows], changed, syllables)
        off = changed & ((allowed >> table.tones[rows]) & 1 == 0)
        sounds = np.repeat(distances, counts) + table.rare[rows] * changed.any(axis=1)
        sounds[~changed.any(axis=1)] = 0.0
        sounds += swapped
        firmness = np.array([costs.change * h.firmness for h in syllables], dtype=np.float32)
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


def _take_others(
    codes: npt.NDArray[np.uint32],
    changed: npt.NDArray[np.bool_],
    syllables: Sequence[NearSyllables],
) -> Distances:
    """Mark characters that OCR considered as not changed; return the cost of each word for them."""
    costs = np.zeros(len(codes), dtype=np.float32)
    for place, here in enumerate(syllables):
        for code, cost in here.others:
            same = codes[:, place] == code
            changed[same, place] = False
            costs[same] += cost
    return costs


def _other_readings(words: Sequence[str]) -> list[tuple[int, SyllableSound, float]]:
    return [
        (i, sound, RARE_READING * rank)
        for i, word in enumerate(words)
        for rank, sound in enumerate(list_sounds(word))
        if rank
    ]
