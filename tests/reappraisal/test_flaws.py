"""Done means done: drawn cases of every kind that was once called done and was not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from memantics.core.lines import TextLine
from memantics.understanding.reappraisal.chain import (
    DAMAGED,
    LARGEST,
    LEAST_ALIKE,
    SMALLEST,
    find_flaws,
    reappraise,
)
from memantics.understanding.reappraisal.dataset import KeptPlanner
from memantics.understanding.reappraisal.kindness import rate_kindness
from memantics.understanding.reappraisal.records import EditChecks, MemeFeeling, ReappraisalPlan
from memantics.understanding.reappraisal.rendering import MadeMeme, check_result
from memantics.understanding.reappraisal.workshop import RateKindness, Reappraisal
from memantics.understanding.vision.fidelity import find_damage
from memantics.understanding.vision.page import LetteredCaption, MemeStructure, read_page
from tests.reappraisal.benches import make_meme, make_shop
from tests.reappraisal.drawing import draw_meme
from tests.vision.pictures import BLACK, REGULAR, Print, blank, photo, print_on

FEELING = MemeFeeling(
    emotion="angry", description="A drawing.", visual_type="Cartoon_Anime", polarity="Negative"
)


def make_plan(*captions: str) -> ReappraisalPlan:
    texts = {str(number): text for number, text in enumerate(captions, 1)}
    return ReappraisalPlan(target="calm", captions=texts, visual="Softer.", keep="All.")


def turn(
    folder: Path,
    image: Image.Image,
    lines: Sequence[TextLine],
    *captions: str,
    kindness: RateKindness | None = None,
) -> Reappraisal:
    """A meme with a known reading, taken through the real chain with a given plan."""
    path = folder / "meme.png"
    image.save(path)
    planner = KeptPlanner("given", FEELING, make_plan(*captions))
    shop = replace(make_shop(folder, planner, list(lines)), kindness=kindness)
    return asyncio.run(reappraise(make_meme(path, "meme"), shop))


def name_flaws(result: Reappraisal) -> list[str]:
    assert result.checks is not None
    return [flaw.check for flaw in result.checks.flaws]


def draw_sign(text: str = "THE ROAD IS CLOSED", size: int = 54) -> tuple[Image.Image, TextLine]:
    image = blank(640, 400)
    (line,) = print_on(image, Print(text, 320, 330, size))
    return image, line


def test_a_good_result_is_done(tmp_path: Path) -> None:
    image, line = draw_sign()
    result = turn(tmp_path, image, [line], "THE ROAD IS QUIET")
    assert (result.status, result.reason, name_flaws(result)) == ("done", "", [])


@pytest.mark.slow
def test_a_label_rewritten_beside_a_cruel_caption_is_not_done(tmp_path: Path) -> None:
    image = blank(640, 400)
    lines = print_on(
        image,
        Print("缺大德", 320, 330, 80, BLACK, "black", "black", 0),
        Print("人民路口", 120, 60, 26, BLACK, "black", "black", 0),
    )
    plan = ("人民乐口", "缺大德")
    result = turn(tmp_path, image, lines, *plan)
    assert result.status == "flawed"
    assert "the text '缺大德', larger than the rewritten one, was not changed" in result.reason
    # The same caption turned is fine: what decides is which text changed.
    fine = turn(tmp_path / "..", image, lines, "人民路口", "积大德")
    assert (fine.status, fine.reason) == ("done", "")


def test_a_negative_caption_that_stays_is_named(tmp_path: Path) -> None:
    image = blank(640, 400)
    lines = print_on(image, Print("YOU ARE AN IDIOT", 320, 60), Print("I HATE MONDAY", 320, 330))
    result = turn(tmp_path, image, lines, "YOU ARE AN IDIOT", "I LIKE MONDAY")
    assert "caption 1 ('YOU ARE AN IDIOT') is negative and was not changed" in result.reason


@pytest.mark.parametrize(("chance", "status"), [(0.05, "flawed"), (0.95, "done")])
def test_a_watermark_turned_for_want_of_a_caption_is_not_done(
    tmp_path: Path, chance: float, status: str
) -> None:
    image, line = draw_sign("PICTURES BY BEAR", 40)
    only = replace(line, probability=chance)  # the caption itself was never read
    result = turn(tmp_path, image, [only], "PICTURES BY BEES")
    assert result.status == status
    assert ("may be a label or a watermark" in result.reason) == (status == "flawed")


@pytest.mark.slow
@pytest.mark.parametrize("outlined", [False, True])
def test_a_stray_mark_of_the_old_caption_is_not_done(tmp_path: Path, outlined: bool) -> None:
    look = Print("I PANIC", 250, 200, 60, BLACK, "white" if outlined else "black")
    look = replace(look, outline="black", stroke=4 if outlined else 0)
    image = photo(480, 360) if outlined else blank(480, 360, "white")
    lines = print_on(image, look)
    right = lines[0].box[2]
    print_on(image, replace(look, text="?", x=right + (45 if outlined else 52)))
    result = turn(tmp_path, image, lines, "I DRIFT")
    assert result.checks is not None
    assert [caption.leftover > 0 for caption in result.checks.captions] == [True]
    assert (result.status, "strokes" in name_flaws(result)) == ("flawed", True)
    clean = image.copy()
    clean.paste(image.crop((0, 0, 75, 120)), (right + 8, 140))
    assert "strokes" not in name_flaws(turn(tmp_path, clean, lines, "I DRIFT"))


def check(image: Image.Image, page: MemeStructure, text: str) -> EditChecks:
    plan = make_plan(text)
    drawn = asyncio.run(draw_meme(image, page, plan))
    return check_result(image, page, plan, MadeMeme(drawn, [TextLine(text, drawn.boxes["1"])]))


def with_look(page: MemeStructure, **changes: object) -> MemeStructure:
    (caption,) = page.captions
    look = replace(caption.lettering, **changes)  # type: ignore[arg-type]
    return replace(page, captions=(LetteredCaption(caption.block, caption.ink, look),))


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"fill": (0, 0, 0), "outline_width": 0.0}, id="white outlined became black"),
        pytest.param({"outline_width": 0.0}, id="outline lost"),
        pytest.param({"face": REGULAR}, id="bold became thin"),
        pytest.param({"fill": (230, 40, 40)}, id="another colour"),
    ],
)
def test_lost_lettering_is_not_done(changes: dict[str, object]) -> None:
    image = photo(480, 360)
    lines = print_on(image, Print("今晚又失眠了", 240, 300, 52, BLACK, stroke=5))
    page = read_page(image, lines)
    right, lost = (
        check(image, each, "今晚又好眠了") for each in (page, with_look(page, **changes))
    )
    assert right.captions[0].lettering >= LEAST_ALIKE > lost.captions[0].lettering
    plan = make_plan("今晚又好眠了")
    assert "lettering" in [flaw.check for flaw in find_flaws(page, plan, lost, lines)]
    assert find_flaws(page, plan, right, lines) == []


@pytest.mark.parametrize(
    ("size", "flaws"),
    [(SMALLEST - 0.01, ["size"]), (SMALLEST, []), (LARGEST, []), (LARGEST + 0.01, ["size"])],
)
def test_swollen_and_shrunken_letters_are_not_done(size: float, flaws: list[str]) -> None:
    image, line = draw_sign()
    page, plan = read_page(image, [line]), make_plan("THE ROAD IS QUIET")
    drawn = replace(asyncio.run(draw_meme(image, page, plan)), sizes={"1": size})
    read = [TextLine("THE ROAD IS QUIET", line.box)]
    checks = check_result(image, page, plan, MadeMeme(drawn, read))
    assert [flaw.check for flaw in find_flaws(page, plan, checks, [line])] == flaws


def test_a_small_ruined_place_is_found_that_a_mean_hides(tmp_path: Path) -> None:
    image, line = draw_sign()
    print_on(image, Print("@ face", 80, 60, 30, REGULAR, "black", "black", 0))
    page, plan = read_page(image, [line]), make_plan("THE ROAD IS QUIET")
    drawn = asyncio.run(draw_meme(image, page, plan))
    ruined = drawn.image.copy()
    ruined.paste("#cfe4f2", (60, 40, 90, 80))
    read = [TextLine("THE ROAD IS QUIET", line.box)]
    checks = check_result(image, page, plan, MadeMeme(replace(drawn, image=ruined), read))
    assert checks.changed_outside < 0.01
    assert checks.damage > DAMAGED
    assert [flaw.check for flaw in find_flaws(page, plan, checks, [line])] == ["picture"]


def test_damage_is_that_of_the_worst_block() -> None:
    grey = np.full((64, 64, 3), 120, np.uint8)
    other, nowhere = grey.copy(), np.zeros((64, 64), bool)
    assert find_damage(grey, other, nowhere) == 0
    other[20:30, 20:30] = 250
    assert find_damage(grey, other, nowhere) > 0.5
    assert find_damage(grey, other, np.ones((64, 64), bool)) == 0
    assert find_damage(grey, grey[:32], nowhere) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("new", "flaws"), [("I LOVE THIS MORNING", []), ("I HATE THIS MORNING", ["kindness"])]
)
def test_what_sounds_no_kinder_is_not_done(tmp_path: Path, new: str, flaws: list[str]) -> None:
    image, line = draw_sign("I HATE EVERY MORNING", 50)
    result = turn(tmp_path, image, [line], new, kindness=rate_kindness)
    assert [name for name in name_flaws(result) if name == "kindness"] == flaws
    assert result.checks is not None
    assert len(result.checks.kindness) == 2


def test_a_flawed_result_is_kept_shown_and_taken_up_again(tmp_path: Path) -> None:
    image, line = draw_sign("PICTURES BY BEAR", 40)
    only = replace(line, probability=0.05)
    first = turn(tmp_path, image, [only], "PICTURES BY BEES")
    again = turn(tmp_path, image, [only], "PICTURES BY BEES")
    assert (again.status, again.resumed, again.checks) == ("flawed", True, first.checks)
    stage = json.loads((first.folder / "checks.json").read_text(encoding="utf-8"))
    assert (stage["status"], stage["reason"]) == ("flawed", first.reason)
    shown = first._repr_html_()
    assert "before and after" in shown
    assert "Flawed: text 1" in shown
    assert "by hand" in shown
    assert first.save(tmp_path / "taken.png").is_file()
