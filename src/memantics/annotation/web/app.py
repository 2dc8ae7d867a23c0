"""The web app: routes, startup, and error pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import datetime

from fastapi import FastAPI, Request
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response

from memantics.annotation import errors
from memantics.annotation.faults import SOON
from memantics.annotation.service import AnnotationService
from memantics.annotation.web import account, agreement, exchange, lead, work
from memantics.annotation.web.asking import AppContext, ForgedForm, PageRequest, PageRoute, install
from memantics.annotation.web.pages import SITE
from memantics.annotation.web.settings import WebSettings
from memantics.core.errors import StoreError
from memantics.web.logs import note
from memantics.web.server import wrap

MODULES = (account, work, lead, agreement, exchange)
# HTTP status of each error, and its key in ``messages.toml``.
REFUSALS: Mapping[type[Exception], tuple[int, str]] = {
    errors.RoleRefused: (403, "refused"),  # before Forbidden, of which it is one
    errors.Forbidden: (403, "forbidden"),
    errors.NotFound: (404, "missing"),
    errors.TokenInvalid: (410, "token"),
    ForgedForm: (403, "forged"),
    errors.Conflict: (409, "refused"),
    errors.Locked: (409, "locked"),
    errors.LimitReached: (429, "refused"),
    errors.TooManyAttempts: (429, "refused"),
    errors.TrainingFailed: (403, "training"),
    StoreError: (503, "store"),
}


def list_routes() -> tuple[PageRoute, ...]:
    """Return all routes of the app."""
    return tuple(route for module in MODULES for route in module.routes.entries)


def make_app(service: AnnotationService, settings: WebSettings) -> FastAPI:
    """Build the web app on one service."""
    client = AppContext(service, settings)

    @asynccontextmanager
    async def live(_app: FastAPI) -> AsyncIterator[None]:
        _ = service.accounts.nobody  # computed now, since it would slow down the first login
        note("started", address=settings.url)
        yield
        # All requests are answered by now; wait for their background work.
        client.threads.shutdown(wait=True)
        note("stopped")

    app = FastAPI(lifespan=live, openapi_url=None, docs_url=None, redoc_url=None)
    app.state.client = client
    wrap(app, settings.limits, settings.trusted_proxies)
    app.add_exception_handler(HTTPException, _refuse_unknown)
    for route in list_routes():
        install(app, client, route, refuse)
    _add_health(app, service)
    SITE.add_static(app)
    return app


def _add_health(app: FastAPI, service: AnnotationService) -> None:
    @app.get("/health")
    def health() -> Response:
        """Report whether the app and its database respond."""
        found = service.health()
        again = None if found.ok else {"retry-after": str(SOON)}
        return JSONResponse(asdict(found), 200 if found.ok else 503, again)


async def _refuse_unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code not in (404, 405):
        return PlainTextResponse(error.detail, error.status_code)
    ask = PageRequest(request, request.app.state.client, FormData())
    return ask.page("error.html", error.status_code, **_say(ask, "unknown", ""))


def refuse(ask: PageRequest, error: Exception) -> Response:
    """Return an error page that explains what to do next, and when to try again."""
    response = _refuse(ask, error)
    if response.status_code == 503:
        response.headers["retry-after"] = str(getattr(error, "wait", SOON))
    return response


def _refuse(ask: PageRequest, error: Exception) -> Response:
    found = (said for kind, said in REFUSALS.items() if isinstance(error, kind))
    status, words = next(found, (422, "refused"))
    if isinstance(error, errors.ConsentMissing):
        return ask.go(f"/p/{ask.request.path_params.get('project', 0)}/welcome")
    if ask.wants_json:
        return JSONResponse({"error": str(error)}, status)
    if isinstance(error, errors.LimitReached):
        until = datetime.fromisoformat(error.until)
        return ask.page("limit.html", status, span=error.span, limit=error.limit, until=until)
    return ask.page("error.html", status, **_say(ask, words, str(error)))


def _say(ask: PageRequest, kind: str, detail: str) -> dict[str, str]:
    return {
        "title": ask.words(f"error.{kind}"),
        "advice": ask.words(f"error.{kind}_next"),
        "detail": detail if kind == "refused" else "",
    }
