"""Knowledge about memes: records, a store, reading and writing, checks, figures and drawings."""

from memantics.knowledge.records import (
    Dangling,
    Individual,
    Knowledge,
    Provenance,
    Relation,
    Statement,
    tell_apart,
)

__all__ = [
    "Dangling",
    "Individual",
    "Knowledge",
    "Provenance",
    "Relation",
    "Statement",
    "tell_apart",
]
