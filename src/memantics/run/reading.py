"""What a reply says: made fit for files, read by a parser, and never trusted to be well-formed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from memantics.core.cache import request_digest
from memantics.core.images import read_bytes
from memantics.core.records import Image, Reply, Request, Status
from memantics.core.task import Unparsed

Value = TypeVar("Value")


def read_reply(reply: Reply, parse: Callable[[str], Value]) -> tuple[Status, Value | None, str]:
    """The status of a reply, its value, and why it has none.

    >>> read_reply(Reply("7"), int)
    ('answered', 7, '')
    >>> read_reply(Reply("", refusal="no"), int)
    ('refused', None, 'no')
    """
    if reply.refusal:
        return "refused", None, reply.refusal
    try:
        return "answered", parse(reply.text), ""
    except Unparsed as error:
        reason = str(error)
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        # A parser that stumbles over a strange answer must not end the run, nor hide it.
        reason = f"the parser failed: {type(error).__name__}: {error}"
    if reply.finish == "length":
        reason += " (the answer was cut at the token limit)"
    return "unparsed", None, reason or "no valid answer"


def digest_request(request: Request) -> str:
    """The hash of what a request sends, image bytes included."""
    images = [
        read_bytes(part.path)
        for message in request.messages
        for part in message.parts
        if isinstance(part, Image)
    ]
    return request_digest(request, images)


def bump_seed(request: Request, attempt: int) -> Request:
    """The request of a later attempt: a fixed seed would bring the same bad answer again."""
    seed = request.sampling.seed
    if not attempt or seed is None:
        return request
    return replace(request, sampling=replace(request.sampling, seed=seed + attempt))


def make_sound(reply: Reply) -> Reply:
    """The reply without lone surrogates, which no file can hold; nearly always the same object."""
    try:
        for text in (reply.text, reply.reasoning, reply.refusal):
            text.encode()
    except UnicodeEncodeError:
        return replace(
            reply,
            text=_mend(reply.text),
            reasoning=_mend(reply.reasoning),
            refusal=_mend(reply.refusal),
        )
    return reply


def _mend(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
