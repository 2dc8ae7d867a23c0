"""Whether the service lives and is ready, for those that watch over it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import BaseModel

from memantics.serve.refusals import Refusal

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """How the service is."""

    status: str


@router.get("/healthz", operation_id="live")
async def live() -> Health:
    """Whether the process answers."""
    return Health(status="ok")


@router.get("/readyz", operation_id="ready")
async def ready(request: Request) -> Health:
    """Whether models are loaded and new work is taken."""
    if not request.app.state.ready:
        raise Refusal(503, "not_ready", "the service is starting or stopping")
    return Health(status="ready")
