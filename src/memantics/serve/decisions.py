"""Routes of decisions: record a decision, read a case, appeal, and send webhooks.

``POST /v1/decisions`` checks a text against the policy of the service: with a model, the model
cites a clause; without one, the detector's score decides, and the record says that no clause was
applied. A text that neither decides is ``undecided``: a person has to review it. Clients may also
record a decision of their own, and have to do so for images.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Annotated, Literal

import orjson
from fastapi import APIRouter, FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from memantics.core.errors import InputError, MemanticsError
from memantics.core.policy import NO_CLAUSE, NotADecider, Policy, find_role, read_policy
from memantics.moderation import (
    HARMFUL,
    MOST_TEXT,
    Decision,
    DecisionCase,
    DecisionLog,
    check_clause,
    decide_by_policy,
    deliver,
    explain_decision,
    find_case,
    hash_content,
    record_appeal,
    record_decision,
)
from memantics.serve.context import Service, find_service
from memantics.serve.inputs import read_json
from memantics.serve.refusals import ERRORS, Refusal
from memantics.serve.settings import DecisionSettings
from memantics.web.logs import note_failure

router = APIRouter(prefix="/v1", tags=["decisions"], responses=ERRORS)
_CLOSED = ConfigDict(extra="forbid", frozen=True)
_PAUSE = 5.0
NO_CLAUSE_NOTE = "no clause was applied: the detector's score decided"
Id = Annotated[str, Field(max_length=200)]


class GivenDecision(BaseModel):
    """A decision of the client, such as one of a reviewer.

    If the service has a policy, the ``role`` of a reviewer must be among its deciders. Default: the
    roles of the token.
    """

    model_config = _CLOSED

    verdict: Literal["allowed", "violates"]
    clause: Annotated[str, Field(max_length=20)] = NO_CLAUSE
    reviewer: Annotated[str, Field(max_length=80)] = ""
    role: Annotated[str, Field(max_length=40)] = ""


class DecisionBody(BaseModel):
    """A content to decide on, or whose decision to record.

    ``content_sha256`` is needed for an image, and without a text. An image needs a ``decision``,
    since the service decides on texts only. The text is stored only with ``keep_days``.
    """

    model_config = _CLOSED

    text: Annotated[str, Field(max_length=MOST_TEXT)] = ""
    content_sha256: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    content_id: Id = ""
    content_type: Literal["text", "image"] = "text"
    language: Annotated[str, Field(max_length=20)] = ""
    decision: GivenDecision | None = None
    keep_days: Annotated[float, Field(ge=0, le=3650)] | None = None


class AppealBody(BaseModel):
    """An appeal of the author of a post."""

    model_config = _CLOSED

    decision: Id
    statement: Annotated[str, Field(max_length=5000)] = ""
    language: Annotated[str, Field(max_length=20)] = ""
    keep_days: Annotated[float, Field(ge=0, le=3650)] | None = None


BODIES: tuple[tuple[type[BaseModel], Literal["validation"]], ...] = (
    (DecisionBody, "validation"),
    (AppealBody, "validation"),
)


class DecisionRecord(BaseModel):
    """A case for the client: the decision, its state, and the explanation for the author.

    ``verdict`` is ``allowed``, ``violates``, or ``undecided`` in the band ``review``.
    """

    id: str
    state: Literal["undecided", "decided", "appealed", "upheld", "overturned"]
    at: float
    verdict: str
    band: str
    clause: str
    policy: str
    automated: bool
    content_sha256: str
    content_id: str
    note: str
    explanation: str


class AppealRecord(BaseModel):
    """An accepted appeal."""

    id: str
    decision: str
    state: Literal["appealed"] = "appealed"


class DecisionDesk:
    """The log and the policy of a running service."""

    def __init__(self, settings: DecisionSettings) -> None:
        self.settings = settings
        self.policy: Policy | None = read_policy(settings.policy) if settings.policy else None
        self.log = DecisionLog(settings.database, webhooks=settings.webhooks)

    def show(self, case: DecisionCase, language: str) -> dict[str, object]:
        """Return a case for a client; the policy is used only if it is that version."""
        decision = case.decision
        same = self.policy is not None and self.policy.digest == decision.policy_sha256
        names = ("id", "at", "verdict", "band", "clause", "policy", "content_sha256", "note")
        shown: dict[str, object] = {name: getattr(decision, name) for name in names}
        return {
            **shown,
            "content_id": decision.content_id,
            "automated": decision.automated,
            "state": case.state,
            "explanation": explain_decision(case, self.policy if same else None, language),
        }

    async def send(self) -> None:
        """Send webhooks until the service stops."""
        while True:
            try:
                await asyncio.to_thread(deliver, self.log, self.settings.secret)
            except (MemanticsError, OSError) as error:
                note_failure("webhooks", error)
            await asyncio.sleep(_PAUSE)


def find_desk(request: Request) -> DecisionDesk:
    """Return the desk of the service; refuse without one."""
    desk: DecisionDesk | None = request.app.state.desk
    if desk is None:
        raise Refusal(
            404, "no_decisions", "the service records no decisions; start it with --decisions"
        )
    return desk


def _answer(value: object, status: int = 200, where: str = "") -> Response:
    headers = {"location": where} if where else None
    return Response(orjson.dumps(value), status, headers, media_type="application/json")


@router.post(
    "/decisions",
    operation_id="create_decision",
    status_code=201,
    response_model=DecisionRecord,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/DecisionBody"}}
            },
        }
    },
)
async def post_decision(request: Request) -> Response:
    """Decide on a content, or record a decision; when this answers, the record is on disk."""
    service = find_service(request)
    service.access.admit(request, "decide")
    desk = find_desk(request)
    body = await read_json(request, DecisionBody)
    _check_content(body)
    role = _find_role(desk.policy, body.decision, service.access.list_roles(request))
    async with service.deadline():
        made = replace(await _decide(service, desk, body), role=role)
        text = body.text if body.keep_days is not None and body.text else None
        recorded = await asyncio.to_thread(
            record_decision, desk.log, made, text=text, keep_days=body.keep_days
        )
    case = DecisionCase(recorded, text=body.text or None)
    return _answer(desk.show(case, body.language), 201, f"/v1/decisions/{recorded.id}")


def _check_content(body: DecisionBody) -> None:
    """Refuse a content that cannot be decided on or recorded."""
    decided = bool(body.content_sha256 and body.decision)
    if body.content_type == "image" and not decided:
        message = (
            "the service decides on texts only: give a decision and content_sha256 for an image;"
            " POST /v1/moderations returns verdicts on images"
        )
        raise Refusal(422, "invalid_value", message)
    if not body.text.strip() and not decided:
        raise Refusal(422, "invalid_value", "give a text, or content_sha256 with a decision")


def _find_role(policy: Policy | None, given: GivenDecision | None, limits: Sequence[str]) -> str:
    """Return the role in which a reviewer decided; refuse one that may not decide."""
    if given is None or not given.reviewer:
        return ""  # automated
    if given.role and limits and given.role not in limits:
        raise Refusal(
            403,
            "role_not_allowed",
            f"this token may not decide as {given.role!r}; its roles are {', '.join(limits)}",
        )
    if policy is None:
        return given.role
    hint = "send one of these roles as decision.role, or let another person decide"
    try:
        held = [given.role] if given.role else limits
        return find_role(policy, held, f"reviewer {given.reviewer}", hint)
    except NotADecider as error:
        raise Refusal(403, "role_not_allowed", str(error)) from error


async def _decide(service: Service, desk: DecisionDesk, body: DecisionBody) -> Decision:
    policy, given = desk.policy, body.decision
    made = Decision(
        content_sha256=body.content_sha256 or hash_content(body.text),
        content_id=body.content_id,
        content_type=body.content_type,
        verdict=given.verdict if given else "undecided",
        band="review",
        clause=given.clause if given else NO_CLAUSE,
        policy=policy.name if policy else "",
        policy_sha256=policy.digest if policy else "",
        reviewer=given.reviewer if given else "",
        language=body.language,
    )
    if body.content_type == "text" and body.text:
        made = replace(made, content_sha256=hash_content(body.text))
    if given is not None:
        if policy is not None:
            check_clause(made, policy)
        return replace(made, band="block" if made.verdict == "violates" else "allow")
    if policy is not None and service.engine.models:
        return await _ask_model(service, policy, made, body.text)
    return await _ask_detector(service, made, body.text)


async def _ask_model(service: Service, policy: Policy, made: Decision, text: str) -> Decision:
    """Let the first model cite a clause; without a valid reply, a person has to decide."""
    name = next(iter(service.engine.models))
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    folder = service.settings.state / "decisions"
    said = await asyncio.to_thread(
        decide_by_policy, policy, text, name, service.engine.calls, folder, digest
    )
    if said is None:
        return replace(made, model=name, note="needs human review: the model gave no decision")
    band: Literal["block", "allow"] = "block" if said.verdict == "violates" else "allow"
    return replace(made, verdict=said.verdict, clause=said.clause, model=name, band=band)


async def _ask_detector(service: Service, made: Decision, text: str) -> Decision:
    """Let the score decide; a text in the review band or without a score is not decided."""
    (verdict,) = await service.engine.texts.ask([text])
    service.count(verdict)
    detectors = service.engine.moderator.detectors
    point = next((one.point for one in detectors if one.version == verdict.detector), None)
    made = replace(
        made,
        policy="",
        policy_sha256="",
        detector=verdict.detector,
        operating_point=point.summary if point is not None else "",
        note=NO_CLAUSE_NOTE,
    )
    if verdict.outcome == HARMFUL:
        return replace(made, verdict="violates", band="block")
    if verdict.status == "scored" and not verdict.review:
        return replace(made, verdict="allowed", band="allow")
    note = f"needs human review, and no clause was applied: {verdict.review or verdict.reason}"
    return replace(made, note=note)


@router.get("/decisions/{decision}", operation_id="get_decision", response_model=DecisionRecord)
async def get_decision(request: Request, decision: str, language: str = "en") -> Response:
    """Return a case with its state and the explanation for the author of the post."""
    service = find_service(request)
    service.access.admit(request, "read_decisions")
    desk = find_desk(request)
    try:
        case = await asyncio.to_thread(find_case, desk.log, decision[:200])
    except InputError as error:
        raise Refusal(404, "not_found", "no such decision") from error
    return _answer(desk.show(case, language[:20]))


@router.post(
    "/appeals",
    operation_id="create_appeal",
    status_code=201,
    response_model=AppealRecord,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/AppealBody"}}
            },
        }
    },
)
async def post_appeal(request: Request) -> Response:
    """Record an appeal; a reviewer who did not decide before reviews it."""
    service = find_service(request)
    service.access.admit(request, "appeal")
    desk = find_desk(request)
    body = await read_json(request, AppealBody)
    made = await asyncio.to_thread(
        record_appeal,
        desk.log,
        body.decision,
        statement=body.statement,
        language=body.language,
        keep_days=body.keep_days,
    )
    return _answer({"id": made.id, "decision": made.decision, "state": "appealed"}, 201)


def add_desk(app: FastAPI, settings: DecisionSettings | None) -> None:
    """Add the routes and, if the service records decisions, open its log."""
    app.state.desk = None if settings is None else DecisionDesk(settings)
    app.include_router(router)


@asynccontextmanager
async def keep_sending(desk: DecisionDesk | None) -> AsyncIterator[None]:
    """Send webhooks while the service runs, and close the log at its end."""
    if desk is None:
        yield
        return
    sending = asyncio.create_task(desk.send()) if desk.settings.webhooks else None
    yield
    if sending is not None:
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending
    desk.log.close()
