"""A real server on the loopback that misbehaves by schedule, and counts what it did.

Each request names its item in the text (``item-17``). The schedule gives an item a list of
faults; its first calls meet them in turn, later calls are answered. What is not in the schedule
is answered at once; a model called ``thinker`` gives a chain of thought with it.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Literal

import orjson
from aiohttp import web

Fault = Literal[
    "429",
    "429 after",
    "429 date",
    "500",
    "503",
    "slow",
    "cut",
    "cut body",
    "half",
    "html",
    "html 502",
    "mislabelled",
    "type",
    "empty choices",
    "error 200",
    "filter 400",
    "filter finish",
    "401",
    "404",
    "400",
    "413",
    "redirect",
    "echo key",
    "babble",
    "speaks",
    "hang",
]
_ITEM = re.compile(r"item-\d+")


def completion(text: str | None, finish: str = "stop", **message: object) -> dict[str, object]:
    """A well-formed answer."""
    return {
        "model": "served",
        "choices": [
            {
                "message": {"role": "assistant", "content": text, **message},
                "finish_reason": finish,
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2},
    }


class FaultServer:
    """``calls`` and ``did`` count by item and by fault; ``bodies`` keeps the last requests.

    While ``gate`` is an event that is not set, no call is answered.
    """

    def __init__(
        self,
        schedule: Mapping[str, Sequence[Fault]] | None = None,
        *,
        seconds: float = 0.0,
        always: Fault | None = None,
    ) -> None:
        self.schedule = dict(schedule or {})
        self.seconds = seconds
        self.always = always
        self.calls: Counter[str] = Counter()
        self.did: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.in_flight = 0
        self.most_in_flight = 0
        self.bodies: list[dict[str, object]] = []
        self.headers: list[Mapping[str, str]] = []
        self.on_call: Callable[[FaultServer], None] = lambda _: None
        self.gate: asyncio.Event | None = None
        self.url = ""

    @property
    def total(self) -> int:
        return self.calls.total()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._respond(request, body)
        finally:
            self.in_flight -= 1

    async def _respond(self, request: web.Request, body: bytes) -> web.StreamResponse:
        found = _ITEM.findall(body.decode())
        item = found[-1] if found else ""
        number = self.calls[item]
        self.calls[item] += 1
        self.bodies = [*self.bodies[-4:], orjson.loads(body)]
        self.headers = [*self.headers[-4:], request.headers]
        self.on_call(self)
        faults = self.schedule.get(item, ())
        fault = faults[number] if number < len(faults) else self.always
        if self.gate is not None:
            await self.gate.wait()
        if self.seconds:
            await asyncio.sleep(self.seconds)
        self.did[fault or "answer"] += 1
        if fault is None:
            self.answered[item] += 1
            thinks = self.bodies[-1].get("model") == "thinker"
            chain = {"reasoning_content": "Let me see. So the answer is B."} if thinks else {}
            return _json(completion("B", **chain))
        return await self._misbehave(fault, request)

    async def _misbehave(self, fault: Fault, request: web.Request) -> web.StreamResponse:
        if fault == "slow":
            await asyncio.sleep(4.0)
            return _json(completion("B"))
        if fault == "hang":
            await asyncio.sleep(60)
        if fault in ("cut", "hang"):
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if fault == "cut body":
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            response.content_length = 500
            await response.prepare(request)
            await response.write(b'{"choices": [{"mess')
            assert request.transport is not None
            request.transport.abort()
            return response
        if fault == "echo key":
            key = request.headers["Authorization"].removeprefix("Bearer ")
            return _json({"error": {"message": f"bad key {key} was given"}}, 400)
        return _CANNED[fault]()


def _json(value: object, status: int = 200, **headers: str) -> web.Response:
    return web.Response(
        body=orjson.dumps(value), status=status, content_type="application/json", headers=headers
    )


def _fail(status: int, message: str, code: str = "", **headers: str) -> web.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return _json({"error": {"message": message, "code": code or None}}, status, **named)


def _html(status: int = 200) -> web.Response:
    return web.Response(
        text="<html><body>Bad gateway</body></html>", status=status, content_type="text/html"
    )


_CANNED: Mapping[str, Callable[[], web.Response]] = {
    "429": lambda: _fail(429, "slow down"),
    "429 after": lambda: _fail(429, "slow down", Retry_After="1"),
    "429 date": lambda: _fail(429, "slow down", Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
    "500": lambda: _fail(500, "something broke"),
    "503": lambda: _fail(503, "too busy", retry_after_ms="20"),
    "half": lambda: web.Response(body=b'{"choices": [{"mess', content_type="application/json"),
    "html": _html,
    "html 502": lambda: _html(502),
    "mislabelled": lambda: web.Response(
        body=orjson.dumps(completion("B")), content_type="text/plain"
    ),
    "type": lambda: web.Response(body=b"data: not JSON\n\n", content_type="text/event-stream"),
    "empty choices": lambda: _json({"choices": [], "usage": None}),
    "error 200": lambda: _json({"error": {"message": "upstream is busy", "code": 503}}),
    "filter 400": lambda: _fail(400, "the prompt was filtered", "content_filter"),
    "filter finish": lambda: _json(completion("", "content_filter")),
    "401": lambda: _fail(401, "wrong key"),
    "404": lambda: _fail(404, "no such model", "model_not_found"),
    "400": lambda: _fail(400, "the prompt is too long", "context_length_exceeded"),
    "413": lambda: _fail(413, "too large"),
    "speaks": lambda: _fail(401, "\x1b]0;PWNED\x07\x1b[2J no", "\x1b[38;5;201m"),
    "redirect": lambda: web.Response(status=307, headers={"Location": "https://other.example/v1"}),
    "babble": lambda: _json(completion("I would rather not say")),
}


@asynccontextmanager
async def serve(server: FaultServer) -> AsyncIterator[FaultServer]:
    """Serve on a free port of the loopback."""
    application = web.Application(client_max_size=64 * 1024 * 1024)
    application.router.add_post("/v1/chat/completions", server.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        server.url = f"http://127.0.0.1:{port}/v1"
        yield server
    finally:
        await runner.cleanup()
