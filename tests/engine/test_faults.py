"""The engine against a server that misbehaves: every item ends, and the counts agree."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from memantics.core.errors import Unavailable
from memantics.core.records import Status
from memantics.core.rundir import RunWriter, last_answers, read_answers
from memantics.evaluation.ask import ask
from memantics.models.cache import Cache
from memantics.models.engine import AskSettings, Limiter, Progress, RetrySettings
from memantics.models.openai import OpenAIModel, OpenAISettings
from tests.engine.toy import draw_image, facts, toy_task
from tests.faults import Fault, FaultServer, serve

# Real waiting, but short.
QUICK = RetrySettings(per_call=4, first=0.01, longest=0.05)


async def run(
    server: FaultServer,
    folder: Path,
    count: int,
    invalid: str = "wrong",
    retries: RetrySettings = QUICK,
    limiter: Limiter | None = None,
) -> Progress:
    async with serve(server):
        model = OpenAIModel("toy", server.url, "", OpenAISettings(timeout=2.0, connections=16))
        cache = Cache(folder / "cache.sqlite")
        try:
            with RunWriter(folder / "run", facts()) as writer:
                settings = AskSettings(concurrency=16, retries=retries, limiter=limiter)
                task = toy_task(count, draw_image(folder), invalid)
                return await ask(task, model, writer, cache, settings)
        finally:
            cache.close()
            await model.close()


PASSING: Sequence[Fault] = (
    "429", "429 after", "429 date", "500", "503", "slow", "cut", "cut body",
    "half", "html", "html 502", "type", "empty choices", "error 200",
)  # fmt: skip
LASTING: Mapping[Fault, Status] = {
    "filter 400": "refused",
    "filter finish": "refused",
    "400": "failed",
    "413": "failed",
    "babble": "unparsed",
}


@pytest.mark.slow
def test_every_item_ends_and_counts_match_the_server(tmp_path: Path) -> None:
    chance = random.Random(5)
    schedule: dict[str, list[Fault]] = {}
    expected: dict[str, Status] = {f"item-{number}": "answered" for number in range(120)}
    for number, fault in enumerate(PASSING):  # each fault at least twice
        schedule[f"item-{number}"] = [fault]
        schedule[f"item-{number + 20}"] = [fault, chance.choice(["500", "cut", "half", "html"])]
    for number, (fault, status) in enumerate(LASTING.items(), 40):
        schedule[f"item-{number}"] = ["500", fault]
        expected[f"item-{number}"] = status
    schedule["item-50"] = ["500"] * 9
    expected["item-50"] = "failed"
    server = FaultServer(schedule)
    summary = asyncio.run(run(server, tmp_path, 120))

    last = last_answers(tmp_path / "run")
    assert {item: answer.status for item, answer in last.items()} == expected
    assert summary.calls == server.total
    assert {item: answer.calls for item, answer in last.items()} == server.calls
    assert summary.retries == server.total - 120
    assert summary.answered == server.answered.total()
    assert server.calls["item-50"] == QUICK.per_call + 1
    for fault in (*PASSING, *LASTING):
        assert server.did[fault] >= 1, fault
    lines = list(read_answers(tmp_path / "run"))
    assert len(lines) == 120
    for answer in lines:
        assert answer.status == "answered" or answer.value is None
        assert answer.status != "failed" or (answer.reply.text == "" and answer.reason)


def test_invalid_answers_meet_the_policy_and_the_server_counts(tmp_path: Path) -> None:
    server = FaultServer({"item-0": ["babble", "500", "babble"], "item-1": ["filter finish"]})
    summary = asyncio.run(run(server, tmp_path, 3, invalid="retry:3"))
    assert summary.answered == 3
    assert server.calls == {"item-0": 4, "item-1": 2, "item-2": 1}
    attempts = [(a.item, a.attempt, a.status, a.calls) for a in read_answers(tmp_path / "run")]
    assert sorted(attempts) == [
        ("item-0", 0, "unparsed", 1),
        ("item-0", 1, "unparsed", 2),
        ("item-0", 2, "answered", 1),
        ("item-1", 0, "refused", 1),
        ("item-1", 1, "answered", 1),
        ("item-2", 0, "answered", 1),
    ]


def test_overload_lowers_the_number_of_calls_in_flight(tmp_path: Path) -> None:
    server = FaultServer({f"item-{number}": ["429"] for number in range(16)}, seconds=0.005)
    limiter = Limiter(16)
    summary = asyncio.run(run(server, tmp_path, 60, limiter=limiter))
    assert summary.answered == 60
    assert server.most_in_flight == 16
    assert limiter.limit < 16
    assert limiter.in_flight == 0


def test_a_wrong_key_ends_the_run(tmp_path: Path) -> None:
    server = FaultServer(always="401")
    with pytest.raises(Unavailable, match="check the key"):
        asyncio.run(run(server, tmp_path, 500))
    assert server.total <= 16
    assert list(read_answers(tmp_path / "run")) == []


def test_nobody_at_home_is_told_within_seconds(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def scenario() -> None:
        model = OpenAIModel("toy", f"http://127.0.0.1:{port}/v1")
        try:
            with RunWriter(tmp_path, facts()) as writer:
                await ask(toy_task(100), model, writer, None, AskSettings(retries=QUICK))
        finally:
            await model.close()

    with pytest.raises(Unavailable, match="Connection refused; start the server"):
        asyncio.run(scenario())
    assert list(read_answers(tmp_path)) == []


def test_failed_items_are_asked_again_and_the_rest_is_not(tmp_path: Path) -> None:
    broken: dict[str, list[Fault]] = {f"item-{number}": ["400"] for number in range(5)}
    first = asyncio.run(run(FaultServer(broken), tmp_path, 30))
    assert (first.failed, first.answered) == (5, 25)
    server = FaultServer()
    second = asyncio.run(run(server, tmp_path, 30))
    assert (second.answered, second.resumed, server.total) == (30, 25, 5)
    assert set(server.calls) == set(broken)
