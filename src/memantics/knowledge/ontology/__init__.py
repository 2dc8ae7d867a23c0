"""What can be said about a meme: our ontology (``meme.ttl``), its shapes, and its vocabulary."""

from memantics.knowledge.ontology.vocabulary import (
    DIMENSIONS,
    RELATIONS,
    TOXICITY_KINDS,
    find_dimension,
)

__all__ = ["DIMENSIONS", "RELATIONS", "TOXICITY_KINDS", "find_dimension"]
