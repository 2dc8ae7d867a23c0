"""Does a caption hide a commoner one that sounds the same? A pun signal for Chinese.

A word lattice over the caption, scored by word frequencies alone: besides the words that are
written, it holds the commonest word that sounds like each stretch. The signal is how much
likelier the best path becomes when it may take one or two such words. Tones do not count, nor
do the pairs that many speakers merge (zh/z, ch/c, sh/s, and final -ng/-n).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

LONGEST_WORD = 4
_CHINESE = re.compile(r"[一-鿿]+")
_FUZZY = (
    (re.compile(r"^([zcs])h"), r"\1"),
    (re.compile(r"(?<=[aei])ng$"), "n"),
)
_ALIKE = 6
_RARE = 5  # a rarer word is not what anybody hears
_NEW_WORD = 2.0  # pseudo-count of a character that the dictionary lacks


@dataclass(frozen=True, slots=True)
class Hearing:
    """The best way to hear a caption otherwise; ``gain`` is in nats, 0 when there is none."""

    gain: float = 0.0
    written: str = ""
    heard: str = ""


NOTHING = Hearing()


class Ear(Protocol):
    """Anything that hears puns."""

    version: str

    def hear(self, text: str) -> Hearing:
        """The likeliest other hearing of a text."""
        ...


@dataclass(frozen=True, slots=True)
class Fines:
    """What it costs, in nats, to hear other characters than those that are written."""

    change: float = 1.0
    tone: float = 0.5
    merged: float = 2.0
    single: float = 0.0
    swaps: int = 2


DEFAULT_FINES = Fines()


@dataclass(frozen=True, slots=True)
class _Path:
    score: float
    written: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()


class PinyinEar:
    """Hears by jieba's word frequencies and pypinyin's readings, both loaded at first use."""

    version = "sound-1"

    def __init__(self, fines: Fines = DEFAULT_FINES) -> None:
        self._fines = fines

    def hear(self, text: str) -> Hearing:
        """The likeliest other hearing of a text; texts without Chinese have none.

        >>> hearing = PinyinEar().hear("暗中观茶")
        >>> hearing.written, hearing.heard, hearing.gain > 2
        ('观茶', '观察', True)
        """
        best = NOTHING
        for stretch in _CHINESE.findall(text[:400]):
            hearing = self._hear_stretch(stretch)
            best = max(best, hearing, key=lambda each: each.gain)
        return best

    def _hear_stretch(self, stretch: str) -> Hearing:
        lattice: list[list[_Path]] = [[_Path(0.0)] + [_NOWHERE] * self._fines.swaps]
        for end in range(1, len(stretch) + 1):
            lattice.append([_NOWHERE] * (self._fines.swaps + 1))
            for start in range(max(0, end - LONGEST_WORD), end):
                word = stretch[start:end]
                self._extend(lattice[start], lattice[end], word)
        base = lattice[-1][0]
        other = max(lattice[-1][1:], key=lambda path: path.score)
        gain = other.score - base.score
        if gain <= 0:
            return NOTHING
        return Hearing(gain, "…".join(other.written), "…".join(other.heard))

    def _extend(self, before: list[_Path], after: list[_Path], word: str) -> None:
        written = self._log(word)
        if written is not None:
            for used, path in enumerate(before):
                score = path.score + written
                if score > after[used].score:
                    after[used] = _Path(score, path.written, path.heard)
        heard, score = self._alike(word)
        if heard:
            for used, path in enumerate(before[:-1]):
                total = path.score + score
                if total > after[used + 1].score:
                    after[used + 1] = _Path(total, (*path.written, word), (*path.heard, heard))

    def _log(self, word: str) -> float | None:
        count = self._counts.get(word)
        if count is None:
            return math.log(_NEW_WORD / self._total) if len(word) == 1 else None
        return math.log(count / self._total)

    def _alike(self, word: str) -> tuple[str, float]:
        """The best other word that sounds like this one, and its score less its fine."""
        best, most = "", -math.inf
        for other, count in self._by_sound.get(self._sound(word), ()):
            score = math.log(count / self._total) - self._fine(word, other)
            if other != word and score > most:
                best, most = other, score
        return best, most

    def _fine(self, written: str, heard: str) -> float:
        fine = self._fines.single if len(written) == 1 else 0.0
        for one, other in zip(written, heard, strict=True):
            if one != other:
                fine += self._fines.change
                first, second = self._readings[one], self._readings[other]
                fine += self._fines.tone * (first != second)
                fine += self._fines.merged * (bare(first) != bare(second))
        return fine

    def _sound(self, word: str) -> str:
        return " ".join([self._sounds.get(char, "?") for char in word])

    @cached_property
    def _sounds(self) -> Mapping[str, str]:
        return {char: merge(bare(reading)) for char, reading in self._readings.items()}

    @cached_property
    def _counts(self) -> Mapping[str, float]:
        import jieba

        counts: dict[str, float] = {}
        # Not through jieba's tokenizer, which leaves a cache in the shared temporary folder.
        with jieba.get_dict_file() as lines:
            for line in lines:
                word, count = line.decode("utf-8").split(" ")[:2]
                if len(word) <= LONGEST_WORD:
                    counts[word] = max(float(count), 1.0)
        return counts

    @cached_property
    def _total(self) -> float:
        return sum(self._counts.values())

    @cached_property
    def _readings(self) -> Mapping[str, str]:
        from pypinyin.pinyin_dict import pinyin_dict

        return {
            chr(code): readings.split(",")[0]
            for code, readings in pinyin_dict.items()
            if 0x4E00 <= code <= 0x9FFF
        }

    @cached_property
    def _by_sound(self) -> Mapping[str, tuple[tuple[str, float], ...]]:
        """The commonest words for each sequence of sounds."""
        index: dict[str, list[tuple[str, float]]] = {}
        for word, count in self._counts.items():
            if count >= _RARE:
                index.setdefault(self._sound(word), []).append((word, count))
        return {
            sounds: tuple(sorted(words, key=lambda each: -each[1])[:_ALIKE])
            for sounds, words in index.items()
        }


_NOWHERE = _Path(-math.inf)


@lru_cache(maxsize=4096)
def bare(syllable: str) -> str:
    """A syllable without its tone.

    >>> bare("zhōng"), bare("lǜ")
    ('zhong', 'lü')
    """
    parts = unicodedata.normalize("NFD", syllable)
    kept = "".join(c for c in parts if not unicodedata.combining(c) or c == "\u0308")
    return unicodedata.normalize("NFC", kept)


@lru_cache(maxsize=4096)
def merge(syllable: str) -> str:
    """A syllable with the sounds merged that many speakers merge.

    >>> merge("zhong"), merge("sheng")
    ('zong', 'sen')
    """
    for pattern, merged in _FUZZY:
        syllable = pattern.sub(merged, syllable)
    return syllable


def has_chinese(text: str) -> bool:
    """Whether any Chinese character is in a text.

    >>> has_chinese("ok 好"), has_chinese("ok")
    (True, False)
    """
    return _CHINESE.search(text) is not None
