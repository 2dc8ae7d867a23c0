"""The outermost ASGI layer of both web apps: host check, body limits, headers, access log, forms.

Forms are read as UTF-8 only, with a limited number and length of fields.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import parse_qsl

from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from memantics.core.tracing import trace_request
from memantics.web.budget import (
    FORM_BYTES,
    SMALL_BYTES,
    TEXT_BYTES,
    AsgiScope,
    Cut,
    Limits,
    TooLarge,
    TooLate,
    TooMuch,
    TooSlow,
    check_head,
)
from memantics.web.logs import note, note_failure

AsgiMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]
App = Callable[[AsgiScope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), interest-cohort=()"),
)
RequestWatch = Callable[[AsgiScope, int, float], None]
PROGRAM_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
_NAMES = frozenset({"", "utf-8", "utf8"})
_URLENCODED = b"application/x-www-form-urlencoded"
_SHORT = 8 * 1024  # maximum bytes of a form that is parsed without another thread
# One thread: parsers hold the interpreter lock, so several at a time would delay other requests.
_PARSER = ThreadPoolExecutor(1, "forms")


class Shell:
    """The outermost layer of a web app, as plain ASGI middleware; it handles every request."""

    def __init__(self, app: App, limits: Limits, watch: RequestWatch | None = None) -> None:
        self._app = app
        self._watch = watch
        self._limits = limits
        self._flight = 0
        https = ((b"strict-transport-security", b"max-age=31536000"),) if limits.secure else ()
        self._headers = [*HEADERS, *https]

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = f"{random.getrandbits(48):012x}"
        scope.setdefault("state", {})["request_id"] = request_id
        status = 500
        started = False

        async def answer(message: AsgiMessage) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                started = True
                status = message["status"]
                headers = self._dress(scope, message["headers"], request_id)
                message = dict(message, headers=headers)
            await send(message)

        try:
            if not self._is_known(scope):
                await _refuse(answer, 421, b"This host name is not served here.")
            else:
                check_head(scope)
                with self._flying() as arrive:
                    bounded = self._bounded(scope, receive, arrive)
                    with trace_request(scope["method"]) as trace:
                        await self._run(scope, bounded, answer)
                        route = getattr(scope.get("route"), "path", "unknown")
                        trace.add(scope["method"], route, status)
        except Cut as cut:
            if not started:
                await _refuse(answer, cut.status, cut.text, *cut.headers)
        except ClientDisconnect:
            status = 499  # The client has disconnected, so no response is sent.
        except Exception as error:  # noqa: BLE001 - the last line: log it, never show it
            note_failure("failed", error, request=request_id, path=self._path(scope))
            if not started:
                await _refuse(answer, 500, b"Something went wrong here; it was written down.")
        finally:
            seconds = time.perf_counter() - began
            if self._watch is not None:
                self._watch(scope, status, seconds)
            note(
                "request",
                request=request_id,
                method=scope["method"],
                path=self._path(scope),
                status=status,
                ms=round(seconds * 1000, 1),
            )

    async def _run(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Call the app; cancel it when the total time of a request is over."""
        if self._limits.streams and scope["path"].endswith(self._limits.streams):
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._limits.total_seconds) as timer:
                await self._app(scope, receive, send)
        except TimeoutError:
            if timer.expired():
                raise TooLate from None
            raise

    def _dress(
        self, scope: AsgiScope, headers: list[tuple[bytes, bytes]], request_id: str
    ) -> list[object]:
        if self._limits.program_paths and scope["path"].startswith(self._limits.program_paths):
            return [*headers, *PROGRAM_HEADERS, (b"x-request-id", request_id.encode())]
        names = {name.lower() for name, _ in headers}
        kept = [pair for pair in self._headers if pair[0] not in names]
        if b"cache-control" not in names:
            kept.append((b"cache-control", b"no-store"))
        return [*headers, *kept, (b"x-request-id", request_id.encode())]

    def _is_known(self, scope: AsgiScope) -> bool:
        hosts = self._limits.hosts
        if hosts is None or scope["path"] in self._limits.open_paths:
            return True
        given = next((value for name, value in scope["headers"] if name == b"host"), b"")
        name = given.decode("latin-1").lower()
        return (name if name.endswith("]") else name.rpartition(":")[0] or name) in hosts

    def _path(self, scope: AsgiScope) -> str:
        """Return the path for the log, without the secret last part of a link."""
        path = str(scope["path"])
        for prefix in self._limits.secret_paths:
            if path.startswith(prefix):
                return prefix + "…"
        return path[:300]

    @contextmanager
    def _flying(self) -> Iterator[Callable[[int], None]]:
        """Count the bytes of one request body towards the total until the request is answered."""
        counted = 0

        def arrive(seen: int) -> None:
            nonlocal counted
            if seen > SMALL_BYTES:
                self._flight += seen - counted
                counted = seen
                if self._flight > self._limits.flight_bytes:
                    raise TooMuch

        try:
            yield arrive
        finally:
            self._flight -= counted

    def _bounded(
        self, scope: AsgiScope, receive: Receive, arrive: Callable[[int], None]
    ) -> Receive:
        """Stop reading a request body at its size limit, whatever its Content-Length header."""
        limit = self._limits.find_body_bytes(str(scope["path"]))
        declared = next((v for name, v in scope["headers"] if name == b"content-length"), b"0")
        if declared.isdigit() and int(declared) > limit:
            raise TooLarge
        seen, more, end = 0, True, time.monotonic() + self._limits.body_seconds

        async def counted() -> AsgiMessage:
            nonlocal seen, more
            if not more:
                return await receive()  # waits until the client disconnects
            try:
                async with asyncio.timeout(max(0.0, end - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                raise TooSlow from None
            if message["type"] == "http.request":
                more = message.get("more_body", False)
                seen += len(message.get("body", b""))
                if seen > limit:
                    raise TooLarge
                arrive(seen)
            return message

        return counted


async def _refuse(send: Send, status: int, text: bytes, *more: tuple[bytes, bytes]) -> None:
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(text)).encode()),
        (b"connection", b"close"),
        *more,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})


