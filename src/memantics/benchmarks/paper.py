"""Reproduced papers as records: cells, rows, tables and figures, with printed and computed values.

A benchmark declares its paper in ``paper.py``: ``PAPER = Paper(title, parts)``. Each part is a
function from :class:`PaperMaterial` to a :class:`PaperPart`, in the paper's order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Generic, Literal, Protocol, TypeVar, get_args

from pydantic import JsonValue

from memantics.benchmarks.published import Expected, PaperSystem, PublishedRow
from memantics.core.data import Source, judge
from memantics.core.queue import Review
from memantics.core.records import Score
from memantics.core.result import Result, show_cell, to_plain
from memantics.core.rundir import RunFacts, Scores

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
    "list_statistics",
    "mean_repeats",
    "name_runs",
    "run_cell",
    "same_system",
    "score_cell",
]

CellStatus = Literal[
    "reproduced", "within interval", "differs", "computed", "arithmetic", "empty", "closed", "none"
]
CELL_STATUSES: tuple[CellStatus, ...] = get_args(CellStatus)
RowKind = Literal["paper", "own", "baseline"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One table cell: ``paper`` is the printed value, ``value`` the computed one.

    Values have the units of the paper and ``digits`` decimals. ``compared`` is False if the value
    comes from other data than the paper's, such as a sample. ``arithmetic`` is True if the value
    follows from other printed values. For a cell without a value, ``fill`` is the command that
    computes it, or ``reason`` states why it cannot be computed. ``origin`` names the source of
    imported answers; such a value is never compared. ``printed`` states whether ``paper`` comes
    from the paper or from results that its authors released.
    """

    paper: JsonValue = None
    value: JsonValue = None
    low: float | None = None
    high: float | None = None
    sd: float | None = None
    n: int = 0
    digits: int | None = None
    compared: bool = True
    arithmetic: bool = False
    fill: str = ""
    reason: str = ""
    note: str = ""
    origin: str = ""
    printed: Literal["paper", "released"] = "paper"

    @property
    def status(self) -> CellStatus:
        """Return the status of the comparison between printed and computed value.

        >>> Cell(10.6, 10.64, digits=1).status, Cell(9.0, 10.6, 8.5, 12.0, digits=1).status
        ('reproduced', 'within interval')
        >>> Cell(9, 8).status, Cell(9, 9, arithmetic=True).status, Cell(9, fill="do it").status
        ('differs', 'arithmetic', 'empty')
        >>> Cell(9, 8, compared=False).status, Cell(9, reason="not released").status, Cell().status
        ('computed', 'closed', 'none')
        """
        if self.value is None:
            return "empty" if self.fill else "closed" if self.reason else "none"
        if self.arithmetic:
            return "arithmetic"
        if self.paper is None or not self.compared or self.origin:
            return "computed"
        if judge(self.value, self.paper, self.digits) == "reproduced":
            return "reproduced"
        inside = (
            isinstance(self.paper, int | float)
            and self.low is not None
            and self.high is not None
            and self.low <= self.paper <= self.high
        )
        return "within interval" if inside else "differs"

    @property
    def agrees(self) -> bool:
        """Return whether printed and computed value are equal at the printed precision."""
        return self.paper is None or judge(self.value, self.paper, self.digits) == "reproduced"

    def show(self, value: JsonValue) -> str:
        """Format a value with the number of decimals of this cell.

        >>> Cell(digits=2).show(86.4), Cell().show(13142), Cell().show(None)
        ('86.40', '13,142', '–')
        """
        plain = isinstance(value, bool) or not isinstance(value, int | float)
        return show_cell(value) if plain or self.digits is None else f"{value:,.{self.digits}f}"

    @property
    def span(self) -> str:
        """Format the confidence interval of the value; empty if there is none.

        >>> Cell(low=1, high=2).span, Cell(low=-0.5, high=-0.25, digits=2).span
        ('1–2', '-0.50 to -0.25')
        """
        if self.low is None or self.high is None:
            return ""
        return f"{self.show(self.low)}{' to ' if self.low < 0 else '–'}{self.show(self.high)}"


@dataclass(frozen=True, slots=True)
class PaperRow:
    """A row of a table: a row of the paper, one of the user's runs, or a trivial baseline."""

    label: str
    cells: tuple[Cell, ...]
    kind: RowKind = "paper"
    section: str = ""

    @property
    def stated(self) -> bool:
        """Whether the row only repeats the paper: none of its cells can be computed."""
        return all(cell.status == "closed" and cell.paper is not None for cell in self.cells)


