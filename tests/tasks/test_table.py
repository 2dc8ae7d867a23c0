"""Benchmarks from one file of records: read as a stream, checked once, asked in a fixed order."""

from __future__ import annotations

import os
import random
import tracemalloc
from _random import Random as Chance
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from memantics.benchmarks import table
from memantics.benchmarks.card import TaskCard, read_card
from memantics.benchmarks.plugin import BenchmarkPlugin, TaskSetup
from memantics.benchmarks.registry import DataFacts
from memantics.benchmarks.table import (
    Choice,
    MemeRecord,
    RecordTable,
    choice_benchmark,
    shuffle_places,
)
from memantics.core import data
from memantics.core.data import Source, read_record_lines, read_records
from memantics.core.errors import DataError
from memantics.core.task import InvalidPolicy, ItemWalk, Task
from memantics.evaluation.facts import Scope
from memantics.evaluation.run import narrow, pose
from memantics.evaluation.tasks import SERVICES

PROMPTS = Path(__file__).resolve().parents[2] / "examples" / "meanings"


class Meme(MemeRecord):
    right: str
    others: list[str]


def ask(meme: Meme, options: Mapping[str, str]) -> Choice:
    return Choice("Which?", meme.right, tuple(meme.others), seed=options.get("seed", "0"))


