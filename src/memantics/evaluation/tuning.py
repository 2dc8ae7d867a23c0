"""Tune a local model by LoRA to write what annotators wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from memantics.benchmarks.card import resolve_options
from memantics.benchmarks.memeintent.load import find_memecap
from memantics.benchmarks.registry import find_benchmark, find_source, find_tasks
from memantics.core.data import Source
from memantics.core.task import Task
from memantics.evaluation.answers import TaskChoiceSettings, pose_one
from memantics.evaluation.run import PosedTask
from memantics.moderation.data import SAMPLE
from memantics.moderation.examples import list_languages
from memantics.moderation.lora.tuning import DataOrigin, Tuning, TuningTools, tune_writer
from memantics.moderation.lora.tuning import write_card as write_tuned_card
from memantics.moderation.neural.settings import ProgressLog
from memantics.moderation.train_networks import INTENT, TunedModel, describe_tuning


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """What a local model learns to write intents from: ``data`` by name, or MemeCap's folder.

    ``options`` are those of the task (``background=human``, ``role=text``): memes are put to the
    model as ``memantics run`` puts them.
    """

    model: Path
    tuning: Tuning
    out: Path
    data: str | None = None
    split: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


def tune_intents(options: WriterOptions, say: ProgressLog = print) -> TunedModel:
    """Tune a local model by LoRA to write intents, score it on held-out memes, write its card."""
    task, origin = _pose_intents(options)
    tuned = tune_writer(
        options.model, task, options.tuning, options.out, TuningTools((), say, origin)
    )
    chosen = ", ".join(f"{name}={value}" for name, value in sorted(options.options.items()))
    facts = {
        "Asked": f"as {task.name} asks{f' with {chosen}' if chosen else ''}",
        "Memes": f"{tuned.trained_on:,} to train on, {tuned.held_out:,} others to judge",
        "Training": describe_tuning(options.tuning),
    }
    invalid = "A reply without a word counts as wrong."
    write_tuned_card(options.out, options.model, facts, tuned.table(), origin, invalid)
    return TunedModel(tuned)


def _pose_intents(options: WriterOptions) -> tuple[Task, DataOrigin]:
    """The task on the data that were named, and whose they are; a folder is a copy of MemeCap."""
    title, licence = "MemeCap", "not said"
    if options.data and find_memecap(Path(options.data)):
        (ref,) = find_tasks([f"memeintent/{INTENT}"])
        source = Source("release", Path(options.data), published=True)
        split, kind = options.split or "train", "release"
        task = ref.make(resolve_options(ref.card, options.options), split, source, None)
    else:
        posed = _pose_benchmark(options)
        task, split, title = posed.task, posed.split, posed.cards[0].title
        kind, licence = posed.data.kind, posed.data.licence or licence
    texts = [item.form.context.get("text", "") for item in task.items()]
    languages = list_languages([text for text in texts if text.strip()]) or ["en"]
    name = f"{title}, {kind}, split {split}"
    return task, DataOrigin(name, licence, tuple(languages), kind == SAMPLE)


def _pose_benchmark(options: WriterOptions) -> PosedTask:
    name = "memeintent" if options.data in (None, SAMPLE, "release") else str(options.data)
    kind: Literal["sample", "release"] | None = None
    if options.data in (SAMPLE, "release"):
        kind = "sample" if options.data == SAMPLE else "release"
    # The test part of the release stays unseen, for the runs to come.
    whole = not find_source(find_benchmark(name), kind).official
    split = options.split or (None if whole else "train")
    wanted = TaskChoiceSettings(kind, split, options=options.options)
    return pose_one(f"{name}/{INTENT}", wanted)
