"""Payload, thumbnails and drawings, without a browser."""

from __future__ import annotations

import base64
import io
import json
import os
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow
from pydantic import JsonValue

from memantics.core.records import Field, Form, Image, Item, Option, Reply, Score
from memantics.evaluation.reports.leaderboard import make_boards
from memantics.evaluation.reports.page import ReportSettings, build_report
from memantics.evaluation.reports.payload import (
    OPEN,
    RIGHT,
    WRONG,
    AnswerPool,
    PayloadMaker,
    embed_json,
    judge_answer,
)
from memantics.evaluation.reports.runs import load_runs
from memantics.web.page import make_thumbnail, make_thumbnails
from memantics.web.plot import Mark, draw_strip, fit_scale
from tests.report.samples import answer, draw_image, make_facts, write_run

SCORES = (Score("accuracy", 0.5, 2, 0.1, 0.9),)


def make_item(name: str, gold: JsonValue = "A", keys: str = "AB", **changes: object) -> Item:
    options = tuple(Option(key, f"text {key}") for key in keys)
    made = Item(name, name, gold, Form("Which?", (Field("answer", "choice", options),)))
    return replace(made, **changes)  # type: ignore[arg-type]


def read_payload(*folders: Path, images: AnswerPool[Path] | None = None) -> dict[str, list[object]]:
    (board,) = make_boards(load_runs(folders))
    made: dict[str, list[object]] = json.loads(embed_json(PayloadMaker(board, images, 500).make()))
    return made


@given(st.text())
def test_embedded_json_comes_back_and_cannot_close_its_element(text: str) -> None:
    made = embed_json([text])
    assert json.loads(made) == [text]
    assert not set(made) & {"<", ">", "&", "\u2028", "\u2029"}


@pytest.mark.parametrize(
    ("value", "gold", "verdict"),
    [
        ("A", "A", RIGHT),
        ("a", "A", WRONG),
        (None, "A", WRONG),
        (2, 2.0, RIGHT),
        (True, 1, WRONG),
        (0, False, WRONG),
        (False, False, RIGHT),
        ({"a": 1}, {"a": 1}, RIGHT),
        ("A", None, OPEN),
        ("A", ["A", "B"], OPEN),
    ],
)
def test_verdicts_compare_scalars_and_records(
    value: JsonValue, gold: JsonValue, verdict: int
) -> None:
    assert judge_answer("answered", value, gold) == verdict


def test_runs_share_items_texts_and_prompts(tmp_path: Path) -> None:
    items = [make_item("one"), make_item("two", "B")]
    first = write_run(
        tmp_path / "1", make_facts("t/q", "m/1"), items, [answer("one"), answer("two")], (), SCORES
    )
    second = write_run(tmp_path / "2", make_facts("t/q", "m/2"), items, [answer("one")], (), SCORES)
    made = read_payload(first, second)
    assert len(made["items"]) == 2
    assert len(made["prompts"]) == 1
    assert len(made["texts"]) == len(set(map(str, made["texts"])))
    one, two = made["items"]
    assert isinstance(one, dict)
    assert isinstance(two, dict)
    assert [a["verdict"] for a in one["answers"]] == [0, 0]
    assert two["answers"][0]["verdict"] == 1
    assert set(two["answers"][1]) == {"prompt"}


def test_a_run_that_shuffled_its_options_is_judged_by_its_own_key(tmp_path: Path) -> None:
    first = write_run(
        tmp_path / "1", make_facts("t/q", "m/1"), [make_item("one")], [answer("one")], (), SCORES
    )
    shuffled = make_item("one", "B", keys="BA")
    second = write_run(
        tmp_path / "2", make_facts("t/q", "m/2"), [shuffled], [answer("one", "B")], (), SCORES
    )
    made = read_payload(first, second)
    (item,) = made["items"]
    assert isinstance(item, dict)
    assert [a["verdict"] for a in item["answers"]] == [0, 0]
    assert "sheet" not in item["answers"][0]
    assert made["texts"][item["answers"][1]["gold"]] == "B"


def test_the_last_attempt_counts_and_earlier_ones_stay_readable(tmp_path: Path) -> None:
    attempts = [
        answer("one", None, status="unparsed", reply=Reply("hm"), reason="no key"),
        answer("one", "A", attempt=1),
    ]
    folder = write_run(
        tmp_path / "1", make_facts("t/q", "m/1"), [make_item("one")], attempts, (), SCORES
    )
    made = read_payload(folder)
    (item,) = made["items"]
    assert isinstance(item, dict)
    (only,) = item["answers"]
    assert (only["verdict"], only["attempts"]) == (0, 2)
    assert [made["texts"][text] for _, text in only["earlier"]] == ["hm"]


def test_long_texts_are_cut_and_say_so(tmp_path: Path) -> None:
    folder = write_run(
        tmp_path / "1",
        make_facts("t/q", "m/1"),
        [make_item("one")],
        [answer("one", reply=Reply("z" * 9_000))],
        (),
        SCORES,
    )
    made = read_payload(folder)
    assert any("9,000 characters" in str(text) and len(str(text)) < 700 for text in made["texts"])


