"""The client: every step ends in a status, and nothing that was answered is asked again."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import IO

import orjson
import pytest

from memantics.core import files
from memantics.core.errors import DataError, StoreError, Transient, Unavailable
from memantics.core.model import Step, Taken
from memantics.core.records import Form, Image, Message, Reply, Request
from memantics.core.rundir import RunWriter
from memantics.core.task import Unparsed
from memantics.evaluation.ask import ask
from memantics.models.client import CALLS, CallSettings, ModelClient, open_client
from memantics.models.engine import AskSettings, Progress, RetrySettings
from memantics.models.fake import FakeModel, Script, play
from memantics.models.recorded import RecordedModel
from tests.engine.toy import FACTS, toy_task

QUICK = AskSettings(retries=RetrySettings(per_call=1, first=0.0))


def ask_about(name: str) -> Step[int]:
    def read(text: str) -> int:
        if not text.isdigit():
            raise Unparsed("give one number")
        return int(text)

    text = f"How many legs has a {name}?"
    return Step(name, Request((Message("user", (text,)),), Form("", ())), read)


def take(folder: Path, script: Script, names: list[str]) -> tuple[list[Taken[int]], FakeModel]:
    model = FakeModel(script)

    async def work() -> list[Taken[int]]:
        with ModelClient(model, folder, settings=QUICK) as client:
            return list(await asyncio.gather(*(client.take(ask_about(name)) for name in names)))

    return asyncio.run(work()), model


def test_a_second_start_asks_nothing_again(tmp_path: Path) -> None:
    first, model = take(tmp_path, lambda _: "4", ["cat", "dog"])
    again, idle = take(tmp_path, lambda _: "5", ["cat", "dog", "cow"])
    assert model.asked == 2
    assert idle.asked == 1
    assert [taken.value for taken in first] == [4, 4]
    assert [taken.value for taken in again] == [4, 4, 5]
    assert [taken.when for taken in again[:2]] == [taken.when for taken in first]


def test_a_bad_answer_is_asked_again_with_the_reason(tmp_path: Path) -> None:
    heard: list[list[str]] = []

    def script(request: Request) -> str:
        heard.append([f"{own.role}: {own.parts[0]}" for own in request.messages])
        return "four" if len(heard) == 1 else "4"

    (taken,), _ = take(tmp_path, script, ["cat"])
    assert (taken.status, taken.value, taken.attempts, taken.calls) == ("answered", 4, 2, 2)
    assert heard[1][:2] == ["user: How many legs has a cat?", "assistant: four"]
    assert heard[1][2].startswith("user: Your last reply could not be used: give one number. Reply")
    (replayed,), idle = take(tmp_path, lambda _: "9", ["cat"])
    assert (replayed.value, idle.asked) == (4, 0)


def test_every_step_ends_in_a_status(tmp_path: Path) -> None:
    said: dict[str, str | Reply | Transient] = {
        "cat": "4",
        "dog": Reply("", refusal="no"),
        "cow": "…",
        "hen": Transient("down"),
    }

    def script(request: Request) -> str | Reply | Transient:
        text = str(request.messages[0].parts[0])
        return next(value for name, value in said.items() if f"a {name}?" in text)

    taken, _ = take(tmp_path, script, list(said))
    assert [one.status for one in taken] == ["answered", "refused", "unparsed", "failed"]
    assert taken[3].reason.startswith("down")


def test_a_failed_call_is_tried_again_at_the_next_start(tmp_path: Path) -> None:
    (failed,), _ = take(tmp_path, lambda _: Transient("down"), ["cat"])
    (taken,), model = take(tmp_path, lambda _: "4", ["cat"])
    assert (failed.status, taken.value, model.asked) == ("failed", 4, 1)


def test_the_same_question_at_the_same_time_is_one_call(tmp_path: Path) -> None:
    taken, model = take(tmp_path, lambda _: "4", ["cat"] * 5)
    assert model.asked == 1
    assert [one.value for one in taken] == [4] * 5


class Waiting(FakeModel):
    """Answers when it is let go."""

    def __init__(self) -> None:
        super().__init__(lambda _: "4")
        self.go = asyncio.Event()

    async def answer(self, request: Request) -> Reply:
        await self.go.wait()
        return await super().answer(request)


def test_who_gives_up_takes_the_answer_from_nobody_else(tmp_path: Path) -> None:
    async def work() -> tuple[list[Taken[int] | BaseException], int]:
        model = Waiting()
        with ModelClient(model, tmp_path, settings=QUICK) as client:
            asked = [asyncio.create_task(client.take(ask_about("cat"))) for _ in range(3)]
            for _ in range(20):
                await asyncio.sleep(0)
            asked[1].cancel()
            await asyncio.sleep(0)
            model.go.set()
            return await asyncio.gather(*asked, return_exceptions=True), model.asked

    (first, second, third), asked = asyncio.run(work())
    assert isinstance(second, asyncio.CancelledError)
    assert isinstance(first, Taken)
    assert isinstance(third, Taken)
    assert (first.value, first.calls, third.value, third.calls, asked) == (4, 1, 4, 0, 1)


def test_a_missing_image_fails_its_step_only(tmp_path: Path) -> None:
    request = Request((Message("user", (Image(tmp_path / "no.png"),)),), Form("", ()))

    async def work() -> Taken[str]:
        with ModelClient(FakeModel(play(["x"])), tmp_path) as client:
            return await client.take(Step("picture", request, str))

    taken = asyncio.run(work())
    assert (taken.id, taken.status, taken.value, taken.attempts) == ("picture", "failed", None, 1)
    assert "no.png" in taken.reason
    assert taken.model


def test_what_no_step_can_escape_is_raised(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="wrong key"):
        take(tmp_path, lambda _: Unavailable("wrong key"), ["cat", "dog"])


def test_the_call_log_can_be_replayed(tmp_path: Path) -> None:
    take(tmp_path / "one", play(["four", "4"]), ["cat"])
    model = RecordedModel(tmp_path / "one" / CALLS)

    async def work() -> Taken[int]:
        try:
            with ModelClient(model, tmp_path / "two") as client:
                return await client.take(ask_about("cat"))
        finally:
            await model.close()

    assert asyncio.run(work()).value == 4


FULL = Reply(
    "4", "it has legs", "", "stop", 90, 6, "toy-2", "asked otherwise", 5, {"A": 0.25, "B": 0.75}
)
DECLINED = replace(FULL, text="", refusal="not that")


def replay(recording: Path, request: Request) -> Reply:
    model = RecordedModel(recording)

    async def work() -> Reply:
        try:
            return await model.answer(request)
        finally:
            await model.close()

    return asyncio.run(work())


@pytest.mark.parametrize("reply", [FULL, DECLINED])
def test_every_field_of_a_reply_survives_the_call_log_and_its_replay(
    tmp_path: Path, reply: Reply
) -> None:
    plain = Reply("")
    other = {
        part.name for part in fields(Reply) if getattr(FULL, part.name) != getattr(plain, part.name)
    }
    assert other | {"refusal"} == {part.name for part in fields(Reply)}  # no field is left out
    take(tmp_path, lambda _: reply, ["cat"])
    assert replay(tmp_path / CALLS, ask_about("cat").request) == reply
    first = (tmp_path / CALLS).read_bytes().splitlines(keepends=True)[0]
    # A recording may have the fields of the reply beside the others.
    line = orjson.loads(first)
    flat = tmp_path / "flat.jsonl"
    flat.write_bytes(orjson.dumps(line | line.pop("reply")) + b"\n")
    assert "reply" not in orjson.loads(flat.read_bytes())
    assert replay(flat, ask_about("cat").request) == reply
    begun = tmp_path / "begun" / CALLS
    begun.parent.mkdir()
    begun.write_bytes(first)
    again, idle = take(begun.parent, lambda _: "5", ["cat"])
    # The reply is known: only a refusal leads to a second attempt, which is asked.
    assert (again[0].attempts, idle.asked) == ((1, 0) if reply is FULL else (2, 1))


@pytest.mark.parametrize("reply", [replace(FULL, text="The answer is B."), DECLINED])
def test_every_field_of_a_reply_survives_a_run_and_its_replay(tmp_path: Path, reply: Reply) -> None:
    task = toy_task(1)
    with RunWriter(tmp_path, FACTS) as writer:
        asyncio.run(ask(task, FakeModel(lambda _: reply), writer))
    assert replay(tmp_path, task.ask(next(task.items()), None)) == reply


def test_two_clients_never_share_a_folder(tmp_path: Path) -> None:
    with (
        ModelClient(FakeModel(play(["4"])), tmp_path),
        pytest.raises(StoreError, match="another process"),
    ):
        ModelClient(FakeModel(play(["4"])), tmp_path)


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    take(tmp_path, lambda _: "4", ["cat"])
    call_log = tmp_path / CALLS
    call_log.write_bytes(b'{"key": 1}\n' + call_log.read_bytes())
    with pytest.raises(StoreError, match="line 1 is damaged"):
        take(tmp_path, lambda _: "4", ["cat"])


def test_an_empty_recording_is_an_error(tmp_path: Path) -> None:
    (tmp_path / CALLS).write_bytes(b"")
    with pytest.raises(DataError):
        RecordedModel(tmp_path / CALLS)


SLOW = """
import asyncio, sys
from pathlib import Path
from memantics.models.fake import FakeModel
from memantics.models.client import ModelClient
from memantics.models.engine import AskSettings
from tests.engine.toy import FACTS, toy_task
from tests.engine.test_client import ask_about

