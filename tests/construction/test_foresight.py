"""A build says what it will send before it asks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from memantics.core.images import probe, read_bytes
from memantics.core.memes import Meme
from memantics.core.records import Image, Request
from memantics.core.samples import image_path
from memantics.models.client import (
    SAMPLE,
    ModelClient,
    Trial,
    count_image,
    count_request,
    drain,
    foresee,
)
from memantics.models.engine import Progress
from memantics.models.fake import FakeModel, draft_reply
from memantics.understanding.extraction.chain import ExtractSettings, extract_memes
from tests.commands import Shell
from tests.inspect_tasks.server import serve

MEMES = [Meme(f"en-00{n}", image_path(f"en-00{n}"), "a caption", "en") for n in range(1, 6)]
SETTINGS = ExtractSettings(attempts=1)


def measure(request: Request) -> int:
    parts = [part for message in request.messages for part in message.parts]
    facts = [probe(read_bytes(p.path), p.path.name) for p in parts if isinstance(p, Image)]
    return count_request(request) + sum(count_image(own.width, own.height) for own in facts)


def tell(folder: Path, memes: int, *, costs: bool = True) -> tuple[list[Progress], int]:
    """What is told beforehand about so many memes, and what the first few of them really take."""
    told: list[Progress] = []
    sent: list[int] = []

    def script(request: Request) -> str:
        sent.append(measure(request))
        return draft_reply(request)

    async def work() -> None:
        few = MEMES[: min(memes, SAMPLE)]
        with ModelClient(FakeModel(script, cacheable=costs), folder, watch=told.append) as client:
            await foresee(client, memes, lambda trial: drain(extract_memes(trial, few, SETTINGS)))
            assert not sent
            before = len(told)
            await drain(extract_memes(client, few, SETTINGS))
            del told[before:]

    asyncio.run(work())
    return told, sum(sent)


def test_a_few_memes_are_foretold_to_the_token(tmp_path: Path) -> None:
    for count in (1, SAMPLE):
        (told,), sent = tell(tmp_path / str(count), count)
        assert (told.memes, told.expected_in) == (count, sent)
        assert told.expected_out > 0


def test_many_are_foretold_by_the_first_ones(tmp_path: Path) -> None:
    (told,), sent = tell(tmp_path, 2 * SAMPLE)
    assert told.expected_in == 2 * sent


def test_nothing_is_foretold_of_no_memes_and_of_models_that_cost_nothing(tmp_path: Path) -> None:
    assert tell(tmp_path / "none", 0)[0] == []
    assert tell(tmp_path / "free", 2, costs=False)[0] == []


def test_a_trial_asks_once_and_sends_nothing() -> None:
    trial = Trial()
    asyncio.run(drain(extract_memes(trial, MEMES[:1], ExtractSettings(attempts=3))))
    assert trial.tokens_in > 10 * 255


def ask(shell: Shell, *words: str) -> str:
    """What a build with a model that costs something, and only babbles, says on standard error."""
    with serve(lambda _: "…") as url:
        model = ("--model", "openai/x", "--base-url", url, "--price", "1,2")
        return shell.run("build", *words, "--attempts", "1", *model).err


@pytest.mark.slow
def test_every_build_says_it_first(shell: Shell) -> None:
    shell.done("build", "knowledge", "sample", "--limit", "2", "--model", "fake/builder")
    errors = [ask(shell, verb, "sample", "--limit", "2") for verb in ("intents", "chats")]
    errors.append(ask(shell, "knowledge", "sample", "--limit", "2", "--out", "other"))
    errors.append(ask(shell, "questions", "builds/sample"))
    for said in errors:
        assert " tokens to send, " in said, said
        assert " a meme, and " in said
        assert "; cost about " in said


def test_an_analysis_says_it_before_and_after(shell: Shell) -> None:
    with serve(lambda _: "…") as url:
        ran = shell.run("analyze", image_path("en-001"), "-m", "openai/x", "--base-url", url)
    assert " tokens to send, " in ran.err
    assert " tokens sent (" in ran.out


@pytest.mark.slow
def test_a_reappraisal_says_what_it_took(shell: Shell) -> None:
    with serve(lambda _: "…") as url:
        ran = shell.run("reappraise", image_path("en-012"), "-m", "openai/x", "--base-url", url)
    assert " tokens sent; " in ran.err
    plain = shell.run("reappraise", image_path("en-012"))
    assert " tokens sent" not in plain.err


def test_captions_that_are_there_cost_nothing(shell: Shell) -> None:
    with serve(lambda _: "…") as url:
        words = ("build", "captions", "sample", "--limit", "2", "--model", "openai/x")
        assert "tokens to send" not in shell.run(*words, "--base-url", url).err
        assert "tokens to send" in shell.run(*words, "--base-url", url, "--again").err
