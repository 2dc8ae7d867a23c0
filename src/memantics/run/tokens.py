"""Estimate the tokens of requests and replies without a tokenizer."""

from __future__ import annotations

import math

from memantics.core.records import Request

_TILE, _SIDE, _SHORT = 512, 2048, 768
_PER_TILE, _PER_IMAGE, _PER_MESSAGE = 170, 85, 4
_PER_REPLY, _PER_FIELD = 60, 30


def count_text(text: str) -> int:
    """Tokens of a text, roughly.

    >>> count_text("one does not simply"), count_text("表情包"), count_text("")
    (5, 3, 0)
    """
    wide = sum("\u2e80" <= char <= "\uffef" for char in text)
    return wide + math.ceil((len(text) - wide) / 4)


def count_image(width: int, height: int) -> int:
    """Tokens of an image, by tiles.

    >>> count_image(500, 500), count_image(1024, 1024), count_image(4096, 512)
    (255, 765, 765)
    """
    scale = min(1.0, _SIDE / max(width, height))
    scale *= min(1.0, _SHORT / (min(width, height) * scale))
    across, down = (math.ceil(round(side * scale, 6) / _TILE) for side in (width, height))
    return _PER_IMAGE + _PER_TILE * max(1, across) * max(1, down)


def count_request(request: Request) -> int:
    """Tokens of the texts of a request."""
    texts = sum(
        count_text(part)
        for message in request.messages
        for part in message.parts
        if isinstance(part, str)
    )
    return texts + _PER_MESSAGE * len(request.messages)


def count_reply(request: Request) -> int:
    """Tokens of a reply, as far as its form tells."""
    form = request.form
    typical = _PER_FIELD * len(form.fields) if form.reply == "json" else _PER_REPLY
    most = request.sampling.max_tokens
    return typical if most is None else min(typical, most)
