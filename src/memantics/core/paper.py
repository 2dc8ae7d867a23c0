"""A paper's tables and figures, cell by cell: what it prints beside what we compute.

A benchmark declares its paper in ``paper.py``: ``PAPER = Paper(title, parts)``, where each part is
a function from :class:`PaperMaterial` to a :class:`PaperPart`, in the paper's order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Generic, Protocol, TypeVar

from pydantic import JsonValue

from memantics.core.data import Source
from memantics.core.paper_parts import Cell, PaperPart, PaperRow, PaperSheet, PaperText
from memantics.core.published import PaperSystem, PublishedRow
from memantics.core.queue import Review
from memantics.core.records import Score
from memantics.core.rundir import RunFacts, Scores
from memantics.core.statistic import Expected

__all__ = [
    "Cell",
    "Paper",
    "PaperMaterial",
    "PaperPart",
    "PaperRow",
    "PaperSheet",
    "PaperText",
    "ScoredDetector",
    "ScoredRun",
    "find_score",
    "list_figures",
    "mean_repeats",
    "name_runs",
    "run_cell",
    "same_system",
    "score_cell",
]
R = TypeVar("R")


class ScoredRun(Protocol):
    """A finished run."""

    @property
    def folder(self) -> Path:
        """Its directory."""
        ...

    @property
    def facts(self) -> RunFacts:
        """What was run."""
        ...

    @property
    def figures(self) -> Scores:
        """How it scored."""
        ...

    @property
    def task(self) -> str:
        """``BENCHMARK/TASK``."""
        ...

    @property
    def model(self) -> str:
        """``KIND/NAME``."""
        ...


@dataclass(frozen=True, slots=True)
class ScoredDetector:
    """A trained detector: its name, what its card says, and its figures by task.

    ``said`` is the share of its seeds that call each test meme harmful, where it is known.
    """

    name: str
    folder: Path
    facts: Mapping[str, JsonValue]
    scores: Mapping[str, tuple[Score, ...]]
    said: Mapping[str, float] = field(default_factory=dict)


def same_system(model: str, system: str) -> bool:
    """Whether a model's name is a published system's: its last part, however it is written.

    >>> same_system("openai/Qwen/Qwen2-VL-7B-Instruct", "Qwen2-VL-7B-Instruct")
    True
    >>> same_system("openai/gpt-4o-mini", "GPT-4o")
    False
    """

    def strip(name: str) -> str:
        return re.sub(r"[^a-z0-9]+", "", name.rpartition("/")[2].casefold())

    return strip(model) == strip(system)


@dataclass(frozen=True)
class PaperMaterial(Generic[R]):
    """All that a paper is redone from; ``name`` is the benchmark as the user called it.

    ``compared`` says whether the data are a copy of the paper's own release, ``complete`` whether
    that copy is whole: what a part of it gives agrees with the paper's value or not by chance.
    """

    name: str
    source: Source
    release: R
    expected: Mapping[str, Expected]
    values: Mapping[str, JsonValue]
    published: Sequence[PublishedRow]
    compared: bool
    runs: Sequence[ScoredRun] = ()
    reviews: Sequence[Review] = ()
    detectors: Sequence[ScoredDetector] = ()
    traits: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    complete: bool = True
    systems: Mapping[str, PaperSystem] = field(default_factory=dict)

    @property
    def comparable(self) -> bool:
        """Whether values may agree or differ with the paper's: the data are its whole release."""
        return self.compared and self.complete

    def compares(
        self, run: ScoredRun | None, row: PublishedRow | None, figure: str, score: Score | None
    ) -> bool:
        """Whether a figure may agree or differ with the paper's: both are of the same items.

        A run must have asked about all of them, here, with the options and on the split of the
        paper's row, and count as many as it does; one that was imported or changed is not
        compared. Without a run the figure is a detector's.
        """
        if row is None or score is None or not self.comparable or not row.is_over(figure, score.n):
            return False
        return run is None or (run.facts.whole and row.fits(run.facts.options, run.facts.split))

    def figure(self, key: str, fill: str = "", reason: str = "") -> Cell:
        """The cell of a statistic: the paper's value, and what this copy gives."""
        row, value = self.expected.get(key), self.values.get(key)
        if self.source.published:
            reason = reason or "These data do not hold it."
        elif row and row.known is None:
            reason = reason or "The complete release does not hold it."
        elif self.compared and not self.complete and value is None:
            reason = reason or "This copy is a part of the release and does not hold it."
        arithmetic = bool(row and row.basis == "paper")
        return Cell(
            paper=row.paper if row else None,
            value=value,
            digits=row.digits if row else None,
            compared=self.comparable or (self.compared and arithmetic),
            arithmetic=arithmetic,
            fill="" if reason else fill or f"memantics data add {self.name} DIR",
            reason=reason,
            note=row.note if row else "",
        )

    def of_task(self, task: str) -> tuple[ScoredRun, ...]:
        """The runs of a task of this benchmark."""
        return tuple(run for run in self.runs if run.task == f"{self.name}/{task}")

    def repeats_of(self, run: ScoredRun) -> tuple[ScoredRun, ...]:
        """The runs that differ from one in their seed alone, itself among them."""
        first = run.facts.repeat_of or run.facts.fingerprint
        same = (
            other
            for other in self.runs
            if (other.task, other.model) == (run.task, run.model)
            and first
            and first in (other.facts.repeat_of, other.facts.fingerprint)
        )
        return tuple(same) or (run,)

    def rows_of(self, task: str, source: str) -> tuple[PublishedRow, ...]:
        """The rows of one of the paper's tables."""
        return tuple(r for r in self.published if r.task == task and r.source == source)

    def names_of(self, system: str) -> tuple[str, ...]:
        """What a system is called: in the paper, in releases and on hubs."""
        known = self.systems.get(system)
        return (system, *((known.model, *known.names) if known else ()))

    def is_system(self, model: str, system: str) -> bool:
        """Whether a model is a system of the paper's, by any of its names."""
        return any(same_system(model, name) for name in self.names_of(system) if name)

    def name_system(self, model: str) -> str:
        """What the paper calls a model; nothing where it is none of its systems."""
        return next((name for name in self.systems if self.is_system(model, name)), "")

    def find_run(
        self, task: str, system: str, options: Mapping[str, str], split: str = ""
    ) -> ScoredRun | None:
        """The run of a system, by any of its names, asked with these options.

        Data that are not the paper's whole release may lack its split: any other does then.
        """
        fits = [
            run
            for run in self.of_task(task)
            if self.is_system(run.model, system)
            and all(run.facts.options.get(name) == value for name, value in options.items())
        ]
        found = [run for run in fits if split in ("", run.facts.split)]
        return next(iter(found if found or self.comparable else fits), None)


