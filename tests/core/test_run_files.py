"""Files of runs: items are found at their places, and damage is named with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.core.errors import StoreError
from memantics.core.records import Answer, Item, Message, Reply
from memantics.core.rundir import (
    RunWriter,
    last_answers,
    read_answers,
    read_bare_items,
    read_facts,
    read_items,
    read_scores,
    read_standings,
    read_stored_items,
)
from tests.runs import TEXT, make_facts

FACTS = make_facts("own/task", "fake/model", {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with RunWriter(tmp_path / "run", FACTS) as writer:
        for number in range(3):
            item = Item(f"i{number}", f"g{number}", ["x"], TEXT, tags={"n": str(number)})
            writer.add_item(item, (Message("user", (f"question {number}",)),))
            writer.add_answer(Answer(f"i{number}", 0, "answered", Reply("x"), "x"))
    return tmp_path / "run"


def test_stored_items_are_read_from_their_places(folder: Path) -> None:
    stored = list(read_stored_items(folder))
    assert [item.id for item, _ in stored] == ["i0", "i1", "i2"]
    assert [form for _, form in stored] == [TEXT] * 3
    whole = list(read_bare_items(folder))
    for (item, _), full in zip(stored, whole, strict=True):
        assert (item.group, item.gold, dict(item.tags)) == (full.group, full.gold, full.tags)
        assert (item.form, item.images) == (full.form, full.images)
        with pytest.raises(AttributeError):
            item.nothing  # type: ignore[attr-defined]  # noqa: B018
    assert [line.messages[0].parts[0] for line in read_items(folder)] == [
        f"question {number}" for number in range(3)
    ]


@pytest.mark.parametrize("read", [read_items, read_bare_items, read_stored_items])
def test_a_damaged_item_is_named(read: object, folder: Path) -> None:
    path = folder / "items.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b'{"item": 7}\n' + lines[2])
    with pytest.raises(StoreError, match=r"items\.jsonl: line 2 is damaged: .*; remove that line"):
        list(read(folder))  # type: ignore[operator]


def test_a_damaged_answer_is_named(folder: Path) -> None:
    path = folder / "answers.jsonl"
    path.write_bytes(path.read_bytes() + b"{}\n")
    for read in (read_answers, last_answers, read_standings):
        with pytest.raises(StoreError, match=r"answers\.jsonl: line 4 is damaged"):
            list(read(folder))


def test_an_incomplete_last_line_is_dropped(folder: Path) -> None:
    for name in ("items.jsonl", "answers.jsonl"):
        path = folder / name
        path.write_bytes(path.read_bytes()[:-1])
    assert list(last_answers(folder)) == ["i0", "i1"]
    assert list(read_standings(folder)) == ["i0", "i1"]
    with RunWriter(folder, FACTS) as writer:
        assert list(writer.known) == ["i0", "i1"]
    assert len((folder / "items.jsonl").read_bytes().splitlines()) == 2


def test_a_complaint_is_kept_over_a_failed_attempt(folder: Path) -> None:
    with RunWriter(folder, FACTS) as writer:
        writer.add_answer(Answer("i0", 1, "unparsed", Reply("?"), None, reason="no letter"))
        writer.add_answer(Answer("i0", 2, "failed", Reply(""), None, reason="lost"))
        writer.add_answer(Answer("i1", 1, "failed", Reply(""), None, reason="lost"))
        writer.add_answer(Answer("i9", 0, "answered", Reply("x"), "x"))
    known = read_standings(folder)
    assert list(known) == ["i0", "i1", "i2"]
    first, second, third = known.values()
    assert first is not None
    assert (first.status, first.attempt, first.complaint) == ("failed", 2, "no letter")
    assert second is not None
    assert (second.status, second.complaint) == ("failed", None)
    assert third is not None
    assert (third.status, third.attempt, third.complaint) == ("answered", 0, None)


def test_missing_and_foreign_folders(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"is not a run directory: run\.json is missing"):
        read_facts(tmp_path)
    with pytest.raises(StoreError, match=r"has no readable scores\.json; it was not scored"):
        read_scores(folder)
    (folder / "scores.json").write_text("{}")
    with pytest.raises(StoreError, match=r"scores\.json is damaged"):
        read_scores(folder)
    with pytest.raises(StoreError, match=r"contains another run \(own/task, fake/model\)"):
        RunWriter(folder, make_facts("own/task", "fake/other", {}))
    with (
        RunWriter(folder, FACTS),
        pytest.raises(StoreError, match="is being written by another process"),
    ):
        RunWriter(folder, FACTS)
