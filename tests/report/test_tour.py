"""The start page that ``memantics demo`` makes, and the figures it takes from papers."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from memantics import starter
from memantics.actions.demo import check_published, rank_published
from memantics.core.errors import InputError
from memantics.core.published import PublishedRow
from memantics.report.standings import Trivial, make_standings, measure, simulate_f1
from tests.commands import Shell
from tests.core_install import block_extras, find_extras
from tests.report.conftest import Opener


def published(system: str = "x", **given: object) -> PublishedRow:
    facts = {"task": "t", "system": system, "digits": 3, "source": "Table 1", "feasible": None}
    return PublishedRow.model_validate(facts | given)


def test_a_share_of_known_items_has_wilsons_interval() -> None:
    score = measure(published(figures={"accuracy": 0.9}, sizes={"accuracy": 50}), "accuracy")
    assert (score.n, round(score.low or 0, 4), round(score.high or 0, 4)) == (50, 0.7864, 0.9565)


def test_a_figure_of_unknown_items_has_none() -> None:
    score = measure(published(figures={"macro_f1": 0.7}), "macro_f1")
    assert (score.n, score.low, score.high) == (0, None, None)


def test_f1_is_simulated_from_both_recalls() -> None:
    row = published(figures={"f1": 0.8, "tpr": 0.8, "tnr": 0.9}, classes=(200, 400))
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
        published(name, figures={"f1": value})
        for name, value in (("below", 0.499), ("at", 0.5), ("above", 0.501), ("silent", 0.9))
    ]
    rows[3] = published("silent", figures={"other": 0.9})
    made = make_standings("Board", "f1", rows, Trivial("guessing", 0.5))
    assert [(row.system, row.above) for row in made.rows] == [
        ("above", True), ("at", False), ("below", False)
    ]  # fmt: skip
    assert made.not_above == 2
    assert make_standings("Empty", "f1", [], Trivial("guessing", 0.5)).rows == ()


def test_what_the_papers_tables_say() -> None:
    """Known from the papers: always answering pun has F1 .5; 2 M-QUEST rows are below ¼."""
    boards = {board.title.partition(":")[0] + board.metric: board for board in rank_published()}
    assert boards["PunMemeCNf1"].trivial.value == pytest.approx(0.5)
    assert boards["PunMemeCNf1"].not_above == 4
    assert boards["M-QUESTaccuracy"].not_above == 2
    assert boards["ToxiCN MMmacro_f1"].trivial.value == pytest.approx(0.4052, abs=1e-4)
    found = {title: finding.verdict for title, finding in check_published()}
    assert found == {"M-QUEST": "broken", "ToxiCN MM": "broken", "PunMemeCN": "sound"}


def test_the_tour_shows_every_part(tmp_path: Path, opener: Opener) -> None:
    done = Shell(tmp_path).apart.run("demo", **block_extras(tmp_path / "core"))
    assert done.code == 0, done.err
    assert "is heard as" in done.out
    assert len([line for line in done.out.splitlines() if line.startswith("•")]) == 5
    assert len(done.out.splitlines()) <= 24
    page = (tmp_path / "demo" / "index.html").read_text(encoding="utf-8")
    assert page.count('class="apart"') == 6
    assert not re.search(r"(?:src|href)=\"https?:", page)
    assert (tmp_path / "demo" / "report.html").is_file()
    chinese = (tmp_path / "demo" / "index.zh.html").read_text(encoding="utf-8")
    assert '<html lang="zh">' in chinese
    assert "拆解六张表情包" in chinese
    assert "Go on" not in chinese
    for width, name in ((1280, "index.html"), (768, "index.zh.html"), (360, "index.html")):
        with opener(width) as watched:
            watched.page.goto((tmp_path / "demo" / name).as_uri())
            wide = watched.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width
            picture = watched.page.locator(".apart img").first
            assert picture.evaluate("image => image.naturalWidth") > 0
            assert watched.page.locator("#board .strip").count() == 44
        watched.assert_quiet()


def test_the_pack_is_copied_and_nothing_is_overwritten(tmp_path: Path) -> None:
    folder = starter.copy(tmp_path / "mine")
    with (folder / "memes.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(starter.read_starter())
    assert all((folder / row["image"]).is_file() for row in rows)
    (folder / "memes.csv").write_text("mine", encoding="utf-8")
    starter.copy(folder)
    assert (folder / "memes.csv").read_text(encoding="utf-8") == "mine"
    with pytest.raises(InputError, match="is a file"):
        starter.copy(folder / "memes.csv")


def test_on_a_plain_install_a_meme_is_analysed_without_its_sound(tmp_path: Path) -> None:
    assert {"torch", "pocketsphinx", "fastapi"} <= find_extras()
    assert not {"numpy", "onnxruntime", "jieba", "typer"} & find_extras()
    shell = Shell(tmp_path).apart
    without = block_extras(tmp_path / "core")
    done = shell.run("analyze", starter.image_path("en-016"), "--json", **without)
    assert done.code == 0, done.err
    (card,) = json.loads(done.out)
    reasons = {gap["part"]: gap["reason"] for gap in card["left_out"]}
    assert "memantics[phonetics]" in reasons["what it sounds like"]
