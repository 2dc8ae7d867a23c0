"""Web pages to browse a knowledge graph and a folder of runs."""

from __future__ import annotations

from memantics.serve.browse.routes import router

__all__ = ["router"]