@asynccontextmanager
async def open_form(
    request: Request, *, files: int, fields: int, field_bytes: int = TEXT_BYTES
) -> AsyncIterator[FormData]:
    """Parse the form of a request; close its uploaded files at the end.

    Starlette decodes a form with any Python codec that its header names, on the event loop, and
    some need quadratic time (punycode). The header is therefore checked first. A form without files
    is parsed by :func:`read_form`, since the parser of Starlette takes a third of a second for each
    megabyte of ``&``, which it does not count as fields.
    """
    kind, options = parse_options_header(request.headers.get("content-type"))
    _check_charset(options.get(b"charset", b"").decode("latin-1"))
    if kind == _URLENCODED:
        form = await read_form(request, fields)
        if any(len(name) + len(str(text)) > field_bytes for name, text in form.multi_items()):
            raise HTTPException(400, f"a field of a form has at most {field_bytes:,} characters")
        _check_named(form)
        yield form
        return
    async with request.form(max_files=files, max_fields=fields, max_part_size=field_bytes) as form:
        _check_named(form)
        yield form


async def read_form(request: Request, fields: int) -> FormData:
    """Read a form without files: at most ``FORM_BYTES``; a long one is parsed on a thread."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > FORM_BYTES:
            raise TooLarge
    data = bytes(body)
    if len(data) <= _SHORT:
        return parse_form(data, fields)
    return await asyncio.get_running_loop().run_in_executor(_PARSER, parse_form, data, fields)


def parse_form(body: bytes, fields: int) -> FormData:
    """Parse a form without files; raise an error for too many fields.

    >>> parse_form(b"name=ann&note=a+b%21&empty=", 3).multi_items()
    [('name', 'ann'), ('note', 'a b!'), ('empty', '')]
    """
    try:
        text = body.decode("ascii", "replace")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=fields)
    except ValueError:
        raise HTTPException(413, f"a form has at most {fields:,} fields") from None
    return FormData(list[tuple[str, str | UploadFile]](pairs))


def _check_named(form: FormData) -> None:
    named = form.get("_charset_", "")
    _check_charset(named if isinstance(named, str) else "a file")


def _check_charset(name: str) -> None:
    if name.strip().lower() not in _NAMES:
        raise HTTPException(415, "forms must be UTF-8; other charsets are not supported")
