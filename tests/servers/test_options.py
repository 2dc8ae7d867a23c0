"""Each option of ``run``, against a server that would show if it were ignored."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

import memantics as mm
from memantics.benchmarks.registry import SAMPLE_IMAGES, find_benchmark
from memantics.core.rundir import last_answers, read_facts
from memantics.evaluation.reports.runs import Run
from memantics.models.engine import CUT_OFF
from memantics.models.wire import NO_LOGPROBS
from tests.commands import Shell
from tests.faults import completion
from tests.servers.fakes import Body, Scripted, serving

PROMPTS = find_benchmark("mquest").folder / "prompts"


def evaluate(
    server: Scripted,
    tmp_path: Path,
    *,
    task: str = "mquest/qa",
    params: dict[str, JsonValue] | None = None,
    **settings: Any,
) -> list[Run]:
    with serving(server):
        found = mm.evaluate_suite(
            task,
            "openai/toy",
            out=tmp_path / "runs",
            settings=mm.EvaluationSettings(**{"data": "sample", "limit": 4, **settings}),
            calls=mm.CallSettings(base_url=server.url, params=params or {}),
        )
    return list(found)


def text_of(body: Body) -> str:
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else content[-1]["text"]


# Prompts


def test_a_prompt_of_the_user_is_sent_and_hashed(tmp_path: Path) -> None:
    own = tmp_path / "mine"
    own.mkdir()
    (own / "explain_first.md").write_text("Tell me: $question\n$options\nAnswer: ?")
    server = Scripted()
    [ours] = evaluate(Scripted(), tmp_path)
    [run] = evaluate(server, tmp_path, prompts=own)
    assert all(text_of(body).startswith("Tell me: ") for body in server.bodies)
    assert run.facts.wording == "own (mine)"
    assert ours.facts.wording == ""
    assert run.facts.prompts["explain_first"] != ours.facts.prompts["explain_first"]
    assert run.facts.fingerprint != ours.facts.fingerprint
    page = mm.report([run, ours], tmp_path / "report.md").read_text()
    assert "wording: own (mine)" in page


def test_prompts_in_a_folder_of_the_benchmarks_name(tmp_path: Path) -> None:
    (tmp_path / "mine" / "mquest").mkdir(parents=True)
    shutil.copy(PROMPTS / "again.md", tmp_path / "mine" / "mquest")
    (tmp_path / "mine" / "mquest" / "explain_first.md").write_text("Say. $question $options")
    server = Scripted()
    evaluate(server, tmp_path, prompts=tmp_path / "mine", limit=1)
    assert text_of(server.bodies[0]).startswith("Say. ")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("explain_frist", "$question $options", "did you mean explain_first?"),
        (
            "explain_first",
            "$question",
            "has no $options; allowed placeholders: $options, $question",
        ),
        ("explain_first", "$question $options $meme", "has the unknown placeholder $meme"),
        ("explain_first", "$question $options 5$", "has a stray '$'"),
    ],
)
def test_prompts_that_do_not_fit_are_refused(
    shell: Shell, name: str, text: str, words: str
) -> None:
    (shell.folder / "mine").mkdir()
    (shell.folder / "mine" / f"{name}.md").write_text(text)
    arguments = ("run", "mquest/qa", "-m", "fake/keys", "--data", "sample")
    assert words in shell.refused(*arguments, "--prompts", "mine")


def test_an_empty_or_absent_folder_of_prompts_is_refused(shell: Shell) -> None:
    (shell.folder / "mine").mkdir()
    arguments = ("run", "mquest/qa", "-m", "fake/keys", "--data", "sample", "--prompts")
    assert "contains no .md file" in shell.refused(*arguments, "mine")
    assert "is not a folder" in shell.refused(*arguments, "other")


# Demonstrations


def test_shots_are_earlier_turns_with_their_images(tmp_path: Path) -> None:
    shutil.copy(SAMPLE_IMAGES / "en-001.png", tmp_path / "one.png")
    shots = tmp_path / "shots.jsonl"
    shots.write_text('{"text": "Which?", "answer": "Answer: C", "images": ["one.png"]}\n')
    for task in ("mquest/qa", "punmemecn/detection", "toxicn_mm/type", "mer_bench/judge"):
        server = Scripted()
        [run] = evaluate(server, tmp_path, task=task, shots=shots, limit=1)
        *_, shown, said, asked = server.bodies[0]["messages"]
        assert [part["type"] for part in shown["content"]] == ["image_url", "text"]
        assert (shown["role"], said, asked["role"]) == (
            *("user", {"role": "assistant", "content": "Answer: C"}, "user"),
        )
        assert run.facts.prompts["shots"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"text": "Which?"}', "row 1: answer: Field required"),
        ("no JSON", "row 1: Invalid JSON"),
        ("", "has no few-shot examples"),
        ('{"text": "a", "answer": "b", "images": ["none.png"]}', "none.png"),
    ],
)
def test_broken_shots_are_refused(shell: Shell, line: str, words: str) -> None:
    (shell.folder / "shots.jsonl").write_text(line)
    arguments = ("run", "mquest/qa", "-m", "fake/keys", "--data", "sample")
    assert words in shell.refused(*arguments, "--shots", "shots.jsonl")


# Repeats


def by_seed(body: Body) -> str:
    """Right once in three: the letter moves with the seed."""
    return "Answer: " + "ABC"[(body.get("seed", 0) // 1000) % 3]


def test_repeats_have_their_own_seeds_and_are_scored_together(tmp_path: Path) -> None:
    server = Scripted(by_seed)
    runs = evaluate(server, tmp_path, repeat=3, limit=6)
    assert sorted({body.get("seed", 0) for body in server.bodies}) == [0, 1000, 2000]
    assert [run.facts.repeat for run in runs] == [0, 1, 2]
    golds = [item.gold for item in _items(runs[0].folder)]
    rights = [golds.count(letter) for letter in "ABC"]
    found = {
        (own.key, own.label): own.value
        for own in mm.load_run(runs[0].folder).results.scores
        if own.by == "repeats"
    }
    assert found["accuracy", "mean of 3"] == pytest.approx(sum(rights) / 18)
    assert found["right", "pass@1"] == pytest.approx(sum(rights) / 18)
    assert found["right", "pass@3"] == pytest.approx(sum(g in "ABC" for g in golds) / 6)
    assert found["right", "majority@3"] == pytest.approx(golds.count("A") / 6)
    mean = sum(rights) / 3
    spread = math.sqrt(sum((own - mean) ** 2 for own in rights) / 2) / 6
    assert found["accuracy", "SD across repeats"] == pytest.approx(spread)
    page = mm.report(runs, tmp_path / "report.md").read_text()
    assert "pass@3" in page
    assert "repeat 2" in page
    again = mm.score(runs[0])
    assert {s.label for s in again.results.scores if s.by == "repeats"} >= {"pass@3"}
    note = mm.compare(runs[0], runs[1]).notes
    assert any("SD across repeats" in line for line in note)


def test_the_first_repeat_is_the_plain_run_and_is_not_asked_twice(shell: Shell) -> None:
    with serving(Scripted()) as server:
        arguments = ("run", "mquest/qa", "-m", "openai/toy", "--base-url", server.url)
        shell.run(*arguments, "--data", "sample", "--limit", "2")
        shell.run(*arguments, "--data", "sample", "--limit", "2", "--repeat", "2")
    assert [body.get("seed") for body in server.bodies] == [None, None, 1000, 1000]


@pytest.mark.parametrize(
    ("task", "more", "temperature"),
    [
        ("punmemecn/sentiment", (), 0.7),  # its protocol samples
        ("punmemecn/detection", (), 0.0),
        ("punmemecn/detection", ("--param", "temperature=0.5"), 0.5),
    ],
)
def test_repeats_keep_the_temperature_of_the_protocol(
    task: str, more: tuple[str, ...], temperature: float, shell: Shell
) -> None:
    with serving(Scripted()) as server:
        ran = shell.run(
            *("run", task, "-m", "openai/toy", "--base-url", server.url, "--data", "sample"),
            *("--limit", "1", "--repeat", "2", "--invalid", "wrong", *more),
        )
    assert [body["temperature"] for body in server.bodies] == [temperature] * 2
    seeds = [body.get("seed", 0) for body in server.bodies]
    assert seeds[1] - seeds[0] == 1000
    greedy = f"{task} uses temperature 0 by its protocol"
    assert (greedy in ran.err) == (temperature == 0)


def _items(folder: Path) -> list[Any]:
    from memantics.core.rundir import read_bare_items

    return list(read_bare_items(folder))


# Probabilities


def likely(shares: dict[str, float], said: str = "A") -> dict[str, Any]:
    body: dict[str, Any] = completion(said)
    top = [{"token": f" {k}", "logprob": math.log(p)} for k, p in shares.items()]
    step = {"token": said, "logprob": -0.1, "top_logprobs": top}
    body["choices"][0]["logprobs"] = {"content": [step]}
    return body


def test_the_likeliest_option_is_the_answer_and_certainty_is_scored(tmp_path: Path) -> None:
    server = Scripted(lambda _: likely({"B": 0.6, "A": 0.2}))
    [run] = evaluate(server, tmp_path, score="logprobs", limit=8)
    assert all(body["logprobs"] and body["top_logprobs"] == 20 for body in server.bodies)
    golds = [item.gold for item in _items(run.folder)]
    share = golds.count("B") / 8
    assert {a.value for a in last_answers(run.folder).values()} == {"B"}
    assert run.scores["accuracy"].value == pytest.approx(share)
    assert run.scores["calibration_error"].value == pytest.approx(abs(0.75 - share))
    square = {"A": 0.75**2 * 2, "B": 0.25**2 * 2, "C": 0.75**2 + 0.25**2 + 1, "D": 1.625}
    expected = sum(square[gold] for gold in golds) / 8
    assert run.scores["brier"].value == pytest.approx(expected)
    labels = {(s.by, s.label) for s in run.results.scores if s.by in ("coverage", "confidence")}
    assert ("coverage", "100%") in labels
    assert ("confidence", "0.7 to 0.8") in labels
    assert mm.score(run).scores["brier"].value == pytest.approx(expected)


def test_a_server_without_log_probabilities_is_noted_and_read(tmp_path: Path) -> None:
    [run] = evaluate(Scripted(lambda _: "Answer: C"), tmp_path, score="logprobs", limit=2)
    assert read_facts(run.folder).adapted == (NO_LOGPROBS,)
    assert {a.value for a in last_answers(run.folder).values()} == {"C"}
    assert "brier" not in run.scores


def test_options_of_servers_are_refused_for_other_models(shell: Shell) -> None:
    arguments = ("run", "mquest/qa", "-m", "fake/keys", "--data", "sample")
    assert "needs an openai/… model" in shell.refused(*arguments, "--score", "logprobs")
    assert "--max-tokens needs an openai" in shell.refused(*arguments, "--max-tokens", "9")


# Thinking


def test_thinking_and_answer_have_budgets_and_cut_chains_are_counted(tmp_path: Path) -> None:
    def answer(body: Body) -> object:
        said = completion("<think>so many words", "length")
        said["usage"] = {
            "completion_tokens": 300,
            "completion_tokens_details": {"reasoning_tokens": 300},
        }
        return said

    server = Scripted(answer)
    [run] = evaluate(
        *(server, tmp_path),
        max_tokens=20,
        thinking_tokens=300,
        params={"thinking_field": "thinking_budget"},
        limit=2,
        invalid="wrong",
    )
    assert {(b["max_tokens"], b["thinking_budget"]) for b in server.bodies} == {(320, 300)}
    answers = last_answers(run.folder).values()
    assert {(a.reason, a.reply.reasoning, a.reply.tokens_thought) for a in answers} == {
        (CUT_OFF, "so many words", 300)
    }
    assert run.counts["unparsed"] == 2


@pytest.mark.parametrize("given", [{"repeat": 0}, {"max_tokens": 0}, {"score": "guess"}])
def test_impossible_values_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(mm.InputError):
        mm.evaluate(
            "mquest/qa", "fake/keys", settings=mm.EvaluationSettings(data="sample", **given)
        )
