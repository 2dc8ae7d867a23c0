"""A draft with a sound question and unusable wrong options: other memes lend theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.construction.questions.asking import QuestionSubject, ask_draft
from memantics.construction.questions.balance import Lengths
from memantics.construction.questions.chain import BuiltQuestions
from memantics.construction.questions.critic import find_support
from memantics.construction.questions.records import plan_slots
from memantics.core.records import Request
from tests.construction.questions.scripts import (
    WRONG,
    Entry,
    build,
    one_step,
    sample_subjects,
    say,
    text_of,
    write_honestly,
)

THREE = ("en-001", "en-005", "en-009")
SETTINGS = one_step(attempts=2)


def repeat_itself(request: Request) -> Entry:
    """Every wrong option is the right one again, whatever it is told."""
    entry = write_honestly(request)
    return entry | dict.fromkeys(WRONG, entry["correct"])


def few(*names: str) -> dict[str, QuestionSubject]:
    return {name: sample_subjects()[name] for name in names}


@pytest.fixture(scope="module")
def lent(tmp_path_factory: pytest.TempPathFactory) -> BuiltQuestions:
    folder = tmp_path_factory.mktemp("lent")
    return build(folder, lambda own: say(repeat_itself(own)), SETTINGS, subjects=few(*THREE))


def test_three_memes_suffice_for_questions_from_a_model_that_repeats_itself(
    lent: BuiltQuestions,
) -> None:
    slots = [slot for own in few(*THREE).values() for slot in plan_slots(own.knowledge, SETTINGS)]
    assert len(lent.questions) + len(lent.rejected) == len(slots)
    assert {own.meme for own in lent.questions} == set(THREE)
    assert len(lent.questions) >= len(slots) // 2
    for own in lent.questions:
        assert len({choice.text.casefold() for choice in own.options}) == 4
        assert all(choice.text for choice in own.options)


def test_what_is_lent_is_right_elsewhere_and_wrong_here(lent: BuiltQuestions) -> None:
    subjects = few(*THREE)
    borrowed = [(own, c) for own in lent.questions for c in own.options if c.role == "borrowed"]
    assert borrowed
    for question, choice in borrowed:
        home, _, rest = choice.origin.partition("/")
        assert home in set(THREE) - {question.meme}
        known = subjects[home].knowledge.by_key
        assert rest in known or rest.rpartition("/")[0] in {key.partition("/")[0] for key in known}
        here = subjects[question.meme].knowledge.of(question.dimension)
        assert find_support(choice.text, here) is None


def test_one_meme_has_nobody_to_borrow_from(tmp_path: Path) -> None:
    built = build(tmp_path, lambda own: say(repeat_itself(own)), SETTINGS, subjects=few("en-001"))
    assert built.questions == ()
    assert {own.stage for own in built.rejected} == {"lending"}
    assert "it lacks distractors, and no similar question provides one" in built.rejected[0].reason


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"correct": "one two three four five six seven eight nine ten eleven"}, "'One two"),
        ({"question": "What does VisualMaterial imply?"}, "do not name the category"),
        ({"cites": []}, "cite what the question rests on"),
    ],
)
def test_other_faults_are_not_helped_by_lending(fault: Entry, said: str, tmp_path: Path) -> None:
    built = build(
        tmp_path, lambda own: say(repeat_itself(own) | fault), SETTINGS, subjects=few(*THREE)
    )
    assert built.questions == ()
    assert all(own.stage == "writing" for own in built.rejected)
    assert all(own.reason.startswith(f"unparsed: {said}") for own in built.rejected)


def test_of_two_attempts_the_one_that_lacks_less_is_kept(tmp_path: Path) -> None:
    """The second attempt is worse than the first: the first one's own options stay."""
    seen: set[str] = set()

    def write(request: Request) -> str:
        entry = write_honestly(request)
        first = not any(text_of(request).startswith(one) for one in seen)
        seen.add(text_of(request))
        wrong = WRONG[1:2] if first else WRONG
        return say(entry | dict.fromkeys(wrong, entry["correct"]))

    built = build(tmp_path, write, SETTINGS, subjects=few(*THREE))
    assert built.drafted
    assert all(own.draft and len(own.draft.wrong) == 2 for own in built.drafted)


def test_a_handful_of_questions_is_not_trimmed_away() -> None:
    few_items, many = Lengths(keyed=3, single=3, longest=2), Lengths(keyed=300, single=300)
    assert few_items.rate <= few_items.fair + few_items.edge(0.05)
    assert many.edge(0.05) == pytest.approx(0.04)


@pytest.mark.parametrize(("language", "most"), [("en", 40), ("zh", 13)])
def test_lengths_are_asked_for_that_the_budget_allows(language: str, most: int) -> None:
    settings = one_step(language=language)
    subject = sample_subjects()["en-001"]
    targets = set()
    for slot in plan_slots(subject.knowledge, settings):
        sent = text_of(ask_draft(subject, slot, settings))
        targets.add(int(sent.partition(" words, about ")[2].partition(" characters")[0]))
    assert max(targets) <= most
    assert min(targets) >= most // 3
