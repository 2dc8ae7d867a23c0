"""Run coroutines from synchronous code, also inside a running event loop."""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


def make_sync(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Return the blocking version of an asynchronous function, with the same signature.

    >>> async def answer_async(number: int) -> int:
    ...     return number
    >>> answer = make_sync(answer_async)
    >>> answer(42), answer.__name__
    (42, 'answer')
    """

    @functools.wraps(function)
    def wait(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_sync(function(*args, **kwargs))

    wait.__name__ = wait.__qualname__ = function.__name__.removesuffix("_async")
    return wait


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and return its result.

    Inside a running event loop (a notebook), where ``asyncio.run`` fails, the coroutine gets its
    own thread and loop. Interrupting the waiting thread cancels the coroutine, so that running
    model calls end and finished answers are stored.

    >>> async def answer() -> int:
    ...     return 42
    >>> run_sync(answer())
    42
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []

    async def follow() -> T:
        task = asyncio.ensure_future(coroutine)
        loops.append((asyncio.get_running_loop(), task))
        return await task

    context = contextvars.copy_context()
    with ThreadPoolExecutor(1, thread_name_prefix="memantics") as pool:
        waiting = pool.submit(context.run, asyncio.run, follow())
        try:
            return waiting.result()
        except BaseException:
            for loop, task in loops:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(task.cancel)
            raise


def raise_first(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Raise the error of the first finished task that has one.

    The error of every finished task is retrieved; otherwise asyncio would print tracebacks of the
    others.
    """
    errors = [task.exception() for task in tasks if not task.cancelled()]
    for error in errors:
        if error is not None:
            raise error
