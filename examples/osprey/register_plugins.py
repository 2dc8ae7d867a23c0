"""Register the function with Osprey's plugin manager."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memantics_harm import MemanticsHarm
from osprey.engine.udf.base import UDFBase
from osprey.worker.adaptor.plugin_manager import hookimpl_osprey


@hookimpl_osprey  # type: ignore[untyped-decorator]
def register_udfs() -> Sequence[type[UDFBase[Any, Any]]]:
    """Return the functions that rules can call."""
    return [MemanticsHarm]
