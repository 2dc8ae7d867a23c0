"""Time as the engine sees it: replaceable, so that no test has to wait."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Seconds that only grow, and sleep."""

    def now(self) -> float:
        """Seconds since some fixed moment."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Come back after that many seconds."""
        ...


class RealClock:
    """The clock on the wall."""

    def now(self) -> float:
        """Seconds since some fixed moment."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Come back after that many seconds."""
        await asyncio.sleep(seconds)
