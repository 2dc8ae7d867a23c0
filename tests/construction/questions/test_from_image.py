"""Toxicity questions from the image alone, and background that was retrieved: both are marked."""

from __future__ import annotations

import json

import pytest

from memantics.construction.questions.asking import QuestionSubject, ask_draft, list_places
from memantics.construction.questions.assembly import FROM_IMAGE, read_sound
from memantics.construction.questions.critic import check_citations
from memantics.construction.questions.records import (
    QuestionDraft,
    find_toxic_element,
    plan_slots,
)
from memantics.core.memes import Meme
from memantics.core.queue import read_queue
from memantics.core.samples import image_path
from memantics.understanding.knowledge.records import Individual, Knowledge, Relation
from tests.commands import Shell
from tests.construction.questions.scripts import one_step

BARE = Knowledge("m", (Individual("Scene", "duel", "a duel"),))
TOXIC = Knowledge("m", (Individual("Toxicity", "slur", "a slur", kind="Hateful"),))


def test_without_an_individual_the_image_is_asked_about_only_where_it_was_wanted() -> None:
    wanted = one_step(from_image=True)
    assert [slot.dimension for slot in plan_slots(BARE, one_step())] == ["Scene"]
    [_, slot] = plan_slots(BARE, wanted)
    assert (slot.dimension, slot.focus) == ("Toxicity", "")
    assert [slot.focus for slot in plan_slots(TOXIC, wanted)] == ["Toxicity/slur"]
    only = one_step(from_image=True, dimensions=("Scene",))
    assert [slot.dimension for slot in plan_slots(BARE, only)] == ["Scene"]
    request = ask_draft(QuestionSubject(Meme("m", image_path("en-001")), BARE), slot, wanted)
    told = "\n".join(part for part in request.messages[0].parts if isinstance(part, str))
    assert "look at the meme itself" in told
    assert "a duel" not in told, "it is told nothing that is known"
    assert "cites" not in told
    assert request.schema is not None
    assert not {"about", "cites"} & set(request.schema["properties"])  # type: ignore[arg-type]
    reply = {
        "question": "Whom does it mock?",
        "correct": "The host of the duel",
        "explanation": "x",
    }
    wrong = {
        "plausible": ["Every single guest", "All of the cooks"],
        "implausible": ["Its own judge"],
    }
    text = json.dumps(reply | wrong | {"cites": ["Scene/duel"]})
    assert read_sound(text, slot, BARE, wanted).cites == ()
    draft = QuestionDraft("Whom does it mock?", "The host", ("A", "B"), ("C",), "", ())
    assert not list(check_citations(draft, slot, BARE))
    assert find_toxic_element(BARE, BARE.individuals[0]) is None


@pytest.mark.slow
def test_such_questions_are_marked_in_the_build_the_queue_and_the_benchmark(shell: Shell) -> None:
    built = shell.run("build", "knowledge", "sample", "--model", "fake/builder", "--limit", "5")
    assert built.code == 0, built
    path = shell.folder / "builds" / "sample" / "knowledge.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        kept = [own for own in line["individuals"] if own["dimension"] != "Toxicity"]
        line["individuals"] = kept
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    words = ("build", "questions", "builds/sample", "--model", "fake/builder")
    ran = shell.run(*words, "--from-image", "--dimension", "Toxicity")
    assert ran.code == 0, ran
    questions = path.with_name("questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in questions]
    assert rows
    assert all(row["focus"] == "" and FROM_IMAGE in row["notes"] for row in rows)
    _, items = read_queue(path.with_name("queue"))
    assert all(item.hidden["from_image"] is True for item in items)


@pytest.mark.slow
def test_retrieved_background_is_told_and_named(shell: Shell) -> None:
    notes = shell.folder / "notes"
    notes.mkdir()
    text = "Mondays are said to be the worst day.\n\nCats are said to want boxes.\n"
    (notes / "lore.txt").write_text(text, encoding="utf-8")
    words = ("build", "knowledge", "sample", "--model", "fake/builder", "--limit", "3")
    ran = shell.run(*words, "--retrieve", "notes", "--retrieved", "1")
    assert ran.code == 0, ran
    folder = shell.folder / "builds" / "sample"
    sent = (folder / "calls.jsonl").read_text(encoding="utf-8")
    assert sent
    lines = (folder / "knowledge.jsonl").read_text(encoding="utf-8").splitlines()
    known = [json.loads(line) for line in lines]
    sources = {
        (own["dimension"], own["provenance"].get("source", ""))
        for line in known
        for own in line["individuals"]
    }
    assert any("lore.txt" in source for name, source in sources if name == "BackgroundKnowledge")
    assert {source for name, source in sources if name == "VisualMaterial"} == {""}


def test_a_question_about_a_scene_or_a_thing_is_told_how_things_stand() -> None:
    links = (Relation("isLeftOf", "VisualMaterial/dog"), Relation("holds", "VisualMaterial/dog"))
    cat = Individual("VisualMaterial", "cat", "the cat", relations=links)
    dog = Individual("VisualMaterial", "dog", "the dog")
    joy = Individual("Emotion", "joy", "joy")
    park = Individual("Scene", "park", "a park", relations=(Relation("hasParticipant", dog.key),))
    known = Knowledge("m", (cat, dog, park, joy))
    told = [list_places(known, individual) for individual in (cat, dog, park, joy)]
    assert told == [["the cat is left of the dog."]] * 3 + [[]]
    [slot] = plan_slots(known, one_step(dimensions=("Scene",)))
    subject = QuestionSubject(Meme("m", image_path("en-001")), known)
    request = ask_draft(subject, slot, one_step())
    assert "the cat is left of the dog." in str(request.messages[0].parts[-1])