def write(root: Path, count: int, *more: object) -> Source:
    """A copy with so many memes, all with images, and the records given besides."""
    (root / "images").mkdir(parents=True, exist_ok=True)
    (root / "images" / "a.png").touch()
    rows = [
        {
            "id": f"m{n}",
            "image": "a.png",
            "right": f"yes {n}",
            "others": [f"{c} {n}" for c in "xyz"],
        }
        for n in range(count)
    ]
    lines = [orjson.dumps(row) for row in (*rows, *more)]
    (root / "memes.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return Source("sample", root)


def make(
    plugin: BenchmarkPlugin[RecordTable[Meme]], source: Source, options: Mapping[str, str]
) -> Task:
    card = TaskCard(name="choose", title="", main="accuracy", baselines=())
    return plugin.make_task(
        TaskSetup("toy/choose", card, PROMPTS, options, "all", source, InvalidPolicy(), SERVICES)
    )


@pytest.mark.parametrize("count", range(1, 11))
def test_orders_are_those_of_the_standard_library(count: int) -> None:
    chance = Chance()
    for name in ("", "meme-1", "表情包", *(f"{n}" for n in range(200))):
        places = list(range(count))
        random.Random(f"7:{name}").shuffle(places)
        assert list(shuffle_places(f"7:{name}", count, chance)) == places


def test_items_have_their_order_key_and_the_commonest_key(tmp_path: Path) -> None:
    source = write(tmp_path, 50)
    plugin = choice_benchmark(Meme, ask)
    for seed in ("0", "1"):
        task = make(plugin, source, {"seed": seed})
        items = list(task.items())
        keys = [str(item.gold) for item in items]
        majority = min("ABCD", key=lambda letter: (-keys.count(letter), letter))
        for number, item in enumerate(items):
            options = sorted([f"yes {number}", *(f"{c} {number}" for c in "xyz")])
            random.Random(f"{seed}:{item.id}").shuffle(options)
            (field,) = item.form.fields
            assert [option.text for option in field.options] == options
            assert item.gold == "ABCD"[options.index(f"yes {number}")]
            assert field.majority == majority


def count(task: Task) -> int:
    assert isinstance(task.items, ItemWalk)
    return task.items.count()


def test_what_has_ended_is_passed_by_its_id_and_not_made(tmp_path: Path) -> None:
    gone = {"id": "gone", "image": "b.png", "right": "1", "others": ["2"]}
    asked: list[str] = []

    def note(meme: Meme, options: Mapping[str, str]) -> Choice:
        asked.append(meme.id)
        return ask(meme, options)

    task = make(choice_benchmark(Meme, note), write(tmp_path, 4, gone), {"images": "present"})
    assert isinstance(task.items, ItemWalk)
    whole = list(task.items())
    asked.clear()
    # One whose image is gone is left out, whether it was answered before or not.
    found = list(task.items.walk({"m0", "m2", "gone"}.__contains__))
    assert found == ["m0", whole[1], "m2", whole[3]]
    assert asked == ["m1", "m3"]


def test_one_reading_serves_counting_and_the_survey(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, plugin = write(tmp_path, 5), choice_benchmark(Meme, ask)
    read: list[Path] = []

    def look(path: Path) -> object:
        read.append(path)
        return read_record_lines(path)

    monkeypatch.setattr(data, "read_record_lines", look)
    monkeypatch.setattr(table, "read_record_lines", look)
    task = make(plugin, source, {"seed": "0"})
    assert count(task) == 5
    assert plugin.survey(plugin.open_release(source)).records == 5
    assert count(make(plugin, source, {"seed": "0"})) == 5
    assert len(read) == 1
    assert len(list(task.items())) == 5
    assert len(read) == 2


def test_no_record_is_held(tmp_path: Path) -> None:
    plugin = choice_benchmark(Meme, ask)
    list(make(plugin, write(tmp_path / "few", 3), {}).items())  # imports and prompts
    long = [
        {"id": f"l{n}", "image": "a.png", "right": f"{n}" * 200, "others": [f"no {n}" * 200]}
        for n in range(3_000)
    ]
    task = make(plugin, write(tmp_path / "many", 0, *long), {})
    tracemalloc.start()
    assert count(task) == sum(1 for _ in task.items()) == 3_000
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The parser keeps some thousands of short texts; a record would take far more.
    assert kept / 3_000 < 400


def test_a_file_changed_while_in_use_is_an_error_and_a_later_task_reads_it_anew(
    tmp_path: Path,
) -> None:
    source, plugin = write(tmp_path, 3), choice_benchmark(Meme, ask)
    task, opened = make(plugin, source, {}), plugin.open_release(source)
    assert len(list(task.items())) == 3
    write(tmp_path, 4)
    with pytest.raises(DataError, match="was changed while in use"):
        next(opened.rows())
    assert len(list(task.items())) == plugin.open_release(source).count == 4


@pytest.mark.parametrize("count", [2, 4])
def test_a_file_cut_or_grown_under_the_reader_is_an_error(tmp_path: Path, count: int) -> None:
    opened = choice_benchmark(Meme, ask).open_release(write(tmp_path, 3))
    with pytest.raises(DataError, match="was changed while in use"):
        list(replace(opened, ids=["x"] * count).rows())


def test_images_that_are_missing_are_told_or_left_out(tmp_path: Path) -> None:
    gone = {"id": "gone", "image": "b.png", "right": "1", "others": ["2"]}
    source, plugin = write(tmp_path, 2, gone), choice_benchmark(Meme, ask)
    found = plugin.survey(plugin.open_release(source))
    assert (found.records, found.images_found, found.images_expected) == (3, 2, 3)
    present = make(plugin, source, {"images": "present"})
    assert count(present) == len(list(present.items())) == 2
    whole = make(plugin, source, {})
    for walk in (lambda: count(whole), lambda: list(whole.items())):
        with pytest.raises(DataError, match="meme gone: its image is not in this copy"):
            walk()


def test_links_and_folders_are_looked_at_one_by_one(tmp_path: Path) -> None:
    outside = tmp_path / "secret.png"
    outside.touch()
    images = tmp_path / "data" / "images"
    (images / "more").mkdir(parents=True)
    (images / "more" / "b.png").touch()
    (images / "link.png").symlink_to(outside)
    inner = {"id": "b", "image": "more/b.png", "right": "1", "others": ["2"]}
    plugin = choice_benchmark(Meme, ask)
    assert not plugin.open_release(write(tmp_path / "data", 1, inner)).missing
    with pytest.raises(DataError, match="points outside"):
        plugin.open_release(write(tmp_path / "data", 1, inner | {"image": "link.png"}))
    assert data.list_plain_files(images) == {"a.png"}
    assert not data.list_plain_files(tmp_path / "none")


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"id": "m0", "image": "a.png", "right": "1", "others": ["2"]}, "m0 appears twice"),
        ({"id": "x", "image": "a.png", "right": "1", "others": ["1"]}, "2 options are equal"),
        ({"id": "x", "image": "a.png", "right": "1", "others": [2]}, r"'others.0'.*valid string"),
        ({"id": "x", "image": "a.png", "right": "1"}, "missing field 'others'"),
        (
            {"id": "x", "image": "a.png", "right": "r", "others": list("abcdefghij")},
            "11 options are too many",
        ),
    ],
)
def test_a_wrong_record_is_named_by_its_line(
    tmp_path: Path, record: dict[str, object], problem: str
) -> None:
    source = write(tmp_path, 2, record)
    with pytest.raises(DataError, match=rf"memes.jsonl: row 3: .*{problem}"):
        choice_benchmark(Meme, ask).open_release(source)


