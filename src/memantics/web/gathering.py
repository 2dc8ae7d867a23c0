"""A connection that sends what is written in one turn of the loop as one piece."""

from __future__ import annotations

import asyncio
from typing import Any

_PIECE = 64 * 1024  # bytes that are not held back


class GatheringTransport:
    """Head and body of an answer are written one after the other; as one piece they cost half."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = bytearray()

    def write(self, data: bytes) -> None:
        """Send at the end of this turn, or at once where it is much."""
        if data and not self._held:
            self._loop.call_soon(self.flush)
        self._held += data
        if len(self._held) >= _PIECE:
            self.flush()

    def flush(self) -> None:
        """Send what is held."""
        held, self._held = self._held, bytearray()
        if held and not self._transport.is_closing():
            self._transport.write(held)

    def close(self) -> None:
        """Send what is held, then hang up."""
        self.flush()
        self._transport.close()

    def get_write_buffer_size(self) -> int:
        """Bytes that have not left."""
        return len(self._held) + self._transport.get_write_buffer_size()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
