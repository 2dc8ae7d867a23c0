"""``memantics.plugins`` is all that a plug-in imports, and importing it is cheap."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memantics import plugins
from memantics.core.lazy import read_offers
from tests.places import ROOT

SOURCE = Path(plugins.__file__ or "")
FILES = sorted(
    [*(ROOT / "examples/plugin").glob("*.py"), *(ROOT / "examples/meanings").glob("*.py")]
)
PAGES = ("how-to/add-metrics-and-plugins.md", "how-to/add-a-benchmark.md")
WANTED = {
    *("BenchmarkPlugin", "Choice", "Message", "Metric", "Model", "ModelKind", "ModelSettings"),
    *("Outcome", "PredictedAnswer", "Reply", "ReportForm", "Request", "Run", "Score", "Task"),
    *("TaskSetup", "Text", "choice_benchmark"),
    *("DataError", "InputError", "ModelError", "Transient", "Unavailable"),
}


def find_imports(source: str) -> Iterator[str]:
    """Modules of Memantics that a text of Python imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        else:
            continue
        yield from (name for name in names if name.partition(".")[0] == "memantics")


def test_both_examples_are_looked_at() -> None:
    assert [path.name for path in FILES] == ["plugin.py", "memantics_says.py"]
    assert list(find_imports("import memantics.core.task\nfrom memantics import plugins")) == [
        "memantics.core.task",
        "memantics",
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_an_example_imports_nothing_but_the_public_module(path: Path) -> None:
    assert set(find_imports(path.read_text(encoding="utf-8"))) == {"memantics.plugins"}


@pytest.mark.parametrize("page", PAGES)
def test_a_guide_shows_no_other_module_to_plug_ins(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    found = {name for block in blocks for name in find_imports(block)}
    assert "memantics.plugins" in found
    assert found <= {"memantics", "memantics.plugins"}


def test_every_name_is_the_one_of_its_module() -> None:
    offers = read_offers(SOURCE.read_text(encoding="utf-8"))
    assert set(offers) == set(dir(plugins))
    assert set(offers) >= WANTED
    for name, (home, attribute) in offers.items():
        assert name == attribute
        assert getattr(plugins, name) is getattr(importlib.import_module(home), attribute)
    with pytest.raises(AttributeError, match="open_model"):
        plugins.open_model  # type: ignore[attr-defined]  # noqa: B018


def test_importing_it_loads_nothing_heavy() -> None:
    code = "import sys, memantics.plugins; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "memantics.plugins" in loaded
    for heavy in ("numpy", "pydantic", "aiohttp", "memantics.benchmarks", "memantics.evaluation"):
        assert heavy not in loaded
