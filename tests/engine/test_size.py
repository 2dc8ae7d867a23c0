"""Runs of very many items: what is kept in memory, and how often data are looked at."""

from __future__ import annotations

import asyncio
import os
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from memantics.core import data
from memantics.core.data import Source, inside, open_once, read_jsonl
from memantics.core.errors import DataError, StoreError
from memantics.core.records import NO_REPLY, Answer, Field, Form, Image, Item, Option, Reply
from memantics.core.rundir import RunWriter, read_items, read_stored_items
from memantics.core.task import InvalidPolicy, ItemWalk
from memantics.evaluation import scoring as score
from memantics.evaluation.ask import ask
from memantics.evaluation.scoring import read_outcomes
from memantics.metrics import text as constant
from memantics.metrics.text import find_best_constant, find_constant_text, rouge_l
from memantics.models.engine import AskSettings
from memantics.models.fake import FakeModel
from tests.engine.toy import FACTS, toy_form, toy_task

MANY = 3_000


class Colliding(str):
    """An id whose hash is that of every other."""

    __slots__ = ()

    def __hash__(self) -> int:
        return 7


def test_ids_are_compared_whole_not_by_their_hash(tmp_path: Path) -> None:
    task = toy_task(3)
    items = [replace(item, id=Colliding(item.id)) for item in task.items()]
    model = FakeModel(lambda _: "B")

    async def run(own: list[Item], folder: Path) -> int:
        with RunWriter(folder, FACTS) as writer:
            return (await ask(replace(task, items=lambda: iter(own)), model, writer)).answered

    assert asyncio.run(run(items, tmp_path / "run")) == 3
    with pytest.raises(DataError, match="two items have the same id"):
        asyncio.run(run([*items, items[0]], tmp_path / "twice"))


def finish(folder: Path, count: int) -> None:
    """A finished run, as an earlier start left it."""
    with RunWriter(folder, FACTS) as writer:
        for number in range(count):
            item = Item(f"item-{number}", f"meme-{number}", "B", toy_form(0))
            writer.add_item(item, ())
            writer.add_answer(
                Answer(item.id, 0, "answered", Reply("B" * 500), "B", prompt="f" * 64)
            )


def test_going_on_keeps_little_of_each_item(tmp_path: Path) -> None:
    finish(tmp_path, MANY)
    tracemalloc.start()
    with RunWriter(tmp_path, FACTS) as writer:
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(writer.known) == MANY
        assert len({id(standing) for standing in writer.known.values()}) == 1
    assert kept / MANY < 250


def test_items_read_for_scoring_share_what_is_equal(tmp_path: Path) -> None:
    finish(tmp_path, 4)
    forms = [line.item.form for line in read_items(tmp_path)]
    assert len({id(form.fields) for form in forms}) == len({id(f.question) for f in forms}) == 1
    assert [form for _, form in read_stored_items(tmp_path)] == forms
    task = replace(toy_task(4), parse=lambda _text, _form: "B")
    assert [outcome.value for outcome in read_outcomes(tmp_path, task)] == ["B"] * 4


def test_scoring_holds_no_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = Form("Which?", (Field("answer", "choice", tuple(Option(k, k * 400) for k in "AB")),))
    with RunWriter(tmp_path, FACTS) as writer:
        for number in range(MANY):
            # No two forms are equal: nothing could be shared.
            form = replace(long, context={"text": f"{number}" * 300})
            writer.add_item(Item(f"item-{number}", f"item-{number}", "B", form), ())
            writer.add_answer(Answer(f"item-{number}", 0, "answered", Reply("B"), "B"))
    monkeypatch.setattr(score, "_FORMS", 50)
    task = replace(toy_task(0), parse=lambda _text, form: form.context["text"])
    tracemalloc.start()
    outcomes = read_outcomes(tmp_path, replace(task, parse=lambda _text, _form: "B"))
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept / MANY < 600
    assert peak / MANY < 1_000
    assert {outcome.value for outcome in outcomes} == {"B"}
    # Whoever looks at a form still finds it, and the parser sees that of its own item.
    assert outcomes[7].item.form == replace(long, context={"text": "7" * 300})
    assert [o.value for o in read_outcomes(tmp_path, task)] == [f"{n}" * 300 for n in range(MANY)]


