"""The app: all pages, what a refusal looks like, and the server that runs it."""

from __future__ import annotations

import errno
import signal
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime

import uvicorn
from fastapi import FastAPI, Request
from sqlalchemy.exc import DBAPIError
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from memantics.annotate.errors import (
    AnswerError,
    Conflict,
    ConsentMissing,
    Forbidden,
    LimitReached,
    Locked,
    NotFound,
    TokenInvalid,
    TooManyAttempts,
    TrainingFailed,
)
from memantics.annotate.service import Service
from memantics.annotate.web import account, exchange, lead, work
from memantics.annotate.web.asking import Ask, Desk, ForgedForm, Route, install
from memantics.annotate.web.pages import STATIC, read_static
from memantics.annotate.web.settings import WebSettings
from memantics.annotate.web.shell import Shell, note, start_logs
from memantics.core.errors import InputError, MemanticsError, StoreError

MODULES = (account, work, lead, exchange)
STATUS: Mapping[type[Exception], int] = {
    Forbidden: 403,
    NotFound: 404,
    TokenInvalid: 410,
    ForgedForm: 403,
    Conflict: 409,
    Locked: 409,
    AnswerError: 422,
    LimitReached: 429,
    TooManyAttempts: 429,
    TrainingFailed: 403,
    StoreError: 503,
    DBAPIError: 503,
}


def list_routes() -> tuple[Route, ...]:
    """Every page that the app serves through :mod:`asking`."""
    return tuple(route for module in MODULES for route in module.routes.entries)


def make_app(service: Service, settings: WebSettings) -> FastAPI:
    """The app on one database."""
    desk = Desk(service, settings)

    @asynccontextmanager
    async def live(_app: FastAPI) -> AsyncIterator[None]:
        _ = service.accounts.nobody  # made now, so that the first login takes no longer
        note("started", address=settings.address)
        yield
        # Requests in hand were answered before this; what they began is finished here.
        desk.threads.shutdown(wait=True)
        note("stopped")

    app = FastAPI(lifespan=live, openapi_url=None, docs_url=None, redoc_url=None)
    app.state.desk = desk
    app.add_middleware(Shell, settings=settings)
    if settings.trusted_proxies:
        # Anybody else could name another address with every guess at a password.
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=list(settings.trusted_proxies))
    app.add_exception_handler(HTTPException, _refuse_unknown)
    for route in list_routes():
        install(app, desk, route, refuse)
    _add_plain_routes(app, service)
    return app


def _add_plain_routes(app: FastAPI, service: Service) -> None:
    @app.get("/health")
    def health() -> Response:
        """Whether the app and its database answer."""
        found = service.health()
        return JSONResponse(asdict(found), 200 if found.ok else 503)

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        """Our style and our script."""
        if name not in STATIC:
            return PlainTextResponse("not found", 404)
        return Response(
            read_static(name),
            media_type=STATIC[name],
            headers={"cache-control": "public, max-age=31536000, immutable"},
        )


async def _refuse_unknown(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    desk: Desk = request.app.state.desk
    ask = Ask(request, desk, FormData())
    return ask.page("error.html", status, **_say(ask, "unknown", ""))


def refuse(ask: Ask, error: Exception) -> Response:
    """What was refused, as a page that says what to do next."""
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 422)
    if isinstance(error, ConsentMissing):
        return ask.go(f"/p/{ask.request.path_params.get('project', 0)}/welcome")
    if ask.wants_json:
        known = isinstance(error, MemanticsError)
        return JSONResponse({"error": str(error) if known else "database"}, status)
    if isinstance(error, LimitReached):
        until = datetime.fromisoformat(error.until) if error.until else datetime.now(UTC)
        return ask.page("limit.html", status, span=error.span, limit=error.limit, until=until)
    kind = {
        Forbidden: "forbidden",
        NotFound: "missing",
        TokenInvalid: "token",
        ForgedForm: "forged",
        Locked: "locked",
        TrainingFailed: "training",
        StoreError: "store",
    }.get(type(error), "store" if isinstance(error, DBAPIError) else "refused")
    return ask.page("error.html", status, **_say(ask, kind, str(error)))


def _say(ask: Ask, kind: str, detail: str) -> dict[str, str]:
    return {
        "title": ask.words(f"error.{kind}"),
        "advice": ask.words(f"error.{kind}_next"),
        "detail": detail if kind == "refused" else "",
    }


GRACE = 20
BACKLOG = 512


def listen(host: str, port: int) -> socket.socket:
    """Take the port, so that a busy one is an error before anything else happens."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host, port))
        taken.listen(BACKLOG)  # who opens the link at once waits instead of being turned away
    except OSError as error:
        taken.close()
        busy = error.errno == errno.EADDRINUSE
        raise InputError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            hint="choose another --port" if busy else "check --host",
        ) from error
    return taken


def serve(service: Service, settings: WebSettings, taken: socket.socket) -> None:
    """Serve until the process is told to stop; requests in hand are finished first."""
    start_logs()
    config = uvicorn.Config(
        make_app(service, settings),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the app itself asks which proxies are trusted
        date_header=True,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=30,
        backlog=BACKLOG,
    )
    # The server takes these signals while it runs, ends, and raises them again: what was opened
    # around it must then still be closed in order.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _note_signal)
    uvicorn.Server(config).run(sockets=[taken])


def _note_signal(number: int, _frame: object) -> None:
    note("signal", name=signal.Signals(number).name)
