"""The ASGI application of the HTTP service, its lifespan, and its OpenAPI document.

The OpenAPI document is also shown as a page that needs no script and no other host.
"""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse, Response

from memantics import __version__
from memantics.core.errors import InputError, MemanticsError, StoreError
from memantics.core.files import refuse_unwritable
from memantics.moderation import DailySample
from memantics.serve import (
    access,
    analysis,
    browse,
    decisions,
    hash_matching,
    health,
    moderations,
    perspective,
    studio,
)
from memantics.serve.access import AccessControl
from memantics.serve.browse.routes import list_tabs
from memantics.serve.context import FOLDER, Service, ServiceMetrics
from memantics.serve.engine import ServiceEngine
from memantics.serve.inputs import ImageLoader
from memantics.serve.jobs import JobStore, Runner
from memantics.serve.moderations import ModerationBody
from memantics.serve.pages import Pages
from memantics.serve.perspective import AnalyzeCommentBody
from memantics.serve.refusals import Refusal, answer_refusal, make_unavailable, read_refusal
from memantics.serve.settings import ServeSettings
from memantics.understanding import read_homophones
from memantics.web.logs import note, note_failure, warn
from memantics.web.server import listen, serve, serve_many, wrap
from memantics.web.site import Site
from memantics.workbench import Studio

document_router = APIRouter(include_in_schema=False)
OPEN = ("/healthz", "/readyz")
HERE = Path(__file__).parent
# Packages that contain templates: styles of drawings, and the list of statements about a meme.
# the style sheet of the package's drawings
KNOWLEDGE = Path(str(files("memantics.understanding.knowledge")))


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, including request bodies that routes parse themselves."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes
        )
        made = _plain_tuples(made)
        made["servers"] = [{"url": "/"}]
        schemas = made["components"]["schemas"]
        _, bodies = models_json_schema(
            [(ModerationBody, "validation"), (AnalyzeCommentBody, "validation"), *decisions.BODIES],
            ref_template="#/components/schemas/{model}",
        )
        schemas.update(bodies["$defs"])
        made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, methods in made["paths"].items():
            for operation in methods.values():
                operation["security"] = [{}] if path in OPEN else [{"token": []}, {}]
        app.openapi_schema = made
    return app.openapi_schema


def _plain_tuples(schema: Any) -> Any:
    """Convert fixed-length tuples to arrays, which client generators support."""
    if isinstance(schema, list):
        return [_plain_tuples(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kinds = schema.get("prefixItems", [])
    if kinds and all(kind == kinds[0] for kind in kinds):
        schema = {key: part for key, part in schema.items() if key != "prefixItems"}
        schema["items"] = kinds[0]
    return {key: _plain_tuples(part) for key, part in schema.items()}


@document_router.get("/openapi.json")
def show_document(request: Request) -> Response:
    """Return the OpenAPI document."""
    return JSONResponse(describe(request.app))


@document_router.get("/docs")
def show_page(request: Request) -> Response:
    """Show the API documentation as a page."""
    pages: Pages = request.app.state.pages
    document = describe(request.app)
    context = {
        "operations": [
            (method.upper(), path, operation, list(_list_bodies(document, operation)))
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        ],
        "schemas": document["components"]["schemas"],
        "kind": show_kind,
        "address": request.app.state.settings.reach.url,
        "guarded": request.app.state.access.guarded,
    }
    return pages.show(request, "docs.html", context)


def _list_bodies(document: Mapping[str, Any], operation: Mapping[str, Any]) -> Any:
    for media, body in operation.get("requestBody", {}).get("content", {}).items():
        schema = body["schema"]
        if "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        yield media, schema


def show_kind(schema: Mapping[str, Any]) -> str:
    """Return a JSON schema type in readable words.

    >>> show_kind({"type": "array", "items": {"$ref": "#/components/schemas/Harm"}})
    'list of Harm'
    >>> show_kind({"anyOf": [{"type": "string"}, {"type": "null"}]})
    'string or null'
    """
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "const" in schema:
        return repr(schema["const"])
    if "enum" in schema:
        return " or ".join(map(repr, schema["enum"]))
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " or ".join(map(show_kind, schema[word]))
    if schema.get("type") == "array":
        return f"list of {show_kind(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type", "anything"))


