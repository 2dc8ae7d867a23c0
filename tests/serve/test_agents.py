"""``memantics mcp`` with the client of the official SDK: over stdio, over HTTP and in memory."""

from __future__ import annotations

import base64
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
import uvicorn

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from memantics.core.samples import IMAGES
from memantics.moderation import Detector
from memantics.serve.agents import build_agent_app, build_agent_server
from memantics.serve.app import open_service
from memantics.serve.context import Service
from memantics.serve.settings import Intake, ServedModels, ServeSettings, Token, digest
from memantics.web.server import configure, listen
from tests.commands import Shell
from tests.serve.site import MEME, data_url

TOOLS = {
    "analyze_meme",
    "read_pun",
    "moderate",
    "query_knowledge",
    "list_runs",
    "compare_runs",
}
TEXTS = ["今天天气真好", "hello idiots", "привет", ""]


def run(talk: Callable[[], Coroutine[Any, Any, None]]) -> None:
    anyio.run(talk)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("agents")
    shell = Shell(folder)
    for model in ("baseline/longest", "baseline/random"):
        shell.done("run", "mquest/qa", "--model", model, "--limit", "8", "--out", folder / "runs")
    return folder / "runs"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, runs: Path) -> Service:
    settings = ServeSettings(
        models=ServedModels(runs=runs, images=IMAGES),
        bounds=Intake(deadline=120, inputs=8),
        state=tmp_path_factory.mktemp("state"),
    )
    return open_service(settings)


def test_tools_have_types_and_only_read(service: Service) -> None:
    async def talk() -> None:
        async with Client(build_agent_server(service, IMAGES)) as client:
            tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == TOOLS
        for tool in tools:
            assert tool.description
            assert tool.output_schema is not None, tool.name
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint is True
            assert tool.annotations.destructive_hint is False

    run(talk)


def test_verdicts_are_those_of_the_detector(service: Service) -> None:
    expected = Detector.load_sample().verdicts(TEXTS[:2])

    async def talk() -> None:
        async with Client(build_agent_server(service, IMAGES)) as client:
            said = await client.call_tool("moderate", {"texts": TEXTS, "images": [MEME.name]})
            sent = data_url(MEME.read_bytes())
            same = await client.call_tool("moderate", {"images": [sent]})
        found = said.structured_content
        assert found is not None
        verdicts = found["verdicts"]
        assert [one["probability"] for one in verdicts[:2]] == [one.probability for one in expected]
        assert [one["status"] for one in verdicts] == ["scored"] * 2 + ["not_scored"] * 2 + [
            "scored"
        ]
        assert found["needs_review"] == sum(bool(one["review"]) for one in verdicts) >= 2
        assert same.structured_content is not None
        assert same.structured_content["verdicts"] == verdicts[4:]

    run(talk)


@pytest.mark.slow
def test_puns_knowledge_and_runs(service: Service, runs: Path) -> None:
    async def talk() -> None:
        async with Client(build_agent_server(service, IMAGES, runs)) as client:

            async def call(name: str, **given: object) -> Any:
                said = await client.call_tool(name, given)
                assert not said.is_error, said.content
                return said.structured_content

            assert (await call("read_pun", caption="压力山大"))["readings"]
            query = "SELECT ?s WHERE { ?s a mm:Scene }"
            assert len((await call("query_knowledge", sparql=query, limit=2))["rows"]) == 2
            listed = (await call("list_runs"))["runs"]
            assert len(listed) == 2
            names = [row["name"] for row in listed]
            compared = await call("compare_runs", first=names[0], second=names[1])
            assert compared["shared"] > 0
            (accuracy,) = [d for d in compared["differences"] if d["metric"] == "accuracy"]
            assert -1 <= accuracy["difference"] <= 1

    run(talk)


@pytest.mark.slow
def test_an_analysis_is_that_of_the_service(service: Service) -> None:
    async def talk() -> None:
        async with Client(build_agent_server(service, IMAGES)) as client:
            said = await client.call_tool("analyze_meme", {"image": MEME.name})
        assert said.structured_content is not None
        assert said.structured_content["text"] == "最近有点键忘"

    run(talk)


