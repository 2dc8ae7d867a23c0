"""A suite that is killed or interrupted loses nothing and asks nothing twice."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from pathlib import Path

import pytest

from memantics.core.rundir import last_answers, read_answers, read_facts, read_items
from tests.commands import Shell
from tests.faults import FaultServer, serve
from tests.places import ROOT
from tests.processes import finish, settle, until
from tests.suite.toys import environment, write_toy

pytestmark = pytest.mark.slow

ITEMS = 60
CONCURRENCY = 8
MODELS = ("openai/first", "openai/second")
TOYS = ("alpha", "beta", "gamma")
TASKS = ("choice", "note", "use")
RUNS = len(TOYS) * len(TASKS) * len(MODELS)
OFFSETS = {"choice": 0, "note": 3000, "use": 6000}
ALL = {
    f"item-{10_000 * (place + 1) + offset + number}"
    for place in range(len(TOYS))
    for offset in OFFSETS.values()
    for number in range(ITEMS)
}


async def start(shell: Shell, url: str) -> Process:
    words = ["run", *TOYS, "--out", str(shell.folder / "runs"), "--concurrency", str(CONCURRENCY)]
    words += [word for model in MODELS for word in ("--model", model)]
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "memantics.cli.main", *words, "--json"),
        cwd=ROOT,
        env=environment(shell, shell.folder / "toys", url),
        stdout=PIPE,
        stderr=PIPE,
    )


def write_toys(shell: Shell) -> None:
    for place, name in enumerate(TOYS):
        write_toy(shell.folder / "toys", name, 10_000 * (place + 1), ITEMS)


def check_complete(folder: Path) -> None:
    """Every run has every item and every answer once."""
    runs = sorted(folder.iterdir())
    assert len(runs) == RUNS
    seen: Counter[str] = Counter()
    for run in runs:
        answers = Counter(answer.item for answer in read_answers(run))
        items = Counter(line.item.id for line in read_items(run))
        assert answers == items
        assert set(answers.values()) == {1}
        assert len(answers) == ITEMS
        assert read_facts(run).finished
        assert (run / "scores.json").exists()
        seen.update(answers)
    assert seen == Counter(dict.fromkeys(ALL, len(MODELS)))


def count_written(folder: Path) -> int:
    return sum(len(last_answers(run)) for run in folder.iterdir())


def test_kill_9_again_and_again(shell: Shell) -> None:
    write_toys(shell)
    folder = shell.folder / "runs"
    whole = RUNS * ITEMS

    async def scenario() -> None:
        async with serve(FaultServer(seconds=0.01)) as server:
            lost = 0
            for stop in (whole // 5, whole // 2, whole * 4 // 5):
                process = await start(shell, server.url)
                await until(server, stop)
                process.send_signal(signal.SIGKILL)
                assert (await finish(process))[0] == -signal.SIGKILL
                await settle(server)
                before, lost = lost, server.total - count_written(folder)
                # What is not on disk was in flight at one of the kills.
                assert lost - before <= len(MODELS) * CONCURRENCY
            code, out, err = await finish(await start(shell, server.url))
            assert code == 0, err
            assert server.total == whole + lost
            assert set(server.calls) == ALL
            results = [row for row in json.loads(out) if "scores" in row]
            assert len(results) == RUNS
            assert all(row["scores"]["counts"]["answered"] == ITEMS for row in results)
            # Once more: nothing is left to ask.
            code, _, _ = await finish(await start(shell, server.url))
            assert code == 0
            assert server.total == whole + lost

    asyncio.run(scenario())
    check_complete(folder)


def test_ctrl_c_lets_calls_end_and_says_how_to_go_on(shell: Shell) -> None:
    write_toys(shell)
    folder = shell.folder / "runs"
    whole = RUNS * ITEMS

    async def scenario() -> None:
        async with serve(FaultServer(seconds=0.02)) as server:
            process = await start(shell, server.url)
            await until(server, whole // 3)
            process.send_signal(signal.SIGINT)
            code, _, err = await finish(process)
            assert code == 130
            assert "run the same command again to" in err
            await settle(server)
            assert count_written(folder) == server.total < whole
            code, _, err = await finish(await start(shell, server.url))
            assert code == 0, err
            assert server.total == whole

    asyncio.run(scenario())
    check_complete(folder)


def test_faults_of_single_items_end_in_exit_code_1_and_are_asked_again(shell: Shell) -> None:
    """One choice fails for both models, and one note: its meme's uses have to wait."""
    write_toys(shell)

    async def scenario() -> None:
        async with serve(FaultServer()) as server:
            server.schedule = {"item-10003": ["400"] * 2, "item-23000": ["400"] * 2}
            server.schedule["item-23001"] = ["400"] * 2
            code, out, err = await finish(await start(shell, server.url))
            assert code == 1
            assert "6 items failed; repeat the command" in err
            assert "4 items were not asked" in err
            waiting = {
                row["facts"]["task"]: row["waiting"]
                for row in json.loads(out)
                if row.get("waiting")
            }
            assert waiting == {"beta/use": 2}
            code, _, err = await finish(await start(shell, server.url))
            assert code == 0, err

    asyncio.run(scenario())
    for run in (shell.folder / "runs").iterdir():
        assert {answer.status for answer in last_answers(run).values()} == {"answered"}
        assert len(last_answers(run)) == ITEMS
