"""Chains of thought: kept, counted when cut off, and checked against data and answer."""

from __future__ import annotations

from pathlib import Path

import pytest

import memantics as mm
from memantics.benchmarks.punmemecn.audit import find_difference
from memantics.benchmarks.registry import find_benchmark
from memantics.core.errors import InputError
from memantics.core.rundir import read_bare_items
from memantics.evaluation.reasoning import find_decision, names_all
from memantics.evaluation.reports.runs import Run
from tests.commands import Shell
from tests.faults import completion
from tests.servers.fakes import Scripted, serving


def think(chain: str, answer: str) -> dict[str, object]:
    return completion(answer, reasoning_content=chain)


def ask(task: str, tmp_path: Path, *replies: object, limit: int = 3) -> Run:
    lines = iter(replies)
    with serving(Scripted(lambda _: next(lines))) as server:
        return mm.evaluate(
            task,
            "openai/thinker",
            out=tmp_path / "runs",
            settings=mm.EvaluationSettings(data="sample", limit=limit, invalid="wrong"),
            calls=mm.CallSettings(base_url=server.url, concurrency=1),
        )


def test_contrary_silent_and_cut_chains_are_found(tmp_path: Path, shell: Shell) -> None:
    run = ask(
        "mquest/qa",
        tmp_path,
        think("The form asks for a human check. So the answer is B.", "Answer: B"),
        think("No idea at all. So the answer is C.", "Answer: A"),
        completion("", "length", reasoning_content="bug and insects, bug and"),
    )
    items = [item.id for item in read_bare_items(run.folder)]
    found = mm.audit_reasoning(run)
    assert (found.answers, found.chains, found.cut_off) == (3, 3, 1)
    assert (found.checked, found.decided) == (3, 2)
    assert found.silent == (items[1],)
    assert found.contrary == (items[1],)
    shown = shell.run("audit-reasoning", run.folder).out
    assert f"contrary: {items[1]}" in shown
    assert "1 of 3" in shown


def test_a_pun_is_named_with_what_it_sounds_like(tmp_path: Path) -> None:
    pun = find_benchmark("punmemecn")
    release = pun.open(pun.sample())
    must = pun.plugin.must_name
    assert must is not None
    groups = must(release)
    item, (printed, meant) = next(iter(groups.items()))
    (word,), (sound,) = printed, meant
    assert word != sound
    assert names_all(f"{word} 谐音 {sound}", groups[item])
    assert not names_all(f"{word} 很好笑", groups[item])


def test_reasons_that_a_prompt_asked_for_are_chains_too(tmp_path: Path) -> None:
    """PunMemeCN's prompts 6 and 7: the analysis stands in the reply itself."""
    pun = find_benchmark("punmemecn")
    must = pun.plugin.must_name
    assert must is not None
    groups = must(pun.open(pun.sample()))
    lines = iter(["分析：没什么。\n判断：双关", "双关"])
    with serving(Scripted(lambda _: completion(next(lines, "双关")))) as server:
        run = mm.evaluate(
            "punmemecn/detection",
            "openai/open",
            out=tmp_path / "runs",
            settings=mm.EvaluationSettings(
                data="sample", options={"prompt": "6", "examples": "include"}
            ),
            calls=mm.CallSettings(base_url=server.url, concurrency=1),
        )
    found = mm.audit_reasoning(run)
    first = next(iter(read_bare_items(run.folder))).id
    assert found.chains == 1
    assert found.silent == ((first,) if first in groups else ())


def test_a_run_without_chains_is_refused(tmp_path: Path) -> None:
    run = ask("mquest/qa", tmp_path, *["Answer: B"] * 2, limit=2)
    with pytest.raises(InputError, match="has no chains of thought"):
        mm.audit_reasoning(run)


def test_the_chain_is_kept_and_folded_in_the_report(tmp_path: Path) -> None:
    run = ask("mquest/qa", tmp_path, think("secret words", "Answer: B"), limit=1)
    page = mm.report(run, tmp_path / "report.html").read_text()
    assert "secret words" in page
    assert 'fold(T("Reasoning")' in page


@pytest.mark.parametrize(
    ("chain", "end"),
    [
        ("B? No. The answer is C.", "The answer is C."),
        ("很好笑。答案是双关。因为谐音。", "答案是双关。"),
        ("", ""),
        ("answer: A. " + "x" * 400, ""),
    ],
)
def test_where_a_chain_decides(chain: str, end: str) -> None:
    assert find_decision(chain) == end


def test_differences_of_sounds() -> None:
    assert find_difference("好巧藕遇", "好巧偶遇") == ("藕", "偶")
    assert find_difference("ab", "abc") == ("", "c")
