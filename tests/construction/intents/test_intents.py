"""Intents: the guideline's form, drafts with sources, and a queue that people can work in."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
import typer

from memantics.cli.progress import stop_at_failures
from memantics.core.errors import Rejected
from memantics.core.memes import Meme
from memantics.core.queue import read_queue
from memantics.core.records import Request
from memantics.core.task import Unparsed
from memantics.models.drafts import Drafted, count_statuses
from memantics.models.fake import FakeModel, ScriptedReply
from memantics.understanding.intents.draft import (
    DraftedIntents,
    IntentSettings,
    check_intent,
    draft_intents,
    find_prompts,
    read_background,
    read_intents,
    write_intent_queue,
    write_intents,
)
from tests.commands import Shell
from tests.construction.drafting import fields_of, sample_memes, text_of, with_client
from tests.places import SHARED_DATA, needs_shared_data

KNOWN = '{"background": [{"sentence": "Robots tick boxes.", "certain": true}]}'
MEANT = '{"intents": ["The meme mocks online checks.", "comforts tired users"]}'


def script(request: Request) -> ScriptedReply:
    return KNOWN if fields_of(request) == {"background"} else MEANT


def draft(folder: Path, model: FakeModel, memes: tuple[Meme, ...]) -> Drafted[DraftedIntents]:
    return with_client(folder, model, lambda client: draft_intents(client, memes, IntentSettings()))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("The meme mocks late trains.", "mocks late trains"),
        ("this meme Warns of ice", "warns of ice"),
        ("is about nothing, and says so", "is about nothing, and says so"),
        ("openly praises a dog", "openly praises a dog"),
        ("mocks Gates, Fauci, etc. by name", "mocks Gates, Fauci, etc. by name"),
    ],
)
def test_intents_read_on_after_the_meme(said: str, expected: str) -> None:
    assert check_intent(said, "en") == expected


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("funny dog", "begin with a verb"),
        ("mocks", "begin with a verb"),
        ("His dog is late", "begin with a verb"),
        ("mocks cats. Praises dogs.", "more than one sentence"),
        ("…", "no words"),
        ("mocks " + "very " * 100 + "late trains", "characters"),
    ],
)
def test_what_does_not_is_refused_with_the_reason(said: str, complaint: str) -> None:
    with pytest.raises(Unparsed, match=complaint):
        check_intent(said, "en")


def test_chinese_intents_lose_their_opening_words() -> None:
    assert check_intent("这张表情包嘲笑总是迟到的人。", "zh") == "嘲笑总是迟到的人"


@needs_shared_data
def test_nearly_all_official_intents_keep_the_form() -> None:
    data = json.loads((SHARED_DATA / "memeintent" / "sigdial.json").read_text())
    intents = [intent for row in data.values() for intent in row["intents"]]
    broken = []
    for intent in intents:
        try:
            check_intent(intent, "en")
        except Unparsed as error:
            broken.append(str(error))
    assert len(intents) > 500
    assert len(broken) <= len(intents) / 100, broken


def test_rank_is_kept_and_repetitions_are_not() -> None:
    reply = '{"intents": ["mocks a", "The meme mocks a.", "praises b"]}'
    assert read_intents(reply, "en") == ("mocks a", "praises b")
    with pytest.raises(Unparsed, match="too many"):
        read_intents('{"intents": ["mocks a", "mocks b", "mocks c", "mocks d"]}', "en")
    with pytest.raises(Unparsed, match="at least one"):
        read_intents('{"intents": []}', "en")


def test_doubtful_knowledge_ends_in_a_question_mark() -> None:
    reply = json.dumps(
        {
            "background": [
                {"sentence": "* Owls hunt by night.", "certain": True},
                {"sentence": "This is in Cuba.", "certain": False},
                {"sentence": "Is it a film?", "certain": True},
                {"sentence": "owls hunt by night", "certain": True},
            ]
        }
    )
    assert read_background(reply) == ("Owls hunt by night.", "This is in Cuba?", "Is it a film?")
    assert read_background('{"background": []}') == ()


def test_intents_are_asked_for_with_the_background_before_them(tmp_path: Path) -> None:
    seen: list[str] = []

    def note(request: Request) -> ScriptedReply:
        seen.append(text_of(request))
        return script(request)

    report = draft(tmp_path, FakeModel(note), sample_memes("en-001"))
    (own,) = report.drafts
    assert own.intents == ("mocks online checks", "comforts tired users")
    assert own.background == ("Robots tick boxes.",)
    assert "* Robots tick boxes." in seen[1]
    assert set(own.sources) == {"background", "intents"}


def test_given_background_is_not_asked_for(tmp_path: Path) -> None:
    (meme,) = sample_memes("en-001")
    model = FakeModel(script)
    meme = replace(meme, notes={"background": "* Known.\n* Also known?\n*"})
    report = draft(tmp_path, model, (meme,))
    assert model.asked == 1
    assert report.drafts[0].background == ("Known.", "Also known?")


def test_a_second_run_asks_nothing(tmp_path: Path) -> None:
    memes = sample_memes("en-001", "en-002")
    first, second = FakeModel(script), FakeModel(script)
    write_intents(tmp_path, draft(tmp_path, first, memes))
    before = (tmp_path / "intents.jsonl").read_bytes()
    write_intents(tmp_path, draft(tmp_path, second, memes))
    assert (first.asked, second.asked) == (4, 0)
    assert (tmp_path / "intents.jsonl").read_bytes() == before


def test_memes_without_an_answer_go_to_people_empty(tmp_path: Path) -> None:
    report = draft(tmp_path / "run", FakeModel(lambda _: "no"), sample_memes("en-001"))
    assert report.tally.statuses["unparsed"] == 2
    assert write_intent_queue(tmp_path / "queue", report, "test") == 1
    _, (item,) = read_queue(tmp_path / "queue")
    assert item.values == {"intents": [], "background": []}


def test_the_queue_fits_the_workflow(tmp_path: Path) -> None:
    report = draft(tmp_path / "run", FakeModel(script), sample_memes("en-001", "en-002"))
    write_intent_queue(tmp_path / "queue", report, "memantics build intents")
    card, items = read_queue(tmp_path / "queue")
    place = files("memantics.annotation") / "workflows" / f"{card.workflow}.toml"
    workflow = tomllib.loads(place.read_text(encoding="utf-8"))
    fields = {field["id"] for field in workflow["fields"]}
    for item in items:
        assert set(item.values) <= fields
        assert (tmp_path / "queue" / item.images[0]).is_file()
        assert "fake/scripted" in json.dumps(item.hidden)
        assert "fake/scripted" not in json.dumps([own.model_dump() for own in item.shown])


def test_prompts_have_the_holes_that_are_filled() -> None:
    prompts = find_prompts()
    assert sorted(prompts["intents"].placeholders) == ["form", "language", "material", "most"]
    assert sorted(prompts["background"].placeholders) == ["language", "material", "most"]
    assert all(not prompts[f"form.{name}"].placeholders for name in ("en", "zh", "other"))


def test_the_command_writes_drafts_and_a_queue(shell: Shell) -> None:
    ran = shell.run("build", "intents", "sample", "--model", "fake/drafter", "--limit", "4")
    assert ran.code == 0, ran.err
    place = shell.folder / "builds" / "sample"
    rows = [json.loads(line) for line in (place / "intents.jsonl").read_text().splitlines()]
    assert len(rows) == 4
    assert all(row["intents"] for row in rows)
    assert len(read_queue(place / "queue-intents")[1]) == 4


def test_failed_calls_are_counted_and_end_with_exit_code_one(tmp_path: Path) -> None:
    def fail(_: Request) -> ScriptedReply:
        return Rejected("no")

    report = draft(tmp_path, FakeModel(fail), sample_memes("en-001"))
    statuses = count_statuses([report.tally])
    assert statuses["failed"] == 2
    with pytest.raises(typer.Exit) as stop:
        stop_at_failures(statuses)
    assert stop.value.exit_code == 1