def test_tags_with_a_value_per_item_are_no_filter(tmp_path: Path) -> None:
    items = [
        make_item(str(n), tags={"kind": "TR"[n % 2], "file": f"{n}.png", "language": "en"})
        for n in range(6)
    ]
    folder = write_run(tmp_path / "1", make_facts("t/q", "m/1"), items, [], (), SCORES)
    assert read_payload(folder)["facets"] == [["kind", [["R", 3], ["T", 3]]]]


@pytest.mark.slow
def test_thumbnails_are_small_and_each_image_is_embedded_once(
    demo_runs: list[Path], tmp_path: Path
) -> None:
    made = make_thumbnail(draw_image(tmp_path / "big.png", 3, side=2_000), 420)
    assert max(made.width, made.height) == 420
    data = base64.b64decode(made.uri.removeprefix("data:image/webp;base64,"))
    assert Pillow.open(io.BytesIO(data)).size == (made.width, made.height)
    build_report(demo_runs, tmp_path / "page.html", ReportSettings())
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("data:image/webp") == 24 + 30
    build_report(demo_runs, tmp_path / "bare.html", ReportSettings(images=False))
    assert "data:image/webp" not in (tmp_path / "bare.html").read_text(encoding="utf-8")


def test_images_that_must_not_be_used_become_a_reason(tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("not an image")
    whole = draw_image(tmp_path / "cut.png", 1).read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    Pillow.new("1", (12_000, 12_000)).save(tmp_path / "bomb.png")
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "folder.png").mkdir()
    names = ("missing", "text", "cut", "bomb", "pipe", "folder")
    made = make_thumbnails([tmp_path / f"{name}.png" for name in names], 10**6)
    assert [(thumb.name, thumb.uri, thumb.reason) for thumb in made] == [
        ("missing.png", "", "missing"),
        ("text.png", "", "format"),
        ("cut.png", "", "truncated"),
        ("bomb.png", "", "too many pixels"),
        ("pipe.png", "", "not a file"),
        ("folder.png", "", "not a file"),
    ]
    assert make_thumbnail(Path("nul\0.png"), 9).reason == "unreadable"


def test_thumbnails_stop_at_the_limit_of_the_page(tmp_path: Path) -> None:
    paths = [draw_image(tmp_path / f"{n}.png", n, side=64) for n in range(70)]
    made = list(make_thumbnails(paths, 1_000))
    assert all(thumb.uri for thumb in made[:64])
    assert {thumb.reason for thumb in made[64:]} == {"not shown: page size limit"}


def test_drawings_escape_names() -> None:
    scale = fit_scale(SCORES)
    drawn = draw_strip([Mark("</title><script>alert(1)</script>", SCORES[0], 0)], scale)
    assert "<script" not in drawn
    assert "&lt;script&gt;" in drawn


@given(
    st.lists(st.floats(-1e6, 1e6).map(lambda value: Score("x", value, 1)), min_size=1, max_size=5)
)
def test_every_metric_lies_on_its_scale(scores: list[Score]) -> None:
    scale = fit_scale(scores)
    assert 2 <= len(scale.ticks) <= 13
    for score in scores:
        assert score.value is not None
        assert scale.low - 1e-6 <= score.value <= scale.high + 1e-6


def test_image_paths_on_option_and_item_share_one_number(tmp_path: Path) -> None:
    picture = Image(draw_image(tmp_path / "one.png", 1))
    sheet = (Field("answer", "choice", (Option("A", "this", picture), Option("B", "that"))),)
    item = make_item("one", images=(picture,), form=Form("Which?", sheet))
    folder = write_run(tmp_path / "1", make_facts("t/q", "m/1"), [item], [], (), SCORES)
    pool: AnswerPool[Path] = AnswerPool()
    read_payload(folder, images=pool)
    assert pool.values == (picture.path,)


def read_palettes() -> list[dict[str, str]]:
    """The colours of the light and of the dark scheme."""
    style = (files("memantics.web") / "page_templates" / "page.css").read_text(encoding="utf-8")
    light, dark = style.split("@media screen and (prefers-color-scheme: dark)")
    return [dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", part)) for part in (light, dark)]


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1])
def test_text_and_marks_stand_out_in_both_schemes(scheme: int) -> None:
    palette = read_palettes()[scheme]
    texts = [
        (ink, back) for ink in ("ink", "quiet", "accent") for back in ("paper", "card", "sunk")
    ]
    texts += [("amber-ink", "amber"), ("rose-ink", "rose"), ("right", "right-bg")]
    texts += [("wrong", "wrong-bg"), ("invalid", "invalid-bg")]
    faint = {pair: contrast(palette[pair[0]], palette[pair[1]]) for pair in texts}
    assert {pair: ratio for pair, ratio in faint.items() if ratio < 4.5} == {}
    marks = {tone: contrast(palette[tone], palette["paper"]) for tone in palette if "tone" in tone}
    assert len(marks) == 8
    assert {tone: ratio for tone, ratio in marks.items() if ratio < 3} == {}
