"""Image editors by name: ``openai-images/NAME`` and ``diffusers/PATH``.

``openai-images`` calls any server with an OpenAI-compatible image-edit endpoint. ``diffusers`` runs
an instruction or inpainting pipeline from a local folder (extra ``edit``). Nothing is downloaded
and no code of the folder runs: only safetensors weights and classes of diffusers are loaded. The
``embedded`` editor is opened in the package ``understanding``, which it needs.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import inspect
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import orjson
from PIL import Image
from pydantic import JsonValue, ValidationError
from yarl import URL

from memantics.core.errors import (
    InputError,
    MissingExtra,
    Rejected,
    Transient,
    Unavailable,
    UnknownName,
)
from memantics.core.files import hide, learn_environment, learn_named, learn_secrets, read_regular
from memantics.core.images import decode, encode_png
from memantics.core.model import Editor, EditRequest
from memantics.core.records import Closed, Lenient
from memantics.models.kinds import ModelSettings, read_params
from memantics.models.openai import hide_key, judge_status, read_bounded

_WAITS = (1.0, 4.0, 12.0)
# seconds; an edit that would have to wait longer fails, and running the command again retries it
_PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class ImagesSettings:
    """Settings of an image server; ``fields`` are extra form fields such as ``size``."""

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
    """Sends image, mask and instruction as one form; only one header contains the API key.

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
                f"base URL {base_url!r} is not a valid URL",
                hint="for example http://localhost:8000/v1; the key is read from OPENAI_API_KEY",
            )
        if not name:
            raise InputError("the editor has no name", hint="use openai-images/NAME")
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
        """The name, server and form fields of the editor; not the key."""
        return {
            "name": self.name,
            "base_url": hide(str(self._base)),
            "fields": {name: hide(value) for name, value in self.settings.fields.items()},
        }

    async def edit(self, request: EditRequest) -> bytes:
        """Request one edited image; retry transient failures a few times."""
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
                f"{server} cannot be reached",
                hint="check --editor-url, and that the server is running",
            ) from error
        except TimeoutError as error:
            raise Transient(f"{server}: no image within {self.settings.timeout:g} s") from error
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
    """Convert a mask to the server's format: transparent where the image may change."""
    white = np.asarray(decode(mask, "mask").convert("L")) > 127
    plate = np.zeros((*white.shape, 4), np.uint8)
    plate[..., 3] = np.where(white, 0, 255)
    return encode_png(Image.fromarray(plate))


