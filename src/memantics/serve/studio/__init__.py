"""The page on which a person drops a meme."""

from __future__ import annotations

from memantics.serve.studio.routes import router

__all__ = ["router"]
