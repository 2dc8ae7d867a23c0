"""What a response that is no answer means: a refusal, a passing fault, or a hopeless one."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import orjson
from pydantic import JsonValue

from memantics.core.errors import ModelError, Refused, Rejected, Transient, Unavailable

_RETRIED = frozenset({408, 409, 425, 429})
_OVERLOADED = frozenset({429, 503, 504, 529})
_WRONG_ADDRESS = frozenset({404, 405, 410})
_FILTER_WORDS = (
    "content_filter",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "content management policy",
    "content policy",
    "safety system",
)
_KEY_WORDS = ("api key not valid", "api_key_invalid", "invalid_api_key", "incorrect api key")
_QUOTA_WORDS = ("insufficient_quota", "billing_hard_limit_reached", "exceeded your current quota")

# Some servers call it their own fault (HTTP 500) when a model cannot see.
_BLIND_WORDS = ("image input is not supported", "does not support image")

_ORDER = {key: place for place, key in enumerate(("error", "message", "detail", "msg"))}


def judge_status(status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """The exception for a response that is no answer.

    >>> judge_status(429, {"Retry-After": "7"}, b"").retry_after
    7.0
    >>> judge_status(400, {}, b'{"error": {"code": "content_filter", "message": "no"}}')
    Refused('HTTP 400: no')
    """
    message, marks = read_error(body)
    what = f"HTTP {status}: {message}" if message else f"HTTP {status}"
    if status in (400, 403, 422, 451) and has_any(marks, _FILTER_WORDS):
        return Refused(what)
    if 300 <= status < 400:
        place = headers.get("Location", "elsewhere")
        return Unavailable(f"{what}: the server points to {place}", hint="give that as --base-url")
    hint = _judge_hopeless(status, marks)
    if hint:
        return Unavailable(what, hint=hint)
    if (status in _RETRIED or status >= 500) and not has_any(marks, _BLIND_WORDS):
        wait = read_retry_after(headers)
        return Transient(what, retry_after=wait, overloaded=status in _OVERLOADED)
    return Rejected(what)


def _judge_hopeless(status: int, marks: str) -> str:
    """What the user must change before any call can succeed; empty when one still may."""
    if status in (401, 403) or (status == 400 and has_any(marks, _KEY_WORDS)):
        return "check the key in OPENAI_API_KEY and what it may use"
    if status == 402 or (status == 429 and has_any(marks, _QUOTA_WORDS)):
        return "the account is out of credit; top it up, then run again"
    if status in _WRONG_ADDRESS:
        return "check the model's name, and --base-url (it usually ends in /v1)"
    return ""


def has_any(marks: str, words: tuple[str, ...]) -> bool:
    """Whether one of the words is in a text."""
    return any(word in marks for word in words)


def read_error(body: bytes) -> tuple[str, str]:
    """A short message for people, and all the words by which a fault is told, in lower case.

    >>> read_error(b'{"error": {"message": "Too long", "code": "context_length_exceeded"}}')
    ('Too long', 'too long context_length_exceeded')
    >>> read_error(b"<html><title>Bad gateway</title>")[0]
    'a web page, not JSON'
    """
    try:
        value: JsonValue = orjson.loads(body)
    except orjson.JSONDecodeError:
        text = body[:300].decode(errors="replace").strip()
        message = "a web page, not JSON" if text.startswith("<") else text[:200]
        return message, text.lower()
    texts = list(_texts(value, depth=4))
    return (texts[0][:300] if texts else ""), " ".join(texts).lower()


def _texts(value: JsonValue, depth: int) -> list[str]:
    """The strings of an error body, the message first."""
    if isinstance(value, str):
        return [value] if value else []
    if depth == 0 or not isinstance(value, dict | list):
        return []
    if isinstance(value, list):
        return [text for part in value for text in _texts(part, depth - 1)]
    # Nested objects first: {"object": "error", "error": {"message": …}}
    order = sorted(value, key=lambda key: _ORDER.get(key, len(_ORDER)))
    return [text for key in order for text in _texts(value[key], depth - 1)]


def hide_key(error: ModelError, key: str) -> ModelError:
    """The same error with the key cut out of what a server echoed.

    >>> hide_key(Rejected("no such key: sk-1"), "sk-1")
    Rejected('no such key: [key]')
    """
    if key and key in str(error):
        error.what = error.what.replace(key, "[key]")
        error.args = (error.what,)
    return error


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """How many seconds the server asks to wait: milliseconds, seconds or a date.

    >>> read_retry_after({"retry-after-ms": "1500"}), read_retry_after({"Retry-After": "soon"})
    (1.5, None)
    """
    lower = {key.lower(): value.strip() for key, value in headers.items()}
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(lower.get(name, "")) / unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        date = parsedate_to_datetime(lower.get("retry-after", ""))
        return max(0.0, date.timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def judge_body(kind: str, headers: Mapping[str, str], data: bytes) -> ModelError | None:
    """A fault sent with status 200: some proxies put the real one into the body."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        if "json" in kind:
            return None
        return Transient(f"the answer is {kind}, not JSON: {data[:80].decode(errors='replace')!r}")
    fault = value.get("error") if isinstance(value, dict) else None
    if not fault:
        return None
    code = fault.get("code") if isinstance(fault, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    return judge_status(status, headers, data)
