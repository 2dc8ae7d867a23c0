"""Knowledge about memes: records, a store, reading and writing, checks, figures and drawings."""

from memantics.understanding.knowledge.records import (
    Individual,
    Knowledge,
    Provenance,
    Relation,
    Statement,
    tell_apart,
)

__all__ = ["Individual", "Knowledge", "Provenance", "Relation", "Statement", "tell_apart"]
