"""The studio: a web page to which a person uploads a meme and sees every result for it."""

from __future__ import annotations

from memantics.serve.studio.routes import router

__all__ = ["router"]
