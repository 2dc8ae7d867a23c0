"""Doors without a service: sites, secrets, images, addresses, damaged jobs, lost jobs."""

from __future__ import annotations

import asyncio
import base64
import logging
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from starlette.requests import Request

from memantics.core.errors import ImageError
from memantics.core.images import ImageBounds
from memantics.serve import inputs as fetching
from memantics.serve.access import COOKIE, LOCAL, AccessControl
from memantics.serve.inputs import (
    ClosedBody,
    ImageFetcher,
    ImageLoader,
    PublicResolver,
    describe_fields,
    describe_upload,
    is_public,
    look_up,
    read_fields,
    read_upload,
)
from memantics.serve.jobs import JobStore, Runner, StoredJob
from memantics.serve.refusals import Refusal
from memantics.serve.settings import Intake as ServeBounds
from memantics.serve.settings import Reach, ServeSettings, Token, digest
from tests.serve.site import MEME, data_url

DATA = MEME.read_bytes()


class Upload(ClosedBody):
    """A body with an image and a field."""

    image: str
    language: str = "en"


def make_request(
    headers: Mapping[str, str] | None = None, *, method: str = "POST", body: bytes = b""
) -> Request:
    head = [(name.encode(), text.encode()) for name, text in (headers or {}).items()]

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    scope = {"type": "http", "method": method, "path": "/", "query_string": b"", "headers": head}
    return Request(scope, receive)


def make_access(*tokens: Token) -> AccessControl:
    reach = Reach(origins=("https://shop.example",), public_url="https://memes.example")
    keys = tokens or (Token("a", digest("x")),)
    return AccessControl(ServeSettings(reach, tokens=keys, state=Path("unused")))


@pytest.mark.parametrize(
    ("headers", "served"),
    [
        ({}, True),
        ({"sec-fetch-site": "same-origin", "origin": "https://evil.example"}, True),
        ({"sec-fetch-site": "none"}, True),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": "cross-site", "origin": "https://shop.example"}, True),
        # Old browsers say nothing of the site.
        ({"origin": "https://evil.example", "host": "here:8000"}, False),
        ({"origin": "http://here:8000", "host": "here:8000"}, True),
        ({"origin": "https://memes.example", "host": "here:8000"}, True),
        ({"origin": "null", "host": "here:8000"}, False),
    ],
)
def test_where_a_script_may_come_from(headers: dict[str, str], served: bool) -> None:
    access = make_access()
    access.check_site(make_request(headers, method="GET"))
    access.check_site(make_request(headers, method="HEAD"))
    for request, reads in (
        (make_request(headers), False),
        (make_request(headers, method="GET"), True),
    ):
        if served:
            access.check_site(request, reads=reads)
            continue
        with pytest.raises(Refusal) as refused:
            access.check_site(request, reads=reads)
        assert (refused.value.status, refused.value.code) == (403, "foreign_origin")


def test_a_secret_is_in_a_header_or_in_the_cookie() -> None:
    access = make_access(Token("a", digest("x"), ("puns",)))
    assert access.guarded
    headers: Mapping[str, str]
    for headers in ({"authorization": "Bearer x"}, {"authorization": "bearer  x "}):
        assert access.admit(make_request(headers), "puns") == "a"
    cookie = make_request({"cookie": f"{COOKIE}=x"})
    assert access.knows(cookie)
    assert access.admit(cookie, "puns") == "a"
    assert not access.knows(make_request({"cookie": "other=x"}))
    assert not access.knows(make_request({"authorization": "Basic x"}))
    for headers, words in (
        ({}, "a token is required"),
        ({"authorization": "Bearer y"}, "not known"),
    ):
        with pytest.raises(Refusal, match=words) as refused:
            access.admit(make_request(headers), "puns")
        assert (refused.value.status, refused.value.code) == (401, "invalid_api_key")
        assert refused.value.headers == {"www-authenticate": "Bearer"}
    with pytest.raises(Refusal, match="do not include 'moderate'") as refused:
        access.admit(cookie, "moderate")
    assert (refused.value.status, refused.value.code) == (403, "insufficient_scope")
    free = AccessControl(ServeSettings(state=Path("unused")))
    assert not free.guarded
    assert free.admit(make_request(), "puns") == LOCAL
    assert free.knows(make_request())
    assert free.find("") is None


@pytest.fixture
def loader() -> ImageLoader:
    return ImageLoader(ImageBounds(len(DATA), 10_000_000), ImageFetcher((), len(DATA)))


