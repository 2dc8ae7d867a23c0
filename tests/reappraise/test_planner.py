"""The embedded planner: kinder words, no new events, always within the rules."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from PIL import Image

from memantics.reappraise.planner import EmbeddedPlanner, choose_emotion, make_plan
from memantics.reappraise.records import EMOTIONS, PAIRS, TARGETS, Target
from memantics.reappraise.rules import find_faults, find_motto, read_lexicon
from memantics.reappraise.stages import ReappraisalSubject
from memantics.vision.page import read_page
from tests.reappraise.benches import draw_meme_file, make_page
from tests.vision.pictures import BLACK, Print, blank, print_on


def test_unkind_words_are_exchanged_in_place(tmp_path: Path) -> None:
    plan = make_plan(make_page(tmp_path), "relaxed")
    assert plan.captions == {"1": "MY PHONE IS AT ONE PERCENT", "2": "I BREATHE"}


@pytest.mark.parametrize("target", TARGETS)
def test_a_caption_without_such_words_gets_an_ending(target: Target) -> None:
    image = blank(600, 300)
    lines = print_on(image, Print("THE GARDEN GATE IS OPEN AND GREEN", 300, 80, 40))
    lines += print_on(image, Print("我们今天去公园看花", 300, 240, 44, BLACK))
    page = read_page(image, lines)
    plan = make_plan(page, target)
    changed = [n for n, c in enumerate(page.captions, 1) if plan.captions[str(n)] != c.text]
    assert len(changed) == 1
    emotion = next(each for each in EMOTIONS if PAIRS[each] == target)
    assert find_faults(plan, emotion, page) == []


def test_the_same_meme_gives_the_same_plan(tmp_path: Path) -> None:
    path, lines = draw_meme_file(tmp_path)
    page = read_page(Image.open(path).convert("RGB"), lines)
    subject, planner = ReappraisalSubject("phone", path, page), EmbeddedPlanner()
    feelings = [asyncio.run(planner.feel(subject)).value for _ in range(2)]
    assert feelings[0] == feelings[1]
    assert feelings[0] is not None
    assert feelings[0].emotion == "tense"
    taken = asyncio.run(planner.plan(subject, feelings[0]))
    assert taken.status == "answered"
    assert taken.model == "embedded/planner"


def test_a_meme_without_room_is_said_to_fail(tmp_path: Path) -> None:
    image = blank(80, 60)
    page = read_page(image, print_on(image, Print("ok", 40, 30, 30, fill="black", stroke=0)))
    image.save(tmp_path / "ok.png")
    subject, planner = ReappraisalSubject("ok", tmp_path / "ok.png", page), EmbeddedPlanner("bored")
    feeling = asyncio.run(planner.feel(subject)).value
    assert feeling is not None
    assert feeling.emotion == "bored"
    taken = asyncio.run(planner.plan(subject, feeling))
    assert taken.value is None or find_faults(taken.value, "bored", page) == []


def test_without_cues_a_meme_counts_as_tense() -> None:
    assert choose_emotion(dict.fromkeys(EMOTIONS, 0)) == "tense"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_lexicon_is_sound(language: str) -> None:
    lexicon = read_lexicon(language)
    assert set(lexicon.endings) == set(TARGETS)
    for old, new in lexicon.words.items():
        assert old != new
        assert lexicon.reframe(new) == new or old in new, f"{new!r} is exchanged again"
        assert find_motto(new) is None
    for endings in lexicon.endings.values():
        for ending in endings:
            assert find_motto(ending) is None
            assert lexicon.reframe(ending) == ending


def test_case_is_kept() -> None:
    lexicon = read_lexicon("en")
    assert lexicon.reframe("GARBAGE") == "A FIRST DRAFT"
    assert lexicon.reframe("Awkward silence") == "Charming silence"
    assert lexicon.reframe("awkwardly") == "awkwardly"
    assert lexicon.reframe("I CAN’T") == "I CAN'T YET"
