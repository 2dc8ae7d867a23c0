"""The Chinese tutorials: the same steps as the English ones, and the moderation loop in Chinese."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from memantics.moderation.detect import Detector
from tests.commands import Shell
from tests.docs import test_moderation_loop as english
from tests.places import ROOT

ENGLISH, CHINESE = ROOT / "docs" / "tutorials", ROOT / "docs" / "zh"
NAMES = sorted(page.name for page in ENGLISH.glob("*.md"))
VEGETABLES = ("萝卜", "豆芽", "茄子", "大葱", "黄瓜", "菠菜")


def answer(page: str, person: int) -> dict[str, str]:
    """Answer as a careful reviewer; reviewers differ on one vegetable, and the lead decides."""
    harmful = "yes" if any(word in page for word in VEGETABLES) else "no"
    if person != english.LEAD and "菠菜" in page:
        harmful = ("yes", "no" if "那个菠菜" in page else "yes", "unsure")[person]
    if english.FRENCH in page:
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
    told = english.walk(list_commands(CHINESE / "moderate-a-forum.md"), shell, tmp_path, 3)
    assert "columns read: id = post_id, text = caption" in " ".join(told["detector train"].split())
    detector = Detector.load(tmp_path / "detector.zip")
    texts = ["全班同学都看见了那个老黄瓜，在桌子底下", "全班同学都看见了那个老芒果，在桌子底下"]
    assert [prediction.label for prediction in detector.predict(texts)] == [1, 0]
