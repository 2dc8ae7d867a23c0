"""What can be said about a meme: our ontology (``meme.ttl``), its shapes, and its vocabulary."""

from memantics.core.meaning import DIMENSIONS
from memantics.understanding.knowledge.ontology.vocabulary import (
    RELATIONS,
    TOXICITY_KINDS,
    find_dimension,
)

__all__ = ["DIMENSIONS", "RELATIONS", "TOXICITY_KINDS", "find_dimension"]
