"""``openai-images/NAME``: any server with an OpenAI-compatible image-edit endpoint."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp
import numpy as np
import orjson
from PIL import Image
from pydantic import JsonValue, ValidationError
from yarl import URL

from memantics.core.closed import Lenient
from memantics.core.editor import EditRequest
from memantics.core.errors import InputError, Rejected, Transient, Unavailable
from memantics.core.images import decode, encode_png
from memantics.core.masking import hide, learn_environment, learn_named, learn_secrets
from memantics.models.faults import hide_key, judge_status
from memantics.models.openai import read_bounded

_WAITS = (1.0, 4.0, 12.0)
_PATIENCE = 120.0  # seconds: a meme that has to wait longer fails, and the next command asks again


@dataclass(frozen=True, slots=True)
class ImagesSettings:
    """How a server is talked to. ``fields`` go into the form as they are (``size``, …)."""

    timeout: float = 300.0
    max_reply_bytes: int = 64 * 1024 * 1024
    fields: Mapping[str, str] = field(default_factory=dict)
    waits: tuple[float, ...] = _WAITS


class _Picture(Lenient):
    b64_json: str | None = None
    url: str | None = None


class _Pictures(Lenient):
    data: list[_Picture]


class OpenAIImages:
    """Sends picture, mask and instruction as one form; the key goes into one header only.

    >>> OpenAIImages("painter", "http://localhost:8000/v1", "sk-secret")
    OpenAIImages('openai-images/painter', 'http://localhost:8000/v1')
    """

    note = ""

    def __init__(
        self, name: str, base_url: str, key: str = "", settings: ImagesSettings | None = None
    ) -> None:
        url = URL(base_url.strip())
        if url.scheme not in ("http", "https") or not url.host or url.user or url.password:
            raise InputError(
                f"base URL {base_url!r} is no plain web address",
                hint="write it like http://localhost:8000/v1; the key comes from OPENAI_API_KEY",
            )
        if not name:
            raise InputError("the editor has no name", hint="write openai-images/NAME")
        self.name = f"openai-images/{name}"
        self._model = name
        self._base = url
        self._key = key.strip()
        self.settings = settings or ImagesSettings()
        learn_environment()
        learn_secrets(self._key)
        learn_named((*url.query.items(), *self.settings.fields.items()))
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"OpenAIImages({self.name!r}, {str(self._base)!r})"

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """Name, server and fields; not the key."""
        return {
            "name": self.name,
            "base_url": hide(str(self._base)),
            "fields": {name: hide(value) for name, value in self.settings.fields.items()},
        }

    async def edit(self, request: EditRequest) -> bytes:
        """Ask for one picture; what may pass is tried again a few times."""
        for wait in self.settings.waits:
            try:
                return await self._ask(request)
            except Transient as error:
                asked = wait if error.retry_after is None else error.retry_after
                if asked > _PATIENCE:
                    raise
                await asyncio.sleep(asked)
        return await self._ask(request)

    async def _ask(self, request: EditRequest) -> bytes:
        server = self._base.authority
        try:
            async with self._open().post(
                self._base / "images" / "edits", data=self._fill(request), allow_redirects=False
            ) as response:
                data = await read_bounded(response, self.settings.max_reply_bytes)
        except aiohttp.ClientConnectorError as error:
            raise Unavailable(
                f"{server} cannot be reached", hint="check --editor-url and whether it runs"
            ) from error
        except TimeoutError as error:
            raise Transient(f"{server}: no picture within {self.settings.timeout:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            broken = Transient(f"{server}: the connection broke: {error}")
            raise hide_key(broken, self._key) from error
        if response.status != 200:
            raise hide_key(judge_status(response.status, response.headers, data), self._key)
        try:
            return read_picture(data)
        except Rejected as error:
            raise hide_key(error, self._key) from None

    def _fill(self, request: EditRequest) -> aiohttp.FormData:
        form = aiohttp.FormData()
        form.add_field("image", request.image, filename="image.png", content_type="image/png")
        if request.mask:
            mask = make_alpha_mask(request.mask)
            form.add_field("mask", mask, filename="mask.png", content_type="image/png")
        form.add_field("prompt", request.instruction)
        form.add_field("model", self._model)
        form.add_field("n", "1")
        for name, value in self.settings.fields.items():
            form.add_field(name, value)
        return form

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=self.settings.timeout, sock_connect=10),
                headers=headers,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def make_alpha_mask(mask: bytes) -> bytes:
    """A mask as these servers want it: transparent where they may paint."""
    white = np.asarray(decode(mask, "mask").convert("L")) > 127
    plate = np.zeros((*white.shape, 4), np.uint8)
    plate[..., 3] = np.where(white, 0, 255)
    return encode_png(Image.fromarray(plate))


def read_picture(data: bytes) -> bytes:
    """The picture in a reply. Addresses are not followed: nothing else is fetched.

    >>> read_picture(b'{"data": [{"url": "http://elsewhere/x.png"}]}')
    Traceback (most recent call last):
    memantics.core.errors.Rejected: the server sent an address and no picture; ask for the ...
    """
    try:
        reply = _Pictures.model_validate(orjson.loads(data))
    except (orjson.JSONDecodeError, ValidationError):
        start = data[:60].decode(errors="replace")
        raise Rejected(f"the server sent no picture but {start!r}") from None
    first = reply.data[0] if reply.data else _Picture()
    if first.b64_json is None:
        raise Rejected(
            "the server sent an address and no picture" if first.url else "no picture came",
            hint="ask for the bytes: --editor-param response_format=b64_json",
        )
    try:
        return base64.b64decode(first.b64_json, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Rejected(f"the picture is no valid Base64: {error}") from error
