"""Annotations come back: who agreed with a statement is kept with it, if it was shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from memantics.construction.questions.asking import QuestionSubject
from memantics.construction.questions.records import DraftQuestion, QuestionOption
from memantics.construction.questions.report import write_review
from memantics.core.errors import DataError
from memantics.core.memes import Meme
from memantics.core.queue import (
    AggregatedAnnotation,
    IndividualAnnotation,
    read_queue,
    read_review,
    write_annotations,
)
from memantics.core.samples import image_path
from memantics.understanding.knowledge.records import (
    KNOWLEDGE,
    Individual,
    Knowledge,
    Provenance,
    Relation,
    dump_knowledge,
)
from memantics.understanding.knowledge.sources import import_path, read_confirmed
from memantics.understanding.knowledge.store import GraphStore
from memantics.understanding.knowledge.validation import measure

MADE = Provenance("fake/m", "abc", "2026-01-02T03:04:05Z")
CAPTION = Individual("TextualMaterial", "caption", "a rude line", provenance=MADE)
HARM = Individual(
    "Toxicity",
    "insult",
    "an insult",
    relations=(Relation("hasToxicElement", CAPTION.key), Relation("targets", "nobody")),
    kind="Abusive",
    provenance=MADE,
)
KNOWN = Knowledge("en-001", (CAPTION, HARM), "en-001.png", "en")
OPTIONS = tuple(
    QuestionOption(text, role)  # type: ignore[arg-type]
    for text, role in (("A", "correct"), ("B", "plausible"), ("C", "implausible"), ("D", "none"))
)
QUESTION = DraftQuestion(
    "en-001/Toxicity/1", "en-001", "Toxicity", "Why?", OPTIONS, 0, "", (HARM.key,), HARM.key, 0
)


def make_build(folder: Path, question: DraftQuestion = QUESTION) -> Path:
    (folder / KNOWLEDGE).write_bytes(dump_knowledge(KNOWN))
    subject = QuestionSubject(Meme("en-001", image_path("en-001"), "x"), KNOWN)
    write_review(folder, [question], {"en-001": subject}, "en")
    return folder


def judge(build: Path) -> None:
    """p1 agrees with both, p2 with the statement alone, p3 with neither."""
    (item,) = read_queue(build / "queue")[1]
    said = {"p1": ("yes", "yes"), "p2": ("yes", "no"), "p3": ("maybe", "no")}
    votes = [
        IndividualAnnotation(
            annotator=person, stage="judge", values={"knowledge": one, "element": other}
        )
        for person, (one, other) in said.items()
    ]
    annotation = AggregatedAnnotation(
        item=item.id,
        group=item.group,
        workflow="validate",
        kept=False,
        values={},
        annotations=votes,
        hidden=item.hidden,
    )
    write_annotations(build / "queue" / "annotations.jsonl", [annotation])


def test_who_agreed_is_kept_with_what_they_agreed_with(tmp_path: Path) -> None:
    build = make_build(tmp_path)
    judge(build)
    (known,) = read_confirmed(build)
    caption, harm = known.individuals
    assert caption == CAPTION
    assert harm.provenance == replace(MADE, confirmed_by=("p1", "p2"))
    assert harm.relations[0].provenance == replace(MADE, confirmed_by=("p1",))
    assert harm.relations[1] == HARM.relations[1]


def test_the_store_counts_what_people_confirmed(tmp_path: Path) -> None:
    build = make_build(tmp_path)
    before, after = GraphStore.in_memory(), GraphStore.in_memory()
    import_path(before, build)
    assert before.get("en-001") == KNOWN
    assert measure(before).confirmed == 0
    judge(build)
    import_path(after, build)
    assert measure(after).confirmed == 1
    link = after.get("en-001").by_key[HARM.key].relations[0]
    assert link.provenance is not None
    assert link.provenance.confirmed_by == ("p1",)


def test_a_verdict_on_another_version_of_a_question_does_not_count(tmp_path: Path) -> None:
    build = make_build(tmp_path)
    judge(build)
    assert len(read_review(build / "queue", None).annotated) == 1
    # The same id, the same prompt, but a build that ran again shows other options.
    make_build(tmp_path, replace(QUESTION, answer=1))
    with pytest.raises(DataError, match=r"row 1: item .* has changed since it was annotated"):
        read_review(build / "queue", None)


def test_verdicts_without_hidden_facts_are_taken_at_their_word(tmp_path: Path) -> None:
    build = make_build(tmp_path)
    judge(build)
    path = build / "queue" / "annotations.jsonl"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"hidden": {}}) + "\n")
    assert len(read_review(build / "queue", None).annotated) == 1
