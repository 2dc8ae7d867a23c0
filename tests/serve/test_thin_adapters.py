"""Each endpoint of an integration calls one function of Memantics, once."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import anyio
import pytest

from memantics.core.samples import DETECTOR_FILE
from memantics.serve.settings import Intake, ServedModels, ServeSettings
from tests.serve.site import MEME, Site, data_url, serving

SIGNAL = {"signal_type": "pdq", "signal": "0" * 64}
PHOTO = {"photo": ("a.png", MEME.read_bytes())}
COMMENT = {"comment": {"text": "hello"}, "requestedAttributes": {"TOXICITY": {}, "INSULT": {}}}
# Method, path, body, module and the functions that it calls, each once.
CALLS: tuple[tuple[str, str, dict[str, Any], str, tuple[str, ...]], ...] = (
    ("POST", "/v1alpha1/comments:analyze", {"json": COMMENT}, "perspective", ("score_attributes",)),
    ("POST", "/h/hash", {"files": PHOTO}, "hash_matching", ("hash_meme",)),
    ("GET", "/m/lookup", {"params": SIGNAL}, "hash_matching", ("look_up_signals",)),
    ("GET", "/m/raw_lookup", {"params": SIGNAL}, "hash_matching", ("look_up_signals",)),
    # Hashing and matching in one request, as the interface defines it.
    ("POST", "/m/lookup", {"files": PHOTO}, "hash_matching", ("hash_meme", "look_up_signals")),
    ("POST", "/c/bank/HARMFUL/content", {"files": PHOTO}, "hash_matching", ("add_to_match_list",)),
    (
        "POST",
        "/c/bank/HARMFUL/signal",
        {"json": {"pdq": "0" * 64}},
        "hash_matching",
        ("add_signals",),
    ),
    ("GET", "/c/banks", {}, "hash_matching", ()),
    ("GET", "/c/bank/HARMFUL", {}, "hash_matching", ()),
    ("GET", "/c/signal_type", {}, "hash_matching", ()),
    # Ids of the interface are numbers: the list is read to find the entry with this number.
    ("DELETE", "/c/bank/HARMFUL/content/1", {}, "hash_matching", ("read_match_list",)),
)
VERBS = {
    "perspective": ("score_attributes",),
    "hash_matching": (
        "hash_meme",
        "look_up_signals",
        "add_signals",
        "add_to_match_list",
        "remove_from_match_list",
        "read_match_list",
    ),
}


@pytest.fixture(scope="module")
def open_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("thin")
    detector = Path(shutil.copy(DETECTOR_FILE, folder / "detector.zip"))
    models = ServedModels(detector=detector, attributes=("TOXICITY=sample", "INSULT=sample"))
    bounds = Intake(deadline=120, bank_writes=True)
    with serving(ServeSettings(models=models, bounds=bounds, state=folder / "s"), folder) as made:
        yield made


@pytest.mark.parametrize("case", CALLS, ids=lambda case: f"{case[0]} {case[1]}")
def test_an_endpoint_calls_one_function(open_site: Site, case: Any) -> None:
    method, path, body, name, expected = case
    module = importlib.import_module(f"memantics.serve.{name}")
    spies = {verb: mock.Mock(wraps=getattr(module, verb)) for verb in VERBS[name]}
    with mock.patch.multiple(module, **spies), open_site.client() as client:
        answer = client.request(method, path, **body)
    assert answer.status_code == 200, answer.text
    called = {verb: spy.call_count for verb, spy in spies.items() if spy.call_count}
    assert called == dict.fromkeys(expected, 1)


def test_removing_from_a_bank_calls_one_function_for_it(open_site: Site) -> None:
    module = importlib.import_module("memantics.serve.hash_matching")
    with open_site.client() as client:
        added = client.post("/c/bank/HARMLESS/signal", json={"pdq": "1" * 64}).json()
        spies = {verb: mock.Mock(wraps=getattr(module, verb)) for verb in VERBS["hash_matching"]}
        with mock.patch.multiple(module, **spies):
            gone = client.delete(f"/c/bank/HARMLESS/content/{added['id']}")
    assert gone.json() == {"deleted": 1}
    called = {verb: spy.call_count for verb, spy in spies.items() if spy.call_count}
    assert called == {"read_match_list": 1, "remove_from_match_list": 1}


# Tool, arguments, and the function that it calls, once.
TOOLS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("analyze_meme", {"image": data_url(MEME.read_bytes())}, "look_at"),
    ("read_pun", {"caption": "压力山大"}, "read_homophones"),
    ("moderate", {"texts": ["hello", "你好"]}, "judge"),
    ("query_knowledge", {"sparql": "SELECT * { ?a ?b ?c } LIMIT 1"}, "query"),
    ("list_runs", {}, "list"),
    ("compare_runs", {"first": "one", "second": "two"}, "compare"),
)


@pytest.mark.parametrize(("tool", "given", "expected"), TOOLS, ids=lambda one: str(one)[:20])
def test_a_tool_of_agents_calls_one_function(
    open_site: Site, tool: str, given: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    from mcp import Client

    from memantics.evaluation import RunFolder
    from memantics.serve import agents

    service = open_site.service
    places: dict[str, Any] = {
        "look_at": agents,
        "read_homophones": agents,
        "compare": agents,
        "judge": type(service.engine.moderator),
        "query": type(service.engine.store),
        "list": RunFolder,
    }

    async def talk() -> None:
        async with Client(agents.build_agent_server(service, None, tmp_path)) as client:
            said = await client.call_tool(tool, given)
        # There are no such runs: the error is that of the function.
        assert said.is_error == (tool == "compare_runs"), said.content

    with ExitStack() as stack:
        found = mock.patch.object(RunFolder, "path", lambda _, name: tmp_path / name)
        stack.enter_context(found)
        spies = {}
        for name, place in places.items():
            real = getattr(place, name)
            spies[name] = stack.enter_context(
                mock.patch.object(place, name, autospec=True, side_effect=real)
            )
        anyio.run(talk)
    called = {name: spy.call_count for name, spy in spies.items() if spy.call_count}
    assert called == {expected: 1}
