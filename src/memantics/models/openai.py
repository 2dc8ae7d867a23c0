"""``openai/NAME``: any server with OpenAI's chat completions or Responses API.

If a server rejects ``response_format``, all later calls omit it. A model name that the server does
not list is rejected before the first call. A response without an answer becomes a refusal, a
transient error or a permanent error.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import fnmatch
import io
import ipaddress
import math
import os
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Final, TypeVar

import aiohttp
import orjson
from pydantic import JsonValue
from yarl import URL

from memantics.core import errors
from memantics.core import files as masking
from memantics.core.errors import ModelError, Refused, Rejected, Transient, Unavailable
from memantics.core.model import Model
from memantics.core.records import Reply, Request
from memantics.models.kinds import ModelKind, ModelSettings, read_wire_settings
from memantics.models.responses import decode_response, encode_response_request
from memantics.models.wire import WireSettings, decode_reply, encode_request, list_keys

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

# Some servers return HTTP 500 if the model does not accept images.
_BLIND_WORDS = ("image input is not supported", "does not support image")

_ORDER = {key: place for place, key in enumerate(("error", "message", "detail", "msg"))}
NO_FORMAT = "asked without response_format, which the server refuses"
_FORMAT_WORDS = (
    "response_format",
    "text.format",
    "json_schema",
    "json schema",
    "structured output",
    "guided",
)
# For larger bodies aiohttp expects a file-like object, so that sending does not block the event
# loop.
_LARGE_BODY: Final = 2**20


def judge_status(status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """Return the exception for an HTTP error response.

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
        return Unavailable(
            f"{what}: the server redirects to {place}", hint="use that URL as --base-url"
        )
    hint = _judge_hopeless(status, marks)
    if hint:
        return Unavailable(what, hint=hint)
    if (status in _RETRIED or status >= 500) and not has_any(marks, _BLIND_WORDS):
        wait = read_retry_after(headers)
        return Transient(what, retry_after=wait, overloaded=status in _OVERLOADED)
    return Rejected(what)


def _judge_hopeless(status: int, marks: str) -> str:
    """Return the change that the user must make before calls succeed; empty: retry may help."""
    if status in (401, 403) or (status == 400 and has_any(marks, _KEY_WORDS)):
        return "check the key in OPENAI_API_KEY and what it may use"
    if status == 402 or (status == 429 and has_any(marks, _QUOTA_WORDS)):
        return "the account is out of credit; top it up, then run again"
    if status in _WRONG_ADDRESS:
        return "check the model's name, and --base-url (it usually ends in /v1)"
    return ""


def has_any(marks: str, words: tuple[str, ...]) -> bool:
    """Return whether a text contains one of the given words."""
    return any(word in marks for word in words)


