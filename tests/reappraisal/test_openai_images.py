"""The client of image-edit servers, against a real server on this machine."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from PIL import Image

from memantics.core.errors import (
    InputError,
    MemanticsError,
    Refused,
    Rejected,
    Transient,
    Unavailable,
    UnknownName,
)
from memantics.core.model import Editor, EditRequest
from memantics.models.editors import ImagesSettings, OpenAIImages, open_editor
from memantics.models.kinds import ModelSettings

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
QUICK = ImagesSettings(timeout=60.0, waits=(0.0, 0.0))


def png(colour: str, size: tuple[int, int] = (16, 12)) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", size, colour).save(data, "PNG")
    return data.getvalue()


def half_mask() -> bytes:
    mask = Image.new("L", (16, 12))
    mask.paste(255, (8, 0, 16, 12))
    data = io.BytesIO()
    mask.save(data, "PNG")
    return data.getvalue()


REQUEST = EditRequest(png("navy"), half_mask(), "make it sunny", "happy")


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    application = web.Application(client_max_size=2**24)
    application.router.add_post("/v1/images/edits", handler)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


def ask(handler: Handler, settings: ImagesSettings = QUICK, key: str = "sk-key") -> bytes:
    async def work() -> bytes:
        async with serving(handler) as url:
            editor = OpenAIImages("painter", url, key, settings)
            try:
                return await editor.edit(REQUEST)
            finally:
                await editor.close()

    return asyncio.run(work())


def reply_with(data: bytes) -> web.Response:
    return web.json_response({"data": [{"b64_json": base64.b64encode(data).decode()}]})


def test_picture_mask_and_words_are_sent_as_one_form() -> None:
    seen: dict[str, Any] = {}

    async def handler(request: web.Request) -> web.StreamResponse:
        form = await request.post()
        seen["key"] = request.headers["Authorization"]
        for name, value in form.items():
            seen[name] = value.file.read() if isinstance(value, web.FileField) else value
        return reply_with(png("gold"))

    settings = ImagesSettings(timeout=60.0, fields={"size": "1024x1024"}, waits=())
    assert ask(handler, settings) == png("gold")
    assert seen["image"] == REQUEST.image
    assert (seen["prompt"], seen["model"], seen["n"]) == ("make it sunny", "painter", "1")
    assert seen["size"] == "1024x1024"
    assert seen["key"] == "Bearer sk-key"
    with Image.open(io.BytesIO(seen["mask"])) as mask:
        alpha = np.asarray(mask)[..., 3]
    assert (alpha[:, :8] == 255).all()
    assert (alpha[:, 8:] == 0).all()


def test_what_passes_is_tried_again() -> None:
    calls: list[int] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        await request.read()
        calls.append(1)
        if len(calls) < 3:
            return web.json_response({"error": {"message": "busy"}}, status=503)
        return reply_with(png("gold"))

    assert ask(handler) == png("gold")
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (503, {"error": {"message": "busy"}}, Transient),
        (401, {"error": {"message": "wrong key sk-key"}}, Unavailable),
        (400, {"error": {"message": "no", "code": "content_policy_violation"}}, Refused),
        (400, {"error": {"message": "too large"}}, Rejected),
        (200, {"data": []}, Rejected),
        (200, {"data": [{"b64_json": "***"}]}, Rejected),
        (200, {"data": [{"url": "http://127.0.0.1:1/x.png"}]}, Rejected),
        (200, {"oops": "sk-key"}, Rejected),
    ],
)
def test_faults_have_names(status: int, body: object, kind: type[MemanticsError]) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        await request.read()
        return web.json_response(body, status=status)

    with pytest.raises(kind) as caught:
        ask(handler)
    assert "sk-key" not in str(caught.value)


def test_a_server_that_asks_for_hours_is_not_waited_for() -> None:
    asked = []

    async def handler(request: web.Request) -> web.Response:
        asked.append(await request.read())
        return web.json_response({}, status=429, headers={"Retry-After": "86400"})

    with pytest.raises(Transient, match="HTTP 429"):
        ask(handler, QUICK)
    assert len(asked) == 1


def test_a_server_that_hangs_is_left() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.Response()

    with pytest.raises(Transient, match=r"no image within 0.2 s"):
        ask(handler, ImagesSettings(timeout=0.2, waits=()))


def test_an_answer_without_end_is_cut() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        await request.read()
        return web.Response(body=b"x" * 4096)

    with pytest.raises(Rejected, match="larger than"):
        ask(handler, ImagesSettings(timeout=60.0, max_reply_bytes=1000, waits=()))


def test_nobody_listening_is_said() -> None:
    async def work() -> None:
        editor = OpenAIImages("painter", "http://127.0.0.1:9/v1", "", QUICK)
        try:
            await editor.edit(REQUEST)
        finally:
            await editor.close()

    with pytest.raises(Unavailable, match="cannot be reached"):
        asyncio.run(work())


@pytest.mark.parametrize("url", ["ftp://x/v1", "nothing", "http://me:secret@host/v1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InputError) as caught:
        OpenAIImages("painter", url)
    assert "is not a valid URL" in str(caught.value)


def test_names_of_editors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    made = open_editor("openai-images/painter", ModelSettings("http://localhost:8000/v1"))
    assert isinstance(made, Editor)
    assert made.identity["name"] == "openai-images/painter"
    with pytest.raises(UnknownName):
        open_editor("photoshop", ModelSettings())
    with pytest.raises(InputError, match="--editor-url"):
        open_editor("openai-images/painter", ModelSettings())
    with pytest.raises(InputError, match=r"model_index\.json is missing"):
        open_editor("diffusers/nowhere", ModelSettings())
