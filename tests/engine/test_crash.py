"""Runs that are killed, interrupted or out of disk lose nothing; the server's counts say so."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from pathlib import Path

import pytest

from memantics.core.rundir import last_answers, read_answers, read_items
from tests.faults import FaultServer, serve
from tests.places import ROOT
from tests.processes import finish, settle, until

pytestmark = pytest.mark.slow

ITEMS = 200
IN_FLIGHT = 8
ALL = {f"item-{number}" for number in range(ITEMS)}


async def start(folder: Path, url: str, **environment: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.engine.client",
        str(folder),
        url,
        str(ITEMS),
        cwd=ROOT,
        env=os.environ | environment,
        stdout=PIPE,
        stderr=PIPE,
    )


def check_complete(folder: Path) -> None:
    """No item is missing and none is double."""
    answered = Counter(answer.item for answer in read_answers(folder / "run"))
    assert answered == Counter(ALL)
    assert Counter(line.item.id for line in read_items(folder / "run")) == Counter(ALL)


def test_kill_9_at_half_loses_only_calls_in_flight(tmp_path: Path) -> None:
    async def scenario() -> FaultServer:
        async with serve(FaultServer(seconds=0.01)) as server:
            process = await start(tmp_path, server.url)
            await until(server, ITEMS // 2)
            process.send_signal(signal.SIGKILL)
            assert (await finish(process))[0] == -signal.SIGKILL
            await settle(server)
            kept = set(last_answers(tmp_path / "run"))
            asked = Counter(server.calls)
            assert len(asked) - len(kept) <= IN_FLIGHT
            code, _, err = await finish(await start(tmp_path, server.url))
            assert code == 0, err
            again = {item for item, calls in server.calls.items() if calls > 1}
            assert again == set(asked) - kept
            return server

    server = asyncio.run(scenario())
    assert set(server.calls) == ALL
    assert ITEMS <= server.total <= ITEMS + IN_FLIGHT
    check_complete(tmp_path)


def test_kill_9_again_and_again(tmp_path: Path) -> None:
    async def scenario() -> FaultServer:
        async with serve(FaultServer(seconds=0.005)) as server:
            for stop in (30, 80, 150):
                process = await start(tmp_path, server.url)
                await until(server, stop)
                process.send_signal(signal.SIGKILL)
                await finish(process)
            code, _, err = await finish(await start(tmp_path, server.url))
            assert code == 0, err
            return server

    server = asyncio.run(scenario())
    assert server.total <= ITEMS + 3 * IN_FLIGHT
    check_complete(tmp_path)


def test_ctrl_c_lets_calls_end_and_goes_on_later(tmp_path: Path) -> None:
    async def scenario() -> FaultServer:
        async with serve(FaultServer(seconds=0.01)) as server:
            process = await start(tmp_path, server.url)
            await until(server, ITEMS // 2)
            process.send_signal(signal.SIGINT)
            code, _, err = await finish(process)
            assert (code, err) == (130, "")
            # Calls in flight were given time to end: all that was asked is on disk.
            assert set(last_answers(tmp_path / "run")) == set(server.calls)
            assert len(server.calls) < ITEMS
            code, _, err = await finish(await start(tmp_path, server.url))
            assert code == 0, err
            return server

    server = asyncio.run(scenario())
    assert server.total == ITEMS
    check_complete(tmp_path)


def test_a_second_process_on_one_folder_is_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(FaultServer()) as server:
            server.gate = asyncio.Event()
            first = await start(tmp_path, server.url)
            await until(server, IN_FLIGHT)
            code, _, err = await finish(await start(tmp_path, server.url))
            assert code == 2
            assert "is being written by another process; wait until" in err
            server.gate.set()
            assert (await finish(first))[0] == 0
            assert server.total == ITEMS

    asyncio.run(scenario())
    check_complete(tmp_path)


def test_a_full_disk_is_told_and_nothing_is_damaged(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(FaultServer()) as server:
            # Enough for the cache's tables, too little for all the items.
            code, _, err = await finish(await start(tmp_path, server.url, TOY_MAX_BYTES="40001"))
            assert code == 2, err
            assert "cannot be written" in err
            assert len(err.splitlines()) == 1
            assert 0 < len(last_answers(tmp_path / "run")) < ITEMS
            code, _, err = await finish(await start(tmp_path, server.url))
            assert code == 0, err

    asyncio.run(scenario())
    check_complete(tmp_path)
