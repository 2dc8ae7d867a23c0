"""What a body of JSON costs is bounded: values, faults, and bytes of all requests together."""

from __future__ import annotations

import asyncio
import threading

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from memantics.core.errors import first_fault
from memantics.serve.moderations import ModerationBody
from memantics.web.budget import AsgiScope, Limits
from memantics.web.shell import AsgiMessage, Receive, Send, Shell
from tests.serve.site import Site

MEGABYTE = 1024 * 1024


def many(count: int) -> bytes:
    return b'{"input":[' + b"1," * (count - 1) + b"1]}"


@pytest.mark.slow
def test_a_list_without_end_is_not_even_read(site: Site) -> None:
    with site.client() as client:
        # One bracket and one brace count too.
        for count, words in ((49_999, "valid string"), (50_000, "more than 50,000 values")):
            answer = client.post("/v1/moderations", content=many(count))
            assert answer.status_code == 400
            assert words in answer.json()["error"]["message"]
        for path, sent in (
            ("/v1/puns", b"[" * 300_000),
            ("/v1/knowledge/query", b'{"a":1,' * 150_000),
        ):
            answer = client.post(path, content=sent)
            assert "more than 50,000 values" in answer.json()["error"]["message"]


def test_the_first_fault_of_a_list_ends_its_reading() -> None:
    for sent in (many(50_000), b'{"input":[' + b'{"type":"x"},' * 900 + b"{}]}"):
        with pytest.raises(ValidationError) as refused:
            ModerationBody.model_validate_json(sent)
        assert refused.value.error_count() <= 4
    for count in (1000, 1001):
        body = {"input": ["x"] * count}
        if count <= 1000:
            assert ModerationBody.model_validate(body).input == body["input"]
        else:
            with pytest.raises(ValidationError, match="at most 1000 items"):
                ModerationBody.model_validate(body)


@pytest.mark.parametrize(("count", "said"), [(1000, "0: Input"), (1001, "1,001 values")])
def test_faults_beyond_a_thousand_are_counted_not_built(count: int, said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(list[int]).validate_python(["x"] * count)
    assert first_fault(refused.value).startswith(said)


@pytest.mark.slow
def test_a_large_body_is_read_in_another_thread(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    parse = BaseModel.__dict__["model_validate_json"].__func__

    def note(cls: type[BaseModel], data: bytes) -> BaseModel:
        seen.append(threading.get_ident())
        parsed: BaseModel = parse(cls, data)
        return parsed

    monkeypatch.setattr(ModerationBody, "model_validate_json", classmethod(note))
    with site.client() as client:
        for size in (10, 30_000):
            client.post("/v1/moderations", json={"input": ["a" * 10] * 3, "model": "x" * size * 3})
    assert len(set(seen)) == 2


def test_bodies_of_all_requests_together_have_an_end() -> None:
    """256 MB may be in flight; a small request is let in beside them, and room comes back."""
    statuses: list[int] = []
    chunk = b"\0" * MEGABYTE

    async def run() -> None:
        release = asyncio.Event()

        async def app(_scope: AsgiScope, receive: Receive, send: Send) -> None:
            while (await receive()).get("more_body"):
                pass
            await release.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})

        shell = Shell(app, Limits(None, uploads=("/up",)))

        async def send(message: AsgiMessage) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                if message["status"] == 503:
                    assert int(dict(message["headers"])[b"retry-after"]) >= 1

        async def ask(pieces: int, size: int) -> None:
            left = pieces

            async def receive() -> AsgiMessage:
                nonlocal left
                left -= 1
                return {"type": "http.request", "body": chunk[:size], "more_body": left > 0}

            scope: AsgiScope = {"type": "http", "method": "POST", "path": "/up", "headers": []}
            await shell(scope, receive, send)

        async def fill() -> list[asyncio.Task[None]]:
            held = [asyncio.create_task(ask(64, MEGABYTE)) for _ in range(4)]
            await asyncio.sleep(0)
            return held

        for _ in range(2):  # what was answered makes room
            held = await fill()
            small = asyncio.create_task(ask(1, 64 * 1024))
            await asyncio.sleep(0)
            await ask(1, 64 * 1024 + 1)
            release.set()
            await asyncio.gather(*held, small)
            release.clear()

    asyncio.run(run())
    assert statuses == [503, *[200] * 5] * 2
