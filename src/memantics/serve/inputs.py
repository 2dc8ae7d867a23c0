"""Request bodies: JSON or forms; images as data URLs, base64, files or URLs of allowed hosts.

Images are fetched only from hosts that the operator allowed, and only from public IP addresses. The
resolver rejects addresses of this machine and of private networks. The checked address is the one
that is connected to, even if the name resolves differently a moment later.
"""

from __future__ import annotations

import asyncio
import binascii
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, TypeVar, get_type_hints
from urllib.parse import urlsplit

import aiohttp
import pybase64
from aiohttp.abc import AbstractResolver, ResolveResult
from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from starlette.datastructures import FormData, UploadFile

from memantics.core.errors import first_fault
from memantics.core.images import ImageBounds, probe
from memantics.serve.jobs import JobKind, JobStatus, StoredJob
from memantics.serve.refusals import Refusal
from memantics.serve.settings import Intake
from memantics.understanding import (
    MOST_CHARACTERS,
    CaptionLanguage,
    Feeling,
    Harm,
    HomophoneReadings,
    Missing,
    QueryRows,
    Reappraisal,
    TargetEmotion,
)
from memantics.web.shell import open_form
from memantics.workbench import Analysis

Lookup = Callable[[str, int], Awaitable[list[str]]]
_SECONDS = 10.0
_PORTS = {"http": 80, "https": 443}
Body = TypeVar("Body", bound=BaseModel)
Made = TypeVar("Made")
FILE = "image"
FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
_FIELDS = 20
_SHORT = 64 * 1024  # maximum bytes of JSON that are parsed without another thread
_VALUES = 50_000  # maximum number of commas (also in texts); far more than normal requests have
_PIECE = 64 * 1024  # bytes in which values are counted before other requests get a turn
_SHOWN = "upload"
_LONG = ThreadPoolExecutor(1, "long")


def is_public(address: str) -> bool:
    """Return whether an IP address is publicly routable.

    >>> [is_public(a) for a in ("93.184.216.34", "127.0.0.1", "10.1.2.3", "169.254.169.254", "::1")]
    [True, False, False, False, False]
    >>> is_public("::ffff:127.0.0.1"), is_public("fd00::1"), is_public("64:ff9b::7f00:1")
    (False, False, False)
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        # Some IPv6 addresses contain an IPv4 address that may be private. Python counts site-local
        # addresses as global.
        if found.ipv4_mapped or found.sixtofour or found.teredo or found.is_site_local:
            return False
        if found in ipaddress.ip_network("64:ff9b::/96"):
            return False
    return found.is_global and not found.is_multicast and not found.is_reserved


async def look_up(host: str, port: int) -> list[str]:
    """Return the IP addresses of a host name."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class PublicResolver(AbstractResolver):
    """Resolves host names to public IP addresses; a host with any private address is rejected."""

    def __init__(self, lookup: Lookup = look_up, allow: Callable[[str], bool] = is_public) -> None:
        self._lookup, self._allow = lookup, allow

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_INET,  # noqa: ARG002 - aiohttp's interface
    ) -> list[ResolveResult]:
        """Return the IP addresses to connect to."""
        try:
            found = await self._lookup(host, port)
        except OSError as error:
            raise Refusal(
                422, "invalid_image_url", f"the host {host} cannot be resolved"
            ) from error
        if not found or not all(map(self._allow, found)):
            raise Refusal(
                422, "invalid_image_url", f"the host {host} has an IP address that is not public"
            )
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in found
        ]

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""


class ImageFetcher:
    """Fetches images from allowed hosts (``name`` or ``name:port``)."""

    def __init__(
        self, hosts: tuple[str, ...], most: int, resolver: PublicResolver | None = None
    ) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)
        self._most = most
        self._resolver = resolver or PublicResolver()

    async def fetch(self, url: str) -> bytes:
        """Return the image bytes at a URL; raise a ``Refusal`` if that is not allowed."""
        self._check(url)
        connector = aiohttp.TCPConnector(resolver=self._resolver, use_dns_cache=False)
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(
                    connector=connector, timeout=timeout, trust_env=False, auto_decompress=False
                ) as session,
                session.get(url, allow_redirects=False) as reply,
            ):
                if reply.status != 200:
                    raise Refusal(
                        422,
                        "invalid_image_url",
                        f"the server responded with status {reply.status}, not 200",
                    )
                data = bytearray()
                async for piece in reply.content.iter_chunked(1 << 16):
                    data += piece
                    if len(data) > self._most:
                        raise Refusal(
                            413, "invalid_image", f"the image has more than {self._most:,} bytes"
                        )
                return bytes(data)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            refusal = error.__cause__ if isinstance(error.__cause__, Refusal) else None
            raise refusal or Refusal(
                422, "invalid_image_url", f"the image could not be fetched: {type(error).__name__}"
            ) from error

    def _check(self, url: str) -> None:
        if not self._hosts:
            raise Refusal(
                422,
                "invalid_image_url",
                "this service does not fetch URLs; send a data: URL instead",
            )
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").lower(), parts.port
        except ValueError:
            raise Refusal(422, "invalid_image_url", "the value is not a valid URL") from None
        if parts.scheme not in _PORTS or parts.username is not None or not host:
            raise Refusal(422, "invalid_image_url", "only http and https URLs are supported")
        named = host if port in (None, _PORTS[parts.scheme]) else f"{host}:{port}"
        # aiohttp does not call the resolver for IP addresses.
        if named not in self._hosts or _is_number(host):
            raise Refusal(
                422,
                "invalid_image_url",
                f"the host {host} is not allowed; send a data: URL instead",
            )


