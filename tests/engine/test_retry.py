from __future__ import annotations

import asyncio
import random

import pytest

from memantics.core.errors import (
    ImageError,
    ModelError,
    Refused,
    Rejected,
    Transient,
    Unavailable,
    Unreachable,
)
from memantics.models.engine import Called, Caller, Limiter, RetrySettings, draw_delay
from memantics.models.fake import FakeModel, ScriptedReply, play
from tests.engine.toy import FakeClock, toy_request


class Scene:
    """A caller with a scripted model and a clock that nobody waits for."""

    def __init__(
        self, *lines: ScriptedReply, settings: RetrySettings | None = None, seen: int = 0
    ) -> None:
        self.clock = FakeClock()
        self.limiter = Limiter(8, self.clock)
        self.limiter.answered = seen
        self.model = FakeModel(play(lines))
        self.caller = Caller(
            self.model,
            self.limiter,
            settings or RetrySettings(),
            self.clock,
            random.Random(1),
        )

    def call(self) -> Called:
        return asyncio.run(self.caller.call(toy_request()))


def test_retries_until_an_answer_comes() -> None:
    scene = Scene(Transient("500"), Transient("cut"), "B")
    called = scene.call()
    assert called.reply is not None
    assert (called.reply.text, called.calls, scene.caller.retries) == ("B", 3, 2)
    assert len(scene.clock.slept) == 2
    assert scene.clock.slept[0] <= 0.5
    assert scene.clock.slept[1] <= 1.0


def test_gives_up_after_the_cap_of_a_call() -> None:
    scene = Scene(Transient("HTTP 500"), settings=RetrySettings(per_call=3))
    called = scene.call()
    assert (called.reply, called.calls) == (None, 4)
    assert called.reason == "HTTP 500; given up after 4 tries"


def test_the_cap_of_the_run_ends_all_retries() -> None:
    scene = Scene(Transient("HTTP 500"), settings=RetrySettings(per_call=3, per_run=4))
    assert [scene.call().calls for _ in range(3)] == [4, 2, 1]
    assert "4 retries are used up" in scene.call().reason


def test_retry_after_pauses_the_whole_model() -> None:
    scene = Scene(Transient("HTTP 429", retry_after=9.0, overloaded=True), "B")
    scene.call()
    assert scene.clock.slept[0] >= 9.0
    assert scene.limiter.limit == 4
    paused = Scene(Transient("HTTP 429", retry_after=9.0, overloaded=True), "B")
    paused.limiter.pause(20.0)
    paused.call()
    assert paused.clock.time >= 1029.0


def test_a_wait_beyond_patience_ends_the_run() -> None:
    scene = Scene(Transient("HTTP 429", retry_after=86400.0, overloaded=True))
    with pytest.raises(Unavailable, match=r"asks to wait 86400 s; run the same command again"):
        scene.call()


def test_a_server_that_never_answered_is_given_up_quickly() -> None:
    scene = Scene(Unreachable("localhost:1 cannot be reached"))
    with pytest.raises(Unavailable, match="start the server"):
        scene.call()
    assert scene.model.asked == 4
    assert sum(scene.clock.slept) < 2


def test_a_server_that_comes_back_is_waited_for() -> None:
    scene = Scene(
        Unreachable("gone"),
        Unreachable("gone"),
        Unreachable("gone"),
        Unreachable("gone"),
        "B",
        seen=5,
    )
    called = scene.call()
    assert called.reply is not None
    assert called.calls == 5


def test_a_server_that_left_for_good_ends_the_run() -> None:
    scene = Scene(Unreachable("localhost:1 cannot be reached"), seen=5)
    with pytest.raises(
        Unavailable, match="the connection is lost; start the server, then run the same command"
    ):
        scene.call()
    assert scene.model.asked == RetrySettings().per_call + 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [(Rejected("HTTP 400: too long"), "HTTP 400: too long")],
)
def test_rejected_is_never_repeated(error: ModelError, reason: str) -> None:
    scene = Scene(error)
    called = scene.call()
    assert (called.reply, called.reason, called.calls) == (None, reason, 1)


def test_refused_is_a_reply() -> None:
    called = Scene(Refused("HTTP 400: filtered")).call()
    assert called.reply is not None
    assert called.reply.refusal == "HTTP 400: filtered"


def test_a_bad_image_is_no_call() -> None:
    def script(request: object) -> str:
        raise ImageError("x.png", "format", "not an image")

    scene = Scene("B")
    scene.model._script = script
    called = scene.call()
    assert (called.reply, called.calls, scene.caller.calls) == (None, 0, 0)
    assert "x.png: format" in called.reason


def test_unavailable_passes_and_frees_the_slot() -> None:
    scene = Scene(Unavailable("HTTP 401"))
    with pytest.raises(Unavailable):
        scene.call()
    assert scene.limiter.in_flight == 0
    assert not scene.caller.busy


def test_delays_are_spread_and_bounded() -> None:
    settings, chance = RetrySettings(first=1.0, longest=8.0), random.Random(3)
    for retry, bound in [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 8.0), (5000, 8.0)]:
        delays = [draw_delay(retry, settings, chance) for _ in range(300)]
        assert 0 <= min(delays) < bound / 10
        assert bound * 0.9 < max(delays) <= bound
