"""The Python examples of the guides about single memes run as they are printed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from memantics.core.samples import IMAGES
from tests.places import ROOT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("guide", "written"),
    [
        ("analyze-a-meme", "page.html"),
        ("make-a-meme-kinder", "kinder.png"),
        ("explore-knowledge", "en-012.html"),
    ],
)
def test_the_python_example_runs(
    guide: str, written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "how-to" / f"{guide}.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (tmp_path / "memes").mkdir()
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name in ("en-005.png", "en-012.png"):
        shutil.copy(IMAGES / name, tmp_path / "memes")
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert (tmp_path / written).stat().st_size > 1000
