"""What a strong model replied, replayed: what a careful reader would accept is accepted.

The replies were given to the prompts of an earlier version, which sent eight of them back.
"""

from __future__ import annotations

import asyncio
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from memantics.construction.questions.asking import QuestionSubject, ask_draft
from memantics.construction.questions.assembly import SlotDraft, make_item, read_sound
from memantics.construction.questions.records import Slot
from memantics.construction.questions.solver import read_letter
from memantics.core.memes import Meme
from memantics.core.model import ask_again
from memantics.core.records import Request
from memantics.core.samples import image_path
from memantics.core.task import Unparsed
from memantics.models.client import ModelClient
from memantics.models.fake import FakeModel
from memantics.understanding.extraction.chain import Extraction, ExtractSettings, extract_meme
from memantics.understanding.extraction.reading import read_individuals
from memantics.understanding.knowledge.records import Individual, Knowledge
from tests.construction.extract.scripts import text_of
from tests.construction.questions.scripts import one_step

FIXTURE = Path(__file__).parent / "fixtures" / "strong_model.json"
SETTINGS = one_step()


@cache
def replies() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FIXTURE.read_text(encoding="utf-8"))
    return found


@cache
def subject(meme: str) -> QuestionSubject:
    known = TypeAdapter(tuple[Individual, ...]).validate_python(replies()["knowledge"][meme])
    return QuestionSubject(Meme(meme, image_path("en-001")), Knowledge(meme, known))


def slot_of(row: dict[str, Any]) -> Slot:
    dimension = row["focus"].partition("/")[0]
    return Slot(f"{row['meme']}/{dimension}/1", row["meme"], dimension, row["focus"], "wrong")


def list_complaints() -> dict[str, str]:
    """What would be asked again today, by the id of the reply, and with which words."""
    found = {}
    for row in replies()["questions"]:
        known = subject(row["meme"]).knowledge
        try:
            read_sound(row["reply"], slot_of(row), known, SETTINGS)
        except Unparsed as error:
            found[row["id"]] = str(error)
    for row in replies()["individuals"]:
        try:
            read_individuals(row["reply"], row["dimension"])
        except Unparsed as error:
            found[row["id"]] = str(error)
    return found


def test_an_unasked_key_is_left_out_and_the_rest_is_read() -> None:
    (row,) = [own for own in replies()["individuals"] if own["id"] == "construction-156"]
    assert '"color"' in row["reply"]
    found = read_individuals(row["reply"], row["dimension"]).individuals
    assert [own.label for own in found][:1] == ["蓝色车牌"]


def test_of_every_draft_two_wrong_options_are_chosen_that_fit_its_answer() -> None:
    for row in replies()["questions"]:
        if row["id"] == "construction-183":
            continue
        slot, known = slot_of(row), subject(row["meme"]).knowledge
        draft = read_sound(row["reply"], slot, known, SETTINGS)
        item = make_item(SlotDraft(slot, "answered", draft), draft)
        sizes = [len(own.text) for own in item.shown]
        assert len(item.wrong) == 2
        assert max(sizes) <= 2 * min(sizes) + 12


@pytest.mark.parametrize("said", dict.fromkeys(replies()["letters"].values()))
def test_every_answer_of_the_critic_is_read(said: str) -> None:
    letter = said.strip() if len(said.strip()) == 1 else said.rstrip("* \n")[-1]
    assert read_letter(said) == letter


def size_of(request: Request) -> int:
    return len(text_of(request))


def test_questions_cost_half_of_what_they_did() -> None:
    """Characters sent for the same questions, re-asks included; the images stay the same."""
    rows = [own for own in replies()["questions"] if not own["rewritten"]]
    before = sum(row["prompt_characters"] for row in rows)
    now, complaints = 0, list_complaints()
    for row in rows:
        if row["asked_again"]:
            continue
        request = ask_draft(subject(row["meme"]), slot_of(row), SETTINGS)
        now += size_of(request)
        if row["id"] in complaints:
            now += size_of(ask_again(request, row["reply"], complaints[row["id"]]))
    assert now <= before / 2, f"{now:,} characters, {before:,} before"


def replay_extraction(folder: Path, meme: str) -> tuple[Extraction, int]:
    """The knowledge of one meme from the recorded replies, and the characters that were sent."""
    said = {
        row["dimension"]: row["reply"] for row in replies()["individuals"] if row["meme"] == meme
    }
    sent: list[int] = []

    def script(request: Request) -> str:
        sent.append(size_of(request))
        task = text_of(request).partition("one dimension of its meaning only: ")[2]
        return str(said[task.partition("(")[2].partition(")")[0]])

    async def work() -> Extraction:
        with ModelClient(FakeModel(script), folder) as client:
            return await extract_meme(client, Meme(meme, image_path("en-001")), ExtractSettings())

    return asyncio.run(work()), sum(sent)


@pytest.mark.parametrize("meme", ["frog", "sheep", "yoda"])
def test_the_recorded_knowledge_is_whole_and_costs_less(tmp_path: Path, meme: str) -> None:
    found, now = replay_extraction(tmp_path, meme)
    assert {step.status for step in found.steps} <= {"answered", "skipped"}
    assert all(step.attempts == 1 for step in found.steps if step.status == "answered")
    assert not list(found.knowledge.dangling())
    rows = [own for own in replies()["individuals"] if own["meme"] == meme]
    before = sum(row["prompt_characters"] for row in rows)
    # Whole descriptions and the role take half of what was saved.
    assert now <= 0.9 * before, f"{now:,} characters, {before:,} before"
