"""The application: routers, what surrounds them, and what lives as long as it does."""

from __future__ import annotations

import asyncio
import fcntl
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path

from fastapi import Depends, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response

from memantics import __version__
from memantics.actions.drift import DailySample
from memantics.actions.phonetics import read_aloud
from memantics.actions.studio import Studio
from memantics.core.errors import InputError, MemanticsError
from memantics.core.journal import refuse_unwritable
from memantics.serve import (
    analysis,
    browse,
    document,
    following,
    health,
    login,
    moderations,
    reloading,
    studio,
)
from memantics.serve.browse.routes import list_tabs
from memantics.serve.context import Service
from memantics.serve.engine import Engine
from memantics.serve.gate import Gate
from memantics.serve.inputs import ImageDoor
from memantics.serve.jobs import JobStore
from memantics.serve.metrics import FOLDER, Metrics
from memantics.serve.pages import Pages
from memantics.serve.refusals import Refusal, answer_refusal, read_refusal
from memantics.serve.runner import Runner
from memantics.serve.settings import ServeSettings
from memantics.web.address import listen
from memantics.web.logs import note
from memantics.web.server import serve, serve_many, wrap
from memantics.web.site import Site

HERE = Path(__file__).parent
# Rooms that bring parts of pages: the style of drawings, the list of what is said about a meme.
ROOMS = tuple(Path(str(files(f"memantics.{room}"))) for room in ("knowledge", "report"))


def build_app(settings: ServeSettings) -> FastAPI:
    """The service on its settings, with its models loaded.

    What requests need is in ``app.state``: ``service`` (:class:`~memantics.serve.context.Service`),
    ``settings``, ``gate`` (who may come in) and ``pages``.
    """
    service = _open_service(settings)

    @asynccontextmanager
    async def live(_app: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(service.engine.warm_up)
        service.runner = Runner(service.jobs, service.engine)
        service.ready = True
        reloading.listen(_app, partial(_open_studio, _app))
        ear = asyncio.create_task(service.engine.work(read_aloud, "开始"))
        note("started", address=settings.reach.address, detector=service.engine.moderator.name)
        yield
        # Requests in hand were answered before this; what they began is finished here.
        service.ready = False
        await asyncio.gather(ear, return_exceptions=True)
        await service.runner.close()
        await service.engine.close()
        service.jobs.close()
        note("stopped")

    app = FastAPI(
        title="Memantics",
        version=__version__,
        summary="Moderation, analysis and reappraisal of memes.",
        lifespan=live,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service, app.state.settings, app.state.gate = service, settings, service.gate
    app.router.routes.append(moderations.plain)
    for part in (moderations, reloading, analysis, following, health, document, login):
        app.include_router(part.router)
    _open_studio(app)
    _add_pages(app)
    for kind in (Refusal, MemanticsError, HTTPException):
        app.add_exception_handler(kind, _answer)
    if settings.reach.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.reach.origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["authorization", "content-type"],
        )
    wrap(app, settings.limits, settings.reach.trusted_proxies, service.metrics.count_request)
    return app


def _open_service(settings: ServeSettings) -> Service:
    bounds = settings.bounds
    engine, metrics = Engine(settings), Metrics()
    for batcher in engine.batchers:
        metrics.watch(batcher)
    jobs = JobStore(settings.state, keep=bounds.keep, most=bounds.jobs)
    gate, door = Gate(settings), ImageDoor.open(bounds)
    sample = None if settings.sample is None else DailySample(settings.sample)
    return Service(settings, gate, engine, door, jobs, metrics, sample)


def _open_studio(app: FastAPI) -> None:
    engine = app.state.service.engine
    app.state.studio = Studio(engine.detector, engine.models, engine.asking, engine.ocr)


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


# Start the service: take the port, say where it is, serve until told to stop.

GRACE = 40  # seconds: longer than a request may take


def run(settings: ServeSettings, started: Callable[[ServeSettings], None]) -> None:
    """Serve until the process is told to stop; ``started`` is called before the first request."""
    with listen(settings.reach.host, settings.reach.port) as taken:
        port = int(taken.getsockname()[1])
        settings = replace(settings, reach=replace(settings.reach, port=port))
        with _own(settings.state):
            _recover(settings.state)
            if settings.workers == 1:
                app = build_app(settings)
                started(settings)
                serve(app, taken, GRACE)
            else:
                started(settings)
                with tempfile.TemporaryDirectory(prefix="memantics-metrics-") as folder:
                    os.environ[FOLDER] = folder
                    serve_many(partial(build_app, settings), taken, settings.workers, GRACE)


def _recover(folder: Path) -> None:
    """What ran when the service ended last time waits again."""
    store = JobStore(folder, keep=0, most=0)
    try:
        store.recover()
    finally:
        store.close()


@contextmanager
def _own(folder: Path) -> Iterator[None]:
    """Hold the folder of jobs: a second service on it would run them twice."""
    with refuse_unwritable(folder, "--state"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = (folder / "lock").open("a")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"another service keeps its jobs in {folder}", hint="give --state another folder"
            ) from None
        yield
