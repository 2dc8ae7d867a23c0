"""Commands in processes of their own that talk to the fault server, and what becomes of them."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process

from tests.faults import FaultServer

PATIENCE = 120


async def finish(process: Process) -> tuple[int, str, str]:
    """Wait for its end: exit code and what it printed, never a traceback."""
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert b"Traceback" not in err, err.decode()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def until(server: FaultServer, calls: int) -> None:
    """Wait until a server was called that often."""
    async with asyncio.timeout(PATIENCE):
        while server.total < calls:
            await asyncio.sleep(0.001)


async def settle(server: FaultServer) -> None:
    """Let the server read what a dead client had still sent."""
    before = -1
    while before != server.total or server.in_flight:
        before = server.total
        await asyncio.sleep(0.2)