def read_error(body: bytes) -> tuple[str, str]:
    """Return a short error message, and all words of the response in lower case for classification.

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
    """Return the texts of an error response, with the message first."""
    if isinstance(value, str):
        return [value] if value else []
    if depth == 0 or not isinstance(value, dict | list):
        return []
    if isinstance(value, list):
        return [text for part in value for text in _texts(part, depth - 1)]
    # Nested objects come first: {"object": "error", "error": {"message": …}}
    order = sorted(value, key=lambda key: _ORDER.get(key, len(_ORDER)))
    return [text for key in order for text in _texts(value[key], depth - 1)]


def hide_key(error: ModelError, key: str) -> ModelError:
    """Mask the API key in an error message of a server.

    >>> hide_key(Rejected("no such key: sk-1"), "sk-1")
    Rejected('no such key: [key]')
    """
    if key and key in str(error):
        error.what = error.what.replace(key, "[key]")
        error.args = (error.what,)
    return error


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the delay that a server requests, in seconds; it may be given as ms, s or a date.

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
    """Return the error in a response with status 200; some proxies put errors in the body."""
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


# The list of models that a server returns under ``/models``, and the check of a name against it.

_MOST_NAMED = 8
_MOST_BYTES = 16 * 1024 * 1024


async def fetch_names(session: aiohttp.ClientSession, url: URL, seconds: float) -> list[str]:
    """Return the models that a server lists; empty if it does not answer in time."""
    with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
        short = aiohttp.ClientTimeout(total=seconds)
        async with session.get(url, allow_redirects=False, timeout=short) as found:
            if found.status == 200:
                return read_listing(await found.content.read(_MOST_BYTES))
    return []


def match_name(name: str, listed: Sequence[str]) -> bool:
    """Return whether a server that lists these models accepts a name.

    Gateways list patterns, some servers put a path or an owner before the name, and a suffix after
    a colon selects a variant.

    >>> [match_name("qwen", told) for told in (["qwen"], ["qwen:latest"], ["models/qwen"], ["q*"])]
    [True, True, True, True]
    >>> match_name("qwen:free", ["qwen"]), match_name("qwen", ["qwen2"])
    (True, False)
    """
    for listed_name in listed:
        same = {listed_name, listed_name.rpartition("/")[2], listed_name.partition(":")[0]}
        if name in same or name.partition(":")[0] in same or fnmatch.fnmatchcase(name, listed_name):
            return True
    return False


def read_listing(body: bytes) -> list[str]:
    """Return the model names in the response of ``/models``; empty if it has another format.

    >>> read_listing(b'{"data": [{"id": "qwen"}]}'), read_listing(b"<html>")
    (['qwen'], [])
    """
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return []
    rows = value.get("data") if isinstance(value, dict) else value
    named = (row.get("id") for row in rows if isinstance(row, dict)) if type(rows) is list else ()
    return [name for name in named if isinstance(name, str)]


def refuse_name(name: str, server: str, listed: Sequence[str]) -> Unavailable:
    """Return the error for a model name that a server does not list, with similar names.

    >>> str(refuse_name("qwen3", "localhost:8000", ["qwen2"]))[:67]
    "localhost:8000 has no model 'qwen3'; did you mean openai/qwen2? ava"
    """
    close = difflib.get_close_matches(name, listed, n=1, cutoff=0.5)
    guess = f"did you mean openai/{close[0]}? " if close else ""
    more = f" and {len(listed) - _MOST_NAMED} more" if len(listed) > _MOST_NAMED else ""
    return Unavailable(
        f"{server} has no model {name!r}",
        hint=f"{guess}available models: {', '.join(sorted(listed)[:_MOST_NAMED])}{more}"
        " (use --param check_name=off to skip this check)",
    )


@dataclass(frozen=True, slots=True)
class OpenAISettings:
    """Settings of a server. Only ``wire`` affects answers; the rest may change between runs.

    ``connections`` should equal the number of concurrent calls. ``timeout`` applies to a whole
    call. ``check_name`` looks up the model in the server's list before the first call.
    """

    wire: WireSettings = field(default_factory=WireSettings)
    connections: int = 64
    timeout: float = 600.0
    connect_timeout: float = 10.0
    check_name: bool = True
    max_reply_bytes: int = 16 * 1024 * 1024


class OpenAIModel:
    """One model on one server: one HTTP call per answer, without retries.

    The API key is sent in one header only, and masked in everything a server returns.

    >>> OpenAIModel("qwen", "http://localhost:8000/v1", "sk-secret")
    OpenAIModel('openai/qwen', 'http://localhost:8000/v1')
    """

    note = ""
    cacheable = True

    def __init__(
        self, name: str, base_url: str, key: str = "", settings: OpenAISettings | None = None
    ) -> None:
        if not name:
            raise errors.InputError("the model has no name", hint="use openai/NAME")
        self.name = f"openai/{name}"
        self.settings = settings or OpenAISettings()
        self._model = name
        self._base = _check_url(base_url)
        place = "/responses" if self.settings.wire.api == "responses" else "/chat/completions"
        self._url = URL(f"{self._base.with_query(None)}".rstrip("/") + place)
        self._url = self._url.with_query(self._base.query) if self._base.query else self._url
        self._key = _check_key(key)
        masking.learn_environment()
        masking.learn_secrets(self._key)
        masking.learn_named((*self._base.query.items(), *self.settings.wire.extra.items()))
        self._session: aiohttp.ClientSession | None = None
        self._checking: asyncio.Future[None] | None = None
        self._wire = self.settings.wire
        self._identity: dict[str, JsonValue] = {
            "name": self.name,
            "base_url": masking.hide(str(self._base)),
            "settings": self._wire.describe() | {"extra": self._hide_extra()},
        }

    def _hide_extra(self) -> JsonValue:
        """Return the request parameters with secrets masked, for the stored identity."""
        hidden: JsonValue = orjson.loads(masking.hide_bytes(orjson.dumps(dict(self._wire.extra))))
        return hidden

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, {masking.hide(str(self._base))!r})"

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """Model name, server and the settings that affect answers; not the API key."""
        return self._identity

    async def answer(self, request: Request) -> Reply:
        """Send a request; if the server rejects ``response_format``, repeat it without."""
        if self.settings.check_name:
            # One lookup of the model name serves all calls; they continue when it ends.
            self._checking = self._checking or asyncio.ensure_future(self._check_name())
            if self._checking.done():
                self._checking.result()
            else:
                await asyncio.shield(self._checking)
        wire = self._wire
        if request.schema is None or wire.structured == "off":
            reply = await self._ask(request, wire)
        else:
            try:
                return await self._ask(request, wire)
            except errors.Rejected as error:
                if not has_any(str(error).lower(), _FORMAT_WORDS):
                    raise
                plain = wire.model_copy(update={"structured": "off"})
                reply, self._wire = await self._ask(request, plain), plain
        adapted = request.schema is not None and self.settings.wire.structured != "off"
        return replace(reply, adapted=NO_FORMAT) if adapted else reply

    async def _check_name(self) -> None:
        """Reject a model name that the server does not list; without a list, accept every name."""
        above = self._url.parent if self._wire.api == "responses" else self._url.parent.parent
        place = (above / "models").with_query(self._url.query)
        listed = await fetch_names(self._open(), place, self.settings.connect_timeout)
        if listed and not match_name(self._model, listed):
            raise refuse_name(self._model, self._base.authority, listed)

    async def _ask(self, request: Request, wire: WireSettings) -> Reply:
        responds = wire.api == "responses"
        encode, decode = (
            (encode_response_request, decode_response)
            if responds
            else (encode_request, decode_reply)
        )
        body = encode(self._model, request, wire)
        try:
            response = await self._open().post(
                self._url,
                data=io.BytesIO(body) if len(body) > _LARGE_BODY else body,
                allow_redirects=False,
            )
            async with response:
                data = await read_bounded(response, self.settings.max_reply_bytes)
        except (aiohttp.ClientError, asyncio.IncompleteReadError, OSError) as error:
            raise self._judge(error) from error
        if response.status != 200:
            raise hide_key(judge_status(response.status, response.headers, data), self._key)
        try:
            return decode(data, list_keys(request.form) if wire.top_logprobs else ())
        except errors.Transient as error:
            raise hide_key(
                judge_body(response.content_type, response.headers, data) or error, self._key
            ) from error

    async def close(self) -> None:
        """Close the connections."""
        if self._checking is not None:
            self._checking.cancel()
            self._checking = None
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        """Return the HTTP session; it is created at the first call, in the running event loop."""
        if self._session is None:
            settings = self.settings
            headers = {"Content-Type": "application/json", "Accept": "application/json"}
            if self._key:
                headers["Authorization"] = f"Bearer {self._key}"
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=settings.connections, keepalive_timeout=60, ttl_dns_cache=300
                ),
                timeout=aiohttp.ClientTimeout(
                    total=settings.timeout, sock_connect=settings.connect_timeout
                ),
                headers=headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                proxy=_find_proxy(self._url),
            )
        return self._session

    def _judge(self, error: Exception) -> errors.ModelError:
        """Convert an exception of aiohttp into a ``ModelError``."""
        server = self._base.authority
        match error:
            case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
                return errors.Unavailable(
                    f"{server}: the TLS connection failed: {error}",
                    hint="check the certificate, and http or https in --base-url",
                )
            case aiohttp.ClientConnectorError():
                number = error.os_error.errno
                reason = os.strerror(number) if number and number > 0 else error.os_error.strerror
                return errors.Unreachable(f"{server} cannot be reached: {reason}")
            case aiohttp.ConnectionTimeoutError():
                seconds = self.settings.connect_timeout
                return errors.Unreachable(
                    f"{server} cannot be reached: no connection within {seconds:g} s"
                )
            case TimeoutError():
                waited = f"{self.settings.timeout:g} s"
                return errors.Transient(f"{server}: no answer within {waited}", overloaded=True)
        detail = str(error) or type(error).__name__
        return hide_key(errors.Transient(f"{server}: the connection broke: {detail}"), self._key)


M = TypeVar("M", bound=OpenAIModel)


async def read_bounded(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Read the body of a response with secrets masked; stop at the limit with an error."""
    length = response.content_length
    # A compressed body may be larger than its declared length.
    if length is not None and length <= limit and "Content-Encoding" not in response.headers:
        return masking.hide_bytes(await response.read())
    pieces, size = [], 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > limit:
            response.close()
            raise errors.Rejected(f"the response is larger than {limit:,} bytes")
        pieces.append(piece)
    return masking.hide_bytes(b"".join(pieces))


