"""``hint=readings``: what a caption sounds like, found by sound and never from the annotations."""

from __future__ import annotations

from memantics.core.records import Image, Item
from memantics.core.task import Task
from memantics.registry import find_tasks


def detection(**options: str) -> Task:
    [ref] = find_tasks(["punmemecn/detection"])
    return ref.make(options, "all", ref.benchmark.sample(), None)


def text_of(task: Task, item: Item) -> str:
    parts = task.ask(item, None).messages[-1].parts
    return "".join(part for part in parts if not isinstance(part, Image))


def test_a_prompt_tells_the_readings_of_its_caption() -> None:
    task = detection(hint="readings")
    item = next(item for item in task.items() if item.form.context["caption"] == "我就是雨众不同")
    assert "我就是与众不同" in item.form.context["readings"]
    assert item.form.context["readings"] in text_of(task, item)


def test_the_readings_come_from_the_caption_alone() -> None:
    """The same caption gets the same hint whatever its annotations say."""
    by_caption: dict[str, set[str]] = {}
    for item in detection(hint="readings").items():
        context = item.form.context
        by_caption.setdefault(context["caption"], set()).add(context.get("readings", ""))
    assert all(len(hints) == 1 for hints in by_caption.values())


def test_the_run_remembers_which_model_read() -> None:
    assert detection(hint="readings").prompts["readings"]
    assert "readings" not in detection().prompts
