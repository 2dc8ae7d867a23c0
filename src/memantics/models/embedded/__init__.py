"""``embedded/reader``: an offline, deterministic baseline for every kind of task; not a VLM."""

from memantics.models.embedded.reader import NAME, EmbeddedReader

__all__ = ["NAME", "EmbeddedReader"]
