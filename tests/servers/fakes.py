"""A server on the loopback that answers as a function says, and keeps every request."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from tests.faults import completion

Body = dict[str, Any]
Answer = Callable[[Body], object]


@dataclass
class Scripted:
    """``answer`` gives a completion, a text, or ``(status, body)``; ``models`` are listed."""

    answer: Answer = lambda _: "B"
    models: tuple[str, ...] = ()
    bodies: list[Body] = field(default_factory=list)
    url: str = ""

    async def handle(self, request: web.Request) -> web.Response:
        body = orjson.loads(await request.read())
        self.bodies.append(body)
        said = self.answer(body)
        status, value = said if isinstance(said, tuple) else (200, said)
        value = completion(value) if isinstance(value, str) else value
        return web.Response(
            body=orjson.dumps(value), status=status, content_type="application/json"
        )

    async def listing(self, _: web.Request) -> web.Response:
        if not self.models:
            raise web.HTTPNotFound
        return web.json_response({"object": "list", "data": [{"id": n} for n in self.models]})


def refuse(message: str, status: int = 400) -> tuple[int, object]:
    """The body of an error."""
    return status, {"error": {"message": message}}


@contextmanager
def serving(server: Scripted) -> Iterator[Scripted]:
    """Serve in a thread until the block ends."""
    loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def run() -> None:
        application = web.Application(client_max_size=64 * 1024 * 1024)
        application.router.add_post("/v1/chat/completions", server.handle)
        application.router.add_get("/v1/models", server.listing)
        runner = web.AppRunner(application, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()
