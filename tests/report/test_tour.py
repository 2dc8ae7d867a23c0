"""The start page that ``memantics demo`` makes, and the figures it takes from papers."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memantics.benchmarks.published import PublishedRow
from memantics.core import samples as sample
from memantics.core.errors import InputError
from memantics.core.lines import TextLine
from memantics.core.records import Score
from memantics.evaluation.reports.standings import (
    Trivial,
    compare,
    make_standings,
    measure,
    simulate_f1,
)
from memantics.understanding.knowledge.records import Knowledge
from memantics.workbench.demo import (
    NextStep,
    TourMeme,
    check_published,
    find_guides,
    put_first,
    rank_published,
    read_words,
)
from tests.commands import Shell
from tests.core_install import block_extras, find_extras
from tests.report.conftest import Opener

pytestmark = pytest.mark.slow

# How far the first axis number stands from its guide line, in pixels.
AXIS_GAP = """() => {
  const board = document.querySelector("#board .board");
  const [label, line] = [".axis text", ".guide"].map((name) => {
    const box = board.querySelector(name).getBoundingClientRect();
    return box.x + box.width / 2;
  });
  return Math.abs(label - line);
}"""


def published(system: str = "x", **given: object) -> PublishedRow:
    facts = {"task": "t", "system": system, "digits": 3, "source": "Table 1", "feasible": None}
    return PublishedRow.model_validate(facts | given)


def test_a_share_of_known_items_has_wilsons_interval() -> None:
    score = measure(published(metrics={"accuracy": 0.9}, sizes={"accuracy": 50}), "accuracy")
    assert (score.n, round(score.low or 0, 4), round(score.high or 0, 4)) == (50, 0.7864, 0.9565)


def test_a_metric_of_unknown_items_has_none() -> None:
    score = measure(published(metrics={"macro_f1": 0.7}), "macro_f1")
    assert (score.n, score.low, score.high) == (0, None, None)


def test_f1_is_simulated_from_both_recalls() -> None:
    row = published(metrics={"f1": 0.8, "tpr": 0.8, "tnr": 0.9}, classes=(200, 400))
    score = measure(row, "f1")
    # Independently: the delta method over both binomials.
    hits, alarms = 160.0, 40.0
    total = 200 + hits + alarms
    by_hits, by_alarms = 2 * (200 + alarms) / total**2, -2 * hits / total**2
    spread = 1.96 * np.sqrt(by_hits**2 * 200 * 0.8 * 0.2 + by_alarms**2 * 400 * 0.9 * 0.1)
    f1 = 2 * hits / total
    assert score.n == 600
    assert score.low == pytest.approx(f1 - spread, abs=0.006)
    assert score.high == pytest.approx(f1 + spread, abs=0.006)


def test_certain_recalls_leave_no_spread() -> None:
    assert simulate_f1(1.0, 0.0, (10, 20)) == (0.5, 0.5)
    assert simulate_f1(0.0, 1.0, (10, 20)) == (0.0, 0.0)


def test_a_system_at_the_baseline_is_not_above_it() -> None:
    rows = [
        published(name, metrics={"f1": value})
        for name, value in (("below", 0.499), ("at", 0.5), ("above", 0.501), ("silent", 0.9))
    ]
    rows[3] = published("silent", metrics={"other": 0.9})
    made = make_standings("Board", "f1", rows, Trivial("guessing", 0.5))
    assert [(row.system, row.place) for row in made.rows] == [
        ("above", "above"), ("at", "level"), ("below", "below")
    ]  # fmt: skip
    assert (made.count("above"), made.count("level"), made.count("below")) == (1, 1, 1)
    assert not made.by_interval
    assert make_standings("Empty", "f1", [], Trivial("guessing", 0.5)).rows == ()


@pytest.mark.parametrize(
    ("low", "high", "place"),
    [
        (0.501, 0.6, "above"),
        (0.5, 0.6, "level"),
        (0.499, 0.512, "level"),
        (0.4, 0.5, "level"),
        (0.4, 0.499, "below"),
    ],
)
def test_a_system_is_placed_by_its_interval(low: float, high: float, place: str) -> None:
    assert compare(Score("f1", 0.506, 600, low, high), 0.5) == place


def test_systems_of_one_name_are_told_apart_by_their_setting() -> None:
    rows = [
        published("twice", metrics={"f1": 0.5}, note="sees the text only; zero-shot"),
        published("twice", metrics={"f1": 0.6}, note="sees image and text; zero-shot"),
        published("once", metrics={"f1": 0.4}, note="sees the text only"),
    ]
    made = make_standings("Board", "f1", rows, Trivial("guessing", 0.5))
    settings = [row.setting for row in made.rows]
    assert settings == ["sees image and text", "sees the text only", ""]


def test_what_the_papers_tables_say() -> None:
    """Known from the papers: always answering pun has F1 .5; 2 M-QUEST rows are below ⅓."""
    boards = {board.title.partition(":")[0] + board.metric: board for board in rank_published()}
    assert boards["PunMemeCNf1"].trivial.value == pytest.approx(0.5)
    puns = boards["PunMemeCNf1"]
    assert [puns.count("above"), puns.count("level"), puns.count("below")] == [6, 4, 1]
    quest = boards["M-QUESTaccuracy"]
    assert [quest.count("above"), quest.count("level"), quest.count("below")] == [6, 0, 2]
    assert all(row.fault for row in quest.rows)
    assert {row.system for row in quest.rows if row.impossible} == {
        "BLIP2-Flan-T5-xl", "InstructBLIP-Vicuna-7B", "Qwen2.5-VL-7B-Instruct"
    }  # fmt: skip
    assert boards["ToxiCN MMmacro_f1"].trivial.value == pytest.approx(0.4052, abs=1e-4)
    found = {one.title: (one.checked, one.certain, one.more) for one in check_published()}
    assert found == {
        "M-QUEST": (8, 3, 5),
        "MemeIntent": (0, 0, 0),
        "ToxiCN MM": (31, 3, 0),
        "MER-Bench": (0, 0, 0),
        "PunMemeCN": (98, 0, 0),
    }


def test_every_fault_is_told_in_plain_words_of_the_language() -> None:
    reasons = [r for one in check_published() for fault in one.faults for r in fault.reasons]
    for reason in reasons:
        assert re.search("[\u4e00-\u9fff]", read_words("zh").fault(reason)), reason
        assert "whole k" not in read_words("en").fault(reason)
    assert read_words("en").fault("something new") == "something new"
    assert read_words("en").fault(reasons[0]).startswith("the total accuracy 0.1323 is not between")


@pytest.mark.parametrize(
    ("confidence", "told"),
    [(1.0, "over 99 %"), (0.9901, "over 99 %"), (0.99, "99 %"), (0.985, "98 %"), (0.0, "0 %")],
)
def test_nothing_is_a_hundred_per_cent_sure(confidence: float, told: str) -> None:
    assert read_words("en").sure(confidence) == told


def test_of_each_two_memes_the_readers_language_comes_first() -> None:
    def make(language: str, read: str = "") -> TourMeme:
        known = Knowledge("1", ())
        return TourMeme(Path("x.png"), language, "So it is", read, "", (), "", known)

    memes = [make("en"), make("zh"), make("zh"), make("zh"), make("en")]
    assert [one.language for one in put_first(memes, "en")] == ["en", "zh", "zh", "zh", "en"]
    assert [one.language for one in put_first(memes, "zh")] == ["zh", "en", "zh", "zh", "en"]
    assert put_first([], "en") == []
    misread = [make("en", text).misread for text in ("SO IT\nIS", "SOIT IS", "")]
    assert misread == [False, True, False]
    sign = TextLine("So it", (0, 0, 9, 9), role="scene")
    assert not replace(make("en", "is"), printed=(sign,)).misread
    assert replace(make("en", "is"), printed=(replace(sign, text="So"),)).misread


def test_a_guide_is_a_link_only_where_it_exists(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("a", encoding="utf-8")
    steps = [NextStep("", "", "", guide) for guide in ("a.md", "b.md")]
    assert find_guides(steps, tmp_path / "demo") == {"a.md": "../docs/a.md"}
    assert find_guides(steps, tmp_path) == {}


def test_the_tour_shows_every_part(tmp_path: Path, opener: Opener) -> None:
    done = Shell(tmp_path).apart.run(
        "demo", **block_extras(tmp_path / "core", find_extras("offline"))
    )
    assert done.code == 0, done.err
    assert "is a homophone pun on" in done.out
    assert len([line for line in done.out.splitlines() if line.startswith("•")]) == 5
    assert len(done.out.splitlines()) <= 24
    page = (tmp_path / "demo" / "index.html").read_text(encoding="utf-8")
    assert page.count('class="apart"') == 6
    assert "other text in the image, not a caption: I am not · a robot" in page
    assert page.count('class="pair"') == 4
    # Prompts or texts that change need a new recording: src/memantics/workbench/kinder.jsonl.
    assert "contains no answer" not in page
    assert page.count("recorded replies</span></figcaption><img") == 4
    assert not re.search(r"(?:src|href)=\"https?:", page)
    assert (tmp_path / "demo" / "report.html").is_file()
    chinese = (tmp_path / "demo" / "index.zh.html").read_text(encoding="utf-8")
    assert '<html lang="zh">' in chinese
    assert "视觉元素</text>" in chinese
    assert "visual element</text>" not in chinese
    assert "六张表情包的分析" in chinese
    assert "狮眠 and 失眠: Both are read shī mián" in page
    for english in (
        "Go on",
        "The meme ",
        "published systems",
        "is not between",
        "guessing",
        "Table ",
    ):
        assert english not in chinese
    for text in (page, chinese):
        names = re.findall(r'\sid="([^"]+)"', text)
        assert len(names) == len(set(names))
        assert set(re.findall(r'href="#([^"]+)"', text)) <= set(names)
    for width, name in ((1280, "index.html"), (768, "index.zh.html"), (360, "index.html")):
        with opener(width) as watched:
            watched.page.goto((tmp_path / "demo" / name).as_uri())
            wide = watched.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width
            picture = watched.page.locator(".apart img").first
            assert picture.evaluate("image => image.naturalWidth") > 0
            assert watched.page.locator("#board .strip").count() == 44
            assert watched.page.evaluate(AXIS_GAP) < 1
        watched.assert_quiet()
    with opener(1280) as watched:
        watched.page.goto((tmp_path / "demo" / "report.html").as_uri())
        heads = watched.page.locator(".figures thead th.number bdi:visible")
        lines = heads.evaluate_all("all => all.map((one) => one.getClientRects().length)")
        assert set(lines) == {1}


def test_the_pack_is_copied_and_nothing_is_overwritten(tmp_path: Path) -> None:
    folder = sample.copy(tmp_path / "mine")
    with (folder / "memes.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(sample.read_samples())
    assert all((folder / row["image"]).is_file() for row in rows)
    (folder / "memes.csv").write_text("mine", encoding="utf-8")
    sample.copy(folder)
    assert (folder / "memes.csv").read_text(encoding="utf-8") == "mine"
    with pytest.raises(InputError, match="is a file"):
        sample.copy(folder / "memes.csv")


def test_on_a_plain_install_a_meme_is_analysed_without_its_sound(tmp_path: Path) -> None:
    assert {"torch", "pocketsphinx", "fastapi"} <= find_extras("offline")
    assert not {"numpy", "onnxruntime", "jieba", "typer"} & find_extras("offline")
    assert {"onnxruntime", "jieba"} <= find_extras()
    shell = Shell(tmp_path).apart
    without = block_extras(tmp_path / "core", find_extras("offline"))
    done = shell.run("analyze", sample.image_path("en-016"), "--json", **without)
    assert done.code == 0, done.err
    (card,) = json.loads(done.out)
    reasons = {gap["part"]: gap["reason"] for gap in card["missing"]}
    assert any("memantics[phonetics]" in reason for reason in reasons.values()), reasons
