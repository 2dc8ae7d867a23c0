"""The page on which a person drops a meme."""

from memantics.serve.studio.routes import router

__all__ = ["router"]
