"""Pages and messages are spelled right and say plainly what they mean."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

PLACES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "src/memantics", "perf")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Turns of phrase that readers stumbled over, and what to write instead.
RIDDLES = {
    r"say less before you say all": "begin with a few items",
    r"gives? keys? away": "shortcuts to the key",
    r"decided otherwise than the paper": "where our defaults differ from the paper",
    r"chances are off by": "calibration error",
    r"take out / put in": "export / import",
}


def test_words_are_spelled_right() -> None:
    command = [sys.executable, "-m", "codespell_lib", *PLACES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("riddle", RIDDLES)
def test_no_riddles(riddle: str) -> None:
    pattern = re.compile(riddle, re.IGNORECASE)
    texts = [*PAGES, *_templates(), *sorted((ROOT / "src").rglob("*.py"))]
    found = [str(path) for path in texts if pattern.search(path.read_text(encoding="utf-8"))]
    assert found == [], f"write: {RIDDLES[riddle]}"


def _templates() -> list[Path]:
    return sorted((ROOT / "src").rglob("*.html"))