def test_ten_options_have_letters(tmp_path: Path) -> None:
    record = {"id": "x", "image": "a.png", "right": "r", "others": list("abcdefghi")}
    (item,) = make(choice_benchmark(Meme, ask), write(tmp_path, 0, record), {}).items()
    assert len(item.form.fields[0].options) == 10


def test_a_limited_task_is_counted_by_its_items(tmp_path: Path) -> None:
    source, plugin = write(tmp_path, 5), choice_benchmark(Meme, ask)
    task = make(plugin, source, {})
    facts = DataFacts("sample", "", 5, "", "")
    totals = [
        pose((None, None), task, lambda: facts, Scope(split="all", limit=limit)).total  # type: ignore[arg-type]
        for limit in (None, 4, 5, 6)
    ]
    assert totals == [5, 4, 5, 5]
    few = narrow(task, lambda meme: meme == "m3")
    assert not isinstance(few.items, ItemWalk)
    posed = pose((None, None), few, lambda: facts, Scope(split="all"))  # type: ignore[arg-type]
    assert posed.total == 1


class KnownMeme(Meme):
    language: str = "en"
    kind: str = ""


def test_language_and_kind_of_a_record_are_what_a_limit_spreads_over(tmp_path: Path) -> None:
    more = [
        {"id": name, "image": image, "right": "1", "others": ["2"], **tags}
        for name, image, tags in (
            ("gone", "b.png", {"language": "zh"}),
            ("other", "a.png", {"kind": "photo"}),
            ("last", "a.png", {"language": "zh"}),
        )
    ]
    source, facts = write(tmp_path, 5, *more), DataFacts("sample", "", 5, "", "")
    card = read_card(PROMPTS / "card.toml").model_copy(update={"languages": ("en", "zh")})

    def limit(count: int) -> tuple[list[str], str]:
        task = make(choice_benchmark(KnownMeme, ask), source, {"images": "present"})
        posed = pose((card, card.task[0]), task, lambda: facts, Scope(split="all", limit=count))
        assert posed.total == count
        return [item.id for item in posed.task.items()], posed.scope.spread

    assert limit(1) == (["m0"], "")
    assert limit(2) == (["m0", "last"], "language, kind")
    assert limit(3) == (["m0", "other", "last"], "language, kind")
    assert limit(4) == (["m0", "m1", "other", "last"], "language, kind")
    assert limit(7) == (["m0", "m1", "m2", "m3", "m4", "other", "last"], "")
    task = make(choice_benchmark(KnownMeme, ask), source, {})
    with pytest.raises(DataError, match="meme gone: its image is not in this copy"):
        pose((card, card.task[0]), task, lambda: facts, Scope(split="all", limit=2))
    plain = make(choice_benchmark(Meme, ask), write(tmp_path / "plain", 2), {})
    assert isinstance(plain.items, ItemWalk)
    assert plain.items.outline is None
    assert [dict(item.tags) for item in plain.items()] == [{}, {}]


def test_lines_that_are_not_json_and_blank_ones(tmp_path: Path) -> None:
    source = write(tmp_path, 1)
    path = source.root / "memes.jsonl"
    path.write_bytes(b"\n" + path.read_bytes() + b" \r\n")
    assert [number for number, _ in read_records(Meme, path)] == [2]
    path.write_bytes(path.read_bytes() + b'{"id": NaN}')
    with pytest.raises(DataError, match="row 4: not valid JSON"):
        list(read_records(Meme, path))
    if os.geteuid():
        path.chmod(0)
        with pytest.raises(DataError, match="cannot be read"):
            list(read_records(Meme, path))
