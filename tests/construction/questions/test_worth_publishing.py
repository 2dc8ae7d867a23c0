"""A set of more than a hundred questions, from recorded and from invented replies.

Its options are all of one kind with their answer, "None" is the key no more often than asked for,
nothing is left that a critic solved without the meme, and neither length nor wording tells keys.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from memantics.construction.questions.asking import QuestionSubject, even_out
from memantics.construction.questions.assembly import (
    AssembledQuestion,
    SlotDraft,
    deal_none,
    finish,
    make_item,
)
from memantics.construction.questions.chain import BuiltQuestions
from memantics.construction.questions.lending import OptionPool, ask_alike, find_form
from memantics.construction.questions.records import (
    QuestionDraft,
    QuestionOption,
    Slot,
    plan_slots,
)
from memantics.construction.questions.report import Leak, Roles, report_questions
from memantics.core.records import Field, Request
from memantics.understanding.knowledge.records import Individual, Knowledge, Relation
from tests.construction.questions.scripts import (
    build,
    labels,
    one_step,
    read_focus,
    sample_subjects,
    text_of,
    trim,
)
from tests.construction.test_strong_model import replies, subject

SETTINGS = one_step(critic="both", attempts=2, none_proportion=0.2, per_dimension=2)
TOLERANCE = 0.05
ASKED = (
    "Who is being attacked here?",
    "Which work does the speaker come from?",
    "What would a reader from far away have to be told first?",
)


@cache
def recorded() -> dict[str, str]:
    return {row["focus"]: row["reply"] for row in replies()["questions"] if not row["asked_again"]}


def number(*parts: str) -> int:
    return int(hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8], 16)


def write(request: Request) -> str:
    """The recorded reply where there is one; else one of three kinds of question."""
    key, label = read_focus(request)
    sent = text_of(request)
    if key in recorded() and "earlier version" not in sent:
        return recorded()[key]
    correct, kind = trim(label), number(key, label) % len(ASKED)
    others = [text for text in labels(key.split("/")[0]) if text not in sent]
    near = sorted(others, key=lambda text: abs(len(text) - len(correct)))[:16]
    wrong = random.Random(sent).sample(near, 5)
    mark = " Again" if "earlier version" in sent else ""
    return json.dumps(
        {
            "about": key,
            "question": f"{ASKED[kind]}{mark} (no. {number(key, sent) % 10**6})",
            "correct": correct,
            "plausible": wrong[:3],
            "implausible": wrong[3:],
            "explanation": "It can be seen.",
            "cites": [],
        }
    )


class Critic:
    """Finds a third of all keys without the meme, whatever the order; else it guesses."""

    def __init__(self) -> None:
        self.keys: dict[str, str] = {}

    def write(self, request: Request) -> str:
        said = write(request)
        entry = json.loads(said)
        self.keys[entry["question"]] = even_out(entry["correct"])
        return said

    def answer(self, request: Request) -> str:
        blind = "that you cannot see" in text_of(request)
        asked = zip(request.form.question.split("\n"), request.form.fields, strict=True)
        said = [self.choose(question, field, blind=blind) for question, field in asked]
        return said[0] if len(said) == 1 else json.dumps({"answers": said})

    def choose(self, question: str, field: Field, *, blind: bool) -> str:
        texts = {option.text: option.key for option in field.options}
        if blind and number("solves", question) % 3:
            return field.options[number(question, *texts) % 4].key
        return texts.get(self.keys[question.strip()], texts["None of the others"])


@pytest.fixture(scope="module")
def critic() -> Critic:
    return Critic()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, critic: Critic) -> BuiltQuestions:
    some = list(sample_subjects().items())[:14]
    subjects: dict[str, QuestionSubject] = {
        **{n: subject(n) for n in ("sheep", "yoda")},
        **dict(some),
    }
    folder = tmp_path_factory.mktemp("worth")
    return build(folder, critic.write, SETTINGS, critic.answer, subjects)


@pytest.mark.slow
def test_there_are_more_than_a_hundred(built: BuiltQuestions) -> None:
    assert len(built.questions) >= 100
    assert {"sheep", "yoda"} <= {own.meme for own in built.questions}


def test_no_option_is_of_another_kind(built: BuiltQuestions) -> None:
    drafts = {own.id: own.draft for own in built.rejected if own.draft}
    drafts |= {own.id: own.draft for own in built.items}
    for own in built.questions:
        for option in own.options:
            if option.role != "borrowed":
                continue
            home = drafts[option.origin]
            assert option.origin.split("/")[1] == own.dimension
            assert ask_alike(home.question, own.question), (home.question, own.question)
            assert find_form(option.text) == find_form(drafts[own.id].correct)


def test_none_is_the_key_no_more_often_than_asked_for(built: BuiltQuestions) -> None:
    share = sum(own.none_is_key for own in built.questions) / len(built.questions)
    assert 0.1 <= share <= SETTINGS.none_proportion
    assert report_questions(built, SETTINGS, Roles("fake/writer")).none_proportion == share


def test_nothing_is_left_that_was_solved_blindly(built: BuiltQuestions, critic: Critic) -> None:
    assert built.trials
    assert not [name for name, own in built.trials.items() if own.solved_blindly]
    kept = {own.question for own in built.questions if not own.none_is_key}
    assert not [own for own in kept if number("solves", own) % 3 == 0]
    reasons = Counter(own.reason for own in built.rejected)
    assert reasons["a model finds the correct option without the meme"] > 5


def test_neither_length_nor_blind_models_find_keys(built: BuiltQuestions) -> None:
    leaks = {own.name: own for own in report_questions(built, SETTINGS, Roles("fake/writer")).leaks}
    longest = leaks["longest of the three"]
    assert longest.value is not None
    assert abs(longest.value - longest.chance) <= TOLERANCE
    for name in ("statistical solver", "model without the meme"):
        value = leaks[name].value
        assert value is not None, leaks[name]
        assert value <= leaks[name].chance + TOLERANCE, leaks[name]


def make(
    number: int, size: int, wrong: tuple[str, ...] = ("b" * 9, "c" * 11, "d" * 12)
) -> AssembledQuestion:
    slot = Slot(f"m/Scene/{number}", "m", "Scene", "Scene/x", "wrong")
    draft = QuestionDraft("What is it?", "a" * size, wrong[:2], wrong[2:], "", ("Scene/x",))
    return make_item(SlotDraft(slot, "answered", draft), draft)


@pytest.mark.parametrize(
    ("count", "share", "without"),
    [(8, 0.25, 2), (7, 0.25, 1), (3, 0.25, 0), (4, 1.0, 4), (4, 0.0, 0)],
)
def test_the_share_of_none_is_never_exceeded(count: int, share: float, without: int) -> None:
    items = [make(n, 10) for n in range(count)]
    dealt = deal_none(items, one_step(none_proportion=share))
    assert sum(item.correct is None for item in dealt) == without
    assert all(len(item.shown) == 3 for item in dealt)


@pytest.mark.parametrize(
    ("language", "said"), [("en", "Right would be “aaaa”."), ("zh", "正确的说法是“aaaa”。")]
)
def test_where_the_right_option_is_missing_the_explanation_names_it(
    language: str, said: str
) -> None:
    settings = one_step(none_proportion=0.5, language=language)
    finished = finish(deal_none([make(n, 4) for n in range(2)], settings), settings)
    assert {own.none_is_key: own.explanation for own in finished} == {True: said, False: ""}


def test_an_item_with_two_wrong_options_keeps_its_key() -> None:
    items = [make(n, 10, ("b" * 9, "c" * 11)) for n in range(4)]
    assert deal_none(items, one_step(none_proportion=1.0)) == items


def test_what_is_dealt_leaves_the_lengths_of_keys_as_they_were() -> None:
    items = [make(n, 30 if n % 2 else 10) for n in range(40)]
    kept = [own for own in deal_none(items, one_step(none_proportion=0.5)) if own.correct]
    assert sum(own.key_is_longest for own in kept) == len(kept) / 2


@pytest.mark.parametrize(("longest", "expected"), [("correct", True), ("wrong", False)])
def test_options_are_chosen_by_which_one_shall_be_longest(longest: str, expected: bool) -> None:
    slot = Slot("s", "m", "Scene", "Scene/x", longest)  # type: ignore[arg-type]
    draft = QuestionDraft("?", "a" * 10, ("b" * 8, "c" * 13), ("d" * 9, "e" * 12), "", ())
    item = make_item(SlotDraft(slot, "answered", draft), draft)
    assert item.key_is_longest == expected
    assert {own.role for own in item.wrong} == {"plausible", "implausible"}


def test_a_small_set_is_neither_levelled_nor_called_a_leak(tmp_path: Path) -> None:
    one = {"sheep": subject("sheep")}
    built = build(tmp_path, write, one_step(none_proportion=0.0), subjects=one)
    assert not [own for own in built.rejected if own.stage == "answer cues"]
    report = report_questions(built, SETTINGS, Roles("fake/writer"))
    assert {own.judge(TOLERANCE) for own in report.leaks} <= {"too few to tell", "not measured"}
    assert Leak("x", 0.4, 0.25, 59).judge(TOLERANCE) == "too few to tell"
    assert Leak("x", 0.4, 0.25, 60).judge(TOLERANCE) == "leaks"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (
            "Which work does the speaker come from?",
            "Which custom does the meme turn around?",
            False,
        ),
        ("Who is being attacked?", "Who is meant to enjoy the meme?", False),
        ("Who is being attacked?", "Whom does the meme attack?", False),
        ("Which work does the speaker come from?", "Which work does the hero come from?", True),
        ("他在做什么？", "她在做什么？", True),
        ("他在做什么？", "谁被嘲笑了？", False),
    ],
)
def test_kinds_of_questions_are_told_apart(one: str, other: str, same: bool) -> None:
    assert ask_alike(one, other) is ask_alike(other, one) is same


def test_an_own_spare_may_share_a_word_with_the_key() -> None:
    slot = Slot("m/Scene/1", "m", "Scene", "Scene/x", "wrong")
    wrong = ("a cat in a hat", "a dog in a coat")
    draft = QuestionDraft("What is it?", "a cat in a bed", wrong, ("a red tin can",), "", ())
    item = make_item(SlotDraft(slot, "answered", draft), draft)
    (spare,) = item.spares
    lent = OptionPool([item], {}, 0).lend(item, item.wrong[0], lambda _: True)
    assert lent == QuestionOption(spare.text, spare.role)


def test_the_individual_with_the_most_links_is_asked_about() -> None:
    plain = Individual("VisualMaterial", "moon", "a moon")
    linked = Individual("VisualMaterial", "sheep", "a sheep")
    scene = Individual(
        "Scene", "night", "a night", relations=(Relation("hasParticipant", "VisualMaterial/sheep"),)
    )
    known = Knowledge("m", (plain, linked, scene))
    settings = one_step(dimensions=("VisualMaterial",))
    assert [slot.focus for slot in plan_slots(known, settings)] == ["VisualMaterial/sheep"]
    tied = Knowledge("m", (plain, linked))
    assert [slot.focus for slot in plan_slots(tied, settings)] == ["VisualMaterial/moon"]


def test_the_rewriting_prompt_shows_what_did_not_tempt(tmp_path: Path) -> None:
    sent: list[str] = []
    critic = Critic()

    def write_and_keep(request: Request) -> str:
        sent.append(text_of(request))
        return critic.write(request)

    def answer(request: Request) -> str:
        options = {own.text: own.key for own in request.form.fields[0].options}
        return options.get(critic.keys[request.form.question.strip()], "A")

    settings = one_step(critic="model", dimensions=("Scene",), none_proportion=0.0)
    build(tmp_path, write_and_keep, settings, answer, {"sheep": subject("sheep")})
    (again,) = [text for text in sent if "earlier version" in text]
    earlier = re.search(r"<earlier \w+>\n(.*?)\n</earlier", again, re.S)
    assert earlier is not None
    assert "Right: A sleepless sheep in bed imagines human faces. Wrong: " in earlier.group(1)
    assert "A sick sheep awaits four visitors in bed" in earlier.group(1)
