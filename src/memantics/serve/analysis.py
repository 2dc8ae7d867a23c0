"""HTTP routes for analysis, puns, reappraisal and SPARQL queries, and for the status of jobs."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
from fastapi import APIRouter, Request
from pydantic import JsonValue
from starlette.responses import Response, StreamingResponse

from memantics import workbench
from memantics.core.errors import UnknownName
from memantics.core.images import MIME, probe
from memantics.serve import inputs
from memantics.serve.context import Service, find_service
from memantics.serve.inputs import (
    JobRecord,
    describe_fields,
    describe_upload,
    read_fields,
    read_upload,
    show_job,
)
from memantics.serve.jobs import ENDED, JobKind, StoredJob, show_analysis
from memantics.serve.refusals import ERRORS, Refusal
from memantics.serve.settings import TokenScope
from memantics.understanding import read_homophones

router = APIRouter(prefix="/v1", responses=ERRORS)
ACCEPTED: dict[int | str, dict[str, Any]] = {
    202: {"model": inputs.JobRecord, "description": "Accepted as a job; see Location."}
}
jobs_router = APIRouter(prefix="/v1/jobs", tags=["jobs"], responses=ERRORS)
_LOOK = 0.3
_QUIET = 10.0
_SCOPES: dict[str, TokenScope] = {"analyze": "analyze", "reappraise": "reappraise"}


@router.post(
    "/analyze",
    operation_id="analyze",
    tags=["analysis"],
    response_model=inputs.AnalysisRecord,
    responses=ACCEPTED,
    openapi_extra=describe_upload(inputs.AnalyzeBody),
)
async def post_analyze(request: Request) -> Response:
    """Analyse a meme: text, homophones, meaning and harm. With a model it runs as a job."""
    service = find_service(request)
    owner = service.access.admit(request, "analyze")
    body, image = await read_upload(request, inputs.AnalyzeBody, service.loader)
    if body.with_model or body.model:
        options = {"model": find_model(service, body.model), "language": body.language}
        return await accept(service, "analyze", owner, options, image)
    async with service.deadline():
        return answer(await service.engine.work(look_at, service, image))


def look_at(service: Service, image: bytes) -> dict[str, JsonValue]:
    """Analyse an image without a model; its temporary file is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="memantics-") as folder:
        path = Path(folder) / f"meme.{MIME[probe(image, 'upload').format].partition('/')[2]}"
        path.write_bytes(image)
        return show_analysis(workbench.analyze(path, parts=service.engine.parts))


@router.post(
    "/puns",
    operation_id="read_homophones",
    tags=["analysis"],
    response_model=inputs.PunsRecord,
    openapi_extra=describe_fields(inputs.PunsBody),
)
async def post_puns(request: Request) -> Response:
    """Find homophone readings of a caption."""
    service = find_service(request)
    service.access.admit(request, "puns")
    body = await read_fields(request, inputs.PunsBody)
    async with service.deadline():
        found = await service.engine.work(
            read_homophones,
            body.caption,
            description=body.description,
            language=body.language,
            limit=body.limit,
        )
    return answer(found.to_dict())


@router.post(
    "/reappraise",
    operation_id="reappraise",
    tags=["analysis"],
    status_code=202,
    response_model=inputs.JobRecord,
    openapi_extra=describe_upload(inputs.ReappraiseBody),
)
async def post_reappraise(request: Request) -> Response:
    """Rewrite a negative meme. This is a job; its result contains the new image."""
    service = find_service(request)
    owner = service.access.admit(request, "reappraise")
    body, image = await read_upload(request, inputs.ReappraiseBody, service.loader)
    asked = body.with_model or body.model
    model = find_model(service, body.model) if asked else None
    options = {"model": model, "target": body.target, "versions": body.versions}
    options["label"] = body.label
    return await accept(service, "reappraise", owner, options, image)


@router.post(
    "/knowledge/query",
    operation_id="query_knowledge",
    tags=["knowledge"],
    response_model=inputs.RowsRecord,
    openapi_extra=describe_fields(inputs.QueryBody),
)
async def post_query(request: Request) -> Response:
    """Query the knowledge graph with SPARQL, read-only."""
    service = find_service(request)
    service.access.admit(request, "knowledge")
    body = await read_fields(request, inputs.QueryBody)
    seconds = service.settings.bounds.deadline
    async with service.deadline():
        found = await service.engine.work(ask, service, body, seconds)
    return answer(found)


def ask(service: Service, body: inputs.QueryBody, seconds: float) -> dict[str, JsonValue]:
    """Run a SPARQL query with a time limit and return its rows."""
    store = service.engine.store
    return store.query(body.query, limit=body.limit, timeout=seconds).to_dict()


def find_model(service: Service, name: str | None) -> str:
    """Return the requested model of the service; by default, the first one."""
    models = service.engine.models
    if not models:
        raise Refusal(422, "no_model", "this request needs a model; start the service with --model")
    if name is not None and name not in models:
        raise Refusal(404, "model_not_found", str(UnknownName("model", name[:100], models)))
    return name or models[0]


async def accept(
    service: Service, kind: JobKind, owner: str, options: dict[str, Any], image: bytes
) -> Response:
    """Store a background job and return its URL."""
    if not service.ready or service.runner is None:
        raise Refusal(503, "not_ready", "the service is starting or stopping")
    add = service.jobs.add
    job: StoredJob = await service.engine.work(add, kind, owner, options, image)
    service.runner.wake()
    return answer(inputs.show_job(job), 202, {"location": f"/v1/jobs/{job.id}"})


def answer(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a value as a JSON response."""
    return Response(orjson.dumps(value), status, headers, media_type="application/json")


async def find_job(request: Request, service: Service) -> StoredJob:
    """Return a background job of this client; jobs of other clients are not found."""
    job = await asyncio.to_thread(service.jobs.get, request.path_params["job"])
    scope = _SCOPES[job.kind] if job is not None else "analyze"
    owner = service.access.admit(request, scope)
    if job is None or job.owner != owner:
        raise Refusal(404, "not_found", "job not found; finished jobs are deleted after some time")
    return job


@jobs_router.get("/{job}", operation_id="get_job", response_model=JobRecord)
async def get_job(request: Request, job: str) -> Response:  # noqa: ARG001 - named in the document
    """Return the status of a background job, with its result once it is done."""
    return answer(show_job(await find_job(request, find_service(request))))


@jobs_router.delete("/{job}", operation_id="delete_job", status_code=204)
async def delete_job(request: Request, job: str) -> Response:  # noqa: ARG001
    """Cancel a background job, or delete a finished one."""
    service = find_service(request)
    found = await find_job(request, service)
    await asyncio.to_thread(service.jobs.drop, found.id)
    return Response(status_code=204)


@jobs_router.get(
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
    """Stream the status of a background job until it ends (server-sent events)."""
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
            yield b": waiting\n\n"  # proxies close connections without traffic
        if job.status in ENDED or not service.ready:
            return
        await asyncio.sleep(_LOOK)
        found = await asyncio.to_thread(service.jobs.get, job.id)
        if found is None:
            return
        job = found
