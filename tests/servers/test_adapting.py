"""What the client does where a server differs from OpenAI's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

import memantics as mm
from memantics.core.errors import ModelError, Rejected, Unavailable
from memantics.core.records import Reply
from memantics.core.rundir import last_answers, read_facts
from memantics.models.openai import NO_FORMAT, OpenAIModel, OpenAISettings
from tests.commands import Shell
from tests.engine.toy import toy_request
from tests.servers.fakes import Body, Scripted, refuse, serving

SCHEMA = replace(toy_request(0), schema={"type": "object", "properties": {}})


def ask(server: Scripted, name: str = "toy", times: int = 1, *, check: bool = True) -> list[Reply]:
    async def run() -> list[Reply]:
        model = OpenAIModel(name, server.url, "", OpenAISettings(check_name=check))
        try:
            return [await model.answer(SCHEMA) for _ in range(times)]
        finally:
            await model.close()

    with serving(server):
        return asyncio.run(run())


def no_format(words: str) -> Callable[[Body], object]:
    return lambda body: refuse(words) if "response_format" in body else "B"


@pytest.mark.parametrize(
    "words",
    [
        "response_format is not supported",
        "This model does not support parameters: ['response_format']",
        "json_schema: unsupported",
        "guided decoding is off",
    ],
)
def test_a_server_without_response_format_is_asked_once_more_and_remembered(words: str) -> None:
    server = Scripted(no_format(words))
    replies = ask(server, times=3)
    assert [reply.text for reply in replies] == ["B"] * 3
    assert {reply.adapted for reply in replies} == {NO_FORMAT}
    assert ["response_format" in body for body in server.bodies] == [True, False, False, False]


def test_another_refusal_is_not_asked_again() -> None:
    server = Scripted(lambda _: refuse("the prompt is too long"))
    with pytest.raises(Rejected, match="too long"):
        ask(server)
    assert len(server.bodies) == 1


def test_a_server_that_takes_the_format_is_not_adapted_to() -> None:
    assert ask(Scripted())[0].adapted == ""


@pytest.mark.parametrize("status", [400, 500])
def test_a_model_that_cannot_see_is_not_asked_again_and_again(status: int) -> None:
    server = Scripted(lambda _: refuse("image input is not supported", status))
    with pytest.raises(Rejected, match="image input is not supported"):
        ask(server)


def test_an_unlisted_name_is_found_before_the_first_call() -> None:
    server = Scripted(models=("qwen2.5-vl", "llava"))
    with pytest.raises(Unavailable) as caught:
        ask(server, "qwen2.5-lv")
    assert "did you mean openai/qwen2.5-vl? available models: llava, qwen2.5-vl" in str(
        caught.value
    )
    assert server.bodies == []


@pytest.mark.parametrize(
    ("models", "check"), [(("toy",), True), (("other",), False), ((), True), (("t*",), True)]
)
def test_a_listed_name_an_unchecked_one_and_a_server_that_lists_none(
    models: tuple[str, ...], check: bool
) -> None:
    assert ask(Scripted(models=models), check=check)[0].text == "B"


@pytest.mark.slow
def test_the_run_records_the_adaptation(shell: Shell) -> None:
    with serving(Scripted(no_format("response_format: no"))) as server:
        arguments = ("run", "mer_bench/judge", "-m", "openai/toy", "--base-url", server.url)
        ran = shell.run(*arguments, "--data", "sample", "--limit", "2")
        again = shell.run(*arguments, "--data", "sample", "--limit", "2", "--out", "other")
    for folder, one in (("runs", ran), ("other", again)):
        assert f"note: {NO_FORMAT}" in one.err
        run = next((shell.folder / folder).iterdir())
        assert read_facts(run).adapted == (NO_FORMAT,)
        assert {answer.reply.adapted for answer in last_answers(run).values()} == {NO_FORMAT}
    shown = shell.run("report", run, "--format", "md").out
    assert NO_FORMAT.replace("_", "\\_") in shown


def test_the_terminal_says_why_items_failed_the_commonest_reason_first(shell: Shell) -> None:
    calls: list[Body] = []

    def answer(body: Body) -> object:
        calls.append(body)
        return refuse("too long" if len(calls) == 1 else "no pictures today")

    with serving(Scripted(answer)) as server:
        ran = shell.run(
            *("run", "mquest/qa", "-m", "openai/toy", "--base-url", server.url, "--limit", "4"),
            *("--data", "sample", "--concurrency", "1"),
        )
    lines = [line for line in ran.err.splitlines() if "failed" in line]
    assert ran.code == 1
    assert lines[:2] == ["3 failed: HTTP 400: no pictures today", "1 failed: HTTP 400: too long"]


def test_the_terminal_says_what_it_took_by_the_clock_and_in_money(shell: Shell) -> None:
    with serving(Scripted()) as server:
        arguments = ("run", "mquest/qa", "-m", "openai/toy", "--base-url", server.url)
        more = ("--limit", "4", "--data", "sample", "--price", "1000,5000")
        ran = shell.run(*arguments, *more)
        again = shell.run(*arguments, *more)
    # Four calls of 10 tokens in and 2 out.
    assert "0:00 elapsed, 0:00 summed over calls; 40 tokens in, 8 out; cost 0.0800" in ran.out
    assert "by the clock" not in again.out, "nothing was asked"


def test_the_python_face_refuses_an_unlisted_name_too() -> None:
    with serving(Scripted(models=("llava",))) as server, pytest.raises(ModelError, match="llava"):
        mm.evaluate(
            "mquest/qa",
            "openai/lava",
            settings=mm.EvaluationSettings(limit=1, data="sample"),
            calls=mm.CallSettings(base_url=server.url),
        )
    assert server.bodies == []
