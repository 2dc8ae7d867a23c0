"""The Python example of the page on detectors runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memantics.moderation.detect import Detector
from tests.places import ROOT

PAGE = (ROOT / "docs" / "how-to" / "detect-harmful-memes.md").read_text(encoding="utf-8")


def test_the_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [code] = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, "docs", "exec"), names)  # our own page
    found = names["detector"]
    assert isinstance(found, Detector)
    assert found.sample
    assert Path("mine.card.md").is_file()