def test_an_image_comes_as_base64_or_as_a_data_url(loader: ImageLoader) -> None:
    coded = base64.b64encode(DATA).decode()
    for given in (coded, data_url(DATA), f"DATA:image/png;BASE64,{coded}"):
        assert asyncio.run(loader.take(given)) == DATA
    for given, words in (
        ("data:image/png;base64", "must be base64 of an image"),
        (f"data:image/png,{coded}", "must be base64 of an image"),
        ("no base64!", "not valid base64"),
        ("https://memes.example/a.png", "this service does not fetch URLs"),
        ("HTTP://memes.example/a.png", "this service does not fetch URLs"),
    ):
        with pytest.raises(Refusal, match=words) as refused:
            asyncio.run(loader.take(given))
        assert (refused.value.status, refused.value.code) == (422, "invalid_image_url")


def test_an_image_has_as_many_bytes_as_it_may(loader: ImageLoader) -> None:
    assert loader.check(DATA) == DATA
    with pytest.raises(Refusal, match=f"more than {len(DATA):,} bytes") as refused:
        loader.check(DATA + b"\0")
    assert (refused.value.status, refused.value.code) == (413, "invalid_image")
    with pytest.raises(ImageError, match="upload"):
        loader.check(b"text")
    opened = ImageLoader.open(ServeBounds(body_bytes=300, pixels=400))
    assert opened.bounds == ImageBounds(300, 400)
    most = ImageBounds()
    wide = ImageLoader.open(ServeBounds(body_bytes=10**12, pixels=10**12))
    assert wide.bounds == most


def make_form(**fields: str) -> tuple[bytes, str]:
    parts = [
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'.encode()
        for name, text in fields.items()
    ]
    head = b'--b\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n'
    return b"".join([*parts, head, DATA, b"\r\n--b--\r\n"]), "multipart/form-data; boundary=b"


def test_fields_come_as_json_or_as_a_form(loader: ImageLoader) -> None:
    async def run() -> None:
        coded = data_url(DATA).encode()
        sent = make_request(body=b'{"image": "' + coded + b'", "language": "zh"}')
        body, data = await read_upload(sent, Upload, loader)
        assert (body.language, data) == ("zh", DATA)
        form, kind = make_form(language="zh")
        body, data = await read_upload(
            make_request({"content-type": kind}, body=form), Upload, loader
        )
        assert (body.image, body.language, data) == ("", "zh", DATA)
        form, kind = make_form(language="")
        body, _ = await read_upload(make_request({"content-type": kind}, body=form), Upload, loader)
        assert body.language == "en", "an empty field is one that was not filled in"
        plain = "Application/X-www-form-urlencoded; charset=utf-8"
        filled = make_request({"content-type": plain}, body=b"image=x&language=zh")
        assert (await read_fields(filled, Upload)).language == "zh"
        json = make_request({"content-type": "application/json"}, body=b'{"image": "x"}')
        assert (await read_fields(json, Upload)).image == "x"
        for request, words in (
            (
                make_request({"content-type": plain}, body=b"image=x"),
                "the form has no file 'image'",
            ),
            (make_request(body=b'{"image": "x", "more": 1}'), "more"),
        ):
            with pytest.raises(Refusal, match=words) as refused:
                await read_upload(request, Upload, loader)
            assert (refused.value.status, refused.value.code) == (400, "invalid_request")

    asyncio.run(run())


def test_bodies_are_described_as_json_and_as_a_form() -> None:
    body = describe_upload(Upload)["requestBody"]
    assert body["required"] is True
    json, form = (
        body["content"][kind]["schema"] for kind in ("application/json", "multipart/form-data")
    )
    assert (json["title"], form["title"]) == ("Upload", "UploadForm")
    assert json["properties"]["image"]["type"] == "string"
    assert "format" not in json["properties"]["image"]
    assert form["properties"]["image"]["format"] == "binary"
    assert json["properties"]["language"] == form["properties"]["language"]
    plain = describe_fields(Upload)["requestBody"]["content"]
    assert plain["application/json"]["schema"] == json
    assert plain["multipart/form-data"]["schema"] == {**json, "title": "UploadForm"}


