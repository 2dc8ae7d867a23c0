"""Fine-tune a local model with LoRA to write intents like annotators."""

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
    """Training data for a local model that writes intents: a data set's name or MemeCap's folder.

    ``options`` are those of the evaluation task (``background=human``, ``role=text``); prompts are
    the same as for ``memantics run``.
    """

    model: Path
    tuning: Tuning
    out: Path
    data: str | None = None
    split: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


def tune_intents(options: WriterOptions, say: ProgressLog = print) -> TunedModel:
    """Fine-tune a local model with LoRA to write intents, and score it on held-out memes."""
    task, origin = _pose_intents(options)
    tuned = tune_writer(
        options.model, task, options.tuning, options.out, TuningTools((), say, origin)
    )
    chosen = ", ".join(f"{name}={value}" for name, value in sorted(options.options.items()))
    facts = {
        "Asked": f"as {task.name} asks{f' with {chosen}' if chosen else ''}",
        "Memes": f"{tuned.trained_on:,} training memes, {tuned.held_out:,} held-out memes",
        "Training": describe_tuning(options.tuning),
    }
    invalid = "An empty reply counts as wrong."
    write_tuned_card(options.out, options.model, facts, tuned.table(), origin, invalid)
    return TunedModel(tuned)


def _pose_intents(options: WriterOptions) -> tuple[Task, DataOrigin]:
    """Open the intent task on the given data; a folder is a copy of MemeCap."""
    title, licence = "MemeCap", "not stated"
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
    # The test split of the official release stays held out for later runs.
    whole = not find_source(find_benchmark(name), kind).official
    split = options.split or (None if whole else "train")
    wanted = TaskChoiceSettings(kind, split, options=options.options)
    return pose_one(f"{name}/{INTENT}", wanted)
