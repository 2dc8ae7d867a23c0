"""The words of the ontology: ten dimensions, the relations between them, six kinds of toxicity.

``meme.ttl`` says the same in RDF; a test holds the two together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from memantics.core.errors import UnknownName
from memantics.core.meaning import ALIASES, DIMENSIONS, Dimension, RelationName
from memantics.knowledge.ontology.specs import SPECS

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
    "name_dimension",
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

    name: RelationName | str
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


_DIMENSIONS = tuple(
    DimensionTerm(name, SPECS[name].label, SPECS[name].definition) for name in DIMENSIONS
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


def name_dimension(name: Dimension) -> str:
    """How people call a dimension; one of a user's own by its name, spelled out.

    >>> name_dimension("Scene"), name_dimension("ColorUse")
    ('scene', 'color use')
    """
    term = DIMENSION_TERMS.get(name)
    return term.label if term else re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def find_kind(label: str) -> ToxicityKind | None:
    """The kind of toxicity that a label names, whatever its case or spelling.

    A label that describes toxicity in other words names no kind: nothing is guessed.

    >>> find_kind("Mysogynous"), find_kind(" hate speech "), find_kind("Dark humour")
    ('Misogynous', 'Hateful', None)
    """
    return _KIND_NAMES.get(re.sub(r"[\s_-]+", " ", label).strip().casefold())


def find_dimensions(names: Sequence[str]) -> tuple[Dimension, ...]:
    """Dimensions by our names or the official ones, each once.

    >>> find_dimensions(["EmotionExpression", "Emotion"])
    ('Emotion',)
    """
    found = {name: find_dimension(name) for name in names}
    for name, dimension in found.items():
        if dimension is None:
            raise UnknownName("dimension", name, DIMENSIONS)
    return tuple(dict.fromkeys(text for text in found.values() if text is not None))
