"""Whether the service lives and is ready, and its figures, for those that watch over it."""

from __future__ import annotations

import asyncio
from typing import Literal

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from starlette.responses import PlainTextResponse, Response

from memantics.serve.context import find_service
from memantics.serve.refusals import ERRORS, Refusal

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """How the service is; whose verdicts it gives, it tells who may ask for them."""

    status: Literal["ok", "ready"]
    detector: str | None = None
    models: list[str] | None = None


@router.get("/healthz", operation_id="live", response_model_exclude_none=True)
async def live(request: Request) -> Health:
    """Whether the process answers."""
    return _show(request, "ok")


@router.get(
    "/readyz",
    operation_id="ready",
    responses={503: ERRORS[503]},
    response_model_exclude_none=True,
)
async def ready(request: Request) -> Health:
    """Whether models are loaded and new work is taken."""
    service = find_service(request)
    if not service.ready or service.runner is None:
        raise Refusal(503, "not_ready", "the service is starting or stopping")
    if not service.runner.works:
        raise Refusal(503, "not_ready", "no job can be taken: the database of jobs fails")
    return _show(request, "ready")


def _show(request: Request, status: Literal["ok", "ready"]) -> Health:
    service = find_service(request)
    if not service.gate.knows(request):
        return Health(status=status)
    engine = service.engine
    return Health(status=status, detector=engine.moderator.name, models=list(engine.models))


@router.get("/metrics", operation_id="metrics", response_class=PlainTextResponse, responses=ERRORS)
async def metrics(request: Request) -> Response:
    """Figures for Prometheus."""
    service = find_service(request)
    service.gate.admit(request, "metrics")
    jobs = await asyncio.to_thread(service.jobs.count)
    return Response(service.metrics.show(jobs), media_type=CONTENT_TYPE_LATEST)