def test_a_stored_item_is_that_item(tmp_path: Path) -> None:
    whole = Item("a", "meme", ["B"], toy_form(3), (Image(Path("a.png")),), {"kind": "pun"})
    with RunWriter(tmp_path, FACTS) as writer:
        writer.add_item(Item("a0", "a0", None, toy_form(0)), ())
        writer.add_item(whole, ())
    (_, (stored, form)) = read_stored_items(tmp_path)
    fields = ("id", "group", "gold", "form", "images", "tags")
    assert [getattr(stored, name) for name in fields] == [getattr(whole, name) for name in fields]
    assert form == whole.form
    again = replace(stored, id="b")
    assert (again.id, again.form, again.images) == ("b", whole.form, whole.images)
    with pytest.raises(AttributeError, match="prompt"):
        _ = stored.prompt  # type: ignore[attr-defined]


@pytest.mark.parametrize("window", [1, 2, 3, 100])
def test_answers_come_in_any_order_and_some_items_or_answers_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(score, "_FORMS", window)
    with RunWriter(tmp_path, FACTS) as writer:
        for number in range(6):
            writer.add_item(Item(f"item-{number}", "m", "B", toy_form(number)), ())
        for name in ("item-4", "item-0", "removed by hand", "item-5", "item-1", "item-0"):
            writer.add_answer(Answer(name, 0, "answered", Reply("B")))
    task = replace(toy_task(0), parse=lambda _text, form: form.question)
    found = {outcome.item.id: outcome.value for outcome in read_outcomes(tmp_path, task)}
    assert found == {f"item-{n}": f"Question about item-{n}?" for n in (0, 1, 4, 5)}
    assert list(found) == sorted(found)


def test_a_damaged_form_is_named_by_its_line(tmp_path: Path) -> None:
    finish(tmp_path, 3)
    ((first, _), *_, (last, _)) = read_stored_items(tmp_path)
    path = tmp_path / "items.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = lines[2].replace(b'"kind":"choice"', b'"kind":"chance"')
    path.write_bytes(b"".join([*lines[:2], damaged]))
    assert first.form == toy_form(0)
    with pytest.raises(StoreError, match=r"line 3 is damaged.*kind"):
        _ = last.form
    with pytest.raises(StoreError, match=r"line 3 is damaged.*kind"):
        read_outcomes(tmp_path, toy_task(0))


@pytest.mark.parametrize(("attempts", "again"), [(1, 1), (2, 2)])
def test_going_on_makes_only_the_items_that_have_not_ended(
    tmp_path: Path, attempts: int, again: int
) -> None:
    """One answered, one unparsed (ended unless it may be asked again), one failed, one new."""
    finish(tmp_path, 1)
    with RunWriter(tmp_path, FACTS) as writer:
        for number, status in ((1, "unparsed"), (2, "failed")):
            writer.add_item(Item(f"item-{number}", f"meme-{number}", "B", toy_form(number)), ())
            writer.add_answer(Answer(f"item-{number}", 0, status, NO_REPLY))  # type: ignore[arg-type]
    plain, made = toy_task(4), list[str]()

    def walk(has_ended: Callable[[str], bool]) -> Iterator[Item | str]:
        for item in plain.items():
            if has_ended(item.id):
                yield item.id
            else:
                made.append(item.id)
                yield item

    task = replace(plain, items=ItemWalk(walk, lambda: 4), invalid=InvalidPolicy(attempts))
    with RunWriter(tmp_path, FACTS) as writer:
        done = asyncio.run(ask(task, FakeModel(lambda _: "B"), writer))
    assert made == ["item-1", "item-2", "item-3"][-1 - again :]
    assert (done.resumed, done.done) == (3 - again, 4)
    twice = replace(plain, items=ItemWalk(lambda _: iter(["item-0", "item-0"]), lambda: 2))
    with RunWriter(tmp_path, FACTS) as writer:
        asking = ask(twice, FakeModel(lambda _: "B"), writer)
        with pytest.raises(DataError, match="item-0: two items have the same id"):
            asyncio.run(asking)


