"""The guide to classifiers from elsewhere, with a tiny one in place of a downloaded one."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from memantics.moderation.detect import Detector
from memantics.moderation.screening import read_rows
from memantics.moderation.wrapped import read_map
from tests.commands import Shell
from tests.moderation.classifiers import MAPS, make_classifier
from tests.places import ROOT

pytestmark = pytest.mark.slow
PAGE = (ROOT / "docs" / "how-to" / "wrap-a-classifier.md").read_text(encoding="utf-8")
ROWS = ("you are bad", "ugly, go away", "bad cat", "good day", "a nice meme", "good cat")


def test_the_guide_runs(tmp_path: Path) -> None:
    make_classifier("text", tmp_path / "classifier")
    first, second = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    (tmp_path / "labels.toml").write_text(first, encoding="utf-8")
    (tmp_path / "prompts.toml").write_text(second, encoding="utf-8")
    (tmp_path / "clip.toml").write_text(MAPS["image-text"], encoding="utf-8")
    assert read_map(tmp_path / "prompts.toml") == read_map(tmp_path / "clip.toml")
    lines = [f'"{text} {n}",{int(place < 3)}' for n in range(6) for place, text in enumerate(ROWS)]
    (tmp_path / "rows.csv").write_text("\n".join(["text,label", *lines]), encoding="utf-8")
    shell = Shell(tmp_path)
    for block in re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL):
        for line in block.splitlines():
            said = shell.done(*shlex.split(line)[1:])
            assert said, line
    detector = Detector.load(tmp_path / "wrapped.json")
    assert detector.point.rule == "recall=0.8"
    assert detector.point.review_range == (0.3, 0.6)
    assert (tmp_path / "wrapped.json.card.md").is_file()
    assert len(list(read_rows(tmp_path / "screened"))) == 36
    assert "when that part is hidden" in (tmp_path / "why.html").read_text(encoding="utf-8")
