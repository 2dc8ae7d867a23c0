"""Models and the client that calls them: model types, engine, cache, retries, log, local models."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memantics.models.client import CallSettings as CallSettings
else:
    from memantics.core.lazy import offer

    offer(__name__, __file__)