def _is_number(host: str) -> bool:
    """Return whether a host is an IP address, in any notation that sockets accept."""
    try:
        socket.inet_aton(host)
    except OSError:
        return ":" in host
    return True


class ClosedBody(BaseModel):
    """A request body that rejects unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


async def read_json(request: Request, shape: type[Body]) -> Body:
    """Parse a JSON request body; the ``Refusal`` names the first invalid field, not its content."""
    data = await request.body()
    return await _work(len(data), _parse, shape, data)


async def _work(size: int, work: Callable[..., Made], *given: Any) -> Made:
    """Parse small request bodies directly, and large ones on a thread, one after the other.

    JSON and Base64 parsers hold the interpreter lock, so several at a time would delay short
    requests.
    """
    if size <= _SHORT:
        return work(*given)
    return await asyncio.get_running_loop().run_in_executor(_LONG, work, *given)


def _parse(shape: type[Body], data: bytes) -> Body:
    # A JSON value of two bytes takes 50 bytes or more in memory, so values are counted before
    # parsing.
    values = 0
    for start in range(0, len(data), _PIECE):
        values += sum(data.count(mark, start, start + _PIECE) for mark in b",[{")
        if values > _VALUES:
            raise Refusal(400, "invalid_request", f"the JSON contains more than {_VALUES:,} values")
    try:
        return shape.model_validate_json(data)
    except ValidationError as error:
        raise Refusal(400, "invalid_request", first_fault(error)) from error


@dataclass(frozen=True, slots=True)
class ImageLoader:
    """Loads images of requests within size limits; URLs are fetched only from allowed hosts."""

    bounds: ImageBounds
    fetcher: ImageFetcher

    @classmethod
    def open(cls, given: Intake) -> ImageLoader:
        """Create the loader of a service."""
        largest = ImageBounds()
        bounds = ImageBounds(
            min(largest.max_bytes, given.body_bytes), min(largest.max_pixels, given.pixels)
        )
        return cls(bounds, ImageFetcher(given.hosts, bounds.max_bytes))

    async def take(self, given: str) -> bytes:
        """Return the bytes of an image given as data URL, base64 or URL."""
        if given[:8].lower().startswith(("http:", "https:")):
            return self.check(await self.fetcher.fetch(given))
        return await _work(len(given), self._decode, given)

    def _decode(self, given: str) -> bytes:
        head, comma, coded = given.partition(",")
        if head[:5].lower() == "data:":
            if not comma or not head.lower().endswith(";base64"):
                raise Refusal(422, "invalid_image_url", "a data URL must be base64 of an image")
        else:
            coded = given
        try:
            return self.check(pybase64.b64decode(coded, validate=True))
        except (binascii.Error, ValueError) as error:
            raise Refusal(422, "invalid_image_url", "the image is not valid base64") from error

    def check(self, data: bytes) -> bytes:
        """Check the header of an image; reject other files and images that are too large."""
        if len(data) > self.bounds.max_bytes:
            most = f"{self.bounds.max_bytes:,}"
            raise Refusal(413, "invalid_image", f"the image has more than {most} bytes")
        probe(data, _SHOWN, self.bounds)
        return data


async def read_upload(
    request: Request, shape: type[Body], loader: ImageLoader
) -> tuple[Body, bytes]:
    """Return the fields and the image of a request: JSON with ``image``, or a form with a file."""
    if not _is_form(request):
        body = await read_json(request, shape)
        return body, await loader.take(str(getattr(body, FILE)))
    async with open_form(request, files=1, fields=_FIELDS) as form:
        file = form.get(FILE)
        if not isinstance(file, UploadFile):
            raise Refusal(400, "invalid_request", f"the form has no file {FILE!r}")
        data = loader.check(await file.read(loader.bounds.max_bytes + 1))
        return _read_texts(form, shape, {FILE: ""}), data


async def read_fields(request: Request, shape: type[Body]) -> Body:
    """Return the fields of a request without an image, as JSON or as a form."""
    if not _is_form(request):
        return await read_json(request, shape)
    async with open_form(request, files=0, fields=_FIELDS) as form:
        return _read_texts(form, shape, {})


def _is_form(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind in FORMS


def _read_texts(form: FormData, shape: type[Body], more: Mapping[str, str]) -> Body:
    texts = {name: value for name, value in form.items() if isinstance(value, str) and value}
    try:
        return shape.model_validate({**texts, **more})
    except ValidationError as error:
        raise Refusal(400, "invalid_request", first_fault(error)) from error


def describe_upload(shape: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI description of a body with an image, as JSON and as a form."""
    schema = _describe(shape)
    file = {"type": "string", "format": "binary", "description": "The image file."}
    return _both(schema, {**schema, "properties": {**schema["properties"], FILE: file}})


