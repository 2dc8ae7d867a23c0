"""``memantics annotate guideline``: find, draft with a model on a server, decide."""

from __future__ import annotations

import json
from pathlib import Path

from memantics.annotation.service import open_service
from tests.annotation.team import quick_hasher
from tests.annotation.test_guideline import start
from tests.commands import Shell
from tests.servers.fakes import Scripted, serving

DRAFT = {"en": "Irony against oneself counts as sad.", "zh": "自嘲算悲伤。"}


def make_lab(folder: Path) -> Path:
    service = open_service(folder / "lab.db", folder / "media", hasher=quick_hasher())
    start(service, folder)
    service.close()
    return folder / "lab.db"


def test_a_model_drafts_from_what_people_said_and_the_lead_adds_it(shell: Shell) -> None:
    lab = make_lab(shell.folder)
    words = ("annotate", "guideline", "1", "--db", lab)
    told = shell.done(*words)
    assert "guideline version 1" in told
    assert told.index("item 2 (m2): 67% outside the majority") < told.index("item 3 (m3): 33%")
    with serving(Scripted(lambda _: json.dumps(DRAFT))) as server:
        asked = ("--item", "2", "--model", "openai/toy", "--base-url", server.url)
        drafted = json.loads(shell.done(*words, *asked, "--json"))
    assert drafted["draft"] == DRAFT
    assert drafted["version"] == 1
    prompt = str(server.bodies[0]["messages"])
    assert "irony, or meant?" in prompt
    assert "item 3" not in prompt
    add = ("--add", DRAFT["en"], "--add-zh", DRAFT["zh"], "--drafted", "openai/toy", "--item", "2")
    left = json.loads(shell.done(*words, *add, "--json"))
    assert left["version"] == 2
    assert [item["number"] for item in left["unclear"]] == [3]


def test_what_cannot_be_done_is_one_line(shell: Shell) -> None:
    lab = make_lab(shell.folder)
    words = ("annotate", "guideline", "1", "--db", lab)
    assert "no item 9" in shell.refused(*words, "--item", "9", "--add", "x")
    assert "do not disagree" in shell.refused(*words, "--item", "1", "--model", "fake/keys")
    assert "project" in shell.refused("annotate", "guideline", "7", "--db", lab)
    with serving(Scripted(lambda _: "no JSON at all")) as server:
        ran = shell.run(*words, "--model", "openai/toy", "--base-url", server.url)
    assert ran.code in (1, 2)
    assert "returned no draft" in ran.err
