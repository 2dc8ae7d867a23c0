"""The thread that collects requests: order, grouping, trouble and the end. No model needed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

from memantics.core.errors import Rejected, Unavailable
from memantics.core.records import Form, Image, Message, Reply, Request
from memantics.models.local.model import RequestBatcher
from memantics.models.local.runtime import EncodedPrompt, OutOfMemory, ReadyRequest, RowDecoding

pytestmark = pytest.mark.slow


def ask(text: str, *, image: bool = False) -> Request:
    parts: tuple[str | Image, ...] = (Image(Path("x.png")), text) if image else (text,)
    return Request((Message("user", parts),), Form("", ()))


class Echo:
    """Answers with the text; keeps what came together. ``room`` is how much memory it has."""

    def __init__(self, room: int = 99) -> None:
        self.batches: list[list[str]] = []
        self.room = room
        self.gate = threading.Event()
        self.gate.set()

    def prepare(self, request: Request) -> ReadyRequest:
        text = next(p for p in request.messages[0].parts if isinstance(p, str))
        if text == "unpreparable":
            raise KeyError(text)
        return ReadyRequest(EncodedPrompt(text), 1, RowDecoding(0.0, 0))

    def generate(self, turns: Sequence[ReadyRequest], stop: Callable[[], bool]) -> list[Reply]:
        while not (self.gate.wait(0.01) or stop()):
            pass
        texts = [turn.prompt.text for turn in turns]
        self.batches.append(texts)
        if len(texts) > self.room:
            raise OutOfMemory
        if "assert" in texts:
            raise RuntimeError("CUDA error: device-side assert triggered")
        if "odd" in texts:
            raise ValueError("odd")
        return [Reply(text) for text in texts]


def run(
    echo: Echo, requests: Sequence[Request], size: int = 4
) -> tuple[list[object], RequestBatcher]:
    batcher = RequestBatcher(lambda: echo, size)

    async def all_at_once() -> list[object]:
        futures = [asyncio.wrap_future(batcher.submit(request)) for request in requests]
        return await asyncio.gather(*futures, return_exceptions=True)

    try:
        return asyncio.run(all_at_once()), batcher
    finally:
        batcher.close()


def test_requests_that_wait_together_are_answered_together() -> None:
    echo = Echo()
    replies, _ = run(echo, [ask(str(number)) for number in range(10)])
    assert replies == [Reply(str(number)) for number in range(10)]
    assert [len(batch) for batch in echo.batches] == [4, 4, 2]


def test_those_with_and_without_images_never_meet_and_none_starves() -> None:
    echo = Echo()
    requests = [ask(str(number), image=number % 3 == 0) for number in range(9)]
    replies, _ = run(echo, requests)
    assert replies == [Reply(str(number)) for number in range(9)]
    assert [sorted({int(text) % 3 == 0 for text in batch}) for batch in echo.batches] == [
        [True],
        [False],
        [False],
    ]


def test_a_batch_that_does_not_fit_is_halved_and_stays_small() -> None:
    echo = Echo(room=2)
    replies, batcher = run(echo, [ask(str(number)) for number in range(12)], size=8)
    assert replies == [Reply(str(number)) for number in range(12)]
    assert batcher.size == 2
    assert [len(batch) for batch in echo.batches] == [8, 4, 2, 2, 4, 2, 2, 2, 2]


def test_one_request_that_never_fits_fails_alone() -> None:
    class Full(Echo):
        def generate(self, turns: Sequence[ReadyRequest], stop: Callable[[], bool]) -> list[Reply]:
            if any(turn.prompt.text == "huge" for turn in turns):
                raise OutOfMemory
            return super().generate(turns, stop)

    replies, _ = run(Full(), [ask("a"), ask("huge"), ask("b")])
    assert (replies[0], replies[2]) == (Reply("a"), Reply("b"))
    assert isinstance(replies[1], Rejected)
    assert "out of memory" in str(replies[1])
    assert "max_pixels" in str(replies[1])


def test_the_one_at_fault_is_found() -> None:
    replies, _ = run(Echo(), [ask("a"), ask("unpreparable"), ask("odd"), ask("b")])
    assert (replies[0], replies[3]) == (Reply("a"), Reply("b"))
    assert "cannot be prepared" in str(replies[1])
    assert str(replies[2]) == "the model failed on this request: ValueError: odd"


def test_a_lost_gpu_ends_the_run_at_once() -> None:
    echo = Echo()
    replies, _ = run(echo, [ask("a"), ask("assert"), ask("b")])
    assert [type(reply) for reply in replies] == [Unavailable] * 3
    assert len(echo.batches) == 1


@pytest.mark.parametrize("error", [Unavailable("cannot be loaded"), ZeroDivisionError("odd")])
def test_a_model_that_does_not_open_tells_everyone(error: Exception) -> None:
    def fail() -> Echo:
        raise error

    batcher = RequestBatcher(fail, 4)
    futures = [batcher.submit(ask("a")), batcher.submit(ask("b"))]
    for future in futures:
        with pytest.raises(Unavailable):
            future.result(timeout=60)
    with pytest.raises(Unavailable):
        batcher.submit(ask("later")).result(timeout=60)
    batcher.close()


def test_closing_stops_what_runs_and_cancels_what_waits() -> None:
    echo = Echo()
    echo.gate.clear()
    batcher = RequestBatcher(lambda: echo, 1)
    running, waiting = batcher.submit(ask("a")), batcher.submit(ask("b"))
    while not running.running():
        pass
    batcher.close()
    assert running.result(timeout=60) == Reply("a")
    with pytest.raises(CancelledError):
        waiting.result(timeout=60)
    with pytest.raises(Unavailable, match="closed"):
        batcher.submit(ask("c"))
    assert echo.batches == [["a"]]


def test_a_cancelled_request_is_not_answered() -> None:
    echo = Echo()
    echo.gate.clear()
    batcher = RequestBatcher(lambda: echo, 1)
    first, second = batcher.submit(ask("a")), batcher.submit(ask("b"))
    while not first.running():
        pass
    assert second.cancel()
    third = batcher.submit(ask("c"))
    echo.gate.set()
    assert third.result(timeout=60) == Reply("c")
    batcher.close()
    assert echo.batches == [["a"], ["c"]]
