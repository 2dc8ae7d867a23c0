"""A workflow of one's own is published and evaluated without a plugin: every kind of field."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from pydantic import JsonValue

from memantics.annotation.workflow import WorkflowField
from memantics.construction.publish.own_workflow import PublishedForm, read_form, write_items
from memantics.core.errors import DataError
from memantics.core.queue import (
    AggregatedAnnotation,
    IndividualAnnotation,
    QueueCard,
    QueueItem,
    Shown,
    read_queue,
    read_review,
    write_annotations,
    write_queue,
)
from memantics.core.rundir import read_scores
from tests.commands import Shell
from tests.construction.publish.queues import make_queue, pick_memes
from tests.report import test_paper_chains as chains

FORM = """
name = "four-kinds"
title = { en = "Four kinds" }
instructions = { en = "Look, then answer." }

[[fields]]
id = "tone"
kind = "choice"
label = { en = "Which tone has the meme?" }
options = [
  { value = "warm", label = { en = "Warm" } },
  { value = "dry", label = { en = "Dry" } },
  { value = "bitter", label = { en = "Bitter" } },
]

[[fields]]
id = "sincere"
kind = "boolean"
label = { en = "Is it sincere?" }

[[fields]]
id = "topics"
kind = "list"
level = "nominal"
label = { en = "Which topics has the meme?" }

[[fields]]
id = "degree"
kind = "scale"
low = 1
high = 5
label = { en = "How funny is the meme?" }

[[fields]]
id = "point"
kind = "longtext"
label = { en = "What does the author mean?" }

[[stages]]
id = "label"
kind = "independent"
annotators = 3
title = { en = "Label" }
fields = ["tone", "sincere", "topics", "degree", "point"]

[[aggregate]]
fields = ["tone", "sincere"]
rule = "majority"
stage = "label"
tie = "none"

[[aggregate]]
fields = ["degree"]
rule = "mean"
stage = "label"

