"""The same small evaluation against servers that others wrote.

``MEMANTICS_WRITE_TABLE=1 pytest tests/servers/test_real_servers.py`` writes the table of the guide.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import TypeAdapter

import memantics as mm
from memantics.benchmarks.registry import SAMPLE_IMAGES
from memantics.construction import build
from memantics.core.errors import ModelError
from memantics.core.rundir import last_answers
from memantics.evaluation.reports.runs import Run
from memantics.models.client import Call
from memantics.models.drafts import Drafted
from memantics.models.openai import NO_FORMAT
from memantics.understanding.captions.mine import Captioned
from tests.places import ROOT
from tests.servers.abilities import Abilities, measure_server, tabulate
from tests.servers.real import Served, serve_litellm, serve_llamacpp, serve_transformers

pytestmark = pytest.mark.slow

GUIDE = ROOT / "docs" / "how-to" / "any-model.md"
MARKS = ("<!-- measured by tests/servers/test_real_servers.py -->", "<!-- end of measured -->")
NAMES = ("transformers serve", "llama.cpp", "LiteLLM proxy")
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
    return mm.evaluate(
        task,
        f"openai/{served.model}",
        out=tmp_path / "runs",
        settings=mm.EvaluationSettings(
            data="sample", limit=2, options=options, invalid="wrong", max_tokens=12
        ),
        calls=mm.CallSettings(base_url=served.url, concurrency=1),
    )


def test_texts_are_asked_and_every_item_ends(served: Served, tmp_path: Path) -> None:
    run = evaluate(served, tmp_path, "punmemecn/pinyin")
    assert sum(run.counts.values()) == 2
    assert run.counts["failed"] == 0
    assert all(answer.reply.tokens_out for answer in last_answers(run.folder).values())


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


def mine(served: Served, tmp_path: Path) -> tuple[build.Built[Drafted[Captioned]], list[Call]]:
    """One step of construction with words alone, one with the picture; and the call log of both."""
    memes = tmp_path / "memes"
    memes.mkdir()
    shutil.copy(SAMPLE_IMAGES / "en-001.png", memes)
    line = '{"id": "en-001", "image": "en-001.png", "text": "I am not a robot", "language": "en"}'
    (memes / "memes.jsonl").write_text(line)
    built = build.captions(
        memes,
        model=f"openai/{served.model}",
        out=tmp_path / "build",
        calls=mm.CallSettings(base_url=served.url, concurrency=1, params={"answer_tokens": "64"}),
    )
    lines = (tmp_path / "build" / "calls.jsonl").read_bytes().splitlines()
    return built, [TypeAdapter(Call).validate_json(line) for line in lines]


def test_a_step_of_construction(served: Served, tmp_path: Path) -> None:
    built, calls = mine(served, tmp_path)
    assert sum(built.counts.values()) == 2
    assert built.adapted == ()
    if served.name == "llama.cpp":
        # A grammar holds the reply to the schema; the picture is refused in one call.
        assert built.counts["failed"] == 1
        refused = ["image input is not supported" in call.reason for call in calls]
        assert refused.count(True) == 1
        assert all(
            re.match(r'\{\s*"caption"\s*:', call.reply.text) for call in calls if call.reply.text
        )
        (own,) = built.report.drafts
        # On other processors it may ramble on until the limit.
        assert bool(own.captions["text_caption"]) == (built.counts["answered"] == 1)
    else:
        # Random weights write no JSON: each step is asked again with the fault, then given up.
        assert built.counts["unparsed"] == 2
        assert len(calls) > 2
        assert all(call.reply.tokens_out for call in calls)


def test_a_gateway_that_refuses_the_schema_is_asked_without_it(
    litellm: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LiteLLM knows which providers take no schema, and answers for them with HTTP 400."""
    monkeypatch.setenv("OPENAI_API_KEY", litellm.key)
    strict = Served(litellm.name, litellm.url, "without-schema", litellm.key)
    built, calls = mine(strict, tmp_path)
    assert built.adapted == (NO_FORMAT,)
    assert {call.reply.adapted for call in calls} == {NO_FORMAT}
    assert built.counts["unparsed"] == 2
    run = evaluate(strict, tmp_path, "mer_bench/judge", layout="off")
    assert run.facts.adapted == (NO_FORMAT,)
    assert run.counts["failed"] == 0


def test_abilities(served: Served) -> None:
    SEEN[served.name] = found = measure_server(f"openai/{served.model}", base_url=served.url)
    if served.name == "llama.cpp":
        assert (found.images, found.schema, found.logprobs) == ("refused", "obeyed", "given")
    else:
        assert (found.images, found.schema, found.logprobs) == ("seen", "ignored", "none seen")


def read_guide() -> dict[str, str]:
    """The rows of the guide's table, by server; its head is among them."""
    text = GUIDE.read_text(encoding="utf-8")
    body = text.partition(MARKS[0])[2].partition(MARKS[1])[0]
    rows = [line for line in body.splitlines() if line.startswith("| ")]
    return {row.split("|")[1].strip(): row for row in rows}


def write_guide(rows: dict[str, str]) -> None:
    head, rule, *servers = (rows[name] for name in ("server", "---", *NAMES) if name in rows)
    body = "\n".join([MARKS[0], "", head, rule, *servers, "", MARKS[1]])
    text = GUIDE.read_text(encoding="utf-8")
    start, end = (re.escape(mark) for mark in MARKS)
    text = re.sub(f"{start}.*?{end}", lambda _: body, text, flags=re.DOTALL)
    GUIDE.write_text(text, encoding="utf-8")


def test_the_guide_shows_what_was_measured() -> None:
    """Run last: the rows of the servers that were here are those of the guide."""
    if not SEEN:
        pytest.skip("no server was here")
    table = tabulate(SEEN)
    lines = [table.columns, ["---"] * len(table.columns), *table.rows]
    measured = {row[0]: "| " + " | ".join(row) + " |" for row in lines}
    if os.environ.get("MEMANTICS_WRITE_TABLE"):
        # Rows of servers that were not here stay.
        write_guide({**read_guide(), **measured})
    shown = read_guide()
    assert {name: shown.get(name) for name in measured} == measured
    assert set(shown) == {"server", "---", *NAMES}
