"""The app: all pages, and what a refusal looks like."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime

from fastapi import FastAPI, Request
from sqlalchemy.exc import DBAPIError
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response

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
from memantics.annotate.service import AnnotationService
from memantics.annotate.web import account, agreement, exchange, lead, work
from memantics.annotate.web.asking import AppContext, Ask, ForgedForm, PageRoute, install
from memantics.annotate.web.pages import SITE
from memantics.annotate.web.settings import WebSettings
from memantics.core.errors import MemanticsError, StoreError
from memantics.web.logs import note
from memantics.web.server import wrap

MODULES = (account, work, lead, agreement, exchange)
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


def list_routes() -> tuple[PageRoute, ...]:
    """Every page that the app serves through :mod:`asking`."""
    return tuple(route for module in MODULES for route in module.routes.entries)


def make_app(service: AnnotationService, settings: WebSettings) -> FastAPI:
    """The app on one database."""
    desk = AppContext(service, settings)

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
    wrap(app, settings.limits, settings.trusted_proxies)
    app.add_exception_handler(HTTPException, _refuse_unknown)
    for route in list_routes():
        install(app, desk, route, refuse)
    _add_health(app, service)
    SITE.add_static(app)
    return app


def _add_health(app: FastAPI, service: AnnotationService) -> None:
    @app.get("/health")
    def health() -> Response:
        """Whether the app and its database answer."""
        found = service.health()
        return JSONResponse(asdict(found), 200 if found.ok else 503)


async def _refuse_unknown(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if isinstance(error, HTTPException) and status not in (404, 405):
        return PlainTextResponse(error.detail, status)
    desk: AppContext = request.app.state.desk
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