def name_runs(runs: Sequence[ScoredRun]) -> list[str]:
    """The models of runs; namesakes with the options, split or folder that tells them apart."""
    named = Counter(run.model for run in runs)
    labels = []
    for run in runs:
        others = [scored_run.facts for scored_run in runs if scored_run.model == run.model]
        marks = [
            f"{name}={value}"
            for name, value in {**run.facts.options, "split": run.facts.split}.items()
            if len({{**facts.options, "split": facts.split}.get(name) for facts in others}) > 1
        ]
        apart = ", ".join(marks) or run.folder.name
        labels.append(f"{run.model} ({apart})" if named[run.model] > 1 else run.model)
    return labels


def list_figures(
    material: PaperMaterial[R], keys: Iterable[str], fill: str = ""
) -> tuple[PaperRow, ...]:
    """Statistics below one another: the paper's value, and what this copy gives."""
    return tuple(
        PaperRow(material.expected[key].title, (material.figure(key, fill),))
        for key in keys
        if key in material.expected
    )


def find_score(scores: Sequence[Score], name: str) -> Score | None:
    """A figure by its name, one of a part as ``name[breakdown=part]``.

    >>> find_score([Score("f1", 0.5, 3, by="type", label="sexual")], "f1[type=sexual]").value
    0.5
    """
    key, _, part = name.removesuffix("]").partition("[")
    by, _, label = part.partition("=")
    return next((s for s in scores if (s.key, s.by, s.label) == (key, by, label)), None)


def score_cell(score: Score | None, digits: int | None = 2, scale: float = 100.0) -> Cell:
    """The cell of a figure that we computed, in per cent.

    >>> score_cell(Score("accuracy", 0.5, 10, 0.2, 0.8), 1).span
    '20.0–80.0'
    """
    if score is None:
        return Cell(digits=digits)
    value, low, high = (
        None if figure is None else scale * figure
        for figure in (score.value, score.low, score.high)
    )
    return Cell(value=value, low=low, high=high, n=score.n, digits=digits)


def mean_repeats(runs: Sequence[ScoredRun], name: str) -> tuple[Score | None, float | None]:
    """A figure of a run, or its mean and deviation over repeats, which have no interval then."""
    found = [find_score(run.figures.scores, name) for run in runs]
    known = [score for score in found if score is not None and score.value is not None]
    values = [score.value for score in known if score.value is not None]
    if len(values) < 2:
        return next(iter(known or found), None), None
    mean = replace(known[0], value=fmean(values), low=None, high=None)
    return replace(mean, note=f"mean of {len(values)} runs"), stdev(values)


def run_cell(run: ScoredRun, name: str, digits: int | None = 2, scale: float = 100.0) -> Cell:
    """The cell of a run's figure; it says where answers were imported from."""
    score = find_score(run.figures.scores, name)
    return replace(score_cell(score, digits, scale), origin=run.facts.origin if score else "")


@dataclass(frozen=True, slots=True)
class Paper(Generic[R]):
    """A paper as its benchmark declares it: its parts in the paper's order.

    A part that nothing is computed for is given as it is.
    """

    title: str
    parts: tuple[PaperPart | Callable[[PaperMaterial[R]], PaperPart], ...]
    systems: Mapping[str, PaperSystem] = field(default_factory=dict)

    def fill(self, material: PaperMaterial[R]) -> tuple[PaperPart, ...]:
        """The parts, filled from the material at hand."""
        return tuple(p if isinstance(p, PaperPart) else p(material) for p in self.parts)
