"""What the service answers when it does not do what was asked: OpenAI's shape of an error."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from starlette.responses import Response

from memantics.core.errors import ImageError, InputError, MemanticsError, Transient


class Refusal(Exception):
    """A request that is refused: status, a word for programs, a sentence for people."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.headers = dict(headers or {})


def make_busy(seconds: float, what: str = "the service is busy") -> Refusal:
    """Too much at once: come back after some seconds."""
    wait = max(1, round(seconds))
    message = f"{what}; try again in {wait} s"
    return Refusal(429, "rate_limit_exceeded", message, {"retry-after": str(wait)})


def read_refusal(error: MemanticsError) -> Refusal:
    """What an action's error means to a client."""
    if isinstance(error, ImageError):
        large = error.reason in ("too many bytes", "too many pixels")
        return Refusal(413 if large else 422, "invalid_image", str(error))
    if isinstance(error, InputError):
        return Refusal(422, "invalid_value", str(error))
    return Refusal(503 if isinstance(error, Transient) else 502, "model_error", str(error))


_KINDS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def answer_refusal(refusal: Refusal) -> Response:
    """The error as JSON, as clients of OpenAI's interfaces read it."""
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