@asynccontextmanager
async def far_host() -> AsyncIterator[str]:
    """A server on this machine that does not answer while somebody waits for it."""
    over = asyncio.Event()

    async def hang(_request: web.Request) -> web.Response:
        await over.wait()
        return web.Response()

    app = web.Application()
    app.router.add_get("/slow", hang)
    runner = web.AppRunner(app, shutdown_timeout=0.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"memes.example:{runner.addresses[0][1]}"
    finally:
        over.set()
        await runner.cleanup()


async def local(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


def test_a_host_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "_SECONDS", 0.1)

    async def run() -> None:
        async with far_host() as host, asyncio.timeout(5):
            fetcher = ImageFetcher((host.upper(),), 1000, PublicResolver(local, lambda _: True))
            with pytest.raises(Refusal, match=r"could not be fetched: .*Timeout") as refused:
                await fetcher.fetch(f"http://{host}/slow")
            assert (refused.value.status, refused.value.code) == (422, "invalid_image_url")

    asyncio.run(run())


def test_names_are_looked_up_once_each() -> None:
    assert asyncio.run(look_up("127.0.0.1", 80)) == ["127.0.0.1"]
    assert asyncio.run(look_up("::1", 80)) == ["::1"]

    async def unknown(_host: str, _port: int) -> list[str]:
        raise OSError

    async def nothing(_host: str, _port: int) -> list[str]:
        return []

    async def both(_host: str, _port: int) -> list[str]:
        return ["93.184.216.34", "2606:2800:220:1::1"]

    with pytest.raises(Refusal, match=r"memes\.example cannot be resolved"):
        asyncio.run(PublicResolver(unknown).resolve("memes.example", 80))
    with pytest.raises(Refusal, match="not public"):
        asyncio.run(PublicResolver(nothing).resolve("memes.example", 80))
    found = asyncio.run(PublicResolver(both).resolve("memes.example", 80))
    assert [(one["hostname"], one["host"], one["port"], one["family"]) for one in found] == [
        ("memes.example", "93.184.216.34", 80, socket.AF_INET),
        ("memes.example", "2606:2800:220:1::1", 80, socket.AF_INET6),
    ]


class LosingStore(JobStore):
    """Cannot say where its first job is."""

    lost = ""

    def place(self, job: str) -> Path:
        if job == self.lost:
            raise RuntimeError("gone")
        return super().place(job)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LosingStore]:
    made = LosingStore(tmp_path / "state", keep=60, most=9, clock=lambda: 1000.0)
    yield made
    made.close()


def test_a_damaged_job_is_a_failed_one_of_its_owner(store: LosingStore) -> None:
    job = store.add("reappraise", "shop", {"target": "happy"}, b"")
    store._db.execute("UPDATE jobs SET options = '{'")
    found = store.get(job.id)
    assert found == StoredJob(
        id=job.id,
        kind="analyze",
        owner="shop",
        status="failed",
        options={},
        created=1000.0,
        ended=1000.0,
        expires=1000.0,
        tries=0,
        done=0,
        total=None,
        result=None,
        reason="its row in the database is damaged",
    )
    assert store.get("nobody") is None
    store.drop("nobody")


def test_a_slot_writes_down_what_it_lost_and_goes_on(
    store: LosingStore, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        lost = store.add("analyze", "a", {}, b"image")
        store.lost = lost.id
        runner = Runner(store, None, grace=1.0)  # type: ignore[arg-type]
        job = store.add("analyze", "a", {}, b"no image")
        runner.wake()
        async with asyncio.timeout(10):
            while (found := store.get(job.id)) is not None and found.status != "failed":
                await asyncio.sleep(0.02)
            while not any(line.getMessage() == "job" for line in caplog.records):
                await asyncio.sleep(0.02)
        assert runner.works
        await runner.close()
        assert not runner.works
        assert found is not None
        assert "image" in found.reason
        lines = {line.getMessage(): line.__dict__["facts"] for line in caplog.records}
        assert lines["job lost"] == {"job": lost.id}
        seconds = lines["job"].pop("seconds")
        assert lines["job"] == {"job": job.id, "kind": "analyze", "status": "failed"}
        assert isinstance(seconds, float)
        assert seconds == round(seconds, 2) < 10

    with caplog.at_level(logging.INFO, logger="memantics"):
        asyncio.run(run())


@pytest.mark.parametrize(
    "address", ["2002:5db8:d822::1", "2001:0:5db8:d822::1", "::ffff:93.184.216.34"]
)
def test_an_address_that_carries_another_is_not_public(address: str) -> None:
    assert not is_public(address)
    assert is_public("2606:2800:220:1::1")