WRONG: tuple[tuple[str, dict[str, object]], ...] = (
    ("moderate", {}),
    ("moderate", {"texts": ["a"] * 9}),
    ("moderate", {"texts": ["a" * 20_001]}),
    ("moderate", {"images": ["../../../etc/passwd.png"]}),
    ("moderate", {"images": ["http://127.0.0.1/a.png"]}),
    ("moderate", {"images": ["none.png"]}),
    ("analyze_meme", {"image": "not base64"}),
    ("analyze_meme", {"image": "/etc/hostname"}),
    ("read_pun", {"caption": "a" * 2001}),
    ("query_knowledge", {"sparql": "INSERT DATA { <a:a> <a:b> <a:c> }"}),
    ("query_knowledge", {"sparql": "SELECT * { SERVICE <http://127.0.0.1/> {} }"}),
    ("list_runs", {}),
    ("compare_runs", {"first": "../..", "second": "/"}),
    ("unknown", {}),
)


@pytest.mark.parametrize(("name", "given"), WRONG, ids=range(len(WRONG)))
def test_wrong_calls_are_errors_for_the_agent(
    service: Service, name: str, given: dict[str, object]
) -> None:
    async def talk() -> None:
        async with Client(build_agent_server(service, IMAGES)) as client:
            said = await client.call_tool(name, given)
            assert said.is_error
            assert "Traceback" not in str(said.content)

    run(talk)


def test_images_are_resources_of_one_folder(service: Service, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(MEME.read_bytes())
    (tmp_path / "text.txt").write_text("secret")
    (tmp_path / "link.png").symlink_to("/etc/hostname")
    (tmp_path / "fake.png").write_text("not an image")

    async def talk() -> None:
        async with Client(build_agent_server(service, tmp_path)) as client:
            (found,) = (await client.read_resource("memantics://images/a.png")).contents
            assert base64.b64decode(found.blob) == MEME.read_bytes()  # type: ignore[union-attr]
            for name in ("text.txt", "link.png", "fake.png", "none.png", "..%2Fa.png", ".."):
                with pytest.raises(Exception, match=r".") as caught:
                    await client.read_resource(f"memantics://images/{name}")
                assert "secret" not in str(caught.value)

    run(talk)


@pytest.mark.slow
def test_an_agent_talks_over_stdio() -> None:
    words = ["-m", "memantics", "mcp", "--images", str(IMAGES)]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))

    async def talk() -> None:
        async with Client(stdio_client(server)) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
            said = await client.call_tool("moderate", {"texts": ["hello"]})
            assert said.structured_content is not None
            assert said.structured_content["verdicts"][0]["status"] == "scored"

    run(talk)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    tokens = (
        Token("agent", digest("agent-secret"), ("agents",)),
        Token("mod", digest("mod-secret"), ("moderate",)),
        Token("slow", digest("slow-secret"), ("agents",), rate=6),
    )
    with listen("127.0.0.1", 0) as taken:
        app, _ = build_agent_app(ServeSettings(tokens=tokens, state=tmp_path / "state"))
        server = uvicorn.Server(configure(app))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.02)
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"
        server.should_exit = True
        thread.join(60)


@pytest.mark.slow
def test_an_agent_talks_over_http_with_a_token(address: str) -> None:
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async def talk() -> None:
        headers = {"authorization": "Bearer agent-secret"}
        async with (
            create_mcp_http_client(headers=headers) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            said = await client.call_tool("read_pun", {"caption": "压力山大"})
            assert not said.is_error

    run(talk)
    ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"accept": "application/json, text/event-stream"}
    with httpx.Client(headers=accept) as client:
        for token, status in (("", 401), ("wrong", 401), ("mod-secret", 403)):
            headers = {"authorization": f"Bearer {token}"} if token else {}
            assert client.post(address, json=ask, headers=headers).status_code == status
        known = {"authorization": "Bearer agent-secret"}
        foreign = known | {"sec-fetch-site": "cross-site"}
        assert client.post(address, json=ask, headers=foreign).status_code == 403
        rebound = client.post(address, json=ask, headers=known | {"host": "evil.example"})
        assert rebound.status_code == 421
        large = client.post(address, content=b"0" * 34_000_000, headers=known)
        assert large.status_code == 413
        for body in (b"{" * 50_000, b"[]", b'{"jsonrpc": 2}'):
            assert 400 <= client.post(address, content=body, headers=known).status_code < 500
        slow = {"authorization": "Bearer slow-secret"}
        statuses = [client.post(address, json=ask, headers=slow).status_code for _ in range(4)]
        assert statuses[-1] == 429
