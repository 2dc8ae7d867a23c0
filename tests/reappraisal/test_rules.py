"""What makes a plan invalid, each with its reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memantics.core.errors import UnknownName
from memantics.understanding.reappraisal.records import (
    PAIRS,
    TARGETS,
    MemeFeeling,
    ReappraisalPlan,
    find_source,
)
from memantics.understanding.reappraisal.rules import find_faults, find_motto, keeps_scenario
from memantics.understanding.reappraisal.stages import read_plan
from tests.reappraisal.benches import FEELING, PLAN, TOP, make_page


def faults(folder: Path, **changes: object) -> list[str]:
    return find_faults(ReappraisalPlan.model_validate(PLAN | changes), "tense", make_page(folder))


def test_a_good_plan_has_no_faults(tmp_path: Path) -> None:
    assert faults(tmp_path) == []


def test_pairs_are_fixed() -> None:
    assert PAIRS == {"sad": "happy", "angry": "calm", "tense": "relaxed", "bored": "excited"}
    assert [PAIRS[find_source(target)] for target in TARGETS] == list(TARGETS)
    with pytest.raises(UnknownName):
        find_source("furious")


def test_another_target_is_refused(tmp_path: Path) -> None:
    assert faults(tmp_path, target="happy") == ["the target of tense is relaxed, not happy"]


@pytest.mark.parametrize("captions", [{"1": "x"}, {"1": "x", "2": "y", "3": "z"}, {}])
def test_another_number_of_regions_is_refused(tmp_path: Path, captions: dict[str, str]) -> None:
    (fault,) = faults(tmp_path, captions=captions)
    assert fault.startswith("captions must have exactly the regions 1, 2; the plan has")


def test_a_caption_that_its_place_cannot_hold_is_refused(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, captions={"1": TOP, "2": "I AM VERY MUCH AT EASE ABOUT IT ALL"})
    assert "caption 2 has 35 characters, its place holds" in fault


def test_an_empty_caption_is_refused(tmp_path: Path) -> None:
    assert "caption 2 is empty" in faults(tmp_path, captions={"1": TOP, "2": " "})[0]


def test_poster_text_is_refused(tmp_path: Path) -> None:
    changed = faults(tmp_path, captions={"1": "MY PHONE: BELIEVE IN YOURSELF", "2": "I PANIC"})
    assert any("'BELIEVE IN YOURSELF' is poster text" in fault for fault in changed)


def test_another_scenario_is_refused(tmp_path: Path) -> None:
    changed = faults(tmp_path, captions={"1": "WHAT A LOVELY DAY", "2": "SO CALM"}, scenario=[])
    assert changed == ["the new captions keep no word of the old ones: stay with the same scenario"]


def test_scenario_words_must_be_in_old_and_new_captions(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, scenario=["laptop"])[:1]
    assert "laptop are not in the new captions" in fault
    assert any("not in the old" in f for f in faults(tmp_path, scenario=["drift"]))


def test_a_plan_that_changes_nothing_is_refused(tmp_path: Path) -> None:
    assert faults(tmp_path, captions={"1": TOP, "2": "I PANIC"}) == [
        "no caption changes: rewrite at least one"
    ]


def test_a_character_that_no_font_draws_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memantics.understanding.vision.typefaces._ask_system", lambda _: None)
    (fault,) = faults(tmp_path, captions={"1": TOP, "2": "I \U00013080"})
    assert "no font contains the characters" in fault


@pytest.mark.parametrize(
    "text",
    ["Never give up!", "you’ve got this", "Stay positive", "坚持就是胜利", "一切都会好起来的"],
)
def test_posters(text: str) -> None:
    assert find_motto(text)


@pytest.mark.parametrize(
    "text", ["my code is growing", "慢慢来就好", "we stay at home", "give me tea"]
)
def test_no_posters(text: str) -> None:
    assert find_motto(text) is None


def test_what_the_meme_says_already_is_no_poster_text() -> None:
    assert find_motto("never give up, potato", "NEVER GIVE UP") is None


def test_words_that_carry_the_feeling_need_not_stay() -> None:
    assert keeps_scenario(["我酸了"], ["我甜了"])
    assert keeps_scenario(["awkward"], ["charming"])
    assert not keeps_scenario(["awkward robot"], ["charming lamp"])


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("失落", "洒脱", True),
        ("失落感", "洒脱鹅", False),
        ("EXAM", "PARTY", True),
        ("EXAM ROOM", "PARTY HALL", False),
        ("EXAM ROOM", "LIVING ROOM", True),
    ],
)
def test_a_caption_of_one_word_leaves_the_scenario_to_the_picture(
    old: str, new: str, kept: bool
) -> None:
    assert keeps_scenario([old], [new]) is kept


def test_words_that_a_model_lists_wrongly_cost_no_plan(tmp_path: Path) -> None:
    said = PLAN | {"scenario": ["phone", "laptop", "panic"]}
    page = make_page(tmp_path)
    plan = read_plan(json.dumps(said), page, MemeFeeling.model_validate(FEELING))
    assert plan.scenario == ["phone"]
