"""What no model judged or wrote is kept apart, counted once, and said."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from memantics.construction.build import questions
from memantics.construction.build_tables import note_questions
from memantics.construction.questions.asking import even_out
from memantics.construction.questions.drafting import drop_faulty, list_key_defects
from memantics.construction.questions.final import SaidCheck, list_faults
from memantics.construction.questions.form import find_key_faults
from memantics.construction.questions.records import QuestionSettings
from memantics.construction.questions.report import Roles, report_questions
from memantics.construction.questions.writing import ask_options
from memantics.core.errors import InputError, Rejected
from memantics.core.records import Request
from memantics.core.reply import conform_value
from memantics.core.task import Unparsed
from tests.construction.questions.scripts import sample_subjects
from tests.construction.questions.test_two_steps import (
    KNOWN,
    NEW,
    SETTINGS,
    SOUND,
    Staff,
    run,
    text_of,
)

NO = "I'm sorry, but I can't help with that."


class Mute(Staff):
    """A staff of which one member fails every request that holds a word."""

    def __init__(self, role: str, reply: str | None, word: str = "") -> None:
        super().__init__()
        self.role, self.reply, self.word = role, reply, word

    def fail(self, request: Request) -> str:
        if self.reply is None:
            raise Rejected("400 the request is too long")
        return self.reply

    def write(self, request: Request) -> str:
        return self.fail(request) if self.role == "writer" else super().write(request)

    def judge(self, request: Request) -> str:
        spoiled = self.role == "critic" and self.word in text_of(request)
        return self.fail(request) if spoiled else super().judge(request)


@pytest.mark.parametrize(
    ("reply", "status"), [(NO, "refused"), ("no JSON {", "unparsed"), (None, "failed")]
)
def test_a_question_that_was_not_written_is_counted_once(
    tmp_path: Path, reply: str | None, status: str
) -> None:
    built = run(tmp_path, Mute("writer", reply), memes=1)
    report = report_questions(built, SETTINGS, Roles("w", "c", "r"))
    assert report.questions == 0
    assert report.statuses[status] == report.slots == sum(report.statuses.values())


@pytest.mark.parametrize(
    ("reply", "reason"), [(NO, "refused"), ("{", "unparsed"), (None, "failed: 400")]
)
def test_a_question_that_no_critic_judged_is_kept_marked_and_counted(
    tmp_path: Path, reply: str | None, reason: str
) -> None:
    built = run(tmp_path, Mute("critic", reply), memes=1)
    report = report_questions(built, SETTINGS, Roles("w", "c", "r"))
    assert set(report.unchecked) == {question.id for question in built.questions} != set()
    for question in built.questions:
        assert question.notes[0].startswith(f"no model judged its final form: {reason}")
    assert any("without a readable judgement" in line for line in note_questions(report))
    sound = run(tmp_path / "sound", Staff(), memes=1)
    assert sound.unchecked == {}
    assert not any(note.startswith("no model") for own in sound.questions for note in own.notes)


def test_a_question_that_a_critic_refuses_does_not_spoil_the_others(tmp_path: Path) -> None:
    sound = run(tmp_path / "sound", Staff(), memes=1)
    word = sound.questions[0].question
    built = run(tmp_path / "one", Mute("critic", NO, word), memes=1)
    assert list(built.unchecked) == [sound.questions[0].id]
    assert len(built.questions) == len(sound.questions) > 2


def test_a_reader_without_an_answer_is_noted(tmp_path: Path) -> None:
    class Silent(Staff):
        def answer(self, request: Request) -> str:
            return NO if "cannot see" in text_of(request) else super().answer(request)

    built = run(tmp_path, Silent(), memes=1)
    told = "no readable answer of a model without the meme"
    assert all(told in question.notes for question in built.questions)


@pytest.mark.parametrize(
    "right", [["a"], ["A."], ["(A)"], ["A. He hides his own fault behind prayer"]]
)
def test_letters_are_read_as_models_write_them(right: list[str]) -> None:
    said = conform_value(SaidCheck, {"right": list(right), "follows": ["a)"], "told": None})
    assert list(list_faults(SOUND, said, (0, 1, 2, 3))) == []


def test_what_is_no_letter_is_no_judgement() -> None:
    with pytest.raises(Unparsed, match="not a letter of an option"):
        conform_value(SaidCheck, {"right": ["E"]})
    with pytest.raises(Unparsed, match="not a letter of an option"):
        conform_value(SaidCheck, {"right": ["A"], "glance": "Both"})


def test_a_judgement_that_leaves_a_point_out_is_asked_for_again(tmp_path: Path) -> None:
    class Terse(Staff):
        asked: ClassVar[Counter[str]] = Counter()

        def judge(self, request: Request) -> str:
            said = super().judge(request)
            if "Judge each question" not in text_of(request):
                return said
            again = "could not be used" in text_of(request)
            self.asked["again" if again else "first"] += 1
            full = {"unseen": "", "glance": "", "awkward": False, "none": False}
            entries = {n: {**entry, **full} for n, entry in json.loads(said).items()}
            if not again:
                entries["1"].pop("glance")
            return json.dumps(entries)

    built = run(tmp_path, Terse(), memes=1)
    assert Terse.asked["again"] == Terse.asked["first"] > 0
    assert built.unchecked == {}
    assert built.questions


def test_filler_words_drop_a_wrong_option_before_it_is_shown() -> None:
    padded = "He finds new courage in it somehow"
    wrong = ("He finds new courage in prayer", "He teaches his own children to pray well", padded)
    kept, fault = drop_faulty(replace(SOUND.draft, plausible=wrong), SOUND.slot, KNOWN, SETTINGS)
    assert (kept.plausible, fault) == (wrong[:2], "")


def test_without_a_critic_no_model_is_said_to_have_judged(tmp_path: Path) -> None:
    settings = QuestionSettings(critic="statistics")
    assert not settings.judged
    built = run(tmp_path, Staff(), settings, memes=1)
    report = report_questions(built, settings, Roles("w"))
    assert (report.critic_model, report.reader_model, report.shared) == ("", "", "")
    for words in ({"critic_model": "fake/builder"}, {"reader_model": "fake/builder"}):
        with pytest.raises(InputError, match="needs a model as critic") as caught:
            questions(tmp_path, model="fake/builder", **words)  # type: ignore[arg-type]
        assert caught.value.hint == "add --critic model"


def test_what_was_sound_is_kept_if_the_last_attempt_is_refused(tmp_path: Path) -> None:
    class Tired(Staff):
        """Writes one key without evidence, then nothing more."""

        def write(self, request: Request) -> str:
            if "Step 1 of 2" not in text_of(request):
                return super().write(request)
            if "could not be used" in text_of(request):
                return NO
            said = json.loads(super().write(request))
            said["1"]["evidence"] = []
            said["1"]["key"] = "Something"
            return json.dumps(said)

    built = run(tmp_path, Tired(), memes=1)
    report = report_questions(built, SETTINGS, Roles("w", "c", "r"))
    assert report.questions > 2
    assert report.statuses["refused"] == report.reasons["refused"] == report.rejected > 0


def test_the_reason_of_a_rejection_is_that_of_the_last_version(tmp_path: Path) -> None:
    class Keen(Staff):
        """A reader that finds the key only among new options."""

        def answer(self, request: Request) -> str:
            said = []
            for field in request.form.fields:
                new = any(option.text in NEW for option in field.options)
                said.append(next((o.key for o in field.options if "quiet" in o.text and new), "A"))
            return said[0] if len(said) == 1 else json.dumps({"answers": said})

    staff = Keen(lambda letter, _: {"off": [o for o in "ABC" if o != letter]})
    built = run(tmp_path, staff, memes=1)
    assert built.questions == ()
    assert {one.reason for one in built.rejected} == {
        "a model finds the correct option without the meme"
    }


@pytest.mark.parametrize(
    ("question", "key", "found"),
    [
        ("How does it feel?", "Perfectly content now", True),
        ("What does the dial say?", "It frees whoever had to stay until now", False),
        ("What should the viewer feel?", "Pity for a figure", True),
        ("Why does it sweat?", "It is asked for the one thing it must hide", False),
    ],
)
def test_a_word_with_a_meaning_is_no_filler(question: str, key: str, *, found: bool) -> None:
    draft = replace(SOUND.draft, question=question, correct=key)
    codes = {defect.code for defect in find_key_faults(draft, KNOWN)}
    assert bool(codes & {"padding", "vague"}) is found


def test_options_in_another_language_are_dropped_and_keys_sent_back() -> None:
    other = "他在祷告里又找到了勇气和力量，然后教孩子们怎么祷告，于是大家都很高兴"
    wrong = ("He finds new courage in prayer", "He teaches his own children to pray well", other)
    kept, fault = drop_faulty(replace(SOUND.draft, plausible=wrong), SOUND.slot, KNOWN, SETTINGS)
    assert (kept.plausible, fault) == (wrong[:2], "")
    chinese = replace(SETTINGS, language="zh")
    codes = [d.code for d in list_key_defects(SOUND.draft, SOUND.slot, KNOWN, chinese)]
    assert "language" in codes
    assert "language" not in [
        d.code for d in list_key_defects(SOUND.draft, SOUND.slot, KNOWN, SETTINGS)
    ]


def test_points_of_other_memes_are_whole_and_exclamation_marks_tell_nothing() -> None:
    point = "a smiling clock: it stands at six and beams, " + "since its working day is over, " * 6
    sent = text_of(
        ask_options(
            sample_subjects()["en-012"],
            [(SOUND.slot, SOUND.draft)],
            SETTINGS,
            None,
            {SOUND.slot.id: [point]},
        )
    )
    assert point.strip() in sent
    assert even_out("They name a small team!") == even_out("They name a small team")
