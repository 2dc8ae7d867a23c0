"""The same small evaluation against servers that others wrote.

``MEMANTICS_WRITE_TABLE=1 pytest tests/servers/test_real_servers.py`` writes the table of the guide.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import memantics as mm
from memantics.actions.evaluate import Run
from memantics.actions.servers import Abilities, measure_server, tabulate
from memantics.core.errors import ModelError
from memantics.core.rundir import last_answers
from tests.places import ROOT
from tests.servers.real import Served, serve_litellm, serve_llamacpp, serve_transformers

GUIDE = ROOT / "docs" / "any-model.md"
MARKS = ("<!-- measured by tests/servers/test_real_servers.py -->", "<!-- end of measured -->")
SEEN: dict[str, Abilities] = {}


@pytest.fixture(scope="module")
def transformers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_transformers(tmp_path_factory.mktemp("transformers")) as served:
        yield served


@pytest.fixture(scope="module")
def llamacpp() -> Iterator[Served]:
    with serve_llamacpp() as served:
        yield served


@pytest.fixture(scope="module")
def litellm(transformers: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_litellm(transformers, tmp_path_factory.mktemp("litellm")) as served:
        yield served


@pytest.fixture(params=["transformers", "llamacpp", "litellm"])
def served(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Served:
    found: Served = request.getfixturevalue(request.param)
    monkeypatch.setenv("OPENAI_API_KEY", found.key)
    return found


def evaluate(served: Served, tmp_path: Path, task: str, **options: str) -> Run:
    run = mm.evaluate(
        task,
        model=f"openai/{served.model}",
        base_url=served.url,
        data="starter",
        limit=2,
        options=options,
        invalid="wrong",
        out=tmp_path / "runs",
        concurrency=1,
        max_tokens=12,
    )
    assert isinstance(run, Run)
    return run


def test_texts_are_asked_and_every_item_ends(served: Served, tmp_path: Path) -> None:
    run = evaluate(served, tmp_path, "toxicn_mm/detection", input="text")
    assert sum(run.counts.values()) == 2
    assert run.counts["failed"] == 0
    assert all(answer.tokens_out for answer in last_answers(run.folder).values())


def test_images_arrive_or_are_refused_in_one_call(served: Served, tmp_path: Path) -> None:
    run = evaluate(served, tmp_path, "mquest/qa")
    answers = last_answers(run.folder).values()
    if served.name == "llama.cpp":
        assert run.counts["failed"] == 2
        assert all("image input is not supported" in answer.reason for answer in answers)
        assert all(answer.calls == 1 for answer in answers)
    else:
        assert run.counts["failed"] == 0


def test_a_name_that_is_not_served(served: Served, tmp_path: Path) -> None:
    wrong = Served(served.name, served.url, "nonesuch", served.key)
    if served.name == "transformers serve":
        run = evaluate(wrong, tmp_path, "toxicn_mm/detection", input="text")
        assert run.counts["failed"] == 2
        assert all("pinned" in a.reason for a in last_answers(run.folder).values())
        return
    with pytest.raises(ModelError, match="has no model 'nonesuch'"):
        evaluate(wrong, tmp_path, "toxicn_mm/detection", input="text")


def test_abilities(served: Served) -> None:
    SEEN[served.name] = found = measure_server(f"openai/{served.model}", base_url=served.url)
    if served.name == "llama.cpp":
        assert (found.images, found.schema, found.logprobs) == ("refused", "obeyed", "given")
    else:
        assert (found.images, found.schema, found.logprobs) == ("seen", "ignored", "none seen")


def test_the_guide_shows_what_was_measured() -> None:
    """Run last: the rows of the servers that were here are those of the guide."""
    if not SEEN:
        pytest.skip("no server was here")
    table = tabulate(SEEN)
    rows = [table.columns, ["---"] * len(table.columns), *table.rows]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    text = GUIDE.read_text(encoding="utf-8")
    start, end = (re.escape(mark) for mark in MARKS)
    if os.environ.get("MEMANTICS_WRITE_TABLE"):
        body = "\n".join([MARKS[0], "", *lines, "", MARKS[1]])
        text = re.sub(f"{start}.*?{end}", lambda _: body, text, flags=re.DOTALL)
        GUIDE.write_text(text, encoding="utf-8")
    shown = re.search(f"{start}(.*?){end}", text, flags=re.DOTALL)
    assert shown is not None
    assert [line for line in lines if line not in shown[1]] == []
