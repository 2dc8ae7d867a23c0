"""``POST /v1/moderations`` in OpenAI's format, and the list of models for this endpoint.

OpenAI categories that the detectors do not distinguish are false, with score 0 and an empty list of
input types: this is how OpenAI marks categories that were not applied. Three categories are
specific to Memantics: ``harmful``, ``not_scored`` (no verdict) and ``review`` (needs human review).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import orjson
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from memantics.core.errors import MemanticsError
from memantics.moderation import HARMFUL, MOST_TEXT, DetectorSummary, Subject, Verdict
from memantics.serve.context import Service, find_service
from memantics.serve.inputs import read_json
from memantics.serve.refusals import ERRORS, Refusal

router = APIRouter(tags=["moderation"])
InputKind = Literal["text", "image"]
# The OpenAI categories for each harm type of Memantics; each type also has a category of its own
# name.
TYPES: dict[str, tuple[str, ...]] = {
    "targeted": ("targeted", "hate"),
    "offence": ("offence", "harassment"),
    "sexual": ("sexual",),
    "dispirited": ("dispirited",),
}
OTHERS = (
    "harassment/threatening",
    "hate/threatening",
    "illicit",
    "illicit/violent",
    "self-harm",
    "self-harm/intent",
    "self-harm/instructions",
    "sexual/minors",
    "violence",
    "violence/graphic",
)
NOT_SCORED, REVIEW = "not_scored", "review"
# The category for harm without a type: OpenAI's most general one.
PLAIN = "harassment"
CATEGORIES = (
    HARMFUL,
    NOT_SCORED,
    REVIEW,
    *(name for names in TYPES.values() for name in names),
    *OTHERS,
)
_NO_SCORES = dict.fromkeys(CATEGORIES, 0.0)
_NO_FLAGS = dict.fromkeys(CATEGORIES, False)
_NO_KINDS: dict[str, tuple[InputKind, ...]] = dict.fromkeys(CATEGORIES, ())
# Default model names that OpenAI clients send.
USUAL = (
    "omni-moderation-latest",
    "omni-moderation-2024-09-26",
    "text-moderation-latest",
    "text-moderation-stable",
    "text-moderation-007",
    "memantics",
)


class TextPart(BaseModel):
    """A text in a moderation request."""

    type: Literal["text"]
    text: str = Field(max_length=MOST_TEXT)


class ImageAddress(BaseModel):
    """An image as a data URL."""

    url: str


class ImagePart(BaseModel):
    """An image in a moderation request."""

    type: Literal["image_url"]
    image_url: ImageAddress


ContentPart = Annotated[TextPart | ImagePart, Field(discriminator="type")]
TextInput = Annotated[str, Field(max_length=MOST_TEXT)]
# More inputs than any service accepts at once; parsing a list stops at the first error.
Few = Field(max_length=1000, fail_fast=True)


class ModerationBody(BaseModel):
    """The input to moderate: one text, several texts (one result each), or parts of one input."""

    model_config = ConfigDict(frozen=True)

    input: TextInput | Annotated[list[TextInput], Few] | Annotated[list[ContentPart], Few]
    model: str | None = None


class ModerationResult(BaseModel):
    """The result for one input: OpenAI's fields, plus the detector and its verdicts.

    ``flagged`` is true if any category is, as in OpenAI's results: the meme is harmful, or it needs
    human review. Inputs that could not be scored need review: ``status`` is then ``not_scored``,
    ``failed`` (an image could not be read) or ``partly scored`` (some parts were scored), and
    ``reason`` explains it. ``verdicts`` has one entry per part.
    """

    flagged: bool
    categories: dict[str, bool]
    category_scores: dict[str, float]
    category_applied_input_types: dict[str, list[InputKind]]
    status: Literal["scored", "partly scored", "not_scored", "failed"]
    reason: str
    verdicts: list[Verdict]


class Moderation(BaseModel):
    """The moderation results in the order of the inputs; ``model`` is the detector."""

    id: str
    model: str
    results: list[ModerationResult]
    note: str


class ModelEntry(BaseModel):
    """One model in OpenAI's list format."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "memantics"


class ModelList(BaseModel):
    """All models that the moderation endpoint accepts."""

    object: Literal["list"] = "list"
    data: list[ModelEntry]


@router.post(
    "/v1/moderations",
    operation_id="create_moderation",
    response_model=Moderation,
    responses=ERRORS,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/ModerationBody"}}
            },
        }
    },
)
async def moderate(request: Request) -> Response:
    """Classify texts and images as harmful or harmless, with the type and the detector."""
    service = find_service(request)
    service.access.admit(request, "moderate")
    body = await read_json(request, ModerationBody)
    inputs = _list_inputs(body)
    _check(service, body, inputs)
    async with service.deadline():
        judged = await _judge(service, [part for parts in inputs for part in parts])
    rest = iter(judged)
    results = [_sum_up([next(rest) for _ in parts]) for parts in inputs]
    moderator = service.engine.moderator
    shown = {
        "id": f"modr-{random.getrandbits(96):024x}",
        "model": moderator.name,
        "results": results,
        "note": moderator.detector.note,
    }
    return Response(orjson.dumps(shown), media_type="application/json")


