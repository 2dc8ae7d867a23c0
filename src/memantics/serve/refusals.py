"""Error responses of the service, in OpenAI's format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import BaseModel
from starlette.responses import Response

from memantics.core.errors import ImageError, InputError, MemanticsError, StoreError, Transient


class Refusal(Exception):
    """A rejected request: HTTP status, error code and message."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.headers = dict(headers or {})


def make_busy(seconds: float, what: str = "the service is busy") -> Refusal:
    """Return a refusal with HTTP status 429 and the seconds until a retry."""
    wait = max(1, round(seconds))
    message = f"{what}; try again in {wait} s"
    return Refusal(429, "rate_limit_exceeded", message, {"retry-after": str(wait)})


def make_unavailable() -> Refusal:
    """Return a refusal with HTTP status 503, for a file or database of the service that fails."""
    message = "a file or database of the service fails; its log names it"
    return Refusal(503, "store_error", message, {"retry-after": "30"})


def read_refusal(error: MemanticsError) -> Refusal:
    """Convert an exception into a refusal (error response).

    A StoreError is about files of the service, so its message, which names them, is not sent.
    """
    if isinstance(error, StoreError):
        return make_unavailable()
    if isinstance(error, ImageError):
        large = error.reason in ("too many bytes", "too many pixels", "too much work")
        return Refusal(413 if large else 422, "invalid_image", str(error))
    if isinstance(error, InputError):
        return Refusal(422, "invalid_value", str(error))
    return Refusal(503 if isinstance(error, Transient) else 502, "model_error", str(error))


class ErrorFacts(BaseModel):
    """An error; ``code`` is for programs, ``message`` for people."""

    message: str
    type: str
    param: str | None
    code: str


class ErrorBody(BaseModel):
    """An error response in OpenAI's format."""

    error: ErrorFacts


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody, "description": what}
    for status, what in (
        (400, "The request is not understood."),
        (401, "A token is needed."),
        (403, "This token, or this site, may not do that."),
        (404, "Not found."),
        (413, "Too large."),
        (422, "What was sent cannot be used."),
        (429, "Too much at once: see Retry-After."),
        (503, "The service is starting or stopping, or a model does not answer."),
        (504, "The time of a request is over."),
    )
}
_KINDS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def answer_refusal(refusal: Refusal) -> Response:
    """Return a refusal as a JSON response in OpenAI's format."""
    kind = _KINDS.get(refusal.status) or (
        "server_error" if refusal.status >= 500 else "invalid_request_error"
    )
    body = {"message": refusal.message, "type": kind, "param": None, "code": refusal.code}
    return Response(
        orjson.dumps({"error": body}),
        refusal.status,
        refusal.headers,
        media_type="application/json",
    )