def read_picture(data: bytes) -> bytes:
    """Return the image in a server's reply. URLs in the reply are not followed.

    >>> read_picture(b'{"data": [{"url": "http://elsewhere/x.png"}]}')
    Traceback (most recent call last):
    memantics.core.errors.Rejected: the server sent a URL instead of an image; ask for the ...
    """
    try:
        reply = _Pictures.model_validate(orjson.loads(data))
    except (orjson.JSONDecodeError, ValidationError):
        start = data[:60].decode(errors="replace")
        raise Rejected(f"the server sent no image; its reply starts with {start!r}") from None
    first = reply.data[0] if reply.data else _Picture()
    if first.b64_json is None:
        raise Rejected(
            "the server sent a URL instead of an image"
            if first.url
            else "the server sent no image",
            hint="ask for the bytes: --editor-param response_format=b64_json",
        )
    try:
        return base64.b64decode(first.b64_json, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Rejected(f"the image is not valid Base64: {error}") from error


_STEP = 8  # width and height must be multiples of this number of pixels


def choose_size(size: tuple[int, int], longest: int) -> tuple[int, int]:
    """Return the image size for a pipeline: bounded, same aspect ratio, multiples of 8.

    >>> choose_size((1000, 500), 768)
    (768, 384)
    >>> choose_size((30, 31), 768)
    (32, 32)
    """
    scale = min(1.0, longest / max(size))
    width, height = (max(_STEP, round(side * scale / _STEP) * _STEP) for side in size)
    return width, height


class DiffusersSettings(Closed):
    """Settings of a diffusers pipeline. ``None`` uses the pipeline's default."""

    steps: int = 30
    guidance: float | None = None
    image_guidance: float | None = None
    strength: float | None = None
    longest: int = 1024


class DiffusersEditor:
    """Runs a diffusers pipeline on its own thread; the pipeline is loaded for the first image."""

    note = ""

    def __init__(self, path: Path, settings: DiffusersSettings | None = None) -> None:
        if not (path / "model_index.json").is_file():
            raise InputError(
                f"{path} is not a diffusers pipeline: model_index.json is missing",
                hint="give a folder written by save_pretrained of diffusers",
            )
        self.name = f"diffusers/{path}"
        self.settings = settings or DiffusersSettings()
        self._path = path
        self._pipeline: Any = None
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="editor")

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """The pipeline's index file and the settings of the editor."""
        index = read_regular(self._path / "model_index.json")
        return {
            "name": self.name,
            "index": hashlib.sha256(index).hexdigest()[:16],
            "settings": self.settings.model_dump(),
        }

    async def edit(self, request: EditRequest) -> bytes:
        """Edit one image."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, self._edit, request)

    def _edit(self, request: EditRequest) -> bytes:
        pipeline = self._load()
        import torch

        source = decode(request.image, "picture")
        mask = decode(request.mask, "mask").convert("L") if request.mask else None
        size = choose_size(source.size, self.settings.longest)
        takes = inspect.signature(pipeline.__call__).parameters
        offered: dict[str, Any] = {
            "prompt": request.instruction,
            "image": source.resize(size, Image.Resampling.LANCZOS),
            "mask_image": mask and mask.resize(size, Image.Resampling.NEAREST),
            "width": size[0],
            "height": size[1],
            "num_inference_steps": self.settings.steps,
            "guidance_scale": self.settings.guidance,
            "image_guidance_scale": self.settings.image_guidance,
            "strength": self.settings.strength,
            "generator": torch.Generator("cpu").manual_seed(request.seed),
        }
        if "image" not in takes:
            raise Rejected(
                f"{type(pipeline).__name__} cannot edit images",
                hint="use an instruction, image-to-image or inpainting pipeline",
            )
        given = {k: v for k, v in offered.items() if k in takes and v is not None}
        try:
            painted = pipeline(**given).images[0]
        except (RuntimeError, ValueError, TypeError) as error:
            raise Rejected(f"{self.name} failed: {error}") from error
        return encode_png(painted.convert("RGB").resize(source.size, Image.Resampling.LANCZOS))

    def _load(self) -> Any:
        if self._pipeline is None:
            try:
                import torch
                from diffusers import DiffusionPipeline
            except ImportError as error:
                raise MissingExtra("diffusers/… editors", "edit") from error
            loader: Any = DiffusionPipeline  # diffusers has no type annotations here
            try:
                pipeline = loader.from_pretrained(
                    str(self._path),
                    local_files_only=True,
                    use_safetensors=True,
                    trust_remote_code=False,
                    torch_dtype=torch.float16 if torch.cuda.is_available() else torch.float32,
                )
            except (OSError, ValueError, AttributeError, TypeError) as error:
                raise Unavailable(
                    f"{self._path} cannot be loaded as a pipeline: {str(error).splitlines()[0]}",
                    hint="give a folder written by save_pretrained of diffusers",
                ) from error
            pipeline.set_progress_bar_config(disable=True)
            self._pipeline = pipeline.to("cuda" if torch.cuda.is_available() else "cpu")
        return self._pipeline

    async def close(self) -> None:
        """Stop the thread and free the weights."""
        await asyncio.to_thread(self._worker.shutdown, cancel_futures=True)
        self._pipeline = None


KINDS = ("embedded", "none", "openai-images/NAME", "diffusers/PATH")


def open_editor(name: str, settings: ModelSettings) -> Editor:
    """Open the editor called ``KIND/NAME``."""
    kind, slash, rest = name.partition("/")
    if kind not in ("openai-images", "diffusers") or not slash or not rest:
        raise UnknownName("editor", name, KINDS)
    return _open_images(rest, settings) if kind == "openai-images" else _open_folder(rest, settings)


def _open_images(name: str, settings: ModelSettings) -> Editor:
    base_url = settings.base_url or os.environ.get("OPENAI_BASE_URL")
    if not base_url:
        raise InputError(
            f"editor 'openai-images/{name}' needs the URL of its server",
            hint="give --editor-url, for example http://localhost:8000/v1, or set OPENAI_BASE_URL",
        )
    key = os.environ.get("OPENAI_API_KEY", "")
    made = ImagesSettings(timeout=settings.timeout, fields=settings.params)
    return OpenAIImages(name, base_url, key, made)


def _open_folder(path: str, settings: ModelSettings) -> Editor:
    made = read_params(DiffusersSettings, settings.params, "diffusers/… editors", "--editor-param")
    return DiffusersEditor(Path(path), made)