@dataclass(frozen=True, slots=True)
class PaperText:
    """A text with its heading: a prompt, an example or a model's answer."""

    heading: str
    body: str


@dataclass(frozen=True, slots=True)
class PaperPart:
    """One table or figure; ``stub`` is the heading of the label column.

    With ``plotted``, each row is also drawn on a scale. With ``radar``, each row is a polygon over
    the columns. With ``shaded``, better values of a column have darker cells.
    """

    label: str
    caption: str
    columns: tuple[str, ...] = ()
    rows: tuple[PaperRow, ...] = ()
    stub: str = ""
    plotted: bool = False
    radar: bool = False
    shaded: bool = False
    texts: tuple[PaperText, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def cells(self) -> Iterator[Cell]:
        """All cells, row by row."""
        return (cell for row in self.rows for cell in row.cells)

    @property
    def stated(self) -> bool:
        """Whether the table or figure only repeats the paper: no cell can be computed."""
        return bool(self.rows) and all(row.stated for row in self.rows)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Yield notes that all cells of a row share."""
        found: dict[str, dict[str, list[str]]] = {}
        for row in self.rows:
            notes = {cell.note for cell in row.cells if cell.status != "none"}
            if len(notes) == 1 and (note := notes.pop()):
                found.setdefault(note, {}).setdefault(row.section, []).append(row.label)
        return tuple(
            f"{'; '.join(_name_rows(*rows_of_label) for rows_of_label in rows.items())}: {note}"
            if sum(map(len, rows.values())) < len(self.rows)
            else note
            for note, rows in found.items()
        )

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that would fill the empty cells, without repeats."""
        return tuple(dict.fromkeys(c.fill for c in self.cells if c.status == "empty"))

    @property
    def origins(self) -> tuple[str, ...]:
        """The sources of imported answers in the cells, without repeats."""
        return tuple(dict.fromkeys(c.origin for c in self.cells if c.origin))

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons why cells cannot be filled, without repeats."""
        return tuple(dict.fromkeys(c.reason for c in self.cells if c.status == "closed"))


def _name_rows(section: str, labels: list[str]) -> str:
    few = labels if len(labels) < 5 else [*labels[:2], f"{len(labels) - 2} more rows"]
    return f"{section} ({', '.join(few)})" if section else ", ".join(few)


@dataclass(frozen=True, slots=True)
class PaperSheet(Result):
    """A paper with filled cells; ``about`` describes the data and runs used."""

    name: str
    title: str
    citation: str
    warning: str
    about: tuple[str, ...]
    parts: tuple[PaperPart, ...]
    sample: bool

    @property
    def counts(self) -> dict[CellStatus, int]:
        """Count cells by status."""
        found = Counter(cell.status for part in self.parts for cell in part.cells)
        return {status: found[status] for status in CELL_STATUSES if status != "none"}

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the paper as plain data, each cell with its status."""
        parts: list[JsonValue] = []
        for part in self.parts:
            plain = to_plain(part)
            assert isinstance(plain, dict)
            plain["rows"] = [
                {
                    "label": row.label,
                    "kind": row.kind,
                    "section": row.section,
                    "cells": [to_plain(asdict(c) | {"status": c.status}) for c in row.cells],
                }
                for row in part.rows
            ]
            parts.append(plain)
        counts: dict[str, JsonValue] = {str(name): n for name, n in self.counts.items()}
        return {
            "name": self.name,
            "title": self.title,
            "about": list(self.about),
            "sample": self.sample,
            "counts": counts,
            "parts": parts,
        }


R = TypeVar("R")


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


@dataclass(frozen=True)
class PaperMaterial(Generic[R]):
    """The data, runs and annotations from which a paper is reproduced; ``name`` is the benchmark.

    ``compared`` states whether the data are a copy of the paper's data, ``complete`` whether that
    copy is complete. Values from an incomplete copy match the paper only by chance.
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
        """Whether values can be compared with the paper's: the data are its complete release."""
        return self.compared and self.complete

    def compares(
        self, run: ScoredRun | None, row: PublishedRow | None, metric: str, score: Score | None
    ) -> bool:
        """Return whether a score can be compared with the paper's: both cover the same items.

        The run must cover all items of the paper's row, with its options and split, and must not be
        imported or perturbed. Without a run, the score is a detector's.
        """
        if row is None or score is None or not self.comparable or not row.is_over(metric, score.n):
            return False
        return run is None or (run.facts.whole and row.fits(run.facts.options, run.facts.split))

    def statistic(self, key: str, fill: str = "", reason: str = "") -> Cell:
        """Return the table cell of a statistic: the paper's value and that of this copy."""
        row, value = self.expected.get(key), self.values.get(key)
        if self.source.published:
            reason = reason or "This value is not in the data."
        elif row and row.known is None:
            reason = reason or "This value is not in the complete release."
        elif self.compared and not self.complete and value is None:
            reason = reason or "This copy is a part of the release and does not contain this value."
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
        """Return the runs of a task of this benchmark."""
        return tuple(run for run in self.runs if run.task == f"{self.name}/{task}")

    def repeats_of(self, run: ScoredRun) -> tuple[ScoredRun, ...]:
        """Return runs that differ from a run only in their seed, including itself."""
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
        """Return the published rows of one of the paper's tables."""
        return tuple(r for r in self.published if r.task == task and r.source == source)

    def names_of(self, system: str) -> tuple[str, ...]:
        """Return the names of a system: in the paper, in dataset releases and on model hubs."""
        known = self.systems.get(system)
        return (system, *((known.model, *known.names) if known else ()))

    def is_system(self, model: str, system: str) -> bool:
        """Return whether a model is a system of the paper, by any of its names."""
        return any(same_system(model, name) for name in self.names_of(system) if name)

    def name_system(self, model: str) -> str:
        """Return the paper's name of a model; empty if it is not in the paper."""
        return next((name for name in self.systems if self.is_system(model, name)), "")

    def find_run(
        self, task: str, system: str, options: Mapping[str, str], split: str = ""
    ) -> ScoredRun | None:
        """Return the run of a system, by any of its names, with these options.

        Data other than the paper's complete release may lack the paper's split; any split matches
        then.
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
    """Return display names of runs; equal names get the option, split or folder that differs."""
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


def list_statistics(
    material: PaperMaterial[R], keys: Iterable[str], fill: str = ""
) -> tuple[PaperRow, ...]:
    """Return rows of statistics: the paper's value and the value in this copy of the data."""
    return tuple(
        PaperRow(material.expected[key].title, (material.statistic(key, fill),))
        for key in keys
        if key in material.expected
    )


def find_score(scores: Sequence[Score], name: str) -> Score | None:
    """Return a score by name; a score of a category is named ``name[breakdown=part]``.

    >>> find_score([Score("f1", 0.5, 3, by="type", label="sexual")], "f1[type=sexual]").value
    0.5
    """
    key, _, part = name.removesuffix("]").partition("[")
    by, _, label = part.partition("=")
    return next((s for s in scores if (s.key, s.by, s.label) == (key, by, label)), None)


def score_cell(score: Score | None, digits: int | None = 2, scale: float = 100.0) -> Cell:
    """Return the table cell of a computed score, in per cent.

    >>> score_cell(Score("accuracy", 0.5, 10, 0.2, 0.8), 1).span
    '20.0–80.0'
    """
    if score is None:
        return Cell(digits=digits)
    value, low, high = (
        None if share is None else scale * share for share in (score.value, score.low, score.high)
    )
    return Cell(value=value, low=low, high=high, n=score.n, digits=digits)


def mean_repeats(runs: Sequence[ScoredRun], name: str) -> tuple[Score | None, float | None]:
    """Return a score of a run, or its mean and SD over repeats (without confidence interval)."""
    found = [find_score(run.results.scores, name) for run in runs]
    known = [score for score in found if score is not None and score.value is not None]
    values = [score.value for score in known if score.value is not None]
    if len(values) < 2:
        return next(iter(known or found), None), None
    mean = replace(known[0], value=fmean(values), low=None, high=None)
    return replace(mean, note=f"mean of {len(values)} runs"), stdev(values)


def run_cell(run: ScoredRun, name: str, digits: int | None = 2, scale: float = 100.0) -> Cell:
    """Return the table cell of a run's score, with the source of imported answers."""
    score = find_score(run.results.scores, name)
    return replace(score_cell(score, digits, scale), origin=run.facts.origin if score else "")


@dataclass(frozen=True, slots=True)
class Paper(Generic[R]):
    """A paper: its tables and figures in the paper's order.

    A table or figure without computed values is given as it is.
    """

    title: str
    parts: tuple[PaperPart | Callable[[PaperMaterial[R]], PaperPart], ...]
    systems: Mapping[str, PaperSystem] = field(default_factory=dict)

    def fill(self, material: PaperMaterial[R]) -> tuple[PaperPart, ...]:
        """Return the tables and figures, filled from the available data and runs."""
        return tuple(p if isinstance(p, PaperPart) else p(material) for p in self.parts)
