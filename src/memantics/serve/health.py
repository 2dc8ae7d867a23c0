"""Health and metrics endpoints, and reloading of detectors while the service runs.

``POST /v1/detectors/reload`` or the signal SIGHUP reloads the detectors.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from typing import Literal

from fastapi import APIRouter, FastAPI, Request
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from starlette.responses import PlainTextResponse, Response

from memantics.core.errors import MemanticsError
from memantics.serve.context import find_service
from memantics.serve.refusals import ERRORS, Refusal
from memantics.web.logs import note, warn

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """The status of the service; only clients with a token see the name of the detector."""

    status: Literal["ok", "ready"]
    detector: str | None = None
    models: list[str] | None = None


@router.get("/healthz", operation_id="live", response_model_exclude_none=True)
async def live(request: Request) -> Health:
    """Return whether the process responds."""
    return _show(request, "ok")


@router.get(
    "/readyz",
    operation_id="ready",
    responses={503: ERRORS[503]},
    response_model_exclude_none=True,
)
async def ready(request: Request) -> Health:
    """Return whether models are loaded and new work is accepted."""
    service = find_service(request)
    if not service.ready or service.runner is None:
        raise Refusal(503, "not_ready", "the service is starting or stopping")
    if not service.runner.works:
        raise Refusal(503, "not_ready", "no job can be started: the job database fails")
    return _show(request, "ready")


def _show(request: Request, status: Literal["ok", "ready"]) -> Health:
    service = find_service(request)
    if not service.access.knows(request):
        return Health(status=status)
    engine = service.engine
    return Health(status=status, detector=engine.moderator.name, models=list(engine.models))


@router.get("/metrics", operation_id="metrics", response_class=PlainTextResponse, responses=ERRORS)
async def metrics(request: Request) -> Response:
    """Return the Prometheus metrics."""
    service = find_service(request)
    service.access.admit(request, "metrics")
    jobs = await asyncio.to_thread(service.jobs.count)
    return Response(service.metrics.show(jobs), media_type=CONTENT_TYPE_LATEST)


reload_router = APIRouter(tags=["moderation"])


class Reloaded(BaseModel):
    """The active detector after a reload; other server processes follow within seconds."""

    detector: str
    detectors: list[str]


@reload_router.post("/v1/detectors/reload", operation_id="reload_detectors", responses=ERRORS)
async def reload(request: Request) -> Reloaded:
    """Reload the detector files; current requests are still answered by the old detectors."""
    service = find_service(request)
    service.access.admit(request, "reload")
    await _reload(request.app)
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid is not None and service.settings.workers > 1:
        os.kill(parent.pid, signal.SIGHUP)  # the changed file tells all server processes to reload
    moderator = service.engine.moderator
    names = [detector.version for detector in moderator.detectors]
    return Reloaded(detector=moderator.name, detectors=names)


async def _reload(app: FastAPI) -> None:
    name = await asyncio.to_thread(app.state.service.engine.reload)
    app.state.reopened()
    note("reloaded", detector=name)


def listen(app: FastAPI, reopened: Callable[[], None]) -> None:
    """Reload the detectors at the signal SIGHUP; ``reopened`` is called after each reload."""
    app.state.reopened = reopened
    if threading.current_thread() is not threading.main_thread():
        return
    waiting: set[asyncio.Task[None]] = set()

    async def follow() -> None:
        try:
            await _reload(app)
        except MemanticsError as error:
            warn("not reloaded", problem=str(error))

    def start() -> None:
        task = asyncio.create_task(follow())
        waiting.add(task)
        task.add_done_callback(waiting.discard)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, start)
