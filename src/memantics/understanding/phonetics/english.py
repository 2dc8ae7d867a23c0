"""Homophone readings of English captions: "lettuce pray" reads as "let us pray".

The English part is simpler than the Chinese one. It uses a pronunciation dictionary, a table of
similar phonemes, and the word trigrams of pocketsphinx. The confidence is a hand-made logistic
curve, not fitted to data.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import NamedTuple

from memantics.core.errors import MissingExtra
from memantics.understanding.phonetics.caption import load_dictionary
from memantics.understanding.phonetics.reading import (
    HomophoneReadings,
    HomophoneSpan,
    Reading,
    Settings,
)

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_LOG10 = math.log10(1.0001)  # unit of the language model's integer scores
_COMMON = -5.6  # minimum log10 probability of a candidate word
_UNKNOWN = -7.0
_MAX_WORDS, _MAX_PHONEMES, _MAX_LENGTH = 24, 90, 14
_ARCS, _BEAM = 36, 24
_CHANGE, _SOUND, _REACH = 0.9, 2.8, 0.95

_VOWELS = frozenset(
    ["AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW"]
)
_NEAR = {
    frozenset(pair.split("~")): cost
    for cost, pairs in (
        (0.25, "AA~AO AH~IH AH~EH AH~UH IH~IY UH~UW AH~AA AE~EH AH~ER AH~OW AO~OW"),
        (0.35, "S~Z SH~ZH T~D P~B K~G F~V TH~DH CH~JH N~NG D~DH T~TH S~SH M~N W~V"),
        (0.45, "AA~AY AE~EY EH~EY IY~IH UW~OW AE~AA EH~IH AH~AE UW~AH IY~EY AY~IY AW~AA ER~AO"),
    )
    for pair in pairs.split()
}
_SKIPPED = {"HH": 0.4, "T": 0.45, "D": 0.45, "AH": 0.5, "R": 0.5, "Y": 0.5, "N": 0.6, "S": 0.7}


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the caption with its offsets and phonemes."""

    text: str
    start: int
    end: int
    phonemes: tuple[str, ...]


class _TrieNode:
    __slots__ = ("next", "words")

    def __init__(self) -> None:
        self.next: dict[str, _TrieNode] = {}
        self.words: list[str] = []


class _Arc(NamedTuple):
    word: str
    end: int
    distance: float


class _Path(NamedTuple):
    total: float
    common: float
    arcs: tuple[_Arc, ...]


class EnglishVocabulary:
    """Frequent English words by pronunciation, with trigram probabilities."""

    def __init__(self) -> None:
        try:
            sphinx = import_module("pocketsphinx")
        except ImportError as error:
            raise MissingExtra("English readings", "phonetics") from error
        # Not the constructor: it crashes in version 5.1 without a decoder configuration.
        model = sphinx.NGramModel.readfile(sphinx.get_model_path("en-us/en-us.lm.bin"))
        self._prob: Callable[[list[str]], int] = model.prob
        self.pronunciations: dict[str, tuple[str, ...]] = {}
        self.root = _TrieNode()
        for line in load_dictionary().decode("utf-8").splitlines():
            entry, _, said = line.partition(" ")
            word = entry.partition("(")[0]
            if _WORD.fullmatch(word):
                self._add(word, tuple(said.split()))

    def _add(self, word: str, phonemes: tuple[str, ...]) -> None:
        self.pronunciations.setdefault(word, phonemes)
        if len(phonemes) > _MAX_LENGTH or self.weigh((word,)) < _COMMON:
            return
        if len(word) == 1 and word not in "aiou":
            return
        node = self.root
        for phoneme in phonemes:
            node = node.next.setdefault(phoneme, _TrieNode())
        if word not in node.words:
            node.words.append(word)

    def weigh(self, words: Sequence[str]) -> float:
        """Return the log10 probability of the last word after the words before it."""
        return max(_UNKNOWN, self._prob(list(reversed(words[-3:]))) * _LOG10)


