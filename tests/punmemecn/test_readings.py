"""``hint=readings``: what a caption sounds like, found by sound and never from the annotations."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from memantics.benchmarks.registry import find_tasks
from memantics.core.records import Image, Item
from memantics.core.task import HomophoneReader, Services, Task
from tests.punmemecn.release import SAMPLE
from tests.setups import make_setup, make_task


def detection(**options: str) -> Task:
    [ref] = find_tasks(["punmemecn/detection"])
    return ref.make(options, "all", ref.benchmark.sample(), None)


def complete(task: Task) -> Iterator[Item]:
    assert task.complete is not None
    return map(task.complete, task.items())


def text_of(task: Task, item: Item) -> str:
    parts = task.ask(item, None).messages[-1].parts
    return "".join(part for part in parts if not isinstance(part, Image))


@pytest.mark.slow
def test_a_prompt_tells_the_readings_of_its_caption() -> None:
    task = detection(hint="readings")
    item = next(item for item in complete(task) if item.form.context["caption"] == "我就是雨众不同")
    assert "我就是与众不同" in item.form.context["readings"]
    assert item.form.context["readings"] in text_of(task, item)


@pytest.mark.slow
def test_the_readings_come_from_the_caption_alone() -> None:
    """The same caption gets the same hint whatever its annotations say."""
    by_caption: dict[str, set[str]] = {}
    for item in complete(detection(hint="readings")):
        context = item.form.context
        by_caption.setdefault(context["caption"], set()).add(context.get("readings", ""))
    assert all(len(hints) == 1 for hints in by_caption.values())


def test_the_run_remembers_which_model_read() -> None:
    assert detection(hint="readings").prompts["readings"]
    assert "readings" not in detection().prompts


def test_a_hint_says_how_sure_it_is_and_nothing_where_nothing_is_heard() -> None:
    told = {
        item.form.context["caption"]: item.form.context.get("readings", "")
        for item in complete(detection(hint="readings"))
    }
    assert re.match(r"\d+%: 我就是与众不同 \(", told["我就是雨众不同"])
    assert told["早上来碗热粥"] == ""
    assert sum(map(bool, told.values())) < len(told) / 2


def test_nothing_is_read_before_an_item_is_asked() -> None:
    """Counting, sampling and a dry run walk all items: none of them may wait for readings."""
    heard: list[str] = []

    def listen(caption: str) -> str:
        heard.append(caption)
        return "99%: 别的 (bié de)"

    services = Services(homophone_reader=lambda: HomophoneReader("toy", listen))
    setup = make_setup("punmemecn/detection", {"hint": "readings"}, SAMPLE, services=services)
    task = make_task(setup)
    items = list(task.items())
    assert heard == []
    assert "bié de" not in text_of(task, items[0])
    assert heard == []
    assert task.complete is not None
    assert "bié de" in text_of(task, task.complete(items[0]))
    assert heard == [items[0].form.context["caption"]]
