from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from memantics.models.engine import Limiter
from tests.engine.toy import FakeClock


def test_overload_halves_once_per_round_trip() -> None:
    async def scenario() -> list[int]:
        limiter, seen = Limiter(64), []
        tickets = [await limiter.enter() for _ in range(64)]
        for ticket in tickets[:10]:
            limiter.leave(ticket, "overloaded")
            seen.append(limiter.limit)
        for ticket in tickets[10:]:
            limiter.leave(ticket, "other")
        late = await limiter.enter()
        limiter.leave(late, "overloaded")
        return [*seen, limiter.limit]

    assert asyncio.run(scenario()) == [32] * 10 + [16]


def test_the_last_call_begun_before_a_cut_does_not_cut_again() -> None:
    async def scenario() -> list[int]:
        limiter, seen = Limiter(8), []
        first, *_, last = [await limiter.enter() for _ in range(8)]
        for ticket in (first, last):
            limiter.leave(ticket, "overloaded")
            seen.append(limiter.limit)
        for _ in range(6):
            limiter.leave(first, "other")
        limiter.leave(await limiter.enter(), "overloaded")  # begun after the cut
        return [*seen, limiter.limit]

    assert asyncio.run(scenario()) == [4, 4, 2]


def test_limit_grows_by_one_per_window_and_stays_in_bounds() -> None:
    async def scenario() -> list[int]:
        limiter, seen = Limiter(3), []
        limiter.leave(await limiter.enter(), "overloaded")
        limiter.leave(await limiter.enter(), "overloaded")
        for _ in range(8):
            limiter.leave(await limiter.enter(), "answered")
            seen.append(limiter.limit)
        return seen

    assert asyncio.run(scenario()) == [2, 2, 3, 3, 3, 3, 3, 3]


def test_never_more_in_flight_than_the_limit() -> None:
    async def scenario() -> tuple[int, int]:
        limiter, most = Limiter(4), 0

        async def call(number: int) -> None:
            nonlocal most
            ticket = await limiter.enter()
            most = max(most, limiter.in_flight)
            await asyncio.sleep(0)
            limiter.leave(ticket, "overloaded" if number == 20 else "answered")

        await asyncio.gather(*(call(number) for number in range(50)))
        return most, limiter.in_flight

    assert asyncio.run(scenario()) == (4, 0)


def test_cancelled_waiters_lose_no_slot() -> None:
    async def scenario() -> int:
        limiter = Limiter(1)
        ticket = await limiter.enter()
        waiting = [asyncio.create_task(limiter.enter()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        limiter.leave(ticket, "answered")  # hands the slot to the second
        waiting[1].cancel()  # which is cancelled with the slot in hand
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(results[2], int)
        limiter.leave(results[2], "answered")
        return limiter.in_flight

    assert asyncio.run(scenario()) == 0


def test_pause_holds_every_new_call() -> None:
    async def scenario() -> tuple[list[float], float]:
        clock = FakeClock()
        limiter = Limiter(2, clock)
        limiter.pause(7.0)
        limiter.pause(3.0)  # a shorter one changes nothing
        await limiter.enter()
        return clock.slept, limiter.paused

    assert asyncio.run(scenario()) == ([7.0], 0.0)


@given(st.lists(st.sampled_from(["answered", "overloaded", "other"]), max_size=200))
def test_limit_is_always_within_bounds(verdicts: list[str]) -> None:
    async def scenario() -> None:
        limiter = Limiter(16)
        for verdict in verdicts:
            limiter.leave(await limiter.enter(), verdict)  # type: ignore[arg-type]
            assert 1 <= limiter.limit <= 16
        assert limiter.in_flight == 0

    asyncio.run(scenario())
