"""Questions that a critic guesses are repaired before they go; what is kept says what it needs."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from memantics.construction.build_tables import note_questions, tabulate_questions
from memantics.construction.questions.asking import even_out
from memantics.construction.questions.assembly import (
    AssembledQuestion,
    SlotDraft,
    deal_none,
    make_item,
    show_others,
    take_key,
)
from memantics.construction.questions.chain import BuiltQuestions, find_needs
from memantics.construction.questions.lending import OptionPool, borrow_one, borrow_others
from memantics.construction.questions.records import (
    QuestionDraft,
    QuestionOption,
    QuestionSettings,
    Slot,
)
from memantics.construction.questions.report import Roles, report_questions
from memantics.construction.questions.solver import BlindTrial
from memantics.core.records import Field, Request
from memantics.understanding.knowledge.records import Individual, Knowledge
from tests.construction.questions.scripts import (
    build,
    one_step,
    sample_subjects,
    text_of,
    write_honestly,
)

SETTINGS = one_step(
    critic="model", attempts=1, dimensions=("Scene", "Emotion"), none_proportion=0.0, rewrites=1
)


class Guesser:
    """Finds a key wherever one of the words that give it away stands among the options."""

    def __init__(self, *giving: str) -> None:
        self.giving = giving
        self.keys: dict[str, str] = {}
        self.calls: Counter[str] = Counter()
        self.sizes: list[int] = []

    def write(self, request: Request) -> str:
        entry = write_honestly(request) | {
            "plausible": ["silly wrong one", "a second way out", "a third of all ways"],
            "implausible": ["daft wrong one", "quite another matter"],
        }
        entry.pop("spare")
        again = "earlier version" in text_of(request)
        self.calls["rewrite" if again else "write"] += 1
        entry["question"] = f"{entry['question']} {'Rewritten' if again else 'First'}"
        self.keys[str(entry["question"])] = even_out(str(entry["correct"]))
        return json.dumps(entry)

    def answer(self, request: Request) -> str:
        blind = "that you cannot see" in text_of(request)
        self.calls["blind" if blind else "other"] += 1
        asked = list(zip(request.form.question.split("\n"), request.form.fields, strict=True))
        if blind:
            self.sizes.append(len(asked))
        said = [self.choose(question, field, blind=blind) for question, field in asked]
        return said[0] if len(said) == 1 else json.dumps({"answers": said})

    def choose(self, question: str, field: Field, *, blind: bool) -> str:
        texts = {option.text: option.key for option in field.options}
        given = any(word.lower() in text.lower() for text in texts for word in self.giving)
        if blind and not given and "First" not in self.giving:
            return texts["None of the others"]
        if blind and "First" in self.giving and "First" not in question:
            return texts["None of the others"]
        return texts[self.keys[question]]


def run(folder: Path, guesser: Guesser, settings: QuestionSettings = SETTINGS) -> BuiltQuestions:
    subjects = dict(list(sample_subjects().items())[:20])
    return build(folder, guesser.write, settings, guesser.answer, subjects)


def test_options_that_were_not_shown_are_tried_before_a_rewrite(tmp_path: Path) -> None:
    guesser = Guesser("wrong one")
    built = run(tmp_path, guesser)
    assert built.repaired["other distractors"] > 20
    # One scene has too few others, and of scenes two lent options would tell at a glance.
    assert guesser.calls["rewrite"] <= 1
    shown = {option.text for question in built.questions for option in question.options}
    assert not any("wrong one" in text for text in shown)


def test_then_options_of_other_memes(tmp_path: Path) -> None:
    guesser = Guesser("wrong one", "way", "matter")
    built = run(tmp_path, guesser)
    assert built.repaired["borrowed distractors"] > 5
    assert "borrowed" in {o.role for question in built.questions for o in question.options}


def test_writers_are_told_what_is_so_of_other_memes(tmp_path: Path) -> None:
    guesser, sent = Guesser("First"), list[str]()

    def write(request: Request) -> str:
        sent.append(text_of(request))
        return guesser.write(request)

    subjects = dict(list(sample_subjects().items())[:20])
    build(tmp_path, write, SETTINGS, guesser.answer, subjects)
    first = [text for text in sent if "earlier version" not in text]
    again = [text for text in sent if "earlier version" in text]
    assert all("This is so of other memes of the set" in text for text in first)
    assert len(again) > 20
    keys = set(guesser.keys.values())
    for text in again:
        told = re.search(r"<other memes \w+>\n(.*?)\n</other", text, re.S)
        assert told is not None
        answers = told.group(1).split("\n")
        assert len(answers) == 6
        assert set(answers) <= keys
        own = re.search(r"Right: (.*?)\. Wrong", text)
        assert own is not None
        assert own.group(1) not in answers


def test_then_another_question_and_at_last_it_goes(tmp_path: Path) -> None:
    guesser = Guesser("First")
    built = run(tmp_path, guesser)
    assert built.repaired == {"a rewritten question": guesser.calls["rewrite"]}
    assert len(built.questions) == guesser.calls["write"]
    stubborn = run(tmp_path / "again", Guesser(""))
    assert not stubborn.questions
    assert stubborn.repaired == {}
    fates = report_questions(stubborn, SETTINGS, Roles("fake/writer")).fates
    assert fates["Scene"]["planned"] == 20
    assert fates["Scene"]["kept"] == 0
    assert fates["Scene"]["a model finds the correct option without the meme"] == 20


def test_a_floor_keeps_guessed_questions_and_says_so(tmp_path: Path) -> None:
    settings = replace(SETTINGS, keep_per_dimension=3)
    built = run(tmp_path, Guesser(""), settings)
    assert Counter(question.dimension for question in built.questions) == {"Scene": 3, "Emotion": 3}
    assert all("without the meme; kept" in question.notes[0] for question in built.questions)
    (leak,) = [
        leak
        for leak in report_questions(built, settings, Roles("fake/writer")).leaks
        if leak.name == "model without the meme"
    ]
    assert leak.value == 1.0


def test_an_emptied_dimension_is_a_warning(tmp_path: Path) -> None:
    built = run(tmp_path, Guesser(""))
    report = report_questions(built, SETTINGS, Roles("fake/writer"))
    lines = list(note_questions(report))
    assert lines[0] == "No question about Emotion, Scene was kept."
    assert lines[1].startswith("--keep-per-dimension 1 keeps and marks one")
    # It would not help against faults that the final check found.
    fates = {
        name: {"planned": 20, "kept": 0, "final check: key wrong": 20} for name in report.fates
    }
    assert not any("--keep" in line for line in note_questions(replace(report, fates=fates)))
    assert ("Scene", "20", "0", "20 a model finds the correct option without the meme") in (
        tabulate_questions(report).rows
    )


def test_a_call_asks_several_blind_questions_never_two_about_one_meme(tmp_path: Path) -> None:
    guesser = Guesser("nothing gives it away")
    built = run(tmp_path, guesser)
    assert len(built.questions) == 40
    assert max(guesser.sizes) == SETTINGS.at_once
    # 20 memes, two questions each, in two orders, eight at once.
    assert sum(guesser.sizes) == 2 * 40
    assert len(guesser.sizes) <= 14
    assert guesser.calls["other"] == 2 * 20


def test_replies_with_too_few_letters_are_asked_again_then_count_as_silent(tmp_path: Path) -> None:
    def answer(_: Request) -> str:
        return json.dumps({"answers": ["A"]})

    subjects = dict(list(sample_subjects().items())[:9])
    built = build(tmp_path, Guesser().write, SETTINGS, answer, subjects)
    silent = [trial for trial in built.trials.values() if trial.blind == (None, None)]
    assert len(silent) == len(built.trials) == 18


def make(near: tuple[str, ...], far: tuple[str, ...], meme: str = "m") -> QuestionDraft:
    return QuestionDraft(
        f"Which animal stands in picture {meme}?", "a bee hive", near, far, "", ("Scene/x",)
    )


def item_of(draft: QuestionDraft, meme: str = "m") -> AssembledQuestion:
    slot = Slot(f"{meme}/Scene/1", meme, "Scene", "Scene/x", "wrong")
    return make_item(SlotDraft(slot, "answered", draft), draft)


def test_two_implausible_options_are_never_shown_where_a_plausible_one_is_at_hand() -> None:
    # By length alone both implausible ones would be chosen.
    item = item_of(make(("b" * 30,), ("c" * 11, "d" * 12)))
    assert {option.role for option in item.wrong} == {"plausible", "implausible"}
    (old,) = [option for option in item.wrong if option.role == "plausible"]
    assert OptionPool([item], {}, 0).lend(item, old, lambda _: True) is None
    (far,) = [option for option in item.wrong if option.role == "implausible"]
    assert OptionPool([item], {}, 0).lend(item, far, lambda _: True) is not None


@pytest.mark.parametrize(
    ("near", "far", "dealt"),
    [(("b" * 9,), ("c" * 11, "d" * 12), False), (("b" * 9, "e" * 13), ("c" * 11,), True)],
)
def test_none_is_the_key_only_where_two_others_tempt(
    near: tuple[str, ...], far: tuple[str, ...], dealt: bool
) -> None:
    item = item_of(make(near, far))
    (after,) = deal_none([item], one_step(none_proportion=1.0))
    assert (after.correct is None) is dealt
    if dealt:
        roles = Counter(option.role for option in take_key(item).wrong)
        assert roles == {"plausible": 2, "implausible": 1}


def test_an_item_without_spares_has_no_others_to_show() -> None:
    item = item_of(make(("b" * 9, "e" * 13), ("c" * 11,)))
    assert show_others(item) is None
    full = item_of(make(("b" * 9, "e" * 13), ("c" * 11, "f" * 12)))
    others = show_others(full)
    assert others is not None
    assert not {option.text for option in others.wrong} & {option.text for option in full.wrong}


def place(item: AssembledQuestion, dimension: str) -> AssembledQuestion:
    slot = replace(item.slot, dimension=dimension)
    return replace(item, drafted=replace(item.drafted, slot=slot))


def test_lent_options_come_from_other_memes() -> None:
    here = place(item_of(make(("b" * 9, "e" * 13), ("c" * 11,))), "Emotion")
    other = QuestionDraft(
        "Which animal stands in picture n?", "a zebra crossing", ("x",), ("y",), "", ()
    )
    pool = OptionPool([here, place(item_of(other, "n"), "Emotion")], {}, 0)
    made = borrow_others(pool, here)
    assert made is not None
    assert QuestionOption("a zebra crossing", "borrowed", "n/Scene/1") in made.wrong
    assert borrow_others(OptionPool([here], {}, 0), here) is None


def test_first_one_option_is_lent_and_what_tempts_stays() -> None:
    here = item_of(make(("b" * 9, "e" * 13), ("c" * 11,)))
    other = QuestionDraft(
        "Which animal stands in picture n?", "a zebra crossing", ("x",), ("y",), "", ()
    )
    pool = OptionPool([here, item_of(other, "n")], {}, 0)
    made = borrow_one(pool, here)
    assert made is not None
    assert sorted(option.role for option in made.wrong) == ["borrowed", "plausible"]
    assert borrow_one(OptionPool([here], {}, 0), here) is None
    # A scene is seen at a glance: with both options from other memes it would answer itself.
    assert here.slot.dimension == "Scene"
    assert borrow_others(pool, here) is None


@pytest.mark.parametrize(
    ("dimension", "cites", "trial", "needs"),
    [
        ("TextualMaterial", (), None, ("words",)),
        ("Scene", ("TextualMaterial/t",), None, ("words", "picture")),
        ("BackgroundKnowledge", (), None, ("words", "picture", "background")),
        ("Emotion", (), BlindTrial((False, False), True, True), ("words", "picture")),
        (
            "Emotion",
            (),
            BlindTrial((False, False), True, False),
            ("words", "picture", "background"),
        ),
        ("Emotion", (), BlindTrial((False, False), None, False), ("words", "picture")),
    ],
)
def test_a_question_says_what_it_needs(
    dimension: str, cites: tuple[str, ...], trial: BlindTrial | None, needs: tuple[str, ...]
) -> None:
    text = Individual("TextualMaterial", "t", "a line", "", ())
    draft = QuestionDraft("What?", "this", ("that",), ("those",), "", cites)
    slot = Slot("m/x/1", "m", dimension, "x", "wrong")
    item = make_item(SlotDraft(slot, "answered", draft), draft)
    assert find_needs(item, trial, Knowledge("m", (text,), "m.png", "en")) == needs
