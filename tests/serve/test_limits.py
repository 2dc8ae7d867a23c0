"""Bodies, pixels, times and queues have an end; what is hostile is refused, never a failure."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Sequence

import pytest

from memantics.serve.engine import Batcher
from memantics.serve.refusals import Refusal
from memantics.web import budget
from tests.hostile.images import chunk, generate
from tests.serve.site import MEME, Site, data_url

TEXT = {"input": "今天天气真好"}


def bomb(width: int, height: int) -> bytes:
    """The head of a PNG of that size."""
    import struct

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"\0" * 64)


def test_bodies_and_pixels_have_an_end(guarded: Site) -> None:
    with guarded.client("shop-secret") as client:
        large = client.post("/v1/moderations", content=b"x" * 300_001)
        assert large.status_code == 413
        stream = client.post("/v1/moderations", content=iter([b"x" * 100_000] * 4))
        assert stream.status_code == 413
        for width, refused in ((1000, False), (1001, True)):  # 1,000,000 pixels are taken
            sent = client.post("/v1/analyze", json={"image": data_url(bomb(width, 1000))})
            assert (sent.status_code == 413) == refused, sent.text
        many = client.post("/v1/moderations", json={"input": ["好"] * 4})
        assert many.status_code == 400
        assert client.post("/v1/moderations", json=TEXT).status_code == 200


@pytest.mark.slow
def test_hostile_images_are_refused_or_read_and_never_a_failure(site: Site) -> None:
    with site.client() as client:
        for name, data in generate(7, 16):
            if len(data) > 20_000:
                continue
            part = {"type": "image_url", "image_url": {"url": data_url(data)}}
            answer = client.post("/v1/moderations", json={"input": [part]})
            assert answer.status_code in (200, 413, 422), (name, answer.text)
        for form in ({"image": ("a.png", b"")}, {"image": ("a.png", b"<svg/>")}, {"x": ("a", b"")}):
            answer = client.post("/v1/analyze", files=form)
            assert answer.status_code in (400, 422), answer.text
        assert client.post("/v1/analyze", data={"image": "x"}).status_code == 400
        broken = {"content-type": "multipart/form-data; boundary=x"}
        answer = client.post("/v1/analyze", content=b"--x\r\nnonsense", headers=broken)
        assert answer.status_code == 400


def test_a_request_that_trickles_in_is_cut_off(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    host, port = site.address.removeprefix("http://").split(":")
    monkeypatch.setattr(budget, "HEAD_SECONDS", 0.5)
    with socket.create_connection((host, int(port))) as slow:
        slow.settimeout(30)
        slow.sendall(b"POST /v1/moderations HTTP/1.1\r\nHost: ")
        assert slow.recv(100) == b""  # the server hung up


def test_a_body_that_does_not_come_is_given_up() -> None:
    from memantics.web.budget import AsgiScope, Limits
    from memantics.web.shell import AsgiMessage, Shell

    sent: list[AsgiMessage] = []

    async def app(_scope: AsgiScope, receive: object, _send: object) -> None:
        assert callable(receive)
        await receive()

    async def never() -> AsgiMessage:
        await asyncio.sleep(60)
        return {}

    async def send(message: AsgiMessage) -> None:
        sent.append(message)

    shell = Shell(app, Limits(None, body_seconds=0.05))
    scope: AsgiScope = {"type": "http", "method": "POST", "path": "/", "headers": []}
    asyncio.run(shell(scope, never, send))
    assert sent[0]["status"] == 408


def test_what_does_not_fit_into_the_queue_is_refused_at_once() -> None:
    begun, release = threading.Event(), threading.Event()
    sizes: list[int] = []

    def work(items: Sequence[int]) -> list[int]:
        begun.set()
        release.wait(30)
        sizes.append(len(items))
        return [item * 2 for item in items]

    async def run() -> None:
        batcher: Batcher[int, int] = Batcher(work, name="numbers", most=3, waiting=4)
        first = asyncio.create_task(batcher.ask([1]))
        assert await asyncio.to_thread(begun.wait, 30)  # it is being worked on
        waiting = [asyncio.create_task(batcher.ask([number])) for number in (2, 3, 4, 5)]
        await asyncio.sleep(0)  # each has begun to wait
        with pytest.raises(Refusal) as refused:
            await batcher.ask([6])
        assert refused.value.status == 429
        assert int(refused.value.headers["retry-after"]) >= 1
        waiting[1].cancel()  # whoever gave up is not worked for
        release.set()
        assert await first == [2]
        done = await asyncio.gather(*waiting, return_exceptions=True)
        assert [one for one in done if isinstance(one, list)] == [[4], [8], [10]]
        await batcher.close()

    asyncio.run(run())
    assert sizes == [1, 3]


def test_none_of_several_items_is_worked_on_for_whoever_gave_up() -> None:
    begun, release = threading.Event(), threading.Event()
    seen: list[int] = []

    def work(items: Sequence[int]) -> list[int]:
        begun.set()
        release.wait(30)
        seen.extend(items)
        return list(items)

    async def run() -> None:
        batcher: Batcher[int, int] = Batcher(work, name="numbers", most=9, waiting=9)
        first = asyncio.create_task(batcher.ask([1]))
        assert await asyncio.to_thread(begun.wait, 30)
        gone = asyncio.create_task(batcher.ask([2, 3, 4]))
        stays = asyncio.create_task(batcher.ask([5, 6]))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        release.set()
        assert await first == [1]
        assert await stays == [5, 6]
        await batcher.close()

    asyncio.run(run())
    assert seen == [1, 5, 6]


def test_an_error_in_a_batch_reaches_each_of_its_requests() -> None:
    def work(items: Sequence[int]) -> list[int]:
        raise ValueError(str(len(items)))

    async def run() -> list[object]:
        batcher: Batcher[int, int] = Batcher(work, name="numbers", most=9, waiting=9)
        asked = [batcher.ask([number]) for number in (1, 2)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        await batcher.close()
        return list(found)

    assert [type(one) for one in asyncio.run(run())] == [ValueError, ValueError]


def test_a_full_service_answers_429_and_works_on_afterwards(guarded: Site) -> None:
    batcher = guarded.service.engine.texts
    work, begun, release = batcher._work, threading.Event(), threading.Event()

    def wait(items: Sequence[object]) -> Sequence[object]:
        begun.set()
        release.wait(60)
        return work(items)  # type: ignore[arg-type]

    codes: list[int] = []

    def ask() -> None:
        with guarded.client("shop-secret") as client:
            codes.append(client.post("/v1/moderations", json=TEXT).status_code)

    batcher._work, quick = wait, batcher.is_quick  # type: ignore[assignment]
    batcher.is_quick = lambda _: False
    try:
        threads = [threading.Thread(target=ask) for _ in range(9)]
        threads[0].start()
        assert begun.wait(60)  # the first is a batch alone: requests of one moment share one
        for thread in threads[1:]:
            thread.start()
        while len(codes) < 4:  # one is worked on, four wait, four are refused
            time.sleep(0.02)
        release.set()
        for thread in threads:
            thread.join()
    finally:
        batcher._work, batcher.is_quick = work, quick
    assert sorted(codes) == [200] * 5 + [429] * 4


def test_a_request_has_a_deadline(site: Site) -> None:
    batcher = site.service.engine.texts
    work, release = batcher._work, threading.Event()

    def wait(items: Sequence[object]) -> Sequence[object]:
        release.wait(60)
        return work(items)  # type: ignore[arg-type]

    from dataclasses import replace

    service = site.service
    before = service.settings
    batcher._work, quick = wait, batcher.is_quick  # type: ignore[assignment]
    batcher.is_quick = lambda _: False
    service.settings = replace(before, bounds=replace(before.bounds, deadline=0.2))
    try:
        with site.client() as client:
            answer = client.post("/v1/moderations", json=TEXT)
        assert answer.status_code == 504
        assert answer.json()["error"]["code"] == "deadline_exceeded"
    finally:
        release.set()
        batcher._work, batcher.is_quick, service.settings = work, quick, before
    with site.client() as client:
        assert client.post("/v1/moderations", json=TEXT).status_code == 200


@pytest.mark.slow
def test_logs_and_metrics_hold_no_meme(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    import logging

    from memantics.web.logs import JsonLines

    with caplog.at_level(logging.INFO, "memantics.web"), site.client() as client:
        client.post("/v1/moderations", json={"input": "一个秘密的句子"})
        client.post("/v1/analyze", files={"image": ("secret-name.png", MEME.read_bytes())})
        metrics = client.get("/metrics").text
    lines = "\n".join(JsonLines().format(record) for record in caplog.records)
    assert '"path":"/v1/moderations"' in lines
    for text in (lines, metrics):
        assert "秘密" not in text
        assert "键忘" not in text
        assert "secret-name" not in text
    assert 'memantics_verdicts_total{band="allow",status="scored"}' in metrics
    assert 'route="/v1/moderations",status="200"' in metrics