@cache
def load_vocabulary() -> EnglishVocabulary:
    """Load the vocabulary once per process."""
    return EnglishVocabulary()


def compare_phonemes(first: str, second: str) -> float:
    """Compute the distance of two phonemes; 9 means completely different.

    >>> compare_phonemes("S", "S"), compare_phonemes("S", "Z"), compare_phonemes("S", "AA")
    (0.0, 0.35, 9.0)
    """
    if first == second:
        return 0.0
    other = 0.8 if first in _VOWELS and second in _VOWELS else 9.0
    return _NEAR.get(frozenset((first, second)), other)


def _find_arcs(vocabulary: EnglishVocabulary, phonemes: Sequence[str], start: int) -> list[_Arc]:
    """Find words that sound like the phonemes after a position, by distance and frequency."""
    best: dict[tuple[str, int], float] = {}
    stack = [(vocabulary.root, start, 0.0)]
    while stack:
        node, at, distance = stack.pop()
        for word in node.words:
            key = (word, at)
            if at > start and distance < best.get(key, 9.0):
                best[key] = distance
        if at < len(phonemes):
            here = phonemes[at]
            for phoneme, after in node.next.items():
                total = distance + compare_phonemes(here, phoneme)
                if total <= _REACH:
                    stack.append((after, at + 1, total))
            total = distance + _SKIPPED.get(here, 9.0)
            if total <= _REACH and at > start:
                stack.append((node, at + 1, total))
        for phoneme, cost in _SKIPPED.items():
            if phoneme in node.next and distance + cost <= _REACH:
                stack.append((node.next[phoneme], at, distance + cost))
    arcs = [_Arc(word, end, round(distance, 3)) for (word, end), distance in best.items()]
    # Scores are divided by the number of phonemes; otherwise short words would fill the list.
    arcs.sort(key=lambda a: (vocabulary.weigh((a.word,)) - _SOUND * a.distance) / (a.end - start))
    return arcs[-_ARCS:]


def _search(words: Sequence[Word], vocabulary: EnglishVocabulary, limit: int) -> list[_Path]:
    phonemes = [phoneme for word in words for phoneme in word.phonemes]
    literal: dict[int, _Arc] = {}
    at = 0
    for word in words:
        literal[at] = _Arc(word.text, at + len(word.phonemes), 0.0)
        at += len(word.phonemes)
    fronts: list[dict[str, _Path]] = [{} for _ in range(len(phonemes) + 1)]
    fronts[0][""] = _Path(0.0, 0.0, ())
    for i in range(len(phonemes)):
        ranked = sorted(fronts[i].items(), key=lambda item: -item[1].total)[:_BEAM]
        if not ranked:
            continue
        spelled = literal.get(i)
        arcs = {(arc.word, arc.end): arc for arc in _find_arcs(vocabulary, phonemes, i)}
        if spelled:
            arcs[spelled.word, spelled.end] = spelled
        for arc in arcs.values():
            cost = 0.0 if arc == spelled else _CHANGE + _SOUND * arc.distance
            for text, path in ranked:
                history = [a.word for a in path.arcs[-2:]]
                score = vocabulary.weigh([*history, arc.word])
                total = path.total + score - cost
                longer = f"{text} {arc.word}".lstrip()
                old = fronts[arc.end].get(longer)
                if old is None or old.total < total:
                    fronts[arc.end][longer] = _Path(total, path.common + score, (*path.arcs, arc))
    return sorted(fronts[-1].values(), key=lambda path: -path.total)[:limit]


def _split_words(caption: str, vocabulary: EnglishVocabulary) -> Iterator[Word]:
    for match in _WORD.finditer(caption.lower()):
        phonemes = vocabulary.pronunciations.get(match.group(), ())
        yield Word(match.group(), match.start(), match.end(), phonemes)


