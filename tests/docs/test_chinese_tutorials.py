"""The Chinese tutorials: the same steps as the English ones, and the moderation loop in Chinese."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from memantics.moderation.detect import Detector
from tests.annotation.web.visitors import make_office, open_quick
from tests.commands import Shell
from tests.docs import test_moderation_loop as english
from tests.places import ROOT

ENGLISH, CHINESE = ROOT / "docs" / "tutorials", ROOT / "docs" / "zh"
NAMES = sorted(page.name for page in ENGLISH.glob("*.md"))
VEGETABLES = ("萝卜", "豆芽", "茄子", "大葱", "黄瓜", "菠菜")


def answer(page: str, person: int) -> dict[str, str]:
    """Answer as a careful reviewer; the last reviewer is not sure about one vegetable."""
    harmful = "yes" if any(word in page for word in VEGETABLES) else "no"
    if english.FRENCH in page or (person == 2 and "菠菜" in page):
        harmful = "unsure"
    return {"version": "0", "k-harmful": "choice", "f-harmful": harmful}


def list_commands(page: Path) -> list[list[str]]:
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:console|sh)\n(.*?)```", text, flags=re.DOTALL)
    lines = (line for block in blocks for line in block.splitlines())
    return [shlex.split(line.removeprefix("$ ")) for line in lines]


def name_commands(page: Path) -> list[str]:
    """Name each command and its options; the values differ by language."""
    return [
        " ".join([*words[:2], *(word for word in words if word.startswith("--"))])
        for words in list_commands(page)
        if words[0] == "memantics"
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_has_the_same_steps_in_both_languages(name: str) -> None:
    steps = [name_commands(folder / name) for folder in (ENGLISH, CHINESE)]
    assert [step.removesuffix(" --language") for step in steps[1]] == steps[0]
    headings = [
        re.findall(r"^## (\d+)\.", (folder / name).read_text(encoding="utf-8"), re.MULTILINE)
        for folder in (ENGLISH, CHINESE)
    ]
    assert headings[0] == headings[1] != []


@pytest.mark.slow
def test_the_moderation_loop_runs_on_chinese_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(english, "answer", answer)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shell = Shell(tmp_path)
    for words in list_commands(CHINESE / "moderate-a-forum.md"):
        step = " ".join(words[1:3])
        if step == "annotate open":
            place = Path(shell.environment["MEMANTICS_HOME"]) / "annotate"
            place.mkdir(parents=True)
            service = open_quick(str(place / "annotate.db"), place / "media")
            counts = english.review(service, make_office(service), tmp_path / words[3])
            service.close()
            assert len(set(counts)) == 1
            assert counts[0] > 10
        elif words[1] == "drift":
            assert shell.run(*words[1:]).code == 1, "the detector has changed"
        elif words[1] != "serve":
            shell.done(*words[1:])
    detector = Detector.load(tmp_path / "detector.zip")
    texts = ["全班同学都看见了那个老黄瓜，在桌子底下", "全班同学都看见了那个老芒果，在桌子底下"]
    assert [prediction.label for prediction in detector.predict(texts)] == [1, 0]
