"""The fault server in a thread, for tests that run other processes against it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.faults import FaultServer, serve


@contextmanager
def serve_in_background(server: FaultServer | None = None) -> Iterator[FaultServer]:
    """Serve until the block ends."""
    server = server or FaultServer()
    loop = asyncio.new_event_loop()
    ready, stop = threading.Event(), asyncio.Event()

    async def run() -> None:
        async with serve(server):
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    assert ready.wait(60)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()
