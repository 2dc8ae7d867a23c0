"""Reproduced papers as records: cells, rows, tables and figures, with printed and computed values.

A benchmark declares its paper in ``paper.py``: ``PAPER = Paper(title, parts)``. Each part is a
function from :class:`PaperMaterial` to a :class:`PaperPart`, in the paper's order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Generic, Literal, TypeVar, get_args

from pydantic import JsonValue

from memantics.benchmarks.paper_runs import (
    ScoredDetector,
    ScoredRun,
    find_score,
    is_repeat,
    list_folders,
    mean_repeats,
    name_runs,
    note_unshown,
    same_system,
)
from memantics.benchmarks.protocol import PromptFinder, list_differences
from memantics.benchmarks.published import Expected, PaperSystem, PublishedRow
from memantics.core.data import DigitMatch, Source, match_digits
from memantics.core.queue import Review
from memantics.core.records import Score
from memantics.core.result import Result, show_cell, to_plain
from memantics.core.rundir import RunFacts

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
    "list_folders",
    "list_statistics",
    "mean_repeats",
    "name_runs",
    "note_unshown",
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
    imported answers; such a value is never compared. ``released`` is the value in files that the
    authors released, if the paper does not print it. ``differs`` lists what prevents a comparison:
    how the run differs from the paper, or what is unknown. ``runs`` are the folders of the runs
    behind the value.
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
    released: JsonValue = None
    differs: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()

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
        if self.digit_match:
            return "reproduced"
        inside = (
            isinstance(self.paper, int | float)
            and self.low is not None
            and self.high is not None
            and self.low <= self.paper <= self.high
        )
        return "within interval" if inside else "differs"

    @property
    def digit_match(self) -> DigitMatch:
        """Return how the printed value follows from the computed one: rounded or truncated.

        >>> Cell(14.65, 100 * 45 / 307, digits=2).digit_match
        'truncated'
        """
        return match_digits(self.value, self.paper, self.digits)

    @property
    def truncated(self) -> bool:
        """Return whether the paper's value is the computed one, truncated and not rounded."""
        return self.status in ("reproduced", "arithmetic") and self.digit_match == "truncated"

    @property
    def agrees(self) -> bool:
        """Return whether printed and computed value are equal at the printed precision."""
        return self.paper is None or bool(self.digit_match)

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
    the columns. With ``shaded``, better values of a column have darker cells. ``runs`` are the
    folders of runs that its texts show.
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
    runs: tuple[str, ...] = ()

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
        """Yield notes that all cells of a row share, and why values of a row are not compared."""
        found: dict[str, dict[str, list[str]]] = {}
        for row in self.rows:
            notes = {cell.note for cell in row.cells if cell.status != "none"}
            said = [note for note in notes if note and len(notes) == 1]
            for note in (*said, *_list_uncompared(self.columns, row)):
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


def _list_uncompared(columns: Sequence[str], row: PaperRow) -> Iterator[str]:
    """Yield why values of a row are not compared; names the columns if not all are concerned."""
    named: dict[tuple[str, ...], list[str]] = {}
    for column, cell in zip(columns, row.cells, strict=False):
        if cell.value is not None and cell.paper is not None and cell.differs:
            named.setdefault(cell.differs, []).append(column)
    for differs, which in named.items():
        where = "" if len(named) == 1 else f" ({', '.join(which)})"
        yield f"Not compared with the paper{where}: {'; '.join(differs)}."


def _name_rows(section: str, labels: list[str]) -> str:
    few = labels if len(labels) < 5 else [*labels[:2], f"{len(labels) - 2} more rows"]
    return f"{section} ({', '.join(few)})" if section else ", ".join(few)


@dataclass(frozen=True, slots=True)
class PaperSheet(Result):
    """The tables and figures of a paper with values from runs.

    ``about`` describes the data and runs used.
    """

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