def _check_url(text: str) -> URL:
    try:
        url = URL(text.strip())
    except (ValueError, TypeError) as error:
        raise errors.InputError(f"base URL {text!r} is not a valid URL: {error}") from error
    if url.user or url.password:
        raise errors.InputError(
            f"the base URL for {url.host} contains a password",
            hint="remove it and set the key in OPENAI_API_KEY",
        )
    if url.scheme not in ("http", "https") or not url.host:
        raise errors.InputError(
            f"base URL {text!r} is not a valid URL", hint="for example http://localhost:8000/v1"
        )
    return url.with_fragment(None)


def _check_key(key: str) -> str:
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise errors.InputError(
            "the API key contains invalid characters", hint="set OPENAI_API_KEY again"
        )
    return key


def _find_proxy(url: URL) -> str | None:
    """Return the proxy set in environment variables; cached, since the lookup is slow."""
    host = url.host or ""
    if host == "localhost" or _is_loopback(host) or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(url.scheme)


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def open_server(name: str, settings: ModelSettings, kind: type[M]) -> M:
    """Open a model on a server with the given model class."""
    base_url = settings.base_url or os.environ.get("OPENAI_BASE_URL")
    if not base_url:
        raise errors.InputError(
            f"model {name!r} needs the URL of its server",
            hint="give --base-url, for example http://localhost:8000/v1, or set OPENAI_BASE_URL",
        )
    params = dict(settings.params)
    check = params.pop("check_name", "on")
    if check not in ("on", "off"):
        raise errors.UnknownName("value of --param check_name:", check, ("on", "off"))
    return kind(
        name.removeprefix("openai/"),
        base_url,
        os.environ.get("OPENAI_API_KEY", ""),
        OpenAISettings(
            wire=read_wire_settings(params),
            connections=settings.concurrency,
            timeout=settings.timeout,
            check_name=check != "off",
        ),
    )


def _open(name: str, settings: ModelSettings) -> Model:
    return open_server(name, settings, OpenAIModel)


KIND = ModelKind("openai", "openai/NAME", "any OpenAI-compatible server (--base-url)", _open)