def read_english(caption: str, notes: tuple[str, ...], settings: Settings) -> HomophoneReadings:
    """Find the homophone readings of an English caption."""
    vocabulary = load_vocabulary()
    words = list(_split_words(caption, vocabulary))
    unknown = [word.text for word in words if not word.phonemes]
    if unknown:
        notes = (*notes, f"not in the pronunciation dictionary: {', '.join(unknown[:5])}")
    words = [word for word in words if word.phonemes][:_MAX_WORDS]
    while sum(len(word.phonemes) for word in words) > _MAX_PHONEMES:
        words.pop()
    readings: tuple[Reading, ...] = ()
    if words:
        plain = _weigh_plainly(words, vocabulary)
        paths = _search(words, vocabulary, settings.limit + 8)
        built = (_build_reading(caption, words, path, plain) for path in paths)
        readings = tuple(r for r in built if r.changes)[: settings.limit]
    confidence = _rate_confidence(readings[0]) if readings else 0.0
    return HomophoneReadings(
        caption=caption,
        language="en",
        model="pocketsphinx",
        pronunciation=" ".join("-".join(word.phonemes).lower() for word in words),
        readings=readings,
        confidence=confidence,
        threshold=settings.threshold,
        notes=notes,
        reading_probability=confidence,
    )


def _weigh_plainly(words: Sequence[Word], vocabulary: EnglishVocabulary) -> float:
    texts = [word.text for word in words]
    return sum(vocabulary.weigh(texts[max(0, i - 2) : i + 1]) for i in range(len(texts)))


def _rate_confidence(reading: Reading) -> float:
    """Compute the confidence of a reading from its gain in probability and its sound distance.

    A gain of 2 (log10) at distance 0 gives a confidence of 0.5.
    """
    odds = 1.2 * (reading.gain - 2.0) - 3.0 * reading.distance
    return round(1 / (1 + math.exp(-max(-30.0, min(30.0, odds)))), 4)


def _build_reading(caption: str, words: Sequence[Word], path: _Path, plain: float) -> Reading:
    changes = tuple(_find_changes(caption, words, path))
    text = caption
    for change in reversed(changes):
        text = text[: change.start] + change.homophone + text[change.end :]
    count = sum(len(word.phonemes) for word in words)
    distance = sum(change.distance for change in changes)
    return Reading(
        text=text,
        pronunciation=" ".join(arc.word for arc in path.arcs),
        score=round(path.total, 4),
        gain=round(path.common - plain, 3),
        distance=round(distance, 3),
        syllables=count,
        syllables_matched=max(0, count - math.ceil(distance / 0.5)),
        changes=changes,
    )


def _find_changes(caption: str, words: Sequence[Word], path: _Path) -> Iterator[HomophoneSpan]:
    """Yield the spans between common word boundaries where both word sequences differ."""
    ours: list[_Arc] = []
    theirs: list[Word] = []
    arcs = iter(path.arcs)
    said = reached = 0
    for word in words:
        theirs.append(word)
        said += len(word.phonemes)
        while reached < said:
            ours.append(next(arcs))
            reached = ours[-1].end
        if reached == said:
            if [arc.word for arc in ours] != [part.text for part in theirs]:
                yield _build_change(caption, theirs, ours)
            ours, theirs = [], []


def _build_change(caption: str, theirs: Sequence[Word], ours: Sequence[_Arc]) -> HomophoneSpan:
    written = " ".join("-".join(word.phonemes) for word in theirs).lower()
    distance = round(sum(arc.distance for arc in ours), 3)
    return HomophoneSpan(
        start=theirs[0].start,
        end=theirs[-1].end,
        written=caption[theirs[0].start : theirs[-1].end],
        homophone=" ".join(arc.word for arc in ours),
        written_pronunciation=written,
        homophone_pronunciation=" ".join(arc.word for arc in ours),
        distance=distance,
        notes=() if distance == 0 else (f"phonetic distance about {distance:g}",),
    )