[[aggregate]]
fields = ["point"]
rule = "longest"
stage = "label"
"""
TOPICS = (["cats"], ["cats", "work"], ["work"])


def say(field: WorkflowField, person: int, number: int) -> JsonValue:
    """The third person differs in tone and degree; topics and texts vary with the item."""
    answers: dict[str, JsonValue] = {
        "tone": ("warm", "dry")[number % 2] if person < 2 else "warm",
        "sincere": number % 2 == 0,
        "topics": list(TOPICS[number % 3]),
        "degree": min(5, 1 + number % 3 + 2 * (person == 2)),
        "point": f"The author mocks thing {number % 4}." + " Twice." * person,
    }
    return answers[field.id]


@pytest.mark.slow
def test_every_kind_of_field_is_annotated_exported_published_and_run(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains, "say", say)
    (shell.folder / "own.toml").write_text(FORM, "utf-8")
    make_queue(shell.folder / "queue", "four-kinds", pick_memes("en", 6))
    chains.simulate(
        shell, ["queue", "--db", "lab.db", "--workflow", str(shell.folder / "own.toml")]
    )
    shell.done("annotate", "export", "1", "--db", "lab.db", "--out", "queue/annotations.jsonl")
    words = ("publish", "queue", "--name", "tones", "--licence", "CC0-1.0")
    assert "--workflow" in shell.refused(*words)
    told = shell.done(*words, "--workflow", "own.toml")
    assert "6 memes, 6 items" in told
    root = shell.folder / "published" / "tones"
    assert len(list((root / "data/images").glob("*.png"))) == 6
    card = (root / "README.md").read_text("utf-8")
    assert 'language: ["en"]' in card
    assert "| people | 3 |" in card
    assert "Krippendorff's alpha, tone |" in card
    assert "Krippendorff's alpha, degree, ordinal |" in card
    assert "judged edits" not in card
    croissant = json.loads((root / "croissant.json").read_text("utf-8"))
    assert {record["name"] for record in croissant["recordSet"]} == {
        *("memes", "items", "annotations"),
    }
    tasks = ("tone", "tone_votes", "sincere", "topics", "degree", "degree_votes", "point")
    scores = {}
    for task in tasks:
        listed = shell.done("run", f"tones/{task}", "-m", "baseline/majority", "--json")
        run = json.loads(listed)[0]
        found = read_scores(shell.folder / run["folder"]).scores
        scores[task] = {score.key: score.value for score in found if not score.by}
        items = (shell.folder / run["folder"] / "items.jsonl").read_text("utf-8").splitlines()
        assert len(items) == 6, task
    # Even items are warm and odd ones dry, so a constant answer is right on half of them.
    assert scores["tone"]["accuracy"] == pytest.approx(0.5)
    assert scores["sincere"]["accuracy"] == pytest.approx(0.5)
    assert scores["topics"]["micro_f1"] is not None
    assert scores["point"]["rouge_l"] is not None
    # On another machine, the folder alone is enough.
    (shell.home / "benchmarks.json").unlink()
    assert "tones" in shell.refused("run", "tones/tone", "-m", "baseline/random")
    shell.done("data", "add", root)
    assert "6" in shell.done("data", "stats", "tones")
    shell.done("run", "tones/tone", "-m", "baseline/random")


def judge_one(folder: Path, values: dict[str, JsonValue], *votes: dict[str, JsonValue]) -> None:
    """Annotate each item of a queue with the same values and votes; an adjudicator adds one."""
    _, items = read_queue(folder)
    last = IndividualAnnotation(annotator="boss", stage="adjudicate", values=values)
    write_annotations(
        folder / "annotations.jsonl",
        [
            AggregatedAnnotation(
                item=item.id, group=item.group, workflow="four-kinds", kept=True, values=values,
                annotations=[
                    *(IndividualAnnotation(annotator=f"p{n}", stage="label", values=vote)
                      for n, vote in enumerate(votes)),
                    last,
                ],
            )
            for item in items
        ],
    )  # fmt: skip


def form() -> PublishedForm:
    return PublishedForm.model_validate(tomllib.loads(FORM))


def test_gold_votes_and_options_are_those_of_the_annotators(tmp_path: Path) -> None:
    queue = make_queue(tmp_path / "queue", "four-kinds", pick_memes("en", 2))
    values: dict[str, JsonValue] = {"tone": "warm", "degree": 2.5, "point": "A joke."}
    judge_one(queue, values, {"tone": "warm", "degree": 2}, {"tone": "dry", "degree": 3})
    base, made = write_items(read_review(queue, None), form(), "CC0-1.0")
    rows = [json.loads(line) for line in made.files["items.jsonl"].splitlines()]
    assert [(row["tone"], row["degree"], row["degree_step"]) for row in rows] == [
        ("warm", 2.5, "3")
    ] * 2
    assert [vote["values"]["tone"] for vote in rows[0]["annotations"]] == ["warm", "dry"]
    assert [vote["annotator"] for vote in rows[0]["later_annotations"]] == ["boss"]
    assert made.tasks == ("tone", "degree", "tone_votes", "degree_votes", "point")
    assert base.card.name == "dataset"
    assert made.skipped == {"fields without a task (sincere, topics)": 2}
    votes = [row for row in made.tables["annotations"] if row["field"] == "tone"]
    assert [row["value"] for row in votes[:3]] == ["warm", "dry", "warm"]
    config = made.files["dataset.toml"].decode()
    assert '"bitter" = "Bitter"' in config, "an option that nobody chose is an option"


def test_items_of_one_meme_are_one_cluster_and_show_what_people_saw(tmp_path: Path) -> None:
    queue = make_queue(tmp_path / "queue", "four-kinds", pick_memes("en", 1))
    _, (item,) = read_queue(queue)
    items = [
        QueueItem(
            id=f"i{n}", group=item.group, images=item.images, hidden=item.hidden,
            shown=[Shown(label="Reply", value=f"text {n}")],
        )
        for n in (1, 2)
    ]  # fmt: skip
    write_queue(queue, QueueCard(title="Q", workflow="four-kinds"), items)
    judge_one(queue, {"tone": "dry"}, {"tone": "dry"})
    _, made = write_items(read_review(queue, None), form(), "CC0-1.0")
    rows = [json.loads(line) for line in made.files["items.jsonl"].splitlines()]
    assert len(made.memes) == 1
    assert {row["meme"] for row in rows} == {made.memes[0].id}
    assert [row["text"].endswith(f"Reply: text {n}") for n, row in enumerate(rows, 1)] == [True] * 2


def test_a_file_of_another_project_is_refused(tmp_path: Path) -> None:
    queue = make_queue(tmp_path / "queue", "four-kinds", pick_memes("en", 1))
    judge_one(queue, {"tone": "dry"}, {"tone": "dry"})
    other = tmp_path / "other.toml"
    other.write_text(FORM.replace("four-kinds", "five-kinds"), "utf-8")
    with pytest.raises(DataError, match="annotated with the workflow 'four-kinds'"):
        write_items(read_review(queue, None), read_form(other), "CC0-1.0")
    other.write_text(FORM.replace('kind = "independent"', 'kind = "alone"'), "utf-8")
    with pytest.raises(DataError, match="kind"):
        read_form(other)
    judge_one(queue, {}, {})
    with pytest.raises(DataError, match="no field has annotations"):
        write_items(read_review(queue, None), form(), "CC0-1.0")
