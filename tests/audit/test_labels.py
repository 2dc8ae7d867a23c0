"""Splits and doubtful labels as a user asks for them, on made-up tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memantics.actions.expert_data import find_labelled
from memantics.core.errors import DataError, InputError, UnknownName
from memantics.core.queue import ItemVerdict, read_queue
from memantics.core.splits import read_split, sum_split
from tests.audit.planted import make_memes, write_table
from tests.commands import Shell


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_table(make_memes(size=120, templates=0.9, flips=0.05), tmp_path / "memes.csv")


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
    assert "Before you trust a score on this set" in page
    assert "<script" not in page


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
    assert "add a column author" in ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_doubts_become_a_queue_and_reviews_a_share(shell: Shell, table: Path) -> None:
    ran = shell.run("audit", f"{table}/label", "--labels", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    card, items = read_queue(shell.folder / found["files"]["review queue"])
    assert card.workflow == "review-labels"
    ranked = [item for item in items if item.hidden["rank"]]
    assert ranked
    assert len(items) > len(ranked)
    verdicts = shell.folder / "verdicts.jsonl"
    lines = [
        ItemVerdict(
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
    assert share["figure"]["value"] == pytest.approx(len(ranked) / 120)
    assert share["figure"]["low"] <= share["figure"]["value"] <= share["figure"]["high"]


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