@dataclass(frozen=True)
class PaperMaterial(Generic[R]):
    """The data, runs and annotations from which a paper is reproduced; ``name`` is the benchmark.

    ``compared`` states whether the data are a copy of the paper's data, ``complete`` whether that
    copy is complete. Values from an incomplete copy match the paper only by chance. ``checksum``
    identifies the data; ``prompts`` finds the prompt hashes of a run's options on them, and
    ``defaults`` the options of a run's task with their defaults.
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
    checksum: str = ""
    prompts: PromptFinder | None = None
    defaults: Callable[[RunFacts], Mapping[str, str]] | None = None

    @property
    def comparable(self) -> bool:
        """Whether values can be compared with the paper's: the data are its complete release."""
        return self.compared and self.complete

    @property
    def shared_protocol(self) -> dict[str, str]:
        """Options of all experiments with the authors' prompts; empty on other data."""
        official = [row.list_protocol() for row in self.published if row.wording == "official"]
        if not self.compared or not official:
            return {}
        first, *others = (protocol.items() for protocol in official)
        return {name: value for name, value in first if all((name, value) in o for o in others)}

    def protocol_of(self, task: str) -> dict[str, str]:
        """Options of the authors' experiments on a task, with the wording; empty on other data."""
        rows = [row for row in self.published if row.task == task and row.wording == "official"]
        return rows[0].list_protocol() if self.compared and rows else {}

    def find_differences(
        self, run: ScoredRun | None, row: PublishedRow | None, metric: str, score: Score | None
    ) -> tuple[str, ...]:
        """Return what prevents a comparison of a score with the paper's; empty if nothing does.

        The run must use the paper's data, items, options, prompts and decoding parameters. Without
        a run, the score is a detector's.
        """
        if row is None or score is None:
            return ("the paper prints no value",)
        if not self.comparable:
            return ("data: not the paper's complete release",)
        found = list(self.list_run_differences(run, row)) if run is not None else []
        if not row.is_over(metric, score.n):
            known = row.counted.get(metric, row.sizes.get(metric))
            wanted = f"instead of {known:,}" if known else "; the paper does not state its number"
            found.append(f"items: {score.n:,}{'' if wanted[0] == ';' else ' '}{wanted}")
        return tuple(found)

    def list_run_differences(self, run: ScoredRun, row: PublishedRow) -> Iterator[str]:
        """Yield how a run differs from a published row, apart from the number of items."""
        return list_differences(
            run.facts,
            row,
            self.checksum,
            self.prompts,
            defaults=self.defaults(run.facts) if self.defaults else None,
            rescored=run.results.rescored,
        )

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
        """Return runs that differ from a run only in their seed, including itself.

        Two runs with the same number of repeat, such as a run and a later copy of it, or runs on
        other items, are not repeats of each other.
        """
        numbered: dict[int, list[ScoredRun]] = {}
        for other in self.runs:
            if is_repeat(other, run):
                numbered.setdefault(other.facts.repeat, []).append(other)
        twins = numbered.get(run.facts.repeat, [run])
        place = next((place for place, twin in enumerate(twins) if twin is run), 0)
        same = (runs[place] for runs in numbered.values() if len(runs) > place)
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
        self,
        task: str,
        system: str,
        options: Mapping[str, str],
        split: str = "",
        row: PublishedRow | None = None,
    ) -> ScoredRun | None:
        """Return the run of a system with these options, by any of the system's names.

        Of several runs, the one with the fewest differences from the published row is returned.
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
        found = found if found or self.comparable else fits
        if row is None or len(found) < 2:
            return next(iter(found), None)
        return min(found, key=lambda run: len(list(self.list_run_differences(run, row))))


def list_statistics(
    material: PaperMaterial[R], keys: Iterable[str], fill: str = ""
) -> tuple[PaperRow, ...]:
    """Return rows of statistics: the paper's value and the value in this copy of the data."""
    return tuple(
        PaperRow(material.expected[key].title, (material.statistic(key, fill),))
        for key in keys
        if key in material.expected
    )


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


def run_cell(run: ScoredRun, name: str, digits: int | None = 2, scale: float = 100.0) -> Cell:
    """Return the table cell of a run's score, with the source of imported answers."""
    score = find_score(run.results.scores, name)
    origin = run.facts.origin if score else ""
    return replace(score_cell(score, digits, scale), origin=origin, runs=(str(run.folder),))


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
