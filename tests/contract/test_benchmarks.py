"""One suite over every benchmark that is discovered: ours, ``examples/`` and any other.

``MEMANTICS_BENCHMARKS=path/to/yours pytest tests/contract`` holds yours to the same contract.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator

import pytest
from pydantic import JsonValue

from memantics.benchmarks.card import resolve_options
from memantics.benchmarks.published import compare, read_expected
from memantics.benchmarks.registry import Benchmark, TaskRef, find_benchmarks, find_tasks
from memantics.core.data import Source
from memantics.core.images import probe, read_bytes
from memantics.core.records import Form, Image, Item, Message, Outcome, Request, Score
from memantics.core.task import Task, Unparsed
from memantics.metrics.interval import wilson
from memantics.models.kinds import ModelSettings, open_model
from tests.places import ROOT

# Only while benchmarks are discovered: other tests must not see the examples.
with pytest.MonkeyPatch.context() as patch:
    patch.setenv("MEMANTICS_BENCHMARKS", str(ROOT / "examples"), prepend=os.pathsep)
    BENCHMARKS = find_benchmarks()
    TASKS = {ref.name: ref for ref in find_tasks(["suite"])}


@pytest.fixture(params=BENCHMARKS)
def benchmark(request: pytest.FixtureRequest) -> Benchmark:
    return BENCHMARKS[request.param]


@pytest.fixture(params=TASKS)
def ref(request: pytest.FixtureRequest) -> TaskRef:
    return TASKS[request.param]


def every_setting(ref: TaskRef) -> Iterator[dict[str, str]]:
    """The defaults, then each other value of each option alone."""
    yield {}
    for option in ref.card.option:
        yield from ({option.name: value} for value in option.choices if value != option.default)


def make(ref: TaskRef, options: dict[str, str] | None = None, source: Source | None = None) -> Task:
    return ref.make(options or {}, ref.card.splits[0], source, None)


def sample_items(ref: TaskRef) -> list[Item]:
    return list(make(ref, source=ref.benchmark.sample()).items())


def feed(task: Task) -> Task:
    """Give a task the answers of the tasks that come before it."""
    if task.feed is None:
        assert not task.needs
        return task
    memes = [item.group for item in task.items()]
    return task.feed({need.name: dict.fromkeys(memes, "a fact") for need in task.needs})


def right_value(item: Item) -> JsonValue:
    """The gold answer; of a list of texts that would all be right, the first."""
    if item.form.reply == "text" and isinstance(item.gold, list):
        return item.gold[0] if item.gold else "anything"
    return item.gold


def test_the_five_systems_are_there() -> None:
    assert {"mquest", "memeintent", "toxicn_mm", "mer_bench", "punmemecn"} <= BENCHMARKS.keys()


def test_folder_card_and_sample_fit(benchmark: Benchmark) -> None:
    assert benchmark.folder.name == benchmark.card.name
    found = benchmark.survey(benchmark.open(benchmark.sample()))
    assert found.records > 0
    assert not found.skips
    assert not found.repairs or all(count > 0 for count in found.repairs.values())
    assert found.images_found == found.images_expected > 0
    assert len(found.checksum) == 64


def test_every_declared_statistic_is_computed_or_said_to_be_impossible(
    benchmark: Benchmark,
) -> None:
    release = benchmark.open(benchmark.sample())
    expected = read_expected(benchmark.folder / "expected" / "statistics.json")
    rows = compare(expected, benchmark.recompute(release))
    assert len({row.key for row in rows}) == len(rows)
    for row, declared in zip(rows, expected, strict=True):
        assert row.definition
        assert declared.known is not None or row.value is None or row.paper is not None or row.note


def test_items_are_complete_and_their_images_decode(ref: TaskRef) -> None:
    items = sample_items(ref)
    assert items
    assert max(Counter(item.id for item in items).values()) == 1
    for item in items:
        assert item.group
        assert item.form.fields
        assert item.form.question
        for image in item.images:
            assert probe(read_bytes(image.path), image.path.name).width > 0


def test_some_reply_is_right_for_every_item(ref: TaskRef) -> None:
    task = make(ref)
    for item in sample_items(ref):
        if item.form.reply == "key":
            values = [task.parse(o.key, item.form) for o in item.form.fields[0].options]
            assert item.gold in values
            assert len(set(map(str, values))) == len(values)


def test_the_gold_answer_never_shows_in_the_request(ref: TaskRef) -> None:
    """A request is made from the form: the same for another gold answer."""
    task = make(ref, source=ref.benchmark.sample())
    for item in sample_items(ref)[:5]:
        changed = Item(item.id, item.group, "another", item.form, item.images, item.tags)
        assert task.ask(item, None) == task.ask(changed, None)


def test_every_setting_makes_requests_that_can_be_sent(ref: TaskRef) -> None:
    for options in every_setting(ref):
        if options.get("wording") == "official":
            continue  # the authors' words are in their release, never in a sample
        task = feed(make(ref, options, ref.benchmark.sample()))
        item = next(task.items())
        first, again = task.ask(item, None), task.ask(item, "no option letter found")
        assert first.form == item.form
        assert any(message.role == "user" for message in first.messages)
        texts = [p for m in again.messages for p in m.parts if isinstance(p, str)]
        assert all("$" not in text for text in texts)
        assert task.options == resolve_options(ref.card, options)
        assert task.prompts


def test_every_baseline_of_the_card_answers_every_item(ref: TaskRef) -> None:
    task = make(ref)
    assert ref.card.baselines
    for name in ref.card.baselines:
        model = open_model(name, ModelSettings())
        for item in sample_items(ref):
            request = Request((Message("user", item.images),), item.form)
            reply = asyncio.run(model.answer(request))
            task.parse(reply.text, item.form)


def test_garbage_is_unparsed(ref: TaskRef) -> None:
    task = make(ref)
    form: Form = sample_items(ref)[0].form
    if form.reply == "text":
        return
    for text in ("", "   ", "I will not say.", "\x00", "{", "[]", "null"):
        with pytest.raises(Unparsed):
            task.parse(text, form)


def main_of(task: Task, scores: tuple[Score, ...]) -> Score:
    return next(score for score in scores if score.key == task.main and not score.by)


def test_all_right_all_wrong_and_nothing_at_all(ref: TaskRef) -> None:
    task = make(ref)
    items = sample_items(ref)
    right = task.score([Outcome(item, "answered", right_value(item)) for item in items])
    wrong = task.score([Outcome(item, "unparsed") for item in items])
    empty = task.score([])
    assert main_of(task, right).value == pytest.approx(ref.card.best)
    assert main_of(task, wrong).value == pytest.approx(0.0)
    assert main_of(task, empty).value is None
    for score in (*right, *wrong):
        if score.value is not None and score.low is not None and score.high is not None:
            assert score.low - 1e-9 <= score.value <= score.high + 1e-9
            assert score.n > 0
    assert wilson(0, 0) is None


def test_images_are_sent_before_the_text_that_asks_about_them(ref: TaskRef) -> None:
    task = make(ref, source=ref.benchmark.sample())
    item = next(task.items())
    parts = task.ask(item, None).messages[-1].parts
    # A few words may introduce each image; what is asked stands behind the last of them.
    assert any(isinstance(part, Image) for part in parts[:2]) or not ref.card.needs_images
    assert isinstance(parts[-1], str)
