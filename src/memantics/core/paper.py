"""A paper's tables and figures, cell by cell: what it prints beside what we compute.

A benchmark declares its paper in ``paper.py``: ``PAPER = Paper(title, parts)``, where each part is
a function from :class:`PaperMaterial` to a :class:`PaperPart`, in the paper's order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeVar, get_args

from pydantic import JsonValue

from memantics.core.data import Source, judge
from memantics.core.published import PublishedRow
from memantics.core.records import Score
from memantics.core.result import Result, show_cell, to_plain
from memantics.core.review import Review
from memantics.core.rundir import RunFacts, Scores
from memantics.core.statistic import Expected

R = TypeVar("R")
CellStatus = Literal[
    "reproduced", "within interval", "differs", "computed", "arithmetic", "empty", "closed", "none"
]
CELL_STATUSES: tuple[CellStatus, ...] = get_args(CellStatus)
RowKind = Literal["paper", "own", "baseline"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of a table: ``paper`` is printed there, ``value`` is what we computed.

    Values are in the units in which the paper prints them, with ``digits`` decimals. ``compared``
    is False where the value comes from other data than the paper's (a sample, a benchmark of the
    family), ``arithmetic`` True where it follows from other figures that the paper prints. Where
    there is no value, ``fill`` is the command that would give one, ``reason`` why none can.
    """

    paper: JsonValue = None
    value: JsonValue = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    digits: int | None = None
    compared: bool = True
    arithmetic: bool = False
    fill: str = ""
    reason: str = ""
    note: str = ""

    @property
    def status(self) -> CellStatus:
        """What may be claimed of this cell.

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
        if self.paper is None or not self.compared:
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
        """Whether both are the same to the digits that the paper prints, where it prints one."""
        return self.paper is None or judge(self.value, self.paper, self.digits) == "reproduced"

    def show(self, value: JsonValue) -> str:
        """A value with the decimals of this cell.

        >>> Cell(digits=2).show(86.4), Cell().show(13142), Cell().show(None)
        ('86.40', '13,142', '–')
        """
        plain = isinstance(value, bool) or not isinstance(value, int | float)
        return show_cell(value) if plain or self.digits is None else f"{value:,.{self.digits}f}"

    @property
    def span(self) -> str:
        """The interval of the value, or nothing."""
        if self.low is None or self.high is None:
            return ""
        return f"{self.show(self.low)}–{self.show(self.high)}"


@dataclass(frozen=True, slots=True)
class PaperRow:
    """A row: a line of the paper's, one of the user's own, or a trivial baseline."""

    label: str
    cells: tuple[Cell, ...]
    kind: RowKind = "paper"
    section: str = ""


@dataclass(frozen=True, slots=True)
class PaperText:
    """A piece of text under its heading: a prompt, an example, a model's answer."""

    heading: str
    body: str


