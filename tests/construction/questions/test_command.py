"""``memantics build questions`` as a user runs it, and the queue it leaves for people."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from memantics.annotation.workflow import read_workflow
from memantics.construction.build import questions
from memantics.construction.questions.asking import ask_blind, ask_draft, ask_known, ask_seen
from memantics.construction.questions.build import build_questions
from memantics.construction.questions.chain import BuiltQuestions
from memantics.construction.questions.records import plan_slots
from memantics.construction.questions.report import (
    make_queue,
    read_questions,
    write_questions,
    write_review,
)
from memantics.core.errors import DataError, InputError, Unavailable
from memantics.core.model import ask_again
from memantics.core.queue import read_queue
from memantics.core.records import Image, Request
from memantics.core.samples import image_path
from memantics.models.client import ModelClient
from memantics.models.fake import FakeModel, ScriptedReply
from memantics.understanding.extraction.report import adopt_memes
from memantics.understanding.knowledge.records import Knowledge, dump_knowledge
from tests.commands import Shell
from tests.construction.questions.scripts import (
    build,
    one_step,
    sample_subjects,
    say,
    text_of,
    write_honestly,
)

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is known about some memes of the sample data."""
    shell = Shell(tmp_path_factory.mktemp("known"))
    folder = shell.folder / "memes"
    folder.mkdir()
    for number in range(1, 9):
        shutil.copy(image_path(f"en-{number:03}"), folder)
    shell.done("build", "knowledge", folder, "-m", "fake/builder", "--out", "b")
    return shell.folder / "b"


@pytest.fixture
def made(shell: Shell, known: Path) -> Path:
    """A copy of that build, for each test its own."""
    return shutil.copytree(known, shell.folder / "b")


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> BuiltQuestions:
    """A set that a well-behaved writer wrote, about some memes of which several have pairs."""
    settings = one_step(critic="off", attempts=1)
    toxic = {meme: own for meme, own in sample_subjects().items() if own.knowledge.of("Toxicity")}
    subjects = dict(list(sample_subjects().items())[:6] + list(toxic.items())[:6])
    folder = tmp_path_factory.mktemp("honest")
    return build(folder, lambda asked: say(write_honestly(asked)), settings, subjects=subjects)


@pytest.mark.slow
def test_a_build_gets_questions_and_a_queue(shell: Shell, made: Path) -> None:
    shell.done("build", "questions", made, "-m", "fake/builder")
    questions = list(read_questions(made))
    report = json.loads((made / "report-questions.json").read_text())
    assert report["questions"] == len(questions) > 20
    assert report["slots"] == report["questions"] + report["rejected"]
    rejected = (made / "rejected.jsonl").read_text().splitlines()
    assert all(json.loads(line)["reason"] for line in rejected)
    card, items = read_queue(made / "queue")
    assert card.workflow == "validate"
    judged = [name for item in items for name in item.hidden["questions"]]  # type: ignore[union-attr]
    assert sorted(map(str, judged)) == sorted(own.id for own in questions)
    for item in items:
        assert all((made / "queue" / image).is_file() for image in item.images)
    first = {path.name: path.read_bytes() for path in made.glob("*.jsonl")}
    shell.done("build", "questions", made, "-m", "fake/builder")
    assert {path.name: path.read_bytes() for path in made.glob("*.jsonl")} == first


@pytest.mark.slow
def test_what_a_user_can_fix_is_one_line(shell: Shell, made: Path) -> None:
    (made / "knowledge.jsonl").write_text('{"meme": "x"}\n')
    assert "row 1" in shell.refused("build", "questions", made, "-m", "fake/builder")


def test_what_else_a_user_can_fix(shell: Shell, made: Path) -> None:
    with pytest.raises(InputError, match="no model given"):
        questions(made, model=None)
    with pytest.raises(InputError, match=r"contains no knowledge\.jsonl"):
        questions(shell.folder, model="fake/builder")
    words = ("build", "questions", made, "-m", "fake/builder", "--dimension", "Scenery")
    assert "did you mean Scene" in shell.refused(*words)
    empty = b"".join(dump_knowledge(Knowledge(f"en-00{n}", ())) for n in range(1, 9))
    (made / "knowledge.jsonl").write_bytes(empty)
    with pytest.raises(
        InputError,
        match="the build has no knowledge about these memes, so no question can be written",
    ):
        questions(made, model="fake/builder")


