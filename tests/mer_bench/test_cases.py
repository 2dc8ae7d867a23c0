"""Ways in which edits fail, options of scoring, and judgements that are averaged first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memantics.core.data import Source
from memantics.core.records import Item
from memantics.evaluation.paper import paper
from tests.commands import Shell
from tests.mer_bench.samples import bare, write_release
from tests.mer_bench.test_judge import find, judged, task_on
from tests.servers.fakes import Scripted, serving


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return write_release(tmp_path / "release", 12)


def test_failures_are_counted_by_editor(source: Source) -> None:
    """One keeps every layout and misses; two meets every target and loses layouts."""

    def rate(item: Item) -> dict[str, Any]:
        kept = item.tags["editor"] == "one"
        return bare("angry" if kept else item.tags["target"], consistent=kept)

    scores = judged(task_on(source), rate)
    missed, lost, panels = (
        "layout kept, target missed",
        "target met, layout lost",
        "several panels, layout lost",
    )
    assert find(scores, "proportion", "failure", missed).value == 0.5
    assert find(scores, "proportion", "failure, one", missed).value == 1
    assert find(scores, "proportion", "failure, two", missed).value == 0
    assert find(scores, "proportion", "failure, one", lost).value == 0
    assert find(scores, "proportion", "failure, two", lost).value == 1
    both = find(scores, "proportion", "failure", panels)
    assert (both.value, both.n) == (0.5, 8)


@pytest.mark.slow
def test_alpha_and_floor_are_options_of_score(shell: Shell) -> None:
    run = shell.folder / "run"
    words = ("-m", "baseline/random", "--data", "sample", "--set", "layout=off", "--out", run)
    shell.done("run", "mer_bench/judge", *words)
    (folder,) = (path.parent for path in run.rglob("run.json"))

    def read(key: str) -> dict[str, float]:
        rows = json.loads((folder / "scores.json").read_bytes())["scores"]
        return {row["by"]: row["value"] for row in rows if row["key"] == key}

    first = read("rfs")[""]
    shell.done("score", folder, "--set", "alpha=1", "--set", "floor=0.1")
    assert read("alpha") == {"formula": 1.0}
    assert read("floor") == {"formula": 0.1}
    assert read("rfs")[""] != first
    assert "known: after_retries, alpha, floor, rfs" in shell.refused(
        "score", folder, "--set", "view=model"
    )
    assert "alpha" in shell.refused("score", folder, "--set", "alpha=0")
    shell.done("score", folder)
    assert read("rfs")[""] == first
    assert not read("alpha")


@pytest.mark.slow
def test_a_hit_averaged_over_repeats_is_a_fraction(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plain run sees every target, its repeat none."""
    monkeypatch.setenv("MEMANTICS_HOME", str(shell.home))
    pairs = {"sad": "happy", "angry": "calm", "tense": "relaxed", "bored": "excited"}

    def answer(body: dict[str, Any]) -> str:
        text = next(
            p["text"] for p in body["messages"][1]["content"] if len(p.get("text", "")) > 99
        )
        source = text.partition("Feeling of the source meme: ")[2].partition("\n")[0]
        return json.dumps(bare("angry" if body.get("seed") else pairs[source], rating=2))

    out = shell.folder / "runs"
    with serving(Scripted(answer)) as server:
        words = ("-m", "openai/toy", "--base-url", server.url, "--data", "sample", "--repeat", "2")
        shell.done("run", "mer_bench/judge", *words, "--set", "layout=off", "--out", out)
    runs = [path.parent for path in out.rglob("run.json")]
    parts = {part.label: part for part in paper("mer_bench", runs, data="sample").parts}
    first, alone = parts["Repeated judgements"].rows
    values = [cell.value for cell in first.cells]
    assert values[:2] == [100, 50]
    # Half a hit of a quarter: the target is met in one of two judgements with ratings of 2 of 5.
    assert values[2] == pytest.approx(100 * 0.5 * 0.25)
    assert [cell.value for cell in alone.cells][:2] == [0, 50]
    assert len({row.section for row in parts["Figure 6"].rows}) == 1
