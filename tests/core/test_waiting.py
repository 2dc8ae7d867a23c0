"""Synchronous functions over asynchronous ones, in and outside of an event loop."""

from __future__ import annotations

import asyncio
import gc
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from memantics.core.result import Result, to_plain
from memantics.core.waiting import raise_first, run_sync


async def name_thread() -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


async def fail() -> None:
    await asyncio.sleep(0)
    raise ValueError("as planned")


def test_without_a_loop_it_runs_here() -> None:
    assert run_sync(name_thread()) == threading.current_thread().name


def test_inside_a_running_loop_it_gets_a_thread_of_its_own() -> None:
    async def notebook() -> str:
        return run_sync(name_thread())

    assert asyncio.run(notebook()).startswith("memantics")


@pytest.mark.parametrize("inside", [False, True])
def test_errors_pass_through(inside: bool) -> None:
    async def notebook() -> None:
        run_sync(fail())

    with pytest.raises(ValueError, match="as planned"):
        asyncio.run(notebook()) if inside else run_sync(fail())


@dataclass(frozen=True, slots=True)
class Inner:
    path: Path


@dataclass(frozen=True, slots=True)
class Sample(Result):
    name: str
    inner: Inner
    scores: dict[str, tuple[float, None]]


def test_a_result_is_plain_data_and_a_table() -> None:
    made = Sample("<b>", Inner(Path("a/b")), {"f1": (0.51234, None)})
    assert made.to_dict() == {
        "name": "<b>",
        "inner": {"path": "a/b"},
        "scores": {"f1": [0.51234, None]},
    }
    shown = made._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "0.5123, –" in shown
    assert "<b>" not in shown


def test_long_lists_are_cut_in_tables_only() -> None:
    assert to_plain(range(3)) == "range(0, 3)"
    assert to_plain(tuple(range(30))) == list(range(30))


def test_when_two_tasks_fail_neither_error_is_left_for_asyncio_to_print() -> None:
    """One error is raised; the second used to end as a traceback on the terminal."""
    printed = []

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, told: printed.append(told))
        tasks = [asyncio.create_task(fail()) for _ in range(3)]
        await asyncio.wait(tasks)
        with pytest.raises(ValueError, match="as planned"):
            raise_first(tasks)
        tasks.clear()
        gc.collect()

    asyncio.run(scenario())
    assert printed == []


def test_cancelled_and_successful_tasks_raise_nothing() -> None:
    async def scenario() -> None:
        waiting = asyncio.create_task(asyncio.sleep(60))
        ended = asyncio.create_task(name_thread())
        await ended
        waiting.cancel()
        await asyncio.wait([waiting])
        raise_first([waiting, ended])
        raise_first([])
        assert waiting.cancelled()
        assert ended.result() == threading.current_thread().name

    asyncio.run(scenario())
