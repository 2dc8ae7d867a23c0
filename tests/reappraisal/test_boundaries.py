"""Rules of a plan on both sides of where they turn."""

from __future__ import annotations

import pytest

from memantics.understanding.reappraisal.records import ReappraisalPlan
from memantics.understanding.reappraisal.rules import (
    find_faults,
    keeps_scenario,
    list_words,
    only_adds,
)
from memantics.understanding.vision.page import MemeStructure
from tests.reappraisal.benches import LOW, PLAN, TOP, make_page


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> MemeStructure:
    return make_page(tmp_path_factory.mktemp("page"))


def tell(page: MemeStructure, second: str, **changes: object) -> list[str]:
    plan = PLAN | {"captions": {"1": TOP, "2": second}} | changes
    return find_faults(ReappraisalPlan.model_validate(plan), "tense", page)


def test_a_caption_is_as_long_as_its_place(page: MemeStructure) -> None:
    budget = page.captions[1].budget
    too_long = f"caption 2 has {budget + 1} characters, its place holds {budget}"
    assert too_long in tell(page, "I" * (budget + 1))
    assert not any("characters" in fault for fault in tell(page, "I" * budget))


def test_faults_are_told_in_full(page: MemeStructure) -> None:
    assert tell(page, LOW) == ["no caption changes: rewrite at least one"]
    assert tell(page, f"{LOW}!") == ["only a particle is added: say what is felt in another way"]
    assert tell(page, " ")[0] == "caption 2 is empty; repeat the old text to keep it"
    assert tell(page, "I DRIFT", scenario=["phone", "boat"]) == [
        "the scenario words boat are not in the new captions",
        "the scenario words boat are not in the old captions",
    ]
    none = tell(page, "I DRIFT", captions={})
    assert none == ["captions must have exactly the regions 1, 2; the plan has none"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It is so big", {"big"}),
        ("an ox", set()),
        ("don’t PANIC", {"don't", "panic"}),
        ("我的闹钟", {"闹", "钟"}),
        ("闹钟 ok now", {"闹", "钟", "now"}),
    ],
)
def test_words_that_carry_meaning(text: str, words: set[str]) -> None:
    assert list_words(text) == words


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("phone", "sunshine", True),  # one word: the picture shows the rest
        ("phone charger", "sunshine", False),
        ("phone charger", "charger sunshine", True),
        ("失落", "洒脱", True),  # two characters
        ("闹钟响", "今天", False),  # three
        ("闹钟响", "响铃", True),
    ],
)
def test_when_a_scenario_is_kept(before: str, after: str, kept: bool) -> None:
    assert keeps_scenario([before], [after]) is kept


@pytest.mark.parametrize(
    ("old", "new", "only"),
    [
        ("I am late", "I am late", False),
        ("I am late", "I am late lol", True),
        ("I am late", "I am early lol", False),
        ("药丸", "药丸啦", True),
        ("药丸", "药片啦", False),
    ],
)
def test_when_only_a_particle_is_added(old: str, new: str, only: bool) -> None:
    assert only_adds(old, new) is only