def build_app(settings: ServeSettings) -> FastAPI:
    """Build the application with its models loaded.

    ``app.state`` contains ``service`` (:class:`~memantics.serve.context.Service`), ``settings``,
    ``access`` (access control) and ``pages``.
    """
    service = open_service(settings)

    @asynccontextmanager
    async def live(_app: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(service.engine.warm_up)
        # The garbage collector would search the loaded models again and again: 0.2 s each time.
        gc.freeze()
        service.runner, service.ready = Runner(service.jobs, service.engine), True
        health.listen(_app, partial(_open_studio, _app))
        readings = asyncio.create_task(service.engine.work(read_homophones, "开始"))
        readings.add_done_callback(lambda _done: gc.freeze())
        note("started", address=settings.reach.url, detector=service.engine.moderator.name)
        async with decisions.keep_sending(_app.state.desk):
            yield
        # Requests have been answered; the work that they started is finished here.
        service.ready = False
        await asyncio.gather(readings, return_exceptions=True)
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
    app.state.service, app.state.settings, app.state.access = service, settings, service.access
    app.router.routes.append(moderations.plain)
    for router in (
        moderations.router,
        perspective.router,
        hash_matching.router,
        health.reload_router,
        analysis.router,
        analysis.jobs_router,
        health.router,
        document_router,
        access.router,
    ):
        app.include_router(router)
    decisions.add_desk(app, settings.decisions)
    _open_studio(app)
    _add_pages(app)
    for kind in (Refusal, MemanticsError, HTTPException, sqlite3.Error, OSError):
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


def open_service(settings: ServeSettings) -> Service:
    """Load the models and open the parts of a service."""
    bounds = settings.bounds
    engine, metrics = ServiceEngine(settings), ServiceMetrics()
    for batcher in engine.batchers:
        metrics.watch(batcher)
    jobs = JobStore(settings.state, keep=bounds.keep, most=bounds.jobs)
    access, loader = AccessControl(settings), ImageLoader.open(bounds)
    sample = None if settings.sample is None else DailySample(settings.sample)
    return Service(settings, access, engine, loader, jobs, metrics, sample)


def _open_studio(app: FastAPI) -> None:
    engine = app.state.service.engine
    app.state.studio = Studio(engine.detector, engine.models, engine.calls, engine.ocr)


def _add_pages(app: FastAPI) -> None:
    """Add the web pages; each group of pages has its own templates, static files and messages."""
    site = Site(HERE / "studio", HERE / "browse", HERE, KNOWLEDGE)
    site.add_static(app)
    app.state.pages = Pages(site, list_tabs(app.state.settings.models))
    readers = [Depends(access.admit_reader)]
    app.include_router(studio.router, dependencies=readers)
    app.include_router(browse.router, dependencies=readers)


async def _answer(request: Request, error: Exception) -> Response:
    google = request.url.path.startswith(perspective.PREFIX)
    if isinstance(error, (sqlite3.Error, OSError)):  # a full disk, a locked database
        note_failure("storage", error, request=request.state.request_id)
        error = make_unavailable()
    if isinstance(error, StoreError):
        warn("storage", request=request.state.request_id, problem=str(error))
    if isinstance(error, MemanticsError):
        error = read_refusal(error)
    if isinstance(error, HTTPException):
        if _wants_page(request, error):
            pages: Pages = request.app.state.pages
            words = pages.words(request)
            missing = InputError(words("serve.no_page"), hint=words("serve.no_page_hint"))
            return pages.refuse(request, missing)
        word = "not_found" if error.status_code == 404 else "refused"
        error = Refusal(error.status_code, word, str(error.detail), error.headers)
    assert isinstance(error, Refusal)
    if request.url.path.startswith(hash_matching.PREFIXES):
        return hash_matching.answer_plainly(error)
    return perspective.answer_google(error) if google else answer_refusal(error)


def _wants_page(request: Request, error: HTTPException) -> bool:
    """Tell whether a browser asked for a page that does not exist."""
    browses = request.url.path.split("/")[1] in ("browse", "studio")
    accepted = request.headers.get("accept", "")
    return error.status_code == 404 and browses and "text/html" in accepted


# Start of the service: bind the port, print the URL, serve until stopped.

GRACE = 40  # seconds; longer than the time limit of a request


def run(settings: ServeSettings, started: Callable[[ServeSettings], None]) -> None:
    """Serve until the process is stopped; ``started`` is called before the first request."""
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
    """Put jobs that were running when the service last ended back into the queue."""
    store = JobStore(folder, keep=0, most=0)
    try:
        store.recover()
    finally:
        store.close()


@contextmanager
def _own(folder: Path) -> Iterator[None]:
    """Lock the job folder, because a second service on it would run jobs twice."""
    with refuse_unwritable(folder, "--state"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = (folder / "lock").open("a")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"another service uses the job folder {folder}",
                hint="choose another folder with --state",
            ) from None
        yield