def describe_fields(shape: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI description of a body without an image."""
    return _both(_describe(shape), _describe(shape))


def _describe(shape: type[BaseModel]) -> dict[str, Any]:
    return shape.model_json_schema(ref_template="#/components/schemas/{model}")


def _both(schema: dict[str, Any], form: dict[str, Any]) -> dict[str, Any]:
    named = {**form, "title": f"{form['title']}Form"}
    content = {"application/json": {"schema": schema}, FORMS[0]: {"schema": named}}
    return {"requestBody": {"required": True, "content": content}}


# Schemas of requests and responses, derived from the records of the Python API.

_IMAGE = "The image: a data URL, or its bytes as base64."


class AnalyzeBody(ClosedBody):
    """A meme to analyse; ``with_model`` runs the model of the service, as a background job."""

    image: str = Field(description=_IMAGE)
    with_model: bool = False
    model: str | None = Field(default=None, description="One of the service's models.")
    language: str | None = Field(
        default=None, max_length=16, description="Language code of the text. Default: detected."
    )


class PunsBody(ClosedBody):
    """A caption to search for homophones; ``description`` describes the meme's image."""

    caption: str = Field(min_length=1, max_length=2000)
    description: str | None = Field(default=None, max_length=4000)
    language: CaptionLanguage = "auto"
    limit: int = Field(default=5, ge=1, le=50)


class ReappraiseBody(ClosedBody):
    """A meme to rewrite as a background job; without a model, it is declined."""

    image: str = Field(description=_IMAGE)
    with_model: bool = False
    model: str | None = Field(default=None, description="One of the service's models.")
    target: TargetEmotion | None = None
    versions: int = Field(
        default=1, ge=1, le=8, description="Number of versions to create. Default: 1."
    )
    label: bool = Field(
        default=False, description="Add a visible label below the new images. Default: false."
    )


class QueryBody(ClosedBody):
    """A SPARQL query; it is read-only and cannot access other machines."""

    query: str = Field(min_length=1, max_length=MOST_CHARACTERS)
    limit: int = Field(default=100, ge=1, le=10_000)


def describe_result(name: str, result: type, without: Collection[str] = (), **other: object) -> Any:
    """Return the JSON schema of a result's ``to_dict``, from its fields.

    ``without`` lists fields that are not sent; ``other`` contains fields to add or replace.
    """
    hints = get_type_hints(result)
    kept = {field.name: hints[field.name] for field in fields(result)}
    sent = {key: kind for key, kind in kept.items() if key not in without} | other
    doc = (result.__doc__ or "").partition("\n")[0]
    parts: dict[str, Any] = {key: (kind, ...) for key, kind in sent.items()}
    return create_model(name, __doc__=doc, **parts)


AnalysisRecord = describe_result(
    "AnalysisRecord",
    Analysis,
    without=("harms", "feelings", "missing", "size"),
    meme=str,
    text=str,
    caption=str,
    harm=tuple[Harm, ...],
    emotion=tuple[Feeling, ...],
    baselines=tuple[str, ...],
    missing=tuple[Missing, ...],
)
PunsRecord = describe_result("PunsRecord", HomophoneReadings, intended=str | None)
# ``image`` is the new meme as a data URL, ``by`` the name of its planner. If several versions were
# requested, ``images`` contains them, ``sheet`` shows all of them in one image, and ``page`` as
# HTML.
ReappraisalRecord = describe_result(
    "ReappraisalRecord",
    Reappraisal,
    without=("folder", "resumed"),
    by=str,
    image=str | None,
    images=list[str],
    sheet=str | None,
    page=str | None,
)
RowsRecord = describe_result("RowsRecord", QueryRows)


class StandingJob(BaseModel):
    """The fields of every background job in a response."""

    id: str
    kind: JobKind
    status: JobStatus
    created: datetime
    ended: datetime | None
    expires: datetime | None
    done: int
    total: int | None
    reason: str
    location: str
    events: str


JobRecord: Any = create_model(
    "JobRecord",
    __base__=StandingJob,
    __doc__="""A job as it stands. An ended one is kept until ``expires``.

    ``analysis`` or ``reappraisal`` is its result when it is done; ``reason`` says why it failed.
    """,
    analysis=(AnalysisRecord | None, ...),
    reappraisal=(ReappraisalRecord | None, ...),
)


def show_job(job: StoredJob) -> dict[str, object]:
    """Return a background job in the response format, see :class:`JobRecord`."""
    return {
        "id": job.id,
        "kind": job.kind,
        "status": job.status,
        "created": _moment(job.created),
        "ended": _moment(job.ended),
        "expires": _moment(job.expires),
        "done": job.done,
        "total": job.total,
        "reason": job.reason,
        "location": f"/v1/jobs/{job.id}",
        "events": f"/v1/jobs/{job.id}/events",
        "analysis": job.result if job.kind == "analyze" else None,
        "reappraisal": job.result if job.kind == "reappraise" else None,
    }


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
