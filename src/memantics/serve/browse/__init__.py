"""Pages on which a knowledge store and a folder of runs are read."""

from __future__ import annotations

from memantics.serve.browse.routes import router

__all__ = ["router"]
