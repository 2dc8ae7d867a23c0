from __future__ import annotations

import asyncio
import random
import socket
from pathlib import Path

import pytest
from yarl import URL

from memantics.core.errors import (
    InputError,
    ModelError,
    Refused,
    Rejected,
    Transient,
    Unavailable,
    Unreachable,
)
from memantics.core.model import Model
from memantics.core.records import Image, Reply
from memantics.models.openai import OpenAIModel, OpenAISettings, _find_proxy
from tests.engine.toy import toy_request
from tests.faults import Fault, FaultServer, serve

KEY = "sk-very-secret-0123456789"


async def ask_once(server: FaultServer, *parts: Image, **settings: float) -> Reply:
    async with serve(server):
        model = OpenAIModel("toy", server.url, KEY, OpenAISettings(**settings))  # type: ignore[arg-type]
        try:
            return await model.answer(toy_request(0, *parts))
        finally:
            await model.close()


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("429", Transient, "HTTP 429: slow down"),
        ("500", Transient, "HTTP 500: something broke"),
        ("slow", Transient, "no answer within 0.3 s"),
        ("cut", Transient, "the connection broke"),
        ("cut body", Transient, "the connection broke"),
        ("half", Transient, "not JSON"),
        ("html", Transient, "text/html, not JSON"),
        ("html 502", Transient, "HTTP 502: a web page"),
        ("type", Transient, "text/event-stream, not JSON"),
        ("empty choices", Transient, "no choices"),
        ("error 200", Transient, "HTTP 503: upstream is busy"),
        ("filter 400", Refused, "the prompt was filtered"),
        ("401", Unavailable, "wrong key; check the key"),
        ("404", Unavailable, "no such model; check the model's name"),
        ("redirect", Unavailable, "redirects to https://other.example/v1"),
        ("400", Rejected, "too long"),
        ("413", Rejected, "too large"),
    ],
)
def test_each_fault_has_its_exception(fault: Fault, kind: type[ModelError], words: str) -> None:
    with pytest.raises(kind) as caught:
        asyncio.run(ask_once(FaultServer(always=fault), timeout=0.3))
    assert type(caught.value) is kind
    assert words in str(caught.value)


def test_an_answer_with_the_wrong_label_is_an_answer() -> None:
    assert asyncio.run(ask_once(FaultServer(always="mislabelled"))).text == "B"


def test_a_filtered_answer_is_a_refusal() -> None:
    assert asyncio.run(ask_once(FaultServer(always="filter finish"))).refusal


def test_retry_after_arrives() -> None:
    with pytest.raises(Transient) as caught:
        asyncio.run(ask_once(FaultServer(always="503")))
    assert caught.value.retry_after == 0.02
    assert caught.value.overloaded


def test_an_endless_answer_is_cut_off() -> None:
    with pytest.raises(Rejected, match="larger than 50 bytes"):
        asyncio.run(ask_once(FaultServer(), max_reply_bytes=50))


def test_a_large_image_goes_through(tmp_path: Path) -> None:
    path = tmp_path / "large.bmp"
    header = b"BM" + bytes(8) + (54).to_bytes(4, "little") + (40).to_bytes(4, "little")
    size = (1000).to_bytes(4, "little") * 2 + b"\x01\x00\x18\x00" + bytes(24)
    path.write_bytes(header + size + random.Random(1).randbytes(3_000_000))
    server = FaultServer()
    assert asyncio.run(ask_once(server, Image(path))).text == "B"
    content = server.bodies[0]["messages"][0]["content"]  # type: ignore[index]
    assert len(content[0]["image_url"]["url"]) > 4_000_000


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def scenario() -> None:
        model = OpenAIModel("toy", f"http://127.0.0.1:{port}/v1")
        try:
            await model.answer(toy_request())
        finally:
            await model.close()

    with pytest.raises(
        Unreachable, match=f"127.0.0.1:{port} cannot be reached: Connection refused"
    ):
        asyncio.run(scenario())


def test_tls_where_none_is_spoken_cannot_succeed() -> None:
    async def scenario() -> None:
        async with serve(FaultServer()) as server:
            model = OpenAIModel("toy", server.url.replace("http:", "https:"))
            try:
                await model.answer(toy_request())
            finally:
                await model.close()

    with pytest.raises(Unavailable, match="the TLS connection failed"):
        asyncio.run(scenario())


@pytest.mark.parametrize(
    ("url", "through"),
    [
        ("http://localhost:8000/v1", False),
        ("http://127.0.0.1:8000/v1", False),
        ("http://127.9.9.9:8000/v1", False),
        ("http://[::1]:8000/v1", False),
        ("http://10.0.0.1:8000/v1", True),
        ("http://model.example/v1", True),
        ("http://inside.example/v1", False),  # the environment says so
        ("https://model.example/v1", False),  # a proxy for http only
    ],
)
def test_only_calls_that_leave_the_machine_go_through_a_proxy(
    url: str, through: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "inside.example")
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    assert _find_proxy(URL(url)) == ("http://proxy.example:3128" if through else None)


def test_a_server_on_this_machine_is_asked_past_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # nobody listens there
    assert asyncio.run(ask_once(FaultServer())).text


def test_the_key_is_sent_and_never_shown() -> None:
    server = FaultServer(always="echo key")
    with pytest.raises(Rejected) as caught:
        asyncio.run(ask_once(server))
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    model = OpenAIModel("toy", "http://localhost:1/v1", KEY + "\n")
    shown = f"{caught.value!s} {caught.value!r} {model!r} {model.identity} {model.settings}"
    assert KEY not in shown
    assert "***" in str(caught.value)


def test_identity_holds_what_shapes_answers_only() -> None:
    one = OpenAIModel("toy", "http://h/v1", "a", OpenAISettings(timeout=1))
    two = OpenAIModel("toy", "http://h/v1", "b", OpenAISettings(connections=9))
    other = OpenAIModel("toy2", "http://h/v1")
    assert one.identity == two.identity != other.identity
    assert isinstance(one, Model)


@pytest.mark.parametrize(
    ("url", "key", "words"),
    [
        ("ftp://host/v1", "", "is not a valid URL"),
        ("localhost:8000", "", "is not a valid URL"),
        ("http://me:pw@host/v1", "", "contains a password"),
        ("http://host/v1", "a\nb", "contains invalid characters"),
        ("http://host:99999/v1", "", "is not a valid URL"),
    ],
)
def test_bad_addresses_and_keys_are_told_at_once(url: str, key: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        OpenAIModel("toy", url, key)
    assert "pw" not in str(caught.value)
