"""The Python examples of both READMEs and of the Python guide pass ``mypy --strict``."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

pytestmark = pytest.mark.slow

PAGES = ("README.md", "README.zh.md", "docs/how-to/use-from-python.md")
# What strict types must refuse: else the examples would pass whatever they say.
WRONG = """\
import memantics as mm

mm.evaluate("mquest/qa", ["baseline/longest"])
mm.evaluate("mquest/qa", "baseline/longest", limit=10)
mm.analyze("meme.png").analyses
mm.analyze(["meme.png"]).harm
mm.detect_pun("年年有鱼", vlm="openai/NAME")
mm.EvaluationSettings(score="guess")
"""


def read_blocks(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE))


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What mypy says about each file of examples."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    folder = tmp_path_factory.mktemp("examples")
    files = {page: folder / f"{re.sub(r'[^a-z]', '_', page.lower())}.py" for page in PAGES}
    for page, file in files.items():
        file.write_text(read_blocks(ROOT / page), encoding="utf-8")
    files["wrong"] = folder / "wrong.py"
    files["wrong"].write_text(WRONG, encoding="utf-8")
    words = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty"]
    done = subprocess.run(
        [*words, *map(str, files.values())],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    said = done.stdout.splitlines()
    found = {
        page: [line for line in said if f"{file.name}:" in line] for page, file in files.items()
    }
    return found | {"all": said}


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_are_typed(page: str, complaints: dict[str, list[str]]) -> None:
    assert "import memantics as mm" in read_blocks(ROOT / page)
    assert complaints[page] == []


def test_wrong_calls_are_refused_line_by_line(complaints: dict[str, list[str]]) -> None:
    errors = [line for line in complaints["wrong"] if " error: " in line]
    assert {line.split(":")[1] for line in errors} == {"3", "4", "5", "6", "7", "8"}
    assert [line for line in complaints["all"] if " error: " in line] == errors
