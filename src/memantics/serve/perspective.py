"""``POST /v1alpha1/comments:analyze``: the method AnalyzeComment of the Perspective API.

Requests, answers and errors have the documented form of that API, which ended in 2026. The operator
names the detector or classifier of each attribute; another attribute is an error and never a score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from starlette.responses import Response

from memantics.moderation import MOST_TEXT, AttributeScore, AttributeSource, score_attributes
from memantics.serve.analysis import answer
from memantics.serve.context import find_service
from memantics.serve.inputs import read_json
from memantics.serve.refusals import Refusal

PREFIX = "/v1alpha1/"
PATH = f"{PREFIX}comments:analyze"
_MOST = 64  # attributes and languages per request
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_KIND = "type.googleapis.com/google.commentanalyzer.v1alpha1.Error"
router = APIRouter(tags=["perspective"])
ErrorType = Literal[
    "COMMENT_EMPTY",
    "COMMENT_TOO_LONG",
    "NO_REQUESTED_ATTRIBUTES",
    "LANGUAGE_NOT_SUPPORTED_BY_ATTRIBUTE",
    "INVALID_REQUEST",
]


class CommentRefusal(Refusal):
    """A rejected comment: status 400 and Perspective's ``errorType``."""

    def __init__(self, kind: ErrorType, message: str, **facts: object) -> None:
        super().__init__(400, "invalid_request", message)
        self.details = {"@type": _KIND, "errorType": kind, **facts}


class _Message(BaseModel):
    """A message of the API, with the names of fields in either case, as in Google's APIs."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True
    )


class TextEntry(_Message):
    """A text, with its type."""

    text: str = ""
    type: str = "PLAIN_TEXT"


class ArticleAndParentComment(_Message):
    """The article and the comment that a comment answers; accepted and not used."""

    article: TextEntry | None = None
    parent_comment: TextEntry | None = None


class CommentContext(_Message):
    """The context of a comment; accepted and not used, as in Perspective."""

    entries: Annotated[list[TextEntry], Field(max_length=1000)] | None = None
    article_and_parent_comment: ArticleAndParentComment | None = None


class AttributeParameters(_Message):
    """Options of one attribute; a score below ``score_threshold`` is not returned."""

    score_type: str = "PROBABILITY"
    score_threshold: Annotated[float, Field(allow_inf_nan=False)] | None = None


class AnalyzeCommentBody(_Message):
    """A comment to score; ``do_not_store`` keeps it out of the daily sample of the service.

    ``drop_unsupported_attributes`` leaves attributes out that do not support the language.
    """

    comment: TextEntry = TextEntry()
    requested_attributes: dict[str, AttributeParameters] = Field(default={}, max_length=_MOST)
    languages: list[Annotated[str, Field(max_length=35)]] = Field(default=[], max_length=_MOST)
    span_annotations: bool = False
    do_not_store: bool = False
    drop_unsupported_attributes: bool = False
    client_token: str | None = None
    session_id: str | None = None
    community_id: str | None = None
    context: CommentContext | None = None


class Score(_Message):
    """A score: a probability from 0 to 1."""

    value: float
    type: Literal["PROBABILITY"] = "PROBABILITY"


class SpanScoreEntry(_Message):
    """The score of one sentence; ``begin`` and ``end`` count Unicode characters."""

    begin: int
    end: int
    score: Score


class AttributeScoreEntry(_Message):
    """The scores of one attribute."""

    summary_score: Score
    span_scores: list[SpanScoreEntry] | None = None


class AnalyzeCommentAnswer(_Message):
    """The scores by attribute; without one above its threshold there is no ``attributeScores``."""

    attribute_scores: dict[str, AttributeScoreEntry] | None = None
    languages: list[str]
    detected_languages: list[str]
    client_token: str | None = None


@router.post(
    PATH,
    operation_id="analyze_comment",
    response_model=AnalyzeCommentAnswer,
    response_model_exclude_none=True,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/AnalyzeCommentBody"}}
            },
        }
    },
)
async def analyze_comment(request: Request) -> Response:
    """Score a comment for attributes, in the format of the Perspective API."""
    service = find_service(request)
    service.access.admit(request, "moderate", secret=request.query_params.get("key", ""))
    body = await read_json(request, AnalyzeCommentBody)
    sources = _check(body, service.engine.attributes)
    spans = sources if body.span_annotations else ()
    async with service.deadline():
        scores = await service.engine.work(
            score_attributes, sources, body.comment.text, languages=body.languages, spans=spans
        )
    verdicts = {id(score.verdict): score.verdict for score in scores if score.verdict is not None}
    for verdict in verdicts.values():
        service.count(verdict, store=not body.do_not_store)
    made = _show(body, scores)
    return answer(made.model_dump(by_alias=True, exclude_none=True))


def _check(
    body: AnalyzeCommentBody, known: Mapping[str, AttributeSource]
) -> dict[str, AttributeSource]:
    """Return the requested attributes; raise Perspective's errors for an invalid request."""
    if not body.comment.text.strip():
        raise CommentRefusal("COMMENT_EMPTY", "Comment must be non-empty.")
    if len(body.comment.text) > MOST_TEXT:
        raise CommentRefusal("COMMENT_TOO_LONG", "Comment text too long.")
    if body.comment.type not in ("PLAIN_TEXT", "TEXT_TYPE_UNSPECIFIED"):
        message = "Currently, only 'PLAIN_TEXT' comments are supported"
        raise CommentRefusal("INVALID_REQUEST", message)
    if not body.requested_attributes:
        raise CommentRefusal("NO_REQUESTED_ATTRIBUTES", "Missing requested_attributes")
    for name, options in body.requested_attributes.items():
        if name not in known:
            raise CommentRefusal("INVALID_REQUEST", f"Unknown requested attribute: {name[:100]}")
        if options.score_type not in ("PROBABILITY", "SCORE_TYPE_UNSPECIFIED"):
            kind = options.score_type[:100]
            message = f"Requested score type {kind} is not supported by attribute {name}"
            raise CommentRefusal("INVALID_REQUEST", message)
    spoken = {language.lower().partition("-")[0] for language in body.languages}
    found = {}
    for name in body.requested_attributes:
        if spoken <= set(known[name].languages):
            found[name] = known[name]
        elif not body.drop_unsupported_attributes:
            raise _refuse_language(name, body.languages)
    return found


