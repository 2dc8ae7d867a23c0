"""What can be said about a meme: our ontology (``meme.ttl``), its shapes, and its vocabulary."""

from memantics.knowledge.ontology.vocabulary import (
    DIMENSIONS,
    RELATIONS,
    TOXICITY_KINDS,
    Dimension,
    KindTerm,
    RelationName,
    RelationTerm,
    ToxicityKind,
    find_dimension,
    find_kind,
)

__all__ = [
    "DIMENSIONS",
    "RELATIONS",
    "TOXICITY_KINDS",
    "Dimension",
    "KindTerm",
    "RelationName",
    "RelationTerm",
    "ToxicityKind",
    "find_dimension",
    "find_kind",
]
