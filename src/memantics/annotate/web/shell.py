"""What surrounds every request: hosts, sizes, headers, logs."""

from __future__ import annotations

import logging
import secrets
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import UTC, datetime
from typing import Any

import orjson

from memantics.annotate.web.settings import WebSettings

LOGGER = logging.getLogger("memantics.annotate")


class JsonLines(logging.Formatter):
    """Formats a record as one JSON line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line: time, level, event, then what the event brought along."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        facts = getattr(record, "facts", None)
        if isinstance(facts, dict):
            line |= facts
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = repr(record.exc_info[1])
            line["where"] = traceback.format_tb(record.exc_info[2])[-6:]
        return orjson.dumps(line, default=str).decode()


def start_logs() -> None:
    """Send our log, and the server's warnings, to standard error as JSON lines.

    At a terminal only what is wrong is shown: a line for each request would push the link away.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    level = logging.WARNING if sys.stderr.isatty() else logging.INFO
    for name, lowest in (("memantics.annotate", level), ("uvicorn.error", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(lowest)
        logger.propagate = False


def note(event: str, **facts: object) -> None:
    """Write one event down."""
    LOGGER.info(event, extra={"facts": facts})


def note_failure(event: str, error: BaseException, **facts: object) -> None:
    """Write down what should not have happened, with where it did."""
    LOGGER.error(event, extra={"facts": facts}, exc_info=(type(error), error, error.__traceback__))


Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

FORM_BYTES = 1024 * 1024
UPLOAD_BYTES = 64 * 1024 * 1024
UPLOADS = ("/import", "/media")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
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


class TooLarge(Exception):
    """A body that is longer than its route takes."""


class Shell:
    """The outermost layer, as plain ASGI: it costs little, and nothing gets past it."""

    def __init__(self, app: App, settings: WebSettings) -> None:
        self._app = app
        self._hosts = settings.hosts
        https = ((b"strict-transport-security", b"max-age=31536000"),) if settings.secure else ()
        self._headers = [*HEADERS, *https]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = secrets.token_hex(6)
        scope.setdefault("state", {})["request_id"] = request_id
        status = 500
        started = False

        async def answer(message: Message) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                started = True
                status = message["status"]
                message = dict(message, headers=self._dress(message["headers"], request_id))
            await send(message)

        try:
            if not self._is_known(scope):
                await _refuse(answer, 421, b"This address is not served here.")
            else:
                await self._app(scope, _bounded(scope, receive), answer)
        except TooLarge:
            if not started:
                await _refuse(answer, 413, b"This is larger than the page takes.")
        except Exception as error:  # noqa: BLE001 - the last line: log it, never show it
            note_failure("failed", error, request=request_id, path=_path(scope))
            if not started:
                await _refuse(answer, 500, b"Something went wrong here; it was written down.")
        finally:
            seconds = time.perf_counter() - began
            note(
                "request",
                request=request_id,
                method=scope["method"],
                path=_path(scope),
                status=status,
                ms=round(seconds * 1000, 1),
            )

    def _dress(self, headers: list[tuple[bytes, bytes]], request_id: str) -> list[object]:
        names = {name.lower() for name, _ in headers}
        kept = [pair for pair in self._headers if pair[0] not in names]
        if b"cache-control" not in names:
            kept.append((b"cache-control", b"no-store"))
        return [*headers, *kept, (b"x-request-id", request_id.encode())]

    def _is_known(self, scope: Scope) -> bool:
        if self._hosts is None or scope["path"] == "/health":
            return True
        given = next((value for name, value in scope["headers"] if name == b"host"), b"")
        name = given.decode("latin-1").lower()
        return (name if name.endswith("]") else name.rpartition(":")[0] or name) in self._hosts


def _path(scope: Scope) -> str:
    """The path as it may be logged: the last part of a secret link is one, and stays out."""
    path = str(scope["path"])
    for prefix in ("/join/", "/enter/"):
        if path.startswith(prefix):
            return prefix + "…"
    return path[:300]


def _bounded(scope: Scope, receive: Receive) -> Receive:
    """Stop reading a body at its limit, whatever its header said."""
    limit = UPLOAD_BYTES if str(scope["path"]).endswith(UPLOADS) else FORM_BYTES
    declared = next((v for name, v in scope["headers"] if name == b"content-length"), b"0")
    if declared.isdigit() and int(declared) > limit:
        raise TooLarge
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > limit:
                raise TooLarge
        return message

    return counted


async def _refuse(send: Send, status: int, text: bytes) -> None:
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(text)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})
