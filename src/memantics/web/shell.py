"""The outermost ASGI layer of both web apps: host check, body limits, headers, access log, forms.

Forms are read as UTF-8 only, with a limited number and length of fields.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from memantics.web.logs import note, note_failure

AsgiScope = MutableMapping[str, Any]
AsgiMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]
App = Callable[[AsgiScope, Receive, Send], Awaitable[None]]

FORM_BYTES = 1024 * 1024
UPLOAD_BYTES = 64 * 1024 * 1024
FLIGHT_BYTES = 256 * 1024 * 1024
SMALL_BYTES = 64 * 1024
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
SECRET_BYTES = 4096  # maximum length of a form field that contains a token or a password
TEXT_BYTES = 1024 * 1024
_NAMES = frozenset({"", "utf-8", "utf8"})


@dataclass(frozen=True, slots=True)
class Limits:
    """Request limits of an app.

    ``hosts`` are the allowed Host names (None: any); ``open_paths`` accept any name. Paths that end
    with one of ``uploads`` accept ``upload_bytes``, others ``form_bytes``. A body must arrive
    within ``body_seconds``. The bodies of all unanswered requests together are limited to
    ``flight_bytes``; small ones do not count. The rest of a path below ``secret_paths`` is not
    logged. Responses below ``program_paths`` are not shown as pages, so they get fewer security
    headers.
    """

    hosts: frozenset[str] | None
    secure: bool = False
    open_paths: frozenset[str] = frozenset()
    uploads: tuple[str, ...] = ()
    form_bytes: int = FORM_BYTES
    upload_bytes: int = UPLOAD_BYTES
    flight_bytes: int = FLIGHT_BYTES
    secret_paths: tuple[str, ...] = ()
    body_seconds: float = 60.0
    program_paths: tuple[str, ...] = ()


class Cut(Exception):
    """A request body that is rejected while it is read, with the error response."""

    status: int
    text: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()


class TooLarge(Cut):
    """A request body that is longer than its route allows."""

    status, text = 413, b"This is larger than the page takes."


class TooMuch(Cut):
    """A request body that exceeds the total size limit of all current requests."""

    status, text = 503, b"Too much is being sent at once; try again in a moment."
    headers = ((b"retry-after", b"2"),)


class TooSlow(Cut):
    """A request body that did not arrive in time."""

    status, text = 408, b"The request took too long to arrive."


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
                with self._flying() as arrive:
                    await self._app(scope, self._bounded(scope, receive, arrive), answer)
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
        upload = str(scope["path"]).endswith(self._limits.uploads)
        limit = self._limits.upload_bytes if upload else self._limits.form_bytes
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
    some need quadratic time (punycode). The header is therefore checked first.
    """
    _, options = parse_options_header(request.headers.get("content-type"))
    _check_charset(options.get(b"charset", b"").decode("latin-1"))
    async with request.form(max_files=files, max_fields=fields, max_part_size=field_bytes) as form:
        named = form.get("_charset_", "")
        _check_charset(named if isinstance(named, str) else "a file")
        yield form


def _check_charset(name: str) -> None:
    if name.strip().lower() not in _NAMES:
        raise HTTPException(415, "forms must be UTF-8; other charsets are not supported")