def test_a_pair_is_judged_together(tmp_path: Path, honest: BuiltQuestions) -> None:
    pairs = {own.pair: own for own in honest.questions if own.pair}
    assert len(pairs) > 2
    subjects = sample_subjects()
    asked = dict.fromkeys(own.meme for own in honest.questions)
    memes = adopt_memes([subjects[name].meme for name in asked], tmp_path / "b").memes
    adopted = {meme.id: replace(subjects[meme.id], meme=meme) for meme in memes}
    write_review(tmp_path / "b", honest.questions, adopted, "en")
    _, items = read_queue(tmp_path / "b" / "queue")
    assert len(items) == len(honest.questions) - len(pairs)
    for item in items:
        labels = [shown.label for shown in item.shown]
        assert labels[0] == "Knowledge"
        assert ("Second question" in labels) == (item.id in pairs)
        if item.id in pairs:
            assert "Element" in labels
            second = next(own for own in item.shown if own.label == "Second question")
            assert second.value == pairs[item.id].question


def test_the_workflow_finds_all_that_it_asks_about(honest: BuiltQuestions) -> None:
    """Judgements wait for labels: a label spelled otherwise would silently not be judged."""
    waited = {field.needs.casefold() for field in read_workflow("validate").fields if field.needs}
    paired = {own.pair for own in honest.questions if own.pair}
    items = [own for own in make_queue(honest.questions, sample_subjects()) if own.id in paired]
    assert items
    for item in items:
        assert waited <= {shown.label.casefold() for shown in item.shown}


def test_lines_round_trip(tmp_path: Path) -> None:
    settings = one_step(dimensions=("Scene",))
    built = build(tmp_path, lambda asked: say(write_honestly(asked)), settings)
    write_questions(tmp_path, built.questions, built.rejected)
    assert tuple(read_questions(tmp_path)) == built.questions
    with pytest.raises(DataError, match="'memantics build questions' first"):
        list(read_questions(tmp_path / "nowhere"))


def test_a_killed_build_goes_on_without_asking_twice(tmp_path: Path) -> None:
    subjects = dict(list(sample_subjects().items())[:10])
    asked: Counter[str] = Counter()
    budget = 25

    def script(request: Request) -> ScriptedReply:
        if sum(asked.values()) >= budget:
            return Unavailable("the plug was pulled")
        asked[text_of(request)] += 1
        return say(write_honestly(request))

    async def run() -> int:
        with ModelClient(FakeModel(script), tmp_path) as client:
            settings = one_step(attempts=1)
            built = await build_questions(client, subjects, settings)
            return len(built.questions)

    with pytest.raises(Unavailable):
        asyncio.run(run())
    budget = 10_000
    assert asyncio.run(run()) > 50
    assert set(asked.values()) == {1}


def show(request: Request) -> str:
    sent = [part for message in request.messages for part in message.parts]
    parts = ("[image]" if isinstance(p, Image) else p for p in sent)
    return "\n".join(parts) + f"\n--- schema ---\n{json.dumps(request.schema, indent=1)}\n"


def test_questions_are_asked_for_as_agreed() -> None:
    """A change of wording changes what is built, so it must be seen (MEMANTICS_GOLDEN=write)."""
    subject = sample_subjects()["en-001"]
    settings = one_step()
    slot = next(s for s in plan_slots(subject.knowledge, settings) if s.dimension == "Emotion")
    options = ["first", "second", "third", settings.none_text]
    draft = ask_draft(subject, slot, settings, "an earlier question?")
    for name, request in {
        "question": ask_again(draft, "…", "do not name the category"),
        "known": ask_known([("Who is it?", options)], settings, subject),
        "seen": ask_seen([("Who is it?", options)], settings, subject),
        "blind_many": ask_blind([("Who is it?", options), ("Why?", options)], settings, subject),
    }.items():
        path = GOLDEN / f"{name}.txt"
        if os.environ.get("MEMANTICS_GOLDEN") == "write":
            path.parent.mkdir(exist_ok=True)
            path.write_text(show(request), encoding="utf-8")
        assert path.read_text(encoding="utf-8") == show(request)
