"""Runs and detectors as sources of values for a paper: names, repeats and scores."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Protocol

from pydantic import JsonValue

from memantics.core.records import Score
from memantics.core.rundir import RunFacts, Scores, name_folders


class ScoredRun(Protocol):
    """A finished run as a source of values for a paper."""

    @property
    def folder(self) -> Path:
        """The run folder."""
        ...

    @property
    def facts(self) -> RunFacts:
        """The settings of the run."""
        ...

    @property
    def results(self) -> Scores:
        """The scores of the run."""
        ...

    @property
    def task(self) -> str:
        """The task of the run, ``BENCHMARK/TASK``."""
        ...

    @property
    def model(self) -> str:
        """The model of the run, ``KIND/NAME``."""
        ...


@dataclass(frozen=True, slots=True)
class ScoredDetector:
    """A trained detector: its name, model card, and metrics by task.

    ``said`` is the proportion of the detector's seeds that predict harmful for each test meme, if
    known.
    """

    name: str
    folder: Path
    facts: Mapping[str, JsonValue]
    scores: Mapping[str, tuple[Score, ...]]
    said: Mapping[str, float] = field(default_factory=dict)


def same_system(model: str, system: str) -> bool:
    """Return whether a model name matches a published system by the last component of its path.

    >>> same_system("openai/Qwen/Qwen2-VL-7B-Instruct", "Qwen2-VL-7B-Instruct")
    True
    >>> same_system("openai/gpt-4o-mini", "GPT-4o")
    False
    """

    def strip(name: str) -> str:
        return re.sub(r"[^a-z0-9]+", "", name.rpartition("/")[2].casefold())

    return strip(model) == strip(system)


def is_repeat(one: ScoredRun, other: ScoredRun) -> bool:
    """Return whether two runs ask the same items in the same way, apart from the seed."""
    first = other.facts.repeat_of or other.facts.fingerprint
    return bool(first and first in (one.facts.repeat_of, one.facts.fingerprint)) and all(
        getattr(one.facts, name) == getattr(other.facts, name)
        for name in ("benchmark", "task", "model", "split", "limit", "sample", "perturbation")
    )


def name_runs(runs: Sequence[ScoredRun]) -> list[str]:
    """Return display names of runs; equal names get the option, split or folder that differs."""
    named = Counter(run.model for run in runs)
    folders = name_folders([run.folder for run in runs])
    labels = []
    for run in runs:
        others = [scored_run.facts for scored_run in runs if scored_run.model == run.model]
        marks = [
            f"{name}={value}"
            for name, value in {**run.facts.options, "split": run.facts.split}.items()
            if len({{**facts.options, "split": facts.split}.get(name) for facts in others}) > 1
        ]
        apart = f" ({', '.join(marks)})" if marks else ""
        labels.append(f"{run.model}{apart}" if named[run.model] > 1 else run.model)
    doubled = Counter(labels)
    return [
        f"{label} ({folder})" if doubled[label] > 1 else label
        for label, folder in zip(labels, folders, strict=True)
    ]


def find_score(scores: Sequence[Score], name: str) -> Score | None:
    """Return a score by name; a score of a category is named ``name[breakdown=part]``.

    >>> find_score([Score("f1", 0.5, 3, by="type", label="sexual")], "f1[type=sexual]").value
    0.5
    """
    key, _, part = name.removesuffix("]").partition("[")
    by, _, label = part.partition("=")
    return next((s for s in scores if (s.key, s.by, s.label) == (key, by, label)), None)


def mean_repeats(runs: Sequence[ScoredRun], name: str) -> tuple[Score | None, float | None]:
    """Return a score of a run, or its mean and SD over repeats (without confidence interval)."""
    found = [find_score(run.results.scores, name) for run in runs]
    known = [score for score in found if score is not None and score.value is not None]
    values = [score.value for score in known if score.value is not None]
    if len(values) < 2:
        return next(iter(known or found), None), None
    mean = replace(known[0], value=fmean(values), low=None, high=None)
    return replace(mean, note=f"mean of {len(values)} runs"), stdev(values)


def list_folders(runs: Iterable[ScoredRun]) -> tuple[str, ...]:
    """Return the folders of runs, without repeats."""
    return tuple(dict.fromkeys(str(run.folder) for run in runs))


def note_unshown(runs: Iterable[ScoredRun], reason: str) -> tuple[str, ...]:
    """Return a note that names the runs that a table does not show; empty without such runs."""
    folders = list_folders(runs)
    return (f"Not shown here: {', '.join(folders)} ({reason}).",) if folders else ()
