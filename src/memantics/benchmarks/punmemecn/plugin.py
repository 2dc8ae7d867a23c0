"""The PunMemeCN plugin: tasks on puns, two on skills that puns need, a stress test, labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from memantics.benchmarks.plugin import AuditHooks, BenchmarkPlugin, TaskSetup
from memantics.benchmarks.punmemecn import (
    audit,
    chat,
    detection,
    harmful,
    punchline,
    sentiment,
    transcription,
)
from memantics.benchmarks.punmemecn.load import PunMeme, PunRelease, open_release
from memantics.benchmarks.punmemecn.official import official_prompts
from memantics.benchmarks.punmemecn.statistics import statistics, survey
from memantics.benchmarks.punmemecn.wording import Brief
from memantics.core.labels import LabelledMeme, LabelSource
from memantics.core.records import Item
from memantics.core.releases import is_test
from memantics.core.task import Task

MAKERS: Mapping[str, Callable[[Brief], Task]] = {
    "detection": detection.make,
    "sentiment": sentiment.make,
    "chat": chat.make,
    "ocr": transcription.make_ocr,
    "pinyin": transcription.make_pinyin,
    "harmful": harmful.make,
    "punchline": punchline.make,
}


def make(setup: TaskSetup) -> Task:
    """Build the PunMemeCN task with this name."""
    brief = Brief.of(setup)
    return _add_readings(_split(MAKERS[setup.card.name](brief), brief, setup.split), setup)


def _split(task: Task, brief: Brief, split: str) -> Task:
    if split == "all":
        return task

    def items() -> Iterator[Item]:
        # Each item is clustered by a meme, and the group of that meme is its group.
        groups = {meme.id: meme.group for meme in brief.release.memes}
        for item in task.items():
            if is_test(groups.get(item.group, item.group)) == (split == "test"):
                yield item

    return replace(task, items=items)


def _add_readings(task: Task, setup: TaskSetup) -> Task:
    """Return the task; with ``hint=readings``, prompts also contain homophone readings.

    The homophone readings are computed from the sound of the caption, never from its annotated
    reading.
    """
    if setup.options.get("hint") != "readings" or setup.source is None:
        return task
    reader = setup.services.homophone_reader()

    def complete(item: Item) -> Item:
        readings = reader.hint(item.form.context["caption"])
        if not readings or "readings" in item.form.context:
            return item
        context = {**item.form.context, "readings": readings}
        return replace(item, form=replace(item.form, context=context))

    return replace(
        task,
        complete=complete,
        prompts={**task.prompts, "readings": reader.name},
    )


# Labels for classifiers; a pun and its two hard negatives form one group.


def _read(label_of: Callable[[PunMeme], str]) -> Callable[[PunRelease], Iterator[LabelledMeme]]:
    def read(release: PunRelease) -> Iterator[LabelledMeme]:
        for meme in release.memes:
            label = (label_of(meme),)
            yield LabelledMeme(meme.id, meme.caption, label, meme.group, image=meme.image)

    return read


LABELS: Mapping[str, LabelSource[PunRelease]] = {
    "sentiment_type": LabelSource(
        "positive, neutral or negative", _read(lambda meme: meme.type), topic="sentiment"
    ),
    "sentiment_target": LabelSource(
        "target of the sentiment: self, other or both",
        _read(lambda meme: meme.target),
        topic="about",
    ),
    "pun": LabelSource(
        "pun or no pun", _read(lambda meme: "pun" if meme.is_pun else "no pun"), topic="pun"
    ),
}


PLUGIN = BenchmarkPlugin(
    open_release=open_release,
    survey=survey,
    statistics=statistics,
    make_task=make,
    labels=LABELS,
    must_name=audit.must_name,
    official_prompts=official_prompts,
    audit=AuditHooks(
        audit.findings, audit.pictures, audit.SHOWN, audit.makers, narrow=audit.narrow
    ),
)
