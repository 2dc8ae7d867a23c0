"""The studio: a web page on which a person uploads a meme and sees all analysis results."""

from __future__ import annotations

from memantics.serve.studio.routes import router

__all__ = ["router"]
