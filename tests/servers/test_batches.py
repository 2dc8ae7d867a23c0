"""``run --engine batch``: whatever kills it, the same command goes on and asks nothing twice."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from memantics.core.rundir import last_answers, read_answers
from tests.commands import Shell
from tests.servers.batches import BatchServer, say

ITEMS = 4


async def start(shell: Shell, url: str, *more: str) -> Process:
    words = ["run", "mquest/qa", "--data", "sample", "--model", "openai/m", "--engine", "batch"]
    words += ["--base-url", url, "--limit", str(ITEMS), "--json", *more]
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "memantics.cli.main", *words),
        cwd=shell.folder,
        env=shell.environment,
        stdout=PIPE,
        stderr=PIPE,
    )


async def finish(process: Process) -> tuple[int, Any, str]:
    out, err = await asyncio.wait_for(process.communicate(), 120)
    return process.returncode or 0, orjson.loads(out) if out else None, err.decode()


def check_run(shell: Shell) -> None:
    (folder,) = (shell.folder / "runs").iterdir()
    answers = last_answers(folder)
    assert len(answers) == ITEMS
    assert {answer.status for answer in answers.values()} == {"answered"}
    assert len(list(read_answers(folder))) == ITEMS


@asynccontextmanager
async def killed_at(server: BatchServer, shell: Shell, step: str) -> AsyncIterator[str]:
    """The address of a server that kills its client when it comes to a step, unheard."""
    async with server.serve() as url:
        process = await start(shell, url)

        def kill(seen: str) -> None:
            if seen == step and process.returncode is None:
                os.kill(process.pid, signal.SIGKILL)

        server.watch = kill
        code, *_ = await finish(process)
        assert code == -signal.SIGKILL
        server.watch = lambda _: None
        yield url


@pytest.mark.slow
@pytest.mark.parametrize("step", ["upload", "create", "look", "download"])
def test_a_kill_at_every_step_asks_nothing_twice(step: str, tmp_path: Path) -> None:
    asyncio.run(kill_at(step, tmp_path))


async def kill_at(step: str, tmp_path: Path) -> None:
    server, shell = BatchServer(), Shell(tmp_path)
    async with killed_at(server, shell, step) as url:
        code, _, err = await finish(await start(shell, url))
        assert code == 0, err
        check_run(shell)
        assert set(server.asked.values()) == {1}
        assert len(server.asked) == ITEMS
        assert server.called == 0
        # Once more: everything is answered, nothing goes out, and nothing is left behind.
        before = list(server.steps)
        code, *_ = await finish(await start(shell, url))
        assert (code, server.steps) == (0, before)
        assert not list((shell.home / "batches").glob("*/*.jsonl"))


@pytest.mark.slow
def test_what_failed_in_a_batch_is_asked_in_the_next(tmp_path: Path) -> None:
    asyncio.run(fail_once(tmp_path))


async def fail_once(tmp_path: Path) -> None:
    """A passing fault is asked again, a refusal of the server is not."""
    shell, seen = Shell(tmp_path), set[str]()

    def reply(line: dict[str, Any]) -> dict[str, Any]:
        name = line["custom_id"]
        first = not seen
        again = name in seen
        seen.add(name)
        if first:
            body = {"error": {"message": "too long"}}
            return {"response": {"status_code": 400, "body": body}, "error": None}
        if len(seen) == 2 and not again:
            return {"response": None, "error": {"code": "batch_expired", "message": "expired"}}
        return say("Answer: A")

    server = BatchServer(reply=reply)
    async with server.serve() as url:
        code, _, err = await finish(await start(shell, url))
        assert code == 1, err
        assert "too long" in err
    assert sorted(server.asked.values()) == [1, 1, 1, 2]
    (folder,) = (tmp_path / "runs").iterdir()
    statuses = sorted(answer.status for answer in last_answers(folder).values())
    assert statuses == ["answered"] * 3 + ["failed"]


def test_batches_are_for_servers(tmp_path: Path) -> None:
    words = ("run", "mquest/qa", "--model", "baseline/longest", "--engine", "batch")
    assert "--engine batch works with models on servers only" in Shell(tmp_path).refused(*words)
