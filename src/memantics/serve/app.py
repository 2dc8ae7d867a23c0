"""The application: routers, what surrounds them, and what lives as long as it does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

from fastapi import Depends, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response

from memantics import __version__
from memantics.core.errors import MemanticsError
from memantics.serve import browse, health, login, studio
from memantics.serve.browse.routes import list_tabs
from memantics.serve.gate import Gate
from memantics.serve.pages import Pages
from memantics.serve.refusals import Refusal, answer_refusal, read_refusal
from memantics.serve.settings import ServeSettings
from memantics.web.logs import note
from memantics.web.server import wrap
from memantics.web.site import Site

HERE = Path(__file__).parent
# Rooms that bring parts of pages: the style of drawings, the list of what is said about a meme.
ROOMS = tuple(Path(str(files(f"memantics.{room}"))) for room in ("knowledge", "report"))


def build_app(settings: ServeSettings) -> FastAPI:
    """The service on its settings; its models are loaded when it starts.

    What requests need is in ``app.state``: ``settings``, ``gate`` (who may come in), ``pages``.
    """

    @asynccontextmanager
    async def live(app: FastAPI) -> AsyncIterator[None]:
        app.state.ready = True
        note("started", address=settings.reach.address)
        yield
        app.state.ready = False
        note("stopped")

    app = FastAPI(
        title="Memantics",
        version=__version__,
        lifespan=live,
        openapi_url="/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.settings, app.state.gate, app.state.ready = settings, Gate(settings), False
    for part in (health, login):
        app.include_router(part.router)
    _add_pages(app)
    app.add_exception_handler(Refusal, _answer)
    app.add_exception_handler(MemanticsError, _answer)
    app.add_exception_handler(HTTPException, _answer)
    if settings.reach.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.reach.origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["authorization", "content-type"],
        )
    wrap(app, settings.limits, settings.reach.trusted_proxies)
    return app


def _add_pages(app: FastAPI) -> None:
    """The pages for people; each part brings templates, static files and words of its own."""
    site = Site(HERE / "studio", HERE / "browse", HERE, *ROOMS)
    site.add_static(app)
    app.state.pages = Pages(site, list_tabs(app.state.settings.models))
    readers = [Depends(login.admit_reader)]
    app.include_router(studio.router, dependencies=readers)
    app.include_router(browse.router, dependencies=readers)


async def _answer(_request: Request, error: Exception) -> Response:
    if isinstance(error, MemanticsError):
        error = read_refusal(error)
    if isinstance(error, HTTPException):
        word = "not_found" if error.status_code == 404 else "refused"
        error = Refusal(error.status_code, word, str(error.detail), error.headers)
    assert isinstance(error, Refusal)
    return answer_refusal(error)
