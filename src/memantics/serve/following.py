"""Jobs over HTTP: how one stands, its progress as it happens, its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import orjson
from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from memantics.serve.analysis import answer
from memantics.serve.context import Service, find_service
from memantics.serve.inputs import JobRecord, show_job
from memantics.serve.jobs import ENDED, StoredJob
from memantics.serve.refusals import ERRORS, Refusal
from memantics.serve.tokens import Scope

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], responses=ERRORS)
_LOOK = 0.3
_QUIET = 10.0
_SCOPES: dict[str, Scope] = {"analyze": "analyze", "reappraise": "reappraise"}


async def find_job(request: Request, service: Service) -> StoredJob:
    """A job of whoever asks; those of others are not there."""
    job = await asyncio.to_thread(service.jobs.get, request.path_params["job"])
    scope = _SCOPES[job.kind] if job is not None else "analyze"
    owner = service.gate.admit(request, scope)
    if job is None or job.owner != owner:
        raise Refusal(404, "not_found", "there is no such job; ended ones are kept for a time only")
    return job


@router.get("/{job}", operation_id="get_job", response_model=JobRecord)
async def get_job(request: Request, job: str) -> Response:  # noqa: ARG001 - named in the document
    """How a job stands, with its result when it is done."""
    return answer(show_job(await find_job(request, find_service(request))))


@router.delete("/{job}", operation_id="delete_job", status_code=204)
async def delete_job(request: Request, job: str) -> Response:  # noqa: ARG001
    """Cancel a job, or forget one that has ended."""
    service = find_service(request)
    found = await find_job(request, service)
    await asyncio.to_thread(service.jobs.drop, found.id)
    return Response(status_code=204)


@router.get(
    "/{job}/events",
    operation_id="follow_job",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events: progress, then done, failed or cancelled.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
)
async def follow_job(request: Request, job: str) -> Response:  # noqa: ARG001
    """Follow a job until it ends; each event holds the job as it stands."""
    service = find_service(request)
    found = await find_job(request, service)
    return StreamingResponse(
        _follow(service, found), media_type="text/event-stream", headers={"x-accel-buffering": "no"}
    )


async def _follow(service: Service, job: StoredJob) -> AsyncIterator[bytes]:
    told: tuple[object, ...] = ()
    at = time.monotonic()
    while True:
        now = (job.status, job.done, job.total)
        if now != told:
            told, at = now, time.monotonic()
            event = job.status if job.status in ENDED else "progress"
            yield b"event: %s\ndata: %s\n\n" % (event.encode(), orjson.dumps(show_job(job)))
        elif time.monotonic() - at > _QUIET:
            at = time.monotonic()
            yield b": waiting\n\n"  # proxies close connections that say nothing
        if job.status in ENDED or not service.ready:
            return
        await asyncio.sleep(_LOOK)
        found = await asyncio.to_thread(service.jobs.get, job.id)
        if found is None:
            return
        job = found
