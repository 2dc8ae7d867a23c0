"""The critic that asks a model: what it solves unfairly is rewritten or rejected."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from memantics.construction.questions.asking import QuestionSubject, even_out
from memantics.construction.questions.chain import BuiltQuestions
from memantics.construction.questions.records import QuestionSettings
from memantics.construction.questions.report import Roles, report_questions
from memantics.construction.questions.solver import BlindTrial, read_letter, try_items
from memantics.core.records import Image, Request
from memantics.core.task import Unparsed
from memantics.models.client import ModelClient
from memantics.models.fake import FakeModel, ScriptedReply
from tests.construction.questions.scripts import (
    build,
    complaint_of,
    one_step,
    sample_subjects,
    say,
    text_of,
    write_honestly,
)

SETTINGS = one_step(critic="model", attempts=1, dimensions=("Scene", "Emotion"), at_once=1)


def some(count: int = 40) -> dict[str, QuestionSubject]:
    return dict(list(sample_subjects().items())[:count])


def way_of(request: Request) -> str:
    if "that you cannot see" in text_of(request):
        return "blind"
    return "seen" if isinstance(request.messages[0].parts[0], Image) else "known"


def key_of(request: Request, keys: Mapping[str, str]) -> str:
    """The letter of the option that a writer meant, "none" where it is not there."""
    letters = {own.text: own.key for own in request.form.fields[0].options}
    return letters.get(keys[request.form.question], letters["None of the others"])


class Cheat:
    """Knows every right answer; uses it wherever a test says so, and says "A" otherwise."""

    def __init__(self, *ways: str) -> None:
        self.ways = ways
        self.keys: dict[str, str] = {}
        self.asked: Counter[str] = Counter()

    def write(self, request: Request) -> str:
        entry = write_honestly(request)
        self.keys[str(entry["question"])] = even_out(str(entry["correct"]))
        return say(entry)

    def answer(self, request: Request) -> ScriptedReply:
        way = way_of(request)
        self.asked[way] += 1
        return key_of(request, self.keys) if way in self.ways else "A"


def run(tmp_path: Path, cheat: Cheat, settings: QuestionSettings = SETTINGS) -> BuiltQuestions:
    return build(tmp_path, cheat.write, settings, cheat.answer, some())


def test_what_is_solved_blindly_is_rewritten_then_set_aside(tmp_path: Path) -> None:
    built = run(tmp_path, Cheat("blind", "known"))
    reasons = Counter(own.reason for own in built.rejected)
    assert reasons["a model finds the correct option without the meme"] > 60
    assert not built.questions


def test_an_honest_trial_keeps_the_set_at_chance(tmp_path: Path) -> None:
    cheat = Cheat("known")
    built = run(tmp_path, cheat)
    assert len(built.questions) > 60
    report = report_questions(built, SETTINGS, Roles("fake/writer", "fake/critic"))
    (leak,) = [own for own in report.leaks if own.name == "model without the meme"]
    assert leak.judge(0.05) in ("within tolerance", "below chance")
    assert cheat.asked["blind"] >= 2 * len(built.questions)


def test_a_rewritten_question_takes_the_place_of_the_solved_one(tmp_path: Path) -> None:
    written: Counter[bool] = Counter()

    cheat = Cheat()

    def write(request: Request) -> str:
        again = "of this earlier version" in text_of(request)
        written[again] += 1
        entry = write_honestly(request)
        entry["question"] = f"{'A hard' if again else 'An easy'} one: {entry['question']}"
        cheat.keys[str(entry["question"])] = even_out(str(entry["correct"]))
        return say(entry)

    def answer(request: Request) -> str:
        if way_of(request) == "blind" and "A hard one" in text_of(request):
            return "A"
        return key_of(request, cheat.keys)

    built = build(tmp_path, write, SETTINGS, answer, some())
    assert written[True] > 60
    assert len(built.questions) > 60
    assert all(own.question.startswith("A hard one") for own in built.questions)


def test_a_key_that_the_knowledge_contradicts_is_set_aside(tmp_path: Path) -> None:
    built = run(tmp_path, Cheat())
    reasons = Counter(own.reason for own in built.rejected)
    assert reasons["the knowledge supports an option other than the correct one"] > 20
    assert all(built.trials[own.id].known for own in built.questions)


def test_whether_the_knowledge_was_needed_is_noted(tmp_path: Path) -> None:
    built = run(tmp_path, Cheat("known", "seen"))
    assert built.questions
    note = "answered from the meme alone, without the knowledge"
    assert all(own.notes == (note,) for own in built.questions)


def test_a_critic_without_readable_answers_measures_nothing(tmp_path: Path) -> None:
    built = build(tmp_path, Cheat().write, SETTINGS, lambda _: "Hmm.", some())
    report = report_questions(built, SETTINGS, Roles("fake/writer", "fake/critic"))
    (leak,) = [own for own in report.leaks if own.name == "model without the meme"]
    assert leak.value is None
    assert leak.judge(0.05) == "not measured"
    assert "no readable answer" in leak.note
    assert built.questions


def test_blind_asks_show_neither_meme_nor_knowledge(tmp_path: Path) -> None:
    built = build(tmp_path, Cheat().write, one_step(critic="off"), subjects=some(3))
    seen: list[Request] = []

    def answer(request: Request) -> str:
        seen.append(request)
        return "B"

    async def ask() -> dict[str, BlindTrial]:
        with ModelClient(FakeModel(answer), tmp_path / "client") as client:
            return await try_items(client, built.items, sample_subjects(), SETTINGS)

    trials = asyncio.run(ask())
    assert len(trials) == len(built.items)
    for request in seen:
        images = [part for part in request.messages[0].parts if isinstance(part, Image)]
        text, way = text_of(request), way_of(request)
        assert bool(images) == (way == "seen")
        assert ("<known about the meme" in text) == (way == "known")
    # Whoever always says the same letter finds no key in both orders.
    assert not any(trial.solved_blindly for trial in trials.values())


@pytest.mark.parametrize(
    ("text", "letter"), [("B", "B"), ("(c)", "C"), ("Answer: D.", "D"), ("the answer is", None)]
)
def test_letters_are_read_or_nothing_is(text: str, letter: str | None) -> None:
    if letter is None:
        with pytest.raises(Unparsed):
            read_letter(text)
    else:
        assert read_letter(text) == letter


def test_a_writer_hears_what_was_wrong(tmp_path: Path) -> None:
    complaints: list[str] = []

    def write(request: Request) -> str:
        entry = write_honestly(request)
        if complaint_of(request):
            complaints.append(complaint_of(request))
            return say(entry)
        return say(entry | {"cites": []})

    settings = one_step(dimensions=("Scene",), critic="off", attempts=2)
    built = build(tmp_path, write, settings, subjects=some(5))
    assert built.questions
    assert all(own.startswith("cite what") for own in complaints)


def test_what_the_writer_never_mends_is_set_aside_with_the_reason(tmp_path: Path) -> None:
    def write(request: Request) -> str:
        return say(write_honestly(request) | {"question": "What does OverallIntent say here?"})

    settings = one_step(dimensions=("Scene",), attempts=2)
    built = build(tmp_path, write, settings, subjects=some(5))
    assert not built.questions
    assert {own.reason.split(";")[0] for own in built.rejected} == {
        "unparsed: do not name the category (OverallIntent)"
    }
