"""Features of readings and captions, and linear models that rank the readings.

``weights.json`` has one set of weights per language model; ``research/pun_weights.py`` fits them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise

import orjson

from memantics.understanding.phonetics.caption import SpokenCaption, SyllableSlot
from memantics.understanding.phonetics.language import UNKNOWN
from memantics.understanding.phonetics.lattice import Lattice, Path
from memantics.understanding.phonetics.pinyin import (
    RARE_READING,
    SyllableSound,
    list_sounds,
    measure_distance,
    phrase_sounds,
)
from memantics.understanding.phonetics.senses import is_informal, load_phrases, rate_drawable

PARTICLES = frozenset("啊呀哇哦耶吧吗嘛呢啦了喽呗咯哈嘿么噢呐哟诶唉喔")
# Conjunctions and prepositions: a clause does not end with one of these.
DANGLING = frozenset("于与或和及把被从向对以而且但因则其在为由")
_EVERYDAY = -3.6

RANK_FEATURES = (
    *("gain", "total", "changes", "tones", "distance", "runs", "pairs", "drawn", "undrawn"),
    *("particles", "everyday", "anchored", "pieces", "foreign", "dangling", "joint"),
    *("phrase", "informal"),
)
CAPTION_FEATURES = (
    *("gain", "total", "changes", "tones", "distance", "runs", "pairs", "drawn", "undrawn"),
    *("particles", "everyday", "anchored", "foreign", "changed_share", "score", "margin"),
    *("doubt", "plain", "syllables", "words_share", "drawable", "drawable_share", "literal_rank"),
    *("phrase", "informal"),
)


@dataclass(frozen=True, slots=True)
class SlotDifference:
    """A syllable at which a reading differs from the written caption."""

    slot: int
    written: str
    homophone: str
    distance: float
    tone_differs: bool
    sound: SyllableSound | None


@dataclass(frozen=True, slots=True)
class PathCandidate:
    """A homophone reading with its differences from the caption, its features and its score."""

    path: Path
    script: SpokenCaption
    differences: tuple[SlotDifference, ...]
    features: Mapping[str, float]
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear model over named features."""

    weights: Mapping[str, float]
    bias: float = 0.0

    def score(self, features: Mapping[str, float]) -> float:
        """Return the weighted sum of the features plus the bias.

        >>> Linear({"gain": 2.0}, 1.0).score({"gain": 0.5, "other": 9.0})
        2.0
        """
        return self.bias + sum(w * features.get(name, 0.0) for name, w in self.weights.items())

    def probability(self, features: Mapping[str, float]) -> float:
        """Return the score transformed by the logistic function."""
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, self.score(features)))))


@cache
def load_weights(model: str) -> tuple[Linear, Linear]:
    """Load two models for a language model: one ranks readings, one detects homophone puns."""
    file = resources.files("memantics.understanding.phonetics") / "weights.json"
    entry = orjson.loads(file.read_bytes())[model]
    rank, confidence = entry["rank"], entry["confidence"]
    return (
        Linear(rank["weights"], rank["bias"]),
        Linear(confidence["weights"], confidence["bias"]),
    )


@cache
def load_first_right(model: str) -> Linear:
    """Load the model of the probability that the first reading is the intended one."""
    file = resources.files("memantics.understanding.phonetics") / "first_right.json"
    entry = orjson.loads(file.read_bytes())[model]
    return Linear(entry["weights"], entry["bias"])


def compare(path: Path, script: SpokenCaption) -> tuple[SlotDifference, ...]:
    """List the syllables at which a reading differs from the written caption."""
    found = []
    for piece in path.pieces:
        if piece.kept:
            continue
        # a loanword replaces all syllables of the token
        if piece.end - piece.start != len(piece.word):
            found += [
                SlotDifference(slot, "", piece.word, 0.2, False, None)
                for slot in range(piece.start, piece.end)
            ]
            continue
        for offset, homophone in enumerate(piece.word):
            slot = script.slots[piece.start + offset]
            if slot.simple != homophone and homophone not in slot.others:
                found.append(_differ(piece.start + offset, slot, piece.word, offset))
    return tuple(found)


def _sounds_in(word: str, offset: int) -> tuple[SyllableSound, ...]:
    """List the pronunciations of a character: one inside a known word, otherwise all."""
    homophone = word[offset]
    if len(word) == 1:
        return list_sounds(homophone)
    return phrase_sounds().get(word, ())[offset : offset + 1] or list_sounds(homophone)[:1]


def _differ(number: int, slot: SyllableSlot, word: str, offset: int) -> SlotDifference:
    options = [
        (
            measure_distance(said.syllable, sound.syllable) + cost + RARE_READING * rank,
            said.tone != sound.tone,
            rank,
            sound,
        )
        for rank, sound in enumerate(_sounds_in(word, offset))
        for said, cost in slot.sounds.items()
    ]
    distance, tone_differs, _, sound = min(options, key=lambda option: option[:3])
    return SlotDifference(
        number, slot.simple, word[offset], round(distance, 3), tone_differs, sound
    )


