"""The critic: each defect that the released questions had, and can have again, is caught.

The numbers are those of the list of traps in SPEC.md, section 1d; "1b" are malformed questions
that its table of figures counts.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from memantics.construction.questions.asking import QuestionSubject, ask_draft, read_draft
from memantics.construction.questions.critic import find_defects
from memantics.construction.questions.records import (
    QuestionDraft,
    Slot,
    plan_slots,
)
from memantics.core.memes import Meme
from memantics.core.samples import image_path
from memantics.core.task import Unparsed
from memantics.understanding.knowledge.records import Individual, Knowledge, Relation
from tests.construction.questions.scripts import one_step, text_of

KNOWN = Knowledge(
    "m",
    (
        Individual("VisualMaterial", "cat", "a grumpy cat", "It frowns on a red sofa"),
        Individual("VisualMaterial", "lamp", "a broken lamp"),
        Individual("Emotion", "anger", "quiet anger", "The cat has had enough"),
        Individual("TargetCommunity", "cat", "owners of cats", "They are addressed"),
        Individual(
            "Toxicity",
            "insult",
            "an insult",
            "It calls somebody names",
            (Relation("hasToxicElement", "VisualMaterial/cat"),),
            "Abusive",
        ),
    ),
)
SLOT = Slot("m/VisualMaterial/1", "m", "VisualMaterial", "VisualMaterial/cat", "wrong")
SOUND = QuestionDraft(
    "Who is sitting in front of the window?",
    correct="an animal that frowns",
    plausible=("a child that cannot sleep", "a guest that came early"),
    implausible=("a robot made of tin",),
    explanation="The cat is seen there.",
    cites=("VisualMaterial/cat",),
)
SETTINGS = one_step()


def codes(draft: QuestionDraft, slot: Slot = SLOT) -> list[str]:
    return [own.code for own in find_defects(draft, slot, KNOWN, SETTINGS)]


def test_a_sound_draft_has_no_defect() -> None:
    assert codes(SOUND) == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"cites": ()}, "citation missing", id="1 nothing is cited"),
        pytest.param(
            {"cites": ("VisualMaterial/lamp",)}, "citation missing", id="1 the focus is not cited"
        ),
        pytest.param(
            {"cites": ("VisualMaterial/cat", "Scene/nap")},
            "citation dangling",
            id="7 a citation leads nowhere",
        ),
        pytest.param(
            {"cites": ("cat",)}, "citation dangling", id="6 a name that two classes share"
        ),
        pytest.param(
            {"question": "What does VisualMaterial imply in this meme?"},
            "class name",
            id="2 the class in one word",
        ),
        pytest.param(
            {"question": "Which visual material is dominant?"},
            "class name",
            id="2 the class in two words",
        ),
        pytest.param(
            {"question": "How would you rate the toxicity of it?"}, "class name", id="2 toxicity"
        ),
        pytest.param(
            {"question": "What does the Emotion stand for?"}, "class name", id="2 a class as a name"
        ),
        pytest.param(
            {"plausible": ("the semiotic projection of a child",)},
            "class name",
            id="2 the class in an option",
        ),
        pytest.param(
            {"implausible": ("tin",)}, "length spread", id="1b an option is far shorter than others"
        ),
        pytest.param(
            {"plausible": ("one two three four five six seven eight nine ten eleven",)},
            "word budget",
            id="1b more words than allowed",
        ),
        pytest.param({"plausible": ("?!",)}, "word budget", id="1b an option without words"),
        pytest.param(
            {"plausible": ("An animal, that frowns.",)}, "duplicate options", id="1b twice the same"
        ),
        pytest.param(
            {"plausible": ("x", "x"), "implausible": ("x",), "correct": "x"},
            "duplicate options",
            id="1b four identical options",
        ),
        pytest.param(
            {"implausible": ("None of the others",)}, "none option", id="8 its own last resort"
        ),
        pytest.param({"implausible": ("None of these",)}, "none option", id="8 in other words"),
        pytest.param(
            {"implausible": ("All of the above",)}, "all of the above", id="an option about options"
        ),
        pytest.param(
            {"plausible": ("both A and B",)}, "all of the above", id="an option about letters"
        ),
        pytest.param(
            {"question": "Which animal frowns in this meme?"},
            "answer leaked",
            id="the question holds the answer",
        ),
        pytest.param({"question": "Who?"}, "question form", id="no question"),
        pytest.param(
            {"plausible": ("a broken lamp",)},
            "wrong option is right",
            id="the graph has a wrong option",
        ),
        pytest.param(
            {"plausible": ("a frowns red sofa",)},
            "wrong option is right",
            id="the graph has its words",
        ),
        pytest.param(
            {"correct": "not a grumpy cat"}, "contradicted", id="the graph says otherwise"
        ),
    ],
)
def test_a_defect_is_caught(change: dict[str, object], code: str) -> None:
    assert code in codes(replace(SOUND, **change))  # type: ignore[arg-type]


TOXIC = Slot("m/Toxicity/1", "m", "Toxicity", "Toxicity/insult", "wrong")


def test_an_inhuman_insult_is_no_denial_of_harm() -> None:
    """没有人 is "nobody", 没有人性 is "inhuman"."""
    denied = replace(SOUND, correct="没有人受伤", cites=("Toxicity/insult",))
    insult = replace(SOUND, correct="骂对方没有人性", cites=("Toxicity/insult",))
    assert "contradicted" in codes(denied, TOXIC)
    assert "contradicted" not in codes(insult, TOXIC)


@pytest.mark.parametrize("correct", ["a hateful slogan", "it is harmless", "nobody is hurt"])
def test_an_answer_against_the_kind_of_toxicity_is_contradicted(correct: str) -> None:
    draft = replace(SOUND, correct=correct, cites=("Toxicity/insult",))
    assert "contradicted" in codes(draft, TOXIC)


@pytest.mark.parametrize("correct", ["借谐音骂对方没有人性", "拐着弯骂对方没有人情味"])
def test_an_insult_that_holds_nobody_s_letters_is_no_denial(correct: str) -> None:
    """The only gate that refused a good reply in the third trial."""
    draft = replace(SOUND, correct=correct, cites=("Toxicity/insult",))
    assert "contradicted" not in codes(draft, TOXIC)


def test_an_answer_that_fits_the_kind_of_toxicity_is_not() -> None:
    draft = replace(SOUND, correct="an abusive, harmful name", cites=("Toxicity/insult",))
    assert codes(draft, TOXIC) == []


def test_everyday_words_are_no_class_names() -> None:
    assert codes(replace(SOUND, question="What emotion does the scene show?")) == []


def test_the_key_may_be_longest_in_a_draft() -> None:
    """Which options an item shows is chosen by length; a few characters cost no draft."""
    assert codes(replace(SOUND, correct="an animal that frowns at everybody")) == []


@pytest.mark.parametrize(("size", "found"), [(30, []), (31, ["length spread"])])
def test_an_option_may_be_twice_as_long_as_another_and_a_little_more(
    size: int, found: list[str]
) -> None:
    """Beside one of nine characters."""
    draft = replace(SOUND, correct="a" * size, plausible=("a red car",), implausible=("b" * 20,))
    assert codes(draft) == found


@pytest.mark.parametrize(("words", "found"), [(10, []), (11, ["word budget"])])
def test_a_word_or_two_over_the_budget_cost_no_draft(words: int, found: list[str]) -> None:
    assert codes(replace(SOUND, correct=" ".join(["an"] * words))) == found


@pytest.mark.parametrize(
    "said",
    [
        {"correct": None},
        {"correct": ""},
        {"cites": "VisualMaterial/cat"},
        {"implausible": []},
        {"implausible": [1]},
    ],
)
def test_a_malformed_question_is_not_read(said: dict[str, object]) -> None:
    """1b: no key, no "none" option, other than four options."""
    whole = {
        "question": "q",
        "correct": "a",
        "plausible": "b",
        "spare": "c",
        "implausible": "d",
        "explanation": "",
        "cites": [],
    }
    with pytest.raises(Unparsed):
        read_draft(json.dumps(whole | said), KNOWN)
    missing = {name: value for name, value in whole.items() if name != "implausible"}
    with pytest.raises(Unparsed, match="the field 'implausible' is missing"):
        read_draft(json.dumps(missing), KNOWN)


def test_the_definition_and_the_knowledge_reach_the_writer() -> None:
    """1 and 2: the released questions were written without either."""
    subject = QuestionSubject(Meme("m", image_path("en-001"), "hello"), KNOWN)
    for slot in plan_slots(KNOWN, SETTINGS):
        sent = text_of(ask_draft(subject, slot, SETTINGS))
        assert all(own.key in sent for own in KNOWN.individuals)
        assert KNOWN.by_key[slot.focus].label in sent
    assert "Something that can be seen in the meme" in text_of(ask_draft(subject, SLOT, SETTINGS))


def test_nothing_is_asked_about_what_is_not_known() -> None:
    """1: no individuals, no question."""
    assert list(plan_slots(Knowledge("m", ()), SETTINGS)) == []
    assert {slot.dimension for slot in plan_slots(KNOWN, SETTINGS)} == {
        "VisualMaterial",
        "Emotion",
        "TargetCommunity",
        "Toxicity",
    }


def test_toxicity_questions_come_with_their_element() -> None:
    (pair,) = [slot for slot in plan_slots(KNOWN, SETTINGS) if slot.pair]
    assert (pair.id, pair.pair) == ("m/VisualMaterial/1", "m/Toxicity/1")
    assert pair.focus == "VisualMaterial/cat"
    only = one_step(dimensions=("Toxicity",))
    assert [(slot.id, slot.pair) for slot in plan_slots(KNOWN, only)] == [
        ("m/Toxicity/1", ""),
        ("m/VisualMaterial/toxic-1", "m/Toxicity/1"),
    ]


def test_several_questions_of_a_dimension_are_about_different_individuals() -> None:
    slots = plan_slots(KNOWN, one_step(per_dimension=2, dimensions=("VisualMaterial",)))
    assert [slot.focus for slot in slots] == ["VisualMaterial/cat", "VisualMaterial/lamp"]
