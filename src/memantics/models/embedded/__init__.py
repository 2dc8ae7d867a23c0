"""``embedded/reader``: an offline, deterministic baseline for every kind of task; not a VLM."""

from __future__ import annotations

from memantics.models.embedded.reader import NAME, EmbeddedReader

__all__ = ["NAME", "EmbeddedReader"]
