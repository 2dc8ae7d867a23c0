"""Files of runs: items are found at their places, and damage is named with file and line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from pydantic import JsonValue

from memantics.core.errors import StoreError
from memantics.core.records import Answer, Image, Item, Message, Reply, Score
from memantics.core.rundir import (
    BaselineScores,
    RunWriter,
    Scores,
    Usage,
    dump_line,
    last_answers,
    load_item,
    name_folders,
    read_answers,
    read_bare_items,
    read_facts,
    read_items,
    read_scores,
    read_standings,
    read_stored_items,
    write_facts,
    write_scores,
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


def test_which_runs_are_whole() -> None:
    assert FACTS.whole
    for other in (
        {"limit": 0},
        {"sample": 0},
        {"perturbation": "blur"},
        {"imported": {"file": "a"}},
    ):
        assert not replace(FACTS, **other).whole


def test_where_imported_answers_come_from() -> None:
    assert FACTS.origin == ""
    assert replace(FACTS, imported={"tool": "x"}).origin == ""
    imported: dict[str, JsonValue] = {"file": "a.csv", "items": 3, "of": 3}
    assert replace(FACTS, imported=imported).origin == "imported from a.csv"
    imported["items"] = 2
    assert replace(FACTS, imported=imported).origin == "imported from a.csv, 2 of 3 items"


def test_facts_and_scores_are_read_as_they_were_written(tmp_path: Path) -> None:
    facts = replace(FACTS, prices=(0.1, 0.2), sample=4, adapted=("no seed",), decoding={"n": None})
    write_facts(tmp_path, facts)
    assert read_facts(tmp_path) == facts
    assert (tmp_path / "run.json").read_bytes().startswith(b'{\n  "benchmark": "own",\n')
    assert (tmp_path / "run.json").read_bytes().endswith(b"}\n")
    scores = Scores(
        "accuracy",
        {"answered": 1},
        (Score("accuracy", 0.5, 4, 0.1, 0.9),),
        (BaselineScores("baseline/random", ()),),
        Usage(1, cost=0.5),
        ("own",),
    )
    write_scores(tmp_path, scores)
    assert read_scores(tmp_path) == scores
    assert (tmp_path / "scores.json").read_bytes().startswith(b'{\n  "main": "accuracy",\n')
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(
        StoreError, match=r"run\.json is damaged: benchmark: Field required; run ag"
    ):
        read_facts(tmp_path)


def test_a_line_may_have_paths_and_nothing_else_unknown() -> None:
    assert dump_line({"a": Path("x/y"), "b": (1,)}) == b'{"a":"x/y","b":[1]}\n'
    with pytest.raises(TypeError):
        dump_line({"a": object()})


def test_an_item_is_read_with_its_images(tmp_path: Path) -> None:
    images = (Image(Path("/x/a.png")), Image(Path("/x/b.png")))
    whole = Item("i", "g", {"a": 1}, TEXT, images, {"n": "1"})
    with RunWriter(tmp_path, FACTS) as writer:
        writer.add_item(Item("表", "表", None, TEXT), ())
        writer.add_item(whole, ())
    first, second = (item for item, _ in read_stored_items(tmp_path))
    assert (first.id, first.group, first.gold, dict(first.tags)) == ("表", "表", None, {})
    assert first.group is first.id, "equal texts share one object"
    assert (second.form, second.images) == (whole.form, images)
    with (tmp_path / "items.jsonl").open("rb") as file:
        assert load_item(file, second) == whole
        assert load_item(file, first).form == TEXT
    # A line that was damaged since is named by its number.
    lines = (tmp_path / "items.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "items.jsonl").write_bytes(lines[0] + b"{}\n")
    with pytest.raises(StoreError, match=r"items\.jsonl: line 2 is damaged: item: Field req"):
        _ = second.form


def test_ids_are_found_at_the_beginning_of_a_line_or_inside_it(tmp_path: Path) -> None:
    """Other programs may write the fields in another order."""
    with RunWriter(tmp_path, FACTS) as writer:
        writer.add_item(Item('a"\\表', "g", None, TEXT), ())
    path = tmp_path / "items.jsonl"
    line = orjson.loads(path.read_bytes())
    other = {"messages": [], "item": dict(reversed((line["item"] | {"id": "b"}).items()))}
    with path.open("ab") as file:
        file.write(orjson.dumps(other) + b"\n")
        file.write(orjson.dumps(other | {"item": line["item"] | {"id": "c"}}) + b" \n")
    assert read_standings(tmp_path) == {'a"\\表': None, "b": None, "c": None}
    with path.open("ab") as file:
        file.write(b'{"item":{"id":"d"\n')
    with pytest.raises(StoreError, match=r"items\.jsonl: line 4 is damaged"):
        read_standings(tmp_path)


def test_standings_of_unparsed_and_refused_answers(tmp_path: Path) -> None:
    with RunWriter(tmp_path, FACTS) as writer:
        for name in "abcd":
            writer.add_item(Item(name, name, None, TEXT), ())
        writer.add_answer(Answer("a", 0, "refused", Reply(""), None, reason="no"))
        writer.add_answer(Answer("b", 0, "unparsed", Reply("?"), None, reason="no"))
        writer.add_answer(Answer("c", 0, "refused", Reply(""), None, reason="no"))
        writer.add_answer(Answer("a", 1, "answered", Reply("x"), "x"))
    known = read_standings(tmp_path)
    assert known["d"] is None
    shown = {name: (one.status, one.attempt, one.complaint) for name, one in known.items() if one}
    assert shown == {
        "a": ("answered", 1, None), "b": ("unparsed", 0, "no"), "c": ("refused", 0, "no"),
    }  # fmt: skip
    with RunWriter(tmp_path, FACTS) as writer:
        writer.add_answer(Answer("b", 1, "refused", Reply(""), None, reason="no"))
        writer.add_answer(Answer("c", 1, "refused", Reply(""), None, reason="no"))
    known = read_standings(tmp_path)
    assert known["b"] is known["c"], "equal values share one object"


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["a"], ["a"]),
        (["a/run", "b/run"], ["a/run", "b/run"]),
        (["a/x/run", "b/x/run", "b/y"], ["a/x/run", "b/x/run", "y"]),
        (["a/run", "a/run"], ["run", "run"]),
        ([], []),
    ],
)
def test_folders_have_the_shortest_names_that_differ(folders: list[str], names: list[str]) -> None:
    assert name_folders([Path(folder) for folder in folders]) == names


def test_a_folder_inside_another_has_its_whole_path() -> None:
    assert name_folders([Path("/run"), Path("/a/run")]) == ["//run", "a/run"]