def test_the_next_start_repeats_the_complaint_after_a_failure(tmp_path: Path) -> None:
    item = Item("item-0", "meme-0", "B", toy_form(0))
    with RunWriter(tmp_path, FACTS) as writer:
        writer.add_item(item, ())
        writer.add_answer(Answer(item.id, 0, "unparsed", NO_REPLY, reason="no letter"))
        writer.add_answer(Answer(item.id, 1, "failed", NO_REPLY, reason="down"))
        writer.add_answer(Answer(item.id, 1, "failed", NO_REPLY, reason="still down"))
        writer.add_answer(Answer("removed by hand", 0, "answered", NO_REPLY))
    with RunWriter(tmp_path, FACTS) as writer:
        standing = writer.known[item.id]
        assert standing is not None
        assert (standing.status, standing.attempt, standing.complaint) == ("failed", 1, "no letter")
        assert list(writer.known) == [item.id]


def test_an_item_asked_again_is_written_once(tmp_path: Path) -> None:
    task = replace(toy_task(2), invalid=InvalidPolicy(attempts=3))
    with RunWriter(tmp_path / "run", FACTS) as writer:
        done = asyncio.run(
            ask(task, FakeModel(lambda _: "no idea"), writer, settings=AskSettings(concurrency=2))
        )
    assert done.unparsed == 2
    assert [line.item.id for line in read_items(tmp_path / "run")] == ["item-0", "item-1"]


def test_names_below_a_folder_are_resolved_once_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, looked = os.path.realpath, list[str]()

    def look(path: str) -> str:
        looked.append(path)
        return real(path)

    monkeypatch.setattr(os.path, "realpath", look)
    data._find_real.cache_clear()
    (tmp_path / "images").mkdir()
    for number in range(200):
        inside(tmp_path, f"images/{number}.png")
    assert len(looked) <= 4


@pytest.mark.parametrize(
    "name", ["../x", "a/../../x", "/etc/passwd", "", "a\0b", "link", "link/x", ".."]
)
def test_what_leads_outside_is_refused(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "link").symlink_to(tmp_path)
    (root / "file").symlink_to(root / "a")
    with pytest.raises(DataError, match="points outside"):
        inside(root, name)
    for fine in ("a", "a/x", "file", "file/x", "a/../a/x", "."):
        assert inside(root, fine) == root / fine


def test_a_source_is_read_once_for_all_who_ask(tmp_path: Path) -> None:
    read: list[Source] = []

    def reader(source: Source) -> list[Source]:
        read.append(source)
        return read

    source = Source("sample", tmp_path)
    assert open_once(reader, source) is open_once(reader, Source("sample", tmp_path))
    open_once(reader, replace(source, kind="release"))
    assert len(read) == 2


def test_lines_are_read_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"n": 1}\n\n{"n": 2}\r\n{"n"')
    rows: Iterator[object] = iter(read_jsonl(path))
    assert [next(rows), next(rows)] == [(1, {"n": 1}), (3, {"n": 2})]
    with pytest.raises(DataError, match="row 4: not valid JSON"):
        next(rows)
    with pytest.raises(DataError, match="cannot be read"):
        next(iter(read_jsonl(tmp_path / "none.jsonl")))


@pytest.mark.parametrize("most", [11, 12, 13])
def test_the_constant_of_very_many_memes_is_grown_on_a_part(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    texts = [["the meme mocks me"], ["the meme mocks cats"], []] * 6
    whole = find_best_constant(texts)
    monkeypatch.setattr(constant, "_MOST", most)
    found = find_best_constant(texts)
    assert found is not None
    assert whole is not None
    assert found.text == find_constant_text(texts)
    asked = [own[0] for own in texts if own]
    mean = sum(rouge_l(found.text, own).f1 for own in asked) / len(asked)
    assert found.value == pytest.approx(mean)
    if most >= len(asked):
        assert found == whole