def describe_path(
    path: Path, script: SpokenCaption, plain: Path, lattice: Lattice
) -> tuple[tuple[SlotDifference, ...], dict[str, float]]:
    """Return the differences of a reading from the caption, and its features."""
    differences = compare(path, script)
    changed = {d.slot for d in differences}
    loans = sum(d.sound is None for d in differences)
    features = {
        "gain": path.common - plain.common,
        "total": path.total - plain.total,
        "changes": float(len(differences)),
        "tones": float(sum(d.tone_differs for d in differences)),
        "distance": sum(d.distance for d in differences),
        "runs": float(sum(slot - 1 not in changed for slot in changed)),
        "pairs": float(len({(d.written, d.homophone) for d in differences})),
        "drawn": sum(rate_drawable(d.written) for d in differences if d.written),
        "undrawn": sum(rate_drawable(d.homophone) for d in differences if len(d.homophone) == 1),
        "particles": float(sum(d.homophone in PARTICLES for d in differences)),
        "everyday": sum(
            max(0.0, lattice.model.weigh(d.written) - _EVERYDAY) for d in differences if d.written
        ),
        "anchored": float(
            sum(
                0 < sum(s in changed for s in range(p.start, p.end)) < p.end - p.start
                for p in path.pieces
            )
        ),
        "pieces": float(len(path.pieces)),
        "dangling": float(
            sum(d.homophone in DANGLING and _ends_clause(d.slot, script) for d in differences)
        ),
        "foreign": float(sum(not d.written for d in differences) + loans),
        "joint": _find_weakest_joint(path, lattice),
        **_find_expressions(path, changed),
    }
    return differences, features


def _find_expressions(path: Path, changed: Set[int]) -> dict[str, float]:
    """Return the proportions of changed characters inside set phrases and inside slang words."""
    places: list[int] = []
    offset = 0
    for piece in path.pieces:
        if not piece.kept and len(piece.word) == piece.end - piece.start:
            places += [
                offset + s - piece.start for s in range(piece.start, piece.end) if s in changed
            ]
        offset += len(piece.word)
    count = max(len(places), 1)
    phrases = load_phrases()

    def share(longest: int, shortest: int, known: Callable[[str], bool]) -> float:
        return (
            sum(
                any(
                    known(path.text[start : start + size])
                    for size in range(shortest, longest + 1)
                    for start in range(max(0, place - size + 1), place + 1)
                )
                for place in places
            )
            / count
        )

    return {
        "phrase": share(8, 4, phrases.__contains__),
        "informal": share(4, 2, is_informal),
    }


def _find_weakest_joint(path: Path, lattice: Lattice) -> float:
    """Rate the least plausible pair of neighbouring words in a reading: -1 unseen, 0 usual.

    A reading that resolves only half of a pun still contains an implausible word pair.
    """
    model = lattice.model
    rates = [
        model.join(a.word[-1], b.word[0])
        for a, b in pairwise(path.pieces)
        if model.weigh(a.word) > UNKNOWN and model.weigh(b.word) > UNKNOWN
    ]
    return max(-1.0, min(0.0, *rates)) if rates else 0.0


def _ends_clause(slot: int, script: SpokenCaption) -> bool:
    return slot + 1 == len(script.slots) or not script.slots[slot + 1].sounds


def describe_caption(
    ranked: Sequence[PathCandidate], plain: Path, script: SpokenCaption, literal_rank: int
) -> dict[str, float]:
    """Compute the features of a caption and its ranked readings for the pun detector."""
    said = [slot for slot in script.slots if slot.sounds]
    count = max(len(said), 1)
    drawable = sum(rate_drawable(slot.simple) for slot in said if slot.simple)
    features = dict.fromkeys(CAPTION_FEATURES, 0.0)
    if ranked:
        first = ranked[0]
        features.update((k, v) for k, v in first.features.items() if k in features)
        features["score"] = first.score
        features["margin"] = first.score - ranked[1].score if len(ranked) > 1 else 5.0
        features["changed_share"] = first.features["changes"] / count
        weights = [math.exp(max(-30.0, c.score - first.score)) for c in ranked]
        shares = [w / sum(weights) for w in weights]
        features["doubt"] = -sum(s * math.log(s + 1e-12) for s in shares)
    features["plain"] = plain.common / count
    features["syllables"] = math.log1p(len(said))
    features["words_share"] = len(plain.pieces) / count
    features["drawable"] = drawable
    features["drawable_share"] = drawable / count
    features["literal_rank"] = math.log1p(literal_rank)
    return features