async def work():
    model = FakeModel(lambda _: "4", seconds=0.02)
    with ModelClient(model, Path(sys.argv[1]), settings=AskSettings(concurrency=2)) as client:
        await asyncio.gather(*(client.take(ask_about(f"cat {n}")) for n in range(200)))

asyncio.run(work())
"""


def test_kill_9_loses_only_calls_in_flight(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen([sys.executable, "-c", SLOW, str(tmp_path)], cwd=root)
    call_log = tmp_path / CALLS
    while not call_log.exists() or call_log.read_bytes().count(b"\n") < 20:
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with call_log.open("ab") as file:
        file.write(b'{"key": "half a li')
    before = call_log.read_bytes().count(b"\n")
    assert before < 200
    taken, model = take(tmp_path, lambda _: "4", [f"cat {n}" for n in range(200)])
    assert model.asked == 200 - before
    assert all(one.value == 4 for one in taken)
    keys = [orjson.loads(line)["key"] for line in call_log.read_bytes().splitlines()]
    assert len(keys) == len(set(keys)) == 200


def test_after_a_cut_line_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up cuts a line; one behind it would hide the cut from the next start."""
    real, cut = files.write_whole, iter([True])

    def fill_up(file: IO[bytes], line: bytes) -> None:
        if next(cut, False):
            file.write(line[:20])
            raise OSError(errno.ENOSPC, "No space left on device")
        real(file, line)

    monkeypatch.setattr(files, "write_whole", fill_up)
    names = ["cat", "dog", "cow"]

    async def work() -> list[object]:
        with ModelClient(FakeModel(lambda _: "4"), tmp_path, settings=QUICK) as client:
            steps = [client.take(ask_about(name)) for name in names]
            return list(await asyncio.gather(*steps, return_exceptions=True))

    assert [type(outcome) for outcome in asyncio.run(work())] == [StoreError] * 3
    again, model = take(tmp_path, lambda _: "4", names)
    assert ([taken.value for taken in again], model.asked) == ([4, 4, 4], 3)


def test_steps_that_were_not_needed_are_not_counted_at_the_end(tmp_path: Path) -> None:
    seen: list[Progress] = []

    async def work(*, fail: bool) -> None:
        async with open_client("fake/decline", CallSettings(), tmp_path, seen.append) as client:
            client.expect(3)
            await client.take(ask_about("cat"))
            if fail:
                raise DataError(tmp_path, "stopped")

    asyncio.run(work(fail=False))
    assert [(one.done, one.total) for one in seen] == [(1, 3), (1, 1)]
    with pytest.raises(DataError):
        asyncio.run(work(fail=True))
    assert (seen[-1].done, seen[-1].total) == (1, 3)
