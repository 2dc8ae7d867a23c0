"""The examples for moderation stacks, against the service."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest

from memantics.moderation import Detector
from tests.places import ROOT
from tests.serve.clients import find_package, run_node
from tests.serve.site import MEME, Site, data_url

COOP, OSPREY = ROOT / "examples" / "coop", ROOT / "examples" / "osprey"
Arguments = TypeVar("Arguments")
Result = TypeVar("Result")


class Base(Generic[Arguments, Result]):
    """What a function of Osprey extends."""


RUN = """
import plugin from "./dist/index.js";
const [url, item] = [process.argv[2], JSON.parse(process.argv[3])];
const getCredential = async (org) => (org === "org-1" ? { url: `${url}/` } : null);
const [{ signal }] = plugin.createSignals({ integrationId: plugin.manifest.id, getCredential });
const result = await signal.run(item).catch((error) => ({ error: error.message }));
const states = [await signal.getDisabledInfo("org-1"), await signal.getDisabledInfo("other")];
console.log(JSON.stringify([result, states, signal.id.type, plugin.manifest.signalTypeIds]));
"""


def score(text: str) -> float | None:
    return Detector.load_sample().verdicts([text])[0].probability


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin, type-checked and compiled by the TypeScript compiler."""
    modules = find_package("typescript").parent
    folder = Path(shutil.copytree(COOP, tmp_path_factory.mktemp("coop") / "coop"))
    (folder / "node_modules").symlink_to(modules)
    compiler = modules / "typescript" / "bin" / "tsc"
    done = subprocess.run(
        ["node", str(compiler)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    (folder / "run.mjs").write_text(RUN, encoding="utf-8")
    return folder


def ask(plugin: Path, site: Site, item: object) -> Any:
    return json.loads(run_node(plugin / "run.mjs", site.address, json.dumps(item), cwd=plugin))


@pytest.mark.slow
def test_the_signal_of_coop_is_the_verdict(plugin: Path, site: Site) -> None:
    item = json.loads((COOP / "item.json").read_text("utf-8"))
    result, states, name, known = ask(plugin, site, item)
    assert result == {
        "outputType": {"scalarType": "NUMBER"},
        "score": score(item["value"]["value"]),
    }
    assert [state["disabled"] for state in states] == [False, True]
    assert known == [name]
    image = {
        "orgId": "org-1",
        "value": {"type": "IMAGE", "value": {"url": data_url(MEME.read_bytes())}},
    }
    assert 0 < ask(plugin, site, image)[0]["score"] < 1
    unscored = {"orgId": "org-1", "value": {"type": "STRING", "value": "привет"}}
    assert ask(plugin, site, unscored)[0]["error"].startswith("not scored: ")


def load_function(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, with the names that it imports from Osprey, which is not on the registry."""
    names: dict[str, dict[str, Any]] = {
        "osprey.engine.executor.execution_context": {"ExecutionContext": object},
        "osprey.engine.udf.arguments": {"ArgumentsBase": object},
        "osprey.engine.udf.base": {"UDFBase": Base},
    }
    for name, held in names.items():
        made = types.ModuleType(name)
        vars(made).update(held)
        monkeypatch.setitem(sys.modules, name, made)
    spec = importlib.util.spec_from_file_location("memantics_harm", OSPREY / "memantics_harm.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_function_of_osprey_is_the_verdict(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load_function(monkeypatch)
    monkeypatch.setenv("MEMANTICS_URL", site.address)
    function = module.MemanticsHarm()

    def run(text: str) -> float:
        return float(function.execute(object(), types.SimpleNamespace(text=text)))

    for text in ("今天天气真好", "hello idiots"):
        assert run(text) == score(text)
    with pytest.raises(ValueError, match="not scored"):
        run("привет")