def _refuse_language(attribute: str, languages: Sequence[str]) -> CommentRefusal:
    message = f"Attribute {attribute} does not support request languages: {', '.join(languages)}"
    facts = {"detectedLanguages": list(languages), "attribute": attribute}
    return CommentRefusal(
        "LANGUAGE_NOT_SUPPORTED_BY_ATTRIBUTE", message, languageNotSupportedByAttributeError=facts
    )


def _show(body: AnalyzeCommentBody, scores: Sequence[AttributeScore]) -> AnalyzeCommentAnswer:
    shown = {}
    for score in scores:
        if score.probability is None:
            if score.foreign and body.drop_unsupported_attributes:
                continue
            if score.foreign:
                raise _refuse_language(score.name, body.languages or [score.language or "und"])
            raise CommentRefusal("INVALID_REQUEST", f"{score.name}: {score.reason}")
        least = body.requested_attributes[score.name].score_threshold
        if least is not None and score.probability < least:
            continue
        spans = [
            SpanScoreEntry(begin=span.start, end=span.end, score=Score(value=span.probability))
            for span in score.spans
        ]
        shown[score.name] = AttributeScoreEntry(
            summary_score=Score(value=score.probability), span_scores=spans or None
        )
    detected = list(dict.fromkeys(score.language for score in scores if score.language))
    return AnalyzeCommentAnswer(
        attribute_scores=shown or None,
        languages=body.languages or detected,
        detected_languages=detected,
        client_token=body.client_token,
    )


def answer_google(refusal: Refusal) -> Response:
    """Return a refusal as a JSON response in the form of Google's APIs."""
    status = _STATUS.get(refusal.status, "INTERNAL" if refusal.status >= 500 else _STATUS[400])
    error: dict[str, object] = {"code": refusal.status, "message": refusal.message}
    error["status"] = status
    if isinstance(refusal, CommentRefusal):
        error["details"] = [refusal.details]
    return answer({"error": error}, refusal.status, refusal.headers)
