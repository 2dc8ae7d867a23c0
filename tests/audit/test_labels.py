"""Splits and likely label errors as a user asks for them, on made-up tables."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from memantics.core.data import read_split, sum_split
from memantics.core.errors import DataError, InputError, UnknownName
from memantics.core.queue import AggregatedAnnotation, read_queue
from memantics.moderation.classifier import find_labelled
from memantics.moderation.examples import read_examples
from memantics.moderation.held_out import RunAnswers, number_labels, weigh_answers
from tests.audit.planted import make_memes, write_table
from tests.commands import Shell


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_table(make_memes(size=120, templates=0.9, flips=0.05), tmp_path / "memes.csv")


@pytest.mark.slow
def test_a_split_is_written_and_trained_with(shell: Shell, table: Path) -> None:
    ran = shell.run("audit", f"{table}/label", "--resplit", "template", "--out", "a.html", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    keys = {finding["key"]: finding for finding in found["findings"]}
    assert set(keys) == {"group.template", "resplit.template"}
    assert keys["group.template"]["verdict"] == "broken"
    path = shell.folder / found["files"]["split by template"]
    split = read_split(path)
    parts = {row.group: set[str]() for row in split.rows}
    for row in split.rows:
        parts[row.group].add(row.part)
    assert all(len(held) == 1 for held in parts.values())
    assert len(parts) == 20
    counts = split.counts
    assert sum(counts.values()) == 120
    assert 12 <= counts["test"] <= 36
    loaded = find_labelled(f"{table}/label", split=f"{path}:test")
    assert [example.id for example in loaded.examples] == split.list_ids("test")
    assert split.checksum in loaded.checksum
    page = (shell.folder / "a.html").read_text(encoding="utf-8")
    assert "Main findings" in page
    assert "<script" not in page


@pytest.mark.slow
def test_a_split_that_was_changed_is_refused(shell: Shell, table: Path) -> None:
    assert shell.run("audit", f"{table}/label", "--resplit", "time").code == 0
    (path,) = (shell.folder / "runs").rglob("split-time.json")
    with pytest.raises(UnknownName, match="part"):
        find_labelled(f"{table}/label", split=f"{path}:best")
    body = json.loads(path.read_text())
    assert body["checksum"] == sum_split((row["id"], row["part"]) for row in body["rows"])
    body["rows"][0]["part"] = "test" if body["rows"][0]["part"] == "train" else "train"
    path.write_text(json.dumps(body))
    with pytest.raises(DataError, match="checksum"):
        read_split(path)
    with pytest.raises(InputError, match="no such file"):
        read_split(shell.folder / "none.json")


def test_what_the_data_cannot_be_split_by_is_said(shell: Shell, table: Path) -> None:
    ran = shell.run("audit", f"{table}/label", "--resplit", "author")
    assert ran.code == 2
    assert "0 of 120 memes have an author" in ran.err
    assert "add a column author" in ran.err
    assert len(ran.err.strip().splitlines()) == 1


@pytest.mark.slow
def test_doubts_become_a_queue_and_reviews_a_share(shell: Shell, table: Path) -> None:
    ran = shell.run("audit", f"{table}/label", "--labels", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    card, items = read_queue(shell.folder / found["files"]["review queue"])
    assert card.workflow == "review-labels"
    ranked = [item for item in items if item.hidden["rank"]]
    assert ranked
    assert len(items) > len(ranked)
    verdicts = shell.folder / "annotations.jsonl"
    lines = [
        AggregatedAnnotation(
            item=item.id,
            group=item.group,
            workflow=card.workflow,
            kept=True,
            values={"fits": "no" if item.hidden["rank"] else "yes"},
            hidden=item.hidden,
        ).model_dump_json()
        for item in items
    ]
    verdicts.write_text("\n".join(lines) + "\n")
    ran = shell.run("audit", f"{table}/label", "--reviewed", verdicts, "--json")
    assert ran.code == 0, ran.err
    (share,) = (f for f in json.loads(ran.out)["findings"] if f["key"] == "labels.reviewed")
    assert share["score"]["value"] == pytest.approx(len(ranked) / 120)
    assert share["score"]["low"] <= share["score"]["value"] <= share["score"]["high"]


@pytest.mark.slow
def test_everything_writes_badge_citation_and_json(shell: Shell, table: Path) -> None:
    ran = shell.run("audit", f"{table}/label", "--all", "--out", "audit.html", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert len(found["lines"]) <= 5
    assert all("n = " in line for line in found["lines"])
    files = {what: shell.folder / path for what, path in found["files"].items()}
    assert "<svg" in files["badge"].read_text()
    assert files["citation"].read_text().startswith("@misc{memantics-audit-")
    assert json.loads(files["JSON"].read_text())["findings"] == found["findings"]
    assert {gap["check"] for gap in found["gaps"]} >= {"split by author", "split by source"}


@pytest.mark.slow
def test_runs_are_judges_and_are_scored_by_group(shell: Shell) -> None:
    rows = make_memes(size=160, templates=0.9, content=0.5)
    for number, row in enumerate(rows):
        row["split"] = "train" if number < 60 else "test"
    path = write_table(rows, shell.folder / "own.csv")
    assert shell.run("data", "add", path, "--label", "label", "--text", "text").code == 0
    ran = shell.run("run", "own", "--split", "all", "-m", "baseline/majority", "--out", "runs")
    assert ran.code == 0, ran.err
    (facts,) = (shell.folder / "runs").rglob("run.json")
    command = ("audit", "own", "--labels", "--resplit", "template", "--run", facts.parent, "--json")
    ran = shell.run(*command)
    assert ran.code == 0, ran.err
    found = {finding["key"]: finding for finding in json.loads(ran.out)["findings"]}
    labels = {row["label"]: row for row in found["resplit.template"]["rows"] if row["by"] == "run"}
    assert not labels  # every template is in train, so there is no other part to compare with
    for row in rows[:60]:
        row["split"] = "train" if row["template_cluster"] < "t15" else "dev"
    write_table(rows, path)
    assert shell.run("data", "add", path, "--label", "label", "--text", "text").code == 0
    ran = shell.run(*command)
    assert ran.code == 0, ran.err
    found = {finding["key"]: finding for finding in json.loads(ran.out)["findings"]}
    labels = {row["label"]: row for row in found["resplit.template"]["rows"] if row["by"] == "run"}
    assert list(labels) == [
        "baseline/majority, group in train",
        "baseline/majority, group not in train",
        "baseline/majority, difference",
    ]
    known, new, lost = labels.values()
    assert known["n"] + new["n"] == lost["n"] == sum(row["split"] != "train" for row in rows)
    assert lost["value"] == pytest.approx(known["value"] - new["value"])
    assert lost["low"] <= lost["value"] <= lost["high"]


def test_what_a_run_says_counts_as_much_as_it_is_worth(tmp_path: Path) -> None:
    data = find_labelled(f"{write_table(make_memes(size=120), tmp_path / 'memes.csv')}/label")
    folds = np.arange(120) % 5
    gold = [labels[0] for labels in data.gold]
    names = [example.id for example in data.examples]
    # A run that names every label in words of its own, and one that always says the same.
    told = {name: f"I say {label}" for name, label in zip(names, gold, strict=True)}
    knows = weigh_answers(data, RunAnswers("knows", told, ()), folds)
    silent = weigh_answers(data, RunAnswers("silent", dict.fromkeys(names, "A"), ()), folds)
    labels = number_labels(data)
    assert (knows.said == labels).all()
    assert knows.chances[np.arange(120), labels].min() > 0.95
    shares = np.bincount(labels) / 120
    assert np.abs(silent.chances - shares).max() < 0.1
    assert np.allclose(knows.chances.sum(axis=1), 1)


@pytest.mark.slow
def test_a_dataset_config_splits_by_the_columns_that_its_files_have(shell: Shell) -> None:
    rows = make_memes(size=120)
    for number, row in enumerate(rows):
        row |= {"source": f"forum{number % 4}", "author": f"user{number % 12}"}
    path = write_table(rows, shell.folder / "own.csv")
    assert shell.run("data", "add", path, "--label", "label", "--text", "text").code == 0
    ran = shell.run("audit", "own", "--resplit", "author", "--json")
    assert ran.code == 0, ran.err
    split = read_split(shell.folder / json.loads(ran.out)["files"]["split by author"])
    assert len({row.group for row in split.rows}) == 12
    ran = shell.run("audit", "own", "--resplit", "source")
    assert ran.code == 2
    assert "120 of 120 memes have a source, 4 different" in ran.err


@pytest.mark.parametrize("form", [(";", "utf-8"), ("\t", "utf-8-sig"), (";", "gb18030")])
def test_a_column_of_a_table_with_another_delimiter_is_audited(
    form: tuple[str, str], tmp_path: Path
) -> None:
    mark, encoding = form
    rows = [("id", "text", "label")]
    rows += [(f"m{n}", f"我又迟到了，今天第{n}次", str(n % 2)) for n in range(12)]
    body = "\n".join(mark.join(row) for row in rows)
    (tmp_path / "memes.csv").write_bytes(body.encode(encoding))
    shell = Shell(tmp_path)
    assert "12 memes are too few" in " ".join(shell.done("audit", "memes.csv/label").split())
    if encoding != "gb18030":  # detectors read UTF-8
        assert len(read_examples(tmp_path / "memes.csv").examples) == 12