@dataclass(frozen=True, slots=True)
class PaperPart:
    """One table or figure. ``plotted`` also draws each row; ``stub`` heads the column of labels."""

    label: str
    caption: str
    columns: tuple[str, ...] = ()
    rows: tuple[PaperRow, ...] = ()
    stub: str = ""
    plotted: bool = False
    texts: tuple[PaperText, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def cells(self) -> Iterator[Cell]:
        """All cells, row by row."""
        return (cell for row in self.rows for cell in row.cells)

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that would fill its empty cells, each once."""
        return tuple(dict.fromkeys(c.fill for c in self.cells if c.status == "empty"))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why some of its cells cannot be filled, each reason once."""
        return tuple(dict.fromkeys(c.reason for c in self.cells if c.status == "closed"))


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
    """A trained detector: its name, what its card says, and its figures by task."""

    name: str
    folder: Path
    facts: Mapping[str, JsonValue]
    scores: Mapping[str, tuple[Score, ...]]


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

    ``compared`` says whether the data are a copy of the paper's own release.
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

    def figure(self, key: str, fill: str = "", reason: str = "") -> Cell:
        """The cell of a statistic: the paper's value, and what this copy gives."""
        row, value = self.expected.get(key), self.values.get(key)
        if self.source.published:
            reason = reason or "These data do not hold it."
        elif row and row.known is None:
            reason = reason or "The complete release does not hold it."
        return Cell(
            paper=row.paper if row else None,
            value=value,
            digits=row.digits if row else None,
            compared=self.compared,
            arithmetic=bool(row and row.basis == "paper"),
            fill="" if reason else fill or f"memantics data add {self.name} DIR",
            reason=reason,
            note=row.note if row else "",
        )

    def of_task(self, task: str) -> tuple[ScoredRun, ...]:
        """The runs of a task of this benchmark."""
        return tuple(run for run in self.runs if run.task == f"{self.name}/{task}")

    def rows_of(self, task: str, source: str) -> tuple[PublishedRow, ...]:
        """The rows of one of the paper's tables."""
        return tuple(r for r in self.published if r.task == task and r.source == source)

    def find_run(self, row: PublishedRow, model: str = "") -> ScoredRun | None:
        """The run of a published system, by its own name or ``model``, asked as its row says."""
        fits = (
            run
            for run in self.of_task(row.task)
            if any(same_system(run.model, name) for name in (row.system, model) if name)
            and row.fits(run.facts.options, run.facts.split)
        )
        return next(fits, None)

    def systems(
        self,
        task: str,
        source: str,
        figures: Sequence[str],
        command: Callable[[PublishedRow], str],
        models: Mapping[str, str] | None = None,
    ) -> tuple[PaperRow, ...]:
        """The rows of a table of systems: the paper's, the user's other runs, trivial baselines.

        A row of the paper's takes the run of the same system, asked as it says; ``models`` says
        what a system is called elsewhere. ``command`` fills a row without a run.
        """
        rows, taken = list[PaperRow](), set[Path]()
        for row in self.rows_of(task, source):
            run = self.find_run(row, (models or {}).get(row.system, ""))
            taken |= {run.folder} if run else set()
            rows.append(self._system(row, run, figures, command(row)))
        digits = next((r.digits for r in self.rows_of(task, source)), 4) - 2
        runs = self.of_task(task)
        for run, label in zip(runs, name_runs(runs), strict=True):
            if run.folder not in taken:
                cells = [score_cell(find_score(run.figures.scores, own), digits) for own in figures]
                rows.append(PaperRow(label, tuple(cells), "own"))
        return (*rows, *self._baselines(runs, figures, digits))

    def _system(
        self, row: PublishedRow, run: ScoredRun | None, figures: Sequence[str], fill: str
    ) -> PaperRow:
        cells = []
        for name in figures:
            printed = row.figures.get(name)
            score = find_score(run.figures.scores, name) if run else None
            cell = score_cell(score, row.digits - 2)
            cells.append(
                replace(
                    cell,
                    paper=None if printed is None else round(100 * printed, row.digits),
                    compared=self.compared,
                    fill=fill if printed is not None or cell.value is not None else "",
                    note=row.reason,
                )
            )
        return PaperRow(row.system, tuple(cells))

    def _baselines(
        self, runs: Sequence[ScoredRun], figures: Sequence[str], digits: int
    ) -> Iterator[PaperRow]:
        known = {own.model: own.scores for run in runs for own in run.figures.baselines}
        for model, scores in known.items():
            if any(run.model == model for run in runs):
                continue
            cells = [score_cell(find_score(scores, name), digits) for name in figures]
            yield PaperRow(model, tuple(cells), "baseline")


def name_runs(runs: Sequence[ScoredRun]) -> list[str]:
    """The models of runs; namesakes with the options, split or folder that tells them apart."""
    named = Counter(run.model for run in runs)
    labels = []
    for run in runs:
        others = [own.facts for own in runs if own.model == run.model]
        marks = [
            f"{name}={value}"
            for name, value in {**run.facts.options, "split": run.facts.split}.items()
            if len({{**own.options, "split": own.split}.get(name) for own in others}) > 1
        ]
        apart = ", ".join(marks) or run.folder.name
        labels.append(f"{run.model} ({apart})" if named[run.model] > 1 else run.model)
    return labels


def list_figures(
    material: PaperMaterial[R], label: str, caption: str, keys: Sequence[str]
) -> PaperPart:
    """Statistics below one another: the paper's value, and what this copy gives."""
    rows = tuple(
        PaperRow(material.expected[key].title, (material.figure(key),))
        for key in keys
        if key in material.expected
    )
    return PaperPart(label, caption, ("value",), rows, "figure")


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
        None if own is None else scale * own for own in (score.value, score.low, score.high)
    )
    return Cell(value=value, low=low, high=high, n=score.n, digits=digits)


@dataclass(frozen=True, slots=True)
class Paper(Generic[R]):
    """A paper as its benchmark declares it: its parts in the paper's order.

    A part that nothing is computed for is given as it is.
    """

    title: str
    parts: tuple[PaperPart | Callable[[PaperMaterial[R]], PaperPart], ...]

    def fill(self, material: PaperMaterial[R]) -> tuple[PaperPart, ...]:
        """The parts, filled from the material at hand."""
        return tuple(p if isinstance(p, PaperPart) else p(material) for p in self.parts)


@dataclass(frozen=True, slots=True)
class PaperSheet(Result):
    """A paper with its cells filled from the material at hand; ``about`` says which that was."""

    name: str
    title: str
    citation: str
    warning: str
    about: tuple[str, ...]
    parts: tuple[PaperPart, ...]
    sample: bool

    @property
    def counts(self) -> dict[CellStatus, int]:
        """How many cells have each status."""
        found = Counter(cell.status for part in self.parts for cell in part.cells)
        return {status: found[status] for status in CELL_STATUSES if status != "none"}

    def to_dict(self) -> dict[str, JsonValue]:
        """The paper as plain data, each cell with its status."""
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
