"""The words of the ontology: ten dimensions, the relations between them, six kinds of toxicity.

``meme.ttl`` says the same in RDF; a test holds the two together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from memantics.core.meaning import ALIASES, DIMENSIONS, Dimension, RelationName

__all__ = [
    "DIMENSIONS",
    "DIMENSION_TERMS",
    "KIND_TERMS",
    "RELATIONS",
    "TOXICITY_KINDS",
    "Dimension",
    "DimensionTerm",
    "KindTerm",
    "RelationName",
    "RelationTerm",
    "ToxicityKind",
    "find_dimension",
    "find_kind",
]
ToxicityKind = Literal["Abusive", "Cyberbullying", "Harmful", "Hateful", "Misogynous", "Propaganda"]


@dataclass(frozen=True, slots=True)
class DimensionTerm:
    """One way of looking at a meme: its name, how people call it, and what belongs to it."""

    name: Dimension
    label: str
    definition: str


@dataclass(frozen=True, slots=True)
class RelationTerm:
    """What may link an individual of ``domain`` to one of ``range``; ``label`` reads as a verb."""

    name: RelationName
    label: str
    definition: str
    domain: tuple[Dimension, ...]
    range: tuple[Dimension, ...]


@dataclass(frozen=True, slots=True)
class KindTerm:
    """A kind of toxicity."""

    name: ToxicityKind
    label: str
    definition: str


_DIMENSIONS = (
    DimensionTerm(
        "TextualMaterial",
        "text",
        "A piece of text that can be read in the meme: a caption, a bubble, a label, a sign.",
    ),
    DimensionTerm(
        "VisualMaterial",
        "visual element",
        "Something that can be seen in the meme: a person, an animal, a thing, a symbol.",
    ),
    DimensionTerm(
        "Scene",
        "scene",
        "What goes on in the picture or in one panel of it: who does what with whom, and where.",
    ),
    DimensionTerm(
        "BackgroundKnowledge",
        "background",
        "Something outside the meme that a viewer has to know: an event, a work, a saying, "
        "a belief, a stereotype, a meme template.",
    ),
    DimensionTerm(
        "Emotion", "emotion", "A feeling that the meme shows, or means to stir in its viewer."
    ),
    DimensionTerm(
        "AnalogicalMapping",
        "analogy",
        "One thing presented as another: what is talked about (mapped) is seen through what is "
        "shown (mapping).",
    ),
    DimensionTerm(
        "SemioticProjection",
        "projection",
        "The place in the meme that a viewer is invited to take: 'me', 'you', 'when you ...'.",
    ),
    DimensionTerm(
        "OverallIntent", "intent", "What the meme is for: what its author wants to bring about."
    ),
    DimensionTerm(
        "Toxicity",
        "toxicity",
        "What in the meme may hurt people, and in which way; a harmless meme has none.",
    ),
    DimensionTerm(
        "TargetCommunity",
        "community",
        "The people whom the meme addresses, or whom it attacks.",
    ),
)
DIMENSION_TERMS: Mapping[str, DimensionTerm] = MappingProxyType({t.name: t for t in _DIMENSIONS})

_ELEMENTS: tuple[Dimension, ...] = ("TextualMaterial", "VisualMaterial", "Scene")
_GROUNDS: tuple[Dimension, ...] = (*_ELEMENTS, "BackgroundKnowledge")
_ALL_BUT_TOXICITY: tuple[Dimension, ...] = tuple(d for d in DIMENSIONS if d != "Toxicity")
_RELATIONS = (
    RelationTerm(
        "hasParticipant",
        "has participant",
        "Who or what takes part in the scene.",
        ("Scene",),
        ("VisualMaterial", "TextualMaterial"),
    ),
    RelationTerm(
        "hasExpressor",
        "expressed by",
        "What expresses the emotion.",
        ("Emotion",),
        _GROUNDS,
    ),
    RelationTerm(
        "hasMappedEntity",
        "maps",
        "What the analogy talks about.",
        ("AnalogicalMapping",),
        _GROUNDS,
    ),
    RelationTerm(
        "hasMappingEntity",
        "by means of",
        "What the analogy shows instead.",
        ("AnalogicalMapping",),
        _GROUNDS,
    ),
    RelationTerm(
        "mappedOnto",
        "mapped onto",
        "Stands, in an analogy, for something else.",
        ("AnalogicalMapping", *_GROUNDS),
        _GROUNDS,
    ),
    RelationTerm(
        "hasToxicElement",
        "toxic through",
        "What makes the meme toxic in this way.",
        ("Toxicity",),
        _ALL_BUT_TOXICITY,
    ),
    RelationTerm(
        "projectedOnto",
        "projected onto",
        "Whose place the viewer takes.",
        ("SemioticProjection",),
        _ELEMENTS,
    ),
    RelationTerm(
        "about",
        "about",
        "What a piece of background or an intent refers to.",
        ("BackgroundKnowledge", "OverallIntent"),
        DIMENSIONS,
    ),
    RelationTerm(
        "targets",
        "targets",
        "Whom it is aimed at.",
        ("Toxicity", "OverallIntent"),
        ("TargetCommunity",),
    ),
)
RELATIONS: Mapping[str, RelationTerm] = MappingProxyType({term.name: term for term in _RELATIONS})

_KINDS = (
    KindTerm("Abusive", "abusive", "Threatens or abuses people or a community."),
    KindTerm(
        "Cyberbullying",
        "cyberbullying",
        "Disparages individuals for skin colour, gender, race, sexual orientation, ethnicity, "
        "nationality.",
    ),
    KindTerm(
        "Harmful",
        "harmful",
        "May harm individuals, organisations, communities or society.",
    ),
    KindTerm(
        "Hateful",
        "hateful",
        "Attacks people, directly or not, for a protected characteristic.",
    ),
    KindTerm("Misogynous", "misogynous", "Holds hate against women."),
    KindTerm(
        "Propaganda",
        "propaganda",
        "Means to influence opinions or actions towards a goal.",
    ),
)
KIND_TERMS: Mapping[str, KindTerm] = MappingProxyType({term.name: term for term in _KINDS})
TOXICITY_KINDS: tuple[ToxicityKind, ...] = tuple(term.name for term in _KINDS)

_DIMENSION_NAMES: Mapping[str, Dimension] = MappingProxyType(
    {name: name for name in DIMENSIONS} | dict(ALIASES)
)
_KIND_NAMES: Mapping[str, ToxicityKind] = MappingProxyType(
    {kind.casefold(): kind for kind in TOXICITY_KINDS}
    | {
        "abuse": "Abusive",
        "cyberbulling": "Cyberbullying",
        "cyberbully": "Cyberbullying",
        "harm": "Harmful",
        "hate": "Hateful",
        "hate speech": "Hateful",
        "mysogynous": "Misogynous",
        "mysoginous": "Misogynous",
        "misoginous": "Misogynous",
        "misogynistic": "Misogynous",
        "misogyny": "Misogynous",
        "propagandistic": "Propaganda",
    }
)


def find_dimension(name: str) -> Dimension | None:
    """The dimension that a name stands for, ours or an official one.

    >>> find_dimension("EmotionExpression"), find_dimension("Scene"), find_dimension("Weather")
    ('Emotion', 'Scene', None)
    """
    return _DIMENSION_NAMES.get(name)


def find_kind(label: str) -> ToxicityKind | None:
    """The kind of toxicity that a label names, whatever its case or spelling.

    A label that describes toxicity in other words names no kind: nothing is guessed.

    >>> find_kind("Mysogynous"), find_kind(" hate speech "), find_kind("Dark humour")
    ('Misogynous', 'Hateful', None)
    """
    return _KIND_NAMES.get(re.sub(r"[\s_-]+", " ", label).strip().casefold())
