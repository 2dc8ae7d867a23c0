"""What a redone paper is made of: cells, rows, tables and figures, and the whole sheet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from pydantic import JsonValue

from memantics.core.data import judge
from memantics.core.result import Result, show_cell, to_plain

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
    ``origin`` says whose answers the value comes from where no model was asked here: such a value
    is never compared. ``printed`` says where ``paper`` stands: in the paper, or in results that its
    authors released.
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
        """The interval of the value, or nothing.

        >>> Cell(low=1, high=2).span, Cell(low=-0.5, high=-0.25, digits=2).span
        ('1–2', '-0.50 to -0.25')
        """
        if self.low is None or self.high is None:
            return ""
        return f"{self.show(self.low)}{' to ' if self.low < 0 else '–'}{self.show(self.high)}"


@dataclass(frozen=True, slots=True)
class PaperRow:
    """A row: a line of the paper's, one of the user's own, or a trivial baseline."""

    label: str
    cells: tuple[Cell, ...]
    kind: RowKind = "paper"
    section: str = ""

    @property
    def stated(self) -> bool:
        """Whether it only repeats what the paper states: no cell of it can be computed."""
        return all(cell.status == "closed" and cell.paper is not None for cell in self.cells)


@dataclass(frozen=True, slots=True)
class PaperText:
    """A piece of text under its heading: a prompt, an example, a model's answer."""

    heading: str
    body: str


@dataclass(frozen=True, slots=True)
class PaperPart:
    """One table or figure; ``stub`` heads the column of labels.

    ``plotted`` also draws each row on a scale, ``radar`` each as a polygon over the columns;
    ``shaded`` darkens the better values of each column.
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
        """Whether it only repeats what the paper states: no cell can be computed."""
        return bool(self.rows) and all(row.stated for row in self.rows)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be known of single rows: notes that all cells of a row share."""
        found: dict[str, dict[str, list[str]]] = {}
        for row in self.rows:
            notes = {cell.note for cell in row.cells if cell.status != "none"}
            if len(notes) == 1 and (note := notes.pop()):
                found.setdefault(note, {}).setdefault(row.section, []).append(row.label)
        return tuple(
            f"{'; '.join(_name_rows(*names) for names in rows.items())}: {note}"
            if sum(map(len, rows.values())) < len(self.rows)
            else note
            for note, rows in found.items()
        )

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that would fill its empty cells, each once."""
        return tuple(dict.fromkeys(c.fill for c in self.cells if c.status == "empty"))

    @property
    def origins(self) -> tuple[str, ...]:
        """Whose answers some of its cells come from, each once."""
        return tuple(dict.fromkeys(c.origin for c in self.cells if c.origin))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why some of its cells cannot be filled, each reason once."""
        return tuple(dict.fromkeys(c.reason for c in self.cells if c.status == "closed"))


def _name_rows(section: str, labels: list[str]) -> str:
    few = labels if len(labels) < 5 else [*labels[:2], f"{len(labels) - 2} more rows"]
    return f"{section} ({', '.join(few)})" if section else ", ".join(few)


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
