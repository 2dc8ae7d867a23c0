"""Captions and plans as a language model left them: wrapped in quotes, escaped several times."""

from __future__ import annotations

import json
import re

_ROUNDS = 8
_FIELD = re.compile(r'(?:.*"(?:pos_txt|spec)"\s*|\s*):\s*(?=")', re.DOTALL)
_ESCAPE = re.compile(r"""\\+(u[0-9a-fA-F]{4}|[nrt"'/])""")
_MEANINGS = {"n": "\n", "r": "\n", "t": "\t"}
_CLOSING = '"“”'


def decode_once(text: str, *, strict: bool = True) -> str | None:
    r"""The string inside a JSON string; None where the text is not one.

    >>> decode_once('"a \\"b\\""'), decode_once('a')
    ('a "b"', None)

    Without ``strict``, line breaks may stand inside it as they are.
    """
    try:
        value = json.loads(text, strict=strict)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def unwrap(text: str) -> str:
    r"""Take off wrapping quotes, remains of a JSON object, and escapes of escapes.

    >>> unwrap('"be calm"'), unwrap('"be calm",'), unwrap(': "be calm"'), unwrap("“be calm”")
    ('be calm', 'be calm', 'be calm', 'be calm')
    >>> unwrap('"Me: \\\\\\\\"hi\\\\\\\\"\\\\\\\\nYou: hello"')
    'Me: "hi"\nYou: hello'
    >>> unwrap('she said "hi" to me')
    'she said "hi" to me'
    """
    text = _FIELD.sub("", text.strip(), count=1) if _FIELD.match(text.strip()) else text.strip()
    if text.endswith(",") and text[:-1].rstrip()[-1:] in tuple(_CLOSING):
        text = text[:-1].rstrip()
    inner = decode_once(text, strict=False)
    if inner is None:
        text = _strip_quotes(text)
    for _ in range(_ROUNDS):
        if inner is None:
            break
        text, inner = inner.strip(), decode_once(inner, strict=False)
    return _ESCAPE.sub(_unescape, text).strip()


def _strip_quotes(text: str) -> str:
    """Without the outer pair, or without a single quote that has no partner."""
    opened, closed = text[:1] == '"', text[-1:] in tuple(_CLOSING)
    if len(text) > 1 and opened and closed:
        return text[1:-1]
    if text[:1] == "“" and text[-1:] == "”" and text.count("“") == 1:
        return text[1:-1]
    if text.count('"') % 2:
        return text[1:] if opened else text.removesuffix('"')
    return text


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if len(code) == 5:
        return chr(int(code[1:], 16))
    return _MEANINGS.get(code, code)
