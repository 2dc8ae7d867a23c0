"""Two rounds of judging, from draw to the paper's tables: toxicity first, then an extension."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memantics.benchmarks.registry import find_benchmark, find_source
from memantics.construction.sample import sample_questions
from memantics.core.errors import InputError, UnknownName
from memantics.core.queue import AggregatedAnnotation, read_queue, write_annotations
from memantics.evaluation.paper import paper
from tests.commands import Shell

YES = {"question": "yes", "answer": "yes", "second_question": "yes", "second_answer": "yes"}
NO = {"question": "no", "answer": "yes"}


def judge(queue: Path, refuse: int = 0) -> int:
    """One person says yes to all but every so many-th item; how many were kept."""
    _, items = read_queue(queue)
    kept = 0
    annotations = []
    for place, item in enumerate(items, 1):
        good = not refuse or place % refuse != 0
        kept += good
        two = len(item.hidden["questions"]) == 2  # type: ignore[arg-type]
        values = {k: v for k, v in (YES if good else NO).items() if two or "second" not in k}
        annotations.append(
            AggregatedAnnotation(
                item=item.id,
                group=item.group,
                workflow="validate",
                kept=good,
                values=dict(values),
                hidden=item.hidden,
            )
        )
    write_annotations(queue / "annotations.jsonl", annotations)
    return kept


@pytest.fixture
def build(shell: Shell) -> Path:
    for words in (
        ("build", "knowledge", "sample", "--model", "fake/builder", "--limit", "16"),
        ("build", "questions", "builds/sample", "--model", "fake/builder"),
    ):
        ran = shell.run(*words)
        assert ran.code == 0, ran
    return shell.folder / "builds" / "sample"


@pytest.mark.slow
def test_two_rounds_become_a_benchmark_with_its_papers_tables(shell: Shell, build: Path) -> None:
    ran = shell.run("build", "sample", build, "--first", "Toxicity", "--json")
    assert ran.code == 0, ran
    first = json.loads(ran.out)
    assert set(first["questions"]) - {"Toxicity"}, "linked questions come along"
    kept = judge(build / "queue", refuse=4)
    assert 0 < kept < first["items"]
    with pytest.raises(InputError, match="is already annotated"):
        sample_questions(build, first="Toxicity")

    second = sample_questions(build, per_dimension=2, seed=1)
    assert second.queue.name == "queue-2"
    assert "Toxicity" not in second.questions
    assert max(second.questions.values()) <= 2
    good = {own.group for own in read_queue(build / "queue")[1]}
    assert {own.group for own in read_queue(second.queue)[1]} <= good
    extended = judge(second.queue)

    published = shell.run(
        *("publish", build, "--name", "mine", "--licence", "CC0-1.0", "--no-images", "--json")
    )
    assert published.code == 0, published
    folder = shell.folder / "published" / "mine"
    assert not (folder / "data" / "images").exists()
    line = json.loads((folder / "data" / "metadata.jsonl").read_text().splitlines()[0])
    assert len(line["sha256"]) == 64
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "## Acceptance by dimension" in card
    assert f"| Toxicity | {kept} of {first['questions']['Toxicity']} " in card
    assert "put them into `data/images`" in card

    sheet = paper("mine", annotations=[build / "queue", second.queue])
    parts = {part.label: part for part in sheet.parts}
    toxic, extension, whole = parts["Table 1"].rows
    assert toxic.cells[0].value == kept
    assert sum(int(str(c.value)) for c in extension.cells[:10]) == extended
    for a, b, c in zip(toxic.cells[:10], extension.cells, whole.cells, strict=False):
        assert int(str(a.value)) + int(str(b.value)) == c.value
    rates = {row.label: row.cells[0] for row in parts["Figure 5"].rows}
    assert rates["Toxicity"].value == pytest.approx(100 * kept / first["questions"]["Toxicity"])
    assert rates["Toxicity"].status == "computed"


@pytest.mark.slow
def test_published_pairs_are_linked_when_they_are_asked(shell: Shell, build: Path) -> None:
    sample_questions(build, first="Toxicity")
    judge(build / "queue")
    assert shell.run("publish", build, "--name", "mine", "--licence", "CC0-1.0").code == 0
    benchmark = find_benchmark("mine")
    release = benchmark.open(find_source(benchmark, None))
    questions = {own.id: own for own in release.questions("all")}  # type: ignore[attr-defined]
    pairs = [own for own in questions.values() if own.pair]
    assert pairs
    for own in pairs:
        assert questions[own.pair].dimension == "Toxicity"
        assert questions[own.pair].meme == own.meme
    ran = shell.run("run", "mine", "--model", "fake/keys", "--json")
    scores = {s["key"]: s for s in json.loads(ran.out)[0]["scores"]["scores"] if not s["by"]}
    assert scores["group_accuracy"]["n"] == len({own.pair for own in pairs})


@pytest.mark.slow
def test_a_draw_is_the_same_for_the_same_seed_and_says_what_it_cannot(build: Path) -> None:
    with pytest.raises(UnknownName):
        sample_questions(build, first="Weather")
    with pytest.raises(InputError, match="no annotations yet"):
        sample_questions(build)
    sample_questions(build, first="Toxicity")
    judge(build / "queue", refuse=1)
    with pytest.raises(
        InputError, match="annotators kept no question, so there is no meme to sample from"
    ):
        sample_questions(build)
    judge(build / "queue")

    def ids(seed: int) -> list[str]:
        drawn = sample_questions(build, per_dimension=1, seed=seed)
        assert drawn.queue.name == "queue-2"  # nobody has judged it: it is drawn anew
        assert set(drawn.questions.values()) == {1}
        return [item.id for item in read_queue(drawn.queue)[1]]

    assert ids(3) == ids(3)
    assert len({tuple(ids(seed)) for seed in range(5)}) > 1