def _list_inputs(body: ModerationBody) -> list[list[str | ImagePart]]:
    """Return the texts and images of each input that gets its own result."""
    given = body.input
    if isinstance(given, str):
        return [[given]]
    if given and isinstance(given[0], str):
        return [[text] for text in given if isinstance(text, str)]
    parts: list[str | ImagePart] = [one.text if isinstance(one, TextPart) else one for one in given]
    return [parts] if parts else []


def _check(
    service: Service, body: ModerationBody, inputs: Sequence[Sequence[str | ImagePart]]
) -> None:
    moderator, most = service.engine.moderator, service.settings.bounds.inputs
    known = (*USUAL, moderator.name, moderator.detector.name)
    if body.model is not None and body.model not in known:
        message = f"the model {body.model[:100]!r} is not available; use {moderator.name}"
        raise Refusal(404, "model_not_found", message)
    count = sum(map(len, inputs))
    if not count:
        raise Refusal(400, "invalid_request", "input: give at least one text or image")
    if count > most:
        raise Refusal(400, "invalid_request", f"input: {count} parts; the limit is {most}")


async def _judge(
    service: Service, parts: Sequence[str | ImagePart]
) -> list[tuple[InputKind, Verdict]]:
    """Read the text of all images, then score all texts."""
    engine = service.engine
    addresses = [part.image_url.url for part in parts if isinstance(part, ImagePart)]
    images: list[bytes] = list(await asyncio.gather(*map(service.loader.take, addresses)))
    read = iter(await engine.images.ask(images) if images else ())
    items: list[str | Subject | MemanticsError] = [
        part if isinstance(part, str) else next(read) for part in parts
    ]
    ready = [item for item in items if not isinstance(item, MemanticsError)]
    said = iter(await engine.texts.ask(ready) if ready else ())
    found: list[tuple[InputKind, Verdict]] = []
    for part, item in zip(parts, items, strict=True):
        verdict = engine.moderator.refuse(item) if isinstance(item, MemanticsError) else next(said)
        service.count(verdict)
        if engine.shadow is not None and not isinstance(item, MemanticsError):
            service.shadow(item, verdict)
        found.append(("text" if isinstance(part, str) else "image", verdict))
    return found


def _sum_up(parts: Sequence[tuple[InputKind, Verdict]]) -> dict[str, object]:
    """Combine the results of the parts of an input: the highest score per category counts."""
    scores, flags, kinds = _NO_SCORES.copy(), _NO_FLAGS.copy(), _NO_KINDS.copy()
    for kind, verdict in parts:
        for name, score, flag in _list_categories(verdict):
            scores[name] = max(scores.get(name, 0.0), score)
            flags[name] = flags.get(name, False) or flag
            if kind not in kinds.get(name, ()):
                kinds[name] = (*kinds.get(name, ()), kind)
    states = {verdict.status for _, verdict in parts}
    status = next(iter(states)) if len(states) == 1 else "partly scored"
    if status == "partly scored" and "scored" not in states:
        status = "failed"
    reasons = dict.fromkeys(filter(None, (v.reason or v.review for _, v in parts)))
    return {
        "flagged": any(flags.values()),
        "categories": flags,
        "category_scores": scores,
        "category_applied_input_types": kinds,
        "status": status,
        "reason": "; ".join(reasons),
        "verdicts": [verdict for _, verdict in parts],
    }


def _list_categories(verdict: Verdict) -> Iterator[tuple[str, float, bool]]:
    """Yield the categories of a verdict, each with its score and whether it applies."""
    if verdict.status != "scored" or verdict.probability is None:
        yield NOT_SCORED, 1.0, True
        yield REVIEW, 1.0, True
        return
    harmful = verdict.label == HARMFUL
    yield HARMFUL, verdict.probability, harmful
    if verdict.review:
        yield REVIEW, 1.0, True
    if not verdict.types:
        yield PLAIN, verdict.probability, harmful
    for scored_type in verdict.types:
        for name in TYPES.get(
            scored_type.type, () if scored_type.type == "none" else (scored_type.type,)
        ):
            yield name, scored_type.probability, harmful and verdict.type == scored_type.type


class PlainRoute(Route):
    """A route without dependency injection, which saves a third of the framework's time."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match a request and set the route for metrics, as the framework's own routes do."""
        found, child = super().matches(scope)
        return found, {**child, "route": self}


# This route comes before the route above, which exists only for the OpenAPI document.
plain = PlainRoute("/v1/moderations", moderate, methods=["POST"])


@router.get("/v1/models", operation_id="list_models", responses=ERRORS)
async def list_models(request: Request) -> ModelList:
    """List the detector under all names that clients may use."""
    service = find_service(request)
    service.access.admit(request, "moderate")
    names = (service.engine.moderator.name, *USUAL)
    return ModelList(data=[ModelEntry(id=name) for name in names])


class DetectorList(BaseModel):
    """The detectors in use, each with its operating point (threshold) and expected counts."""

    data: list[DetectorSummary]


@router.get("/v1/detectors", operation_id="list_detectors", responses=ERRORS)
async def list_detectors(request: Request) -> DetectorList:
    """List the detectors with their score bands, expected counts and the date of the setting."""
    service = find_service(request)
    service.access.admit(request, "moderate")
    return DetectorList(data=[one.summarise() for one in service.engine.moderator.detectors])
