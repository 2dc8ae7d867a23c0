"""No address is fetched for a client, but from hosts that the operator named, at public ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from memantics.serve.inputs import ImageFetcher, PublicResolver
from memantics.serve.refusals import Refusal
from tests.serve.site import MEME, Site

DATA = MEME.read_bytes()


def test_by_default_no_address_is_fetched(site: Site) -> None:
    url = f"{site.address}/static/icon.svg"
    part = {"type": "image_url", "image_url": {"url": url}}
    with site.client() as client:
        for body, path in (({"input": [part]}, "/v1/moderations"), ({"image": url}, "/v1/analyze")):
            answer = client.post(path, json=body)
            assert answer.status_code == 422
            assert "data: URL" in answer.json()["error"]["message"]
        for scheme in ("file:///etc/passwd", "ftp://x/y", "gopher://x"):
            answer = client.post("/v1/analyze", json={"image": scheme})
            assert answer.status_code == 422


@asynccontextmanager
async def other_host() -> AsyncIterator[int]:
    """A server on this machine that stands for one far away."""

    async def image(_request: web.Request) -> web.Response:
        return web.Response(body=DATA)

    async def elsewhere(_request: web.Request) -> web.Response:
        raise web.HTTPFound("http://169.254.169.254/latest/meta-data")

    app = web.Application()
    app.router.add_get("/meme.png", image)
    app.router.add_get("/elsewhere", elsewhere)
    runner = web.AppRunner(app)
    await runner.setup()
    place = web.TCPSite(runner, "127.0.0.1", 0)
    await place.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def local(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


def test_an_allowed_host_is_fetched_and_its_redirects_are_not_followed() -> None:
    async def run() -> None:
        async with other_host() as port:
            open_resolver = PublicResolver(local, allow=lambda _: True)
            hosts = (f"memes.example:{port}",)
            base = f"http://memes.example:{port}"
            fetcher = ImageFetcher(hosts, len(DATA), open_resolver)
            assert await fetcher.fetch(f"{base}/meme.png") == DATA
            with pytest.raises(Refusal, match="302"):
                await fetcher.fetch(f"{base}/elsewhere")
            with pytest.raises(Refusal, match="404"):
                await fetcher.fetch(f"{base}/nothing")
            with pytest.raises(Refusal, match="bytes"):
                await ImageFetcher(hosts, len(DATA) - 1, open_resolver).fetch(f"{base}/meme.png")
            # The same host, but its name leads to this machine.
            with pytest.raises(Refusal, match="not public"):
                await ImageFetcher(hosts, len(DATA), PublicResolver(local)).fetch(
                    f"{base}/meme.png"
                )

    asyncio.run(run())


def test_a_name_with_one_private_address_is_refused_however_often_it_changes() -> None:
    asked: list[str] = []

    async def rebind(host: str, _port: int) -> list[str]:
        asked.append(host)
        return ["93.184.216.34"] if len(asked) == 1 else ["127.0.0.1"]

    async def run() -> None:
        resolver = PublicResolver(rebind)
        found = await resolver.resolve("memes.example", 443)
        # What was checked is what is connected to: the name is not looked up again for it.
        assert [entry["host"] for entry in found] == ["93.184.216.34"]
        with pytest.raises(Refusal):
            await resolver.resolve("memes.example", 443)

        async def mixed(_host: str, _port: int) -> list[str]:
            return ["93.184.216.34", "10.0.0.1"]

        with pytest.raises(Refusal):
            await PublicResolver(mixed).resolve("memes.example", 443)

    asyncio.run(run())


@pytest.mark.parametrize(
    "url",
    [
        "http://other.example/a.png",
        "http://memes.example:22/a.png",
        "http://user@memes.example/a.png",
        "http://127.0.0.1/a.png",
        "http://2130706433/a.png",
        "http://[::1]/a.png",
        "http://memes.example.evil.example/a.png",
        "http://memes.example:99999/a.png",
        "http://",
    ],
)
def test_other_addresses_are_refused_before_anything_is_sent(url: str) -> None:
    hosts = ("memes.example", "127.0.0.1", "2130706433", "::1")
    with pytest.raises(Refusal):
        asyncio.run(ImageFetcher(hosts, 1000).fetch(url))
