"""PunMemeCN's tasks: three on puns, two on what puns presuppose, and a stress test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from memantics.benchmarks.punmemecn import chat, detection, harmful, sentiment, transcription
from memantics.benchmarks.punmemecn.brief import Brief
from memantics.core.records import Item
from memantics.core.task import Task
from memantics.tasks.plugin import TaskSetup

MAKERS: Mapping[str, Callable[[Brief], Task]] = {
    "detection": detection.make,
    "sentiment": sentiment.make,
    "chat": chat.make,
    "ocr": transcription.make_ocr,
    "pinyin": transcription.make_pinyin,
    "harmful": harmful.make,
}


def make(setup: TaskSetup) -> Task:
    """The task of that name."""
    return _hear(MAKERS[setup.card.name](Brief.of(setup)), setup)


def _hear(task: Task, setup: TaskSetup) -> Task:
    """With ``hint=readings`` a prompt also tells what its caption sounds like.

    The readings come from the sound alone, never from the annotated one.
    """
    if setup.options.get("hint") != "readings" or setup.source is None:
        return task
    listener = setup.services.listener()

    def items() -> Iterator[Item]:
        for item in task.items():
            heard = listener.hint(item.form.context["caption"])
            context = {**item.form.context, "readings": heard} if heard else item.form.context
            yield replace(item, form=replace(item.form, context=context))

    return replace(task, items=items, prompts={**task.prompts, "readings": listener.name})
