"""The vocabulary of meme knowledge that all packages share: dimensions and relations."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

# The name of a knowledge dimension: one of DIMENSIONS, or one that a user added.
Dimension = str
RelationName = Literal[
    "hasParticipant",
    "hasExpressor",
    "hasMappedEntity",
    "hasMappingEntity",
    "mappedOnto",
    "hasToxicElement",
    "projectedOnto",
    "about",
    "targets",
    "isLeftOf",
    "isRightOf",
    "isAbove",
    "isBelow",
    "isInside",
    "isInFrontOf",
    "isBehind",
    "isNextTo",
]
DIMENSIONS: tuple[Dimension, ...] = (
    "TextualMaterial",
    "VisualMaterial",
    "Scene",
    "BackgroundKnowledge",
    "Emotion",
    "AnalogicalMapping",
    "SemioticProjection",
    "OverallIntent",
    "Toxicity",
    "TargetCommunity",
)
# For two dimensions, M-QUEST's knowledge bases, questions and ontology use different names.
ALIASES: Mapping[str, Dimension] = MappingProxyType(
    {"EmotionExpression": "Emotion", "ToxicityAssessment": "Toxicity"}
)
