"""Make the models × tasks table in LaTeX, Markdown, CSV and HTML, with significance marks.

A mark shows how significantly a model is below the best model of its column. The best value is bold
if it is significantly better than every other. P-values are corrected over all pairs of the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Literal
from unicodedata import east_asian_width

from markupsafe import Markup

from memantics.core.prompt import fill_template
from memantics.core.records import format_value, show_metric
from memantics.core.tables import dump_csv
from memantics.evaluation.facts import name_groups
from memantics.evaluation.reports.leaderboard import Board, LeaderboardRow, show_scope
from memantics.evaluation.reports.runs import SAMPLE_NOTE, Run
from memantics.evaluation.reports.tables import md_table, quote_latex, quote_markdown
from memantics.web.phrases import ENGLISH, Phrases
from memantics.web.plot import draw

LEVELS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
# Corrected p-values by task and by the labels of two rows, in either order.
Tested = Mapping[tuple[str, str, str], float | None]
_BEST_TRIVIAL = "best trivial baseline"
# Kinds of footnotes with a value per cell; each kind is one footnote that lists all its cells.
_INVALID = "invalid replies (refused or unparsed), as a proportion of items"
_FEWER = "fewer items than other models"
_TRIVIAL = "the best trivial baseline of each task"
TableStyle = Literal["booktabs", "acl", "neurips"]
TABLE_STYLES: tuple[TableStyle, ...] = ("booktabs", "acl", "neurips")
# Number of task columns that fit side by side, with intervals below the values.
_ACROSS: Mapping[TableStyle, int] = {"booktabs": 5, "acl": 6, "neurips": 4}


@dataclass(frozen=True, slots=True)
class MetricCell:
    """A metric of one model on one task; ``notes`` are footnotes, ``seeds`` the runs behind it."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    memes: int | None = None
    invalid: float | None = None
    deviation: float | None = None
    seeds: int = 1
    mark: str = ""
    best: bool = False
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The value, with its SD if there are several seeds."""
        more = "" if self.deviation is None else f" ± {format_value(self.deviation)}"
        return format_value(self.value) + more

    @property
    def span(self) -> str:
        """The 95% confidence interval; empty for several seeds."""
        if self.low is None or self.high is None or self.seeds > 1:
            return ""
        return f"[{format_value(self.low)}, {format_value(self.high)}]"


@dataclass(frozen=True, slots=True)
class TaskColumn:
    """A task column with its main metric and its numbers of items and memes."""

    task: str
    metric: str
    n: int
    scope: str
    memes: int = 0
    unit: str = ""

    @property
    def size(self) -> str:
        """The numbers of items and memes, as text."""
        grouped = f", {self.memes:,} {name_groups(self.unit, self.n, self.memes)}"
        return f"n = {self.n:,}" + (grouped if self.memes else "")


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model with one cell per task; None if the model was not run on the task."""

    label: str
    cells: tuple[MetricCell | None, ...]
    trivial: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelTable:
    """The table of models × tasks; ``legend`` explains its marks."""

    columns: tuple[TaskColumn, ...]
    rows: tuple[ModelRow, ...]
    legend: tuple[str, ...]

    @property
    def notes(self) -> dict[str, str]:
        """The letter of each footnote."""
        texts = [
            text
            for row in self.rows
            for texts in (row.notes, *(cell.notes for cell in row.cells if cell))
            for text in texts
        ]
        return {text: name_note(place) for place, text in enumerate(dict.fromkeys(texts))}


def name_note(place: int) -> str:
    """Return the letters of a footnote: a, b, …, z, aa, ab, …

    >>> name_note(0), name_note(25), name_note(26), name_note(52)
    ('a', 'z', 'aa', 'ba')
    """
    head = name_note(place // 26 - 1) if place >= 26 else ""
    return head + "abcdefghijklmnopqrstuvwxyz"[place % 26]


def show_mark(p: float | None) -> str:
    """Return the stars for a p-value.

    >>> [show_mark(p) for p in (0.0009, 0.001, 0.01, 0.049, 0.05, None)]
    ['***', '**', '*', '*', '', '']
    """
    return next((mark for level, mark in LEVELS if p is not None and p < level), "")


def make_table(
    boards: Sequence[Board], repeats: Mapping[Path, Sequence[Run]], tested: Tested
) -> ModelTable:
    """Make the models × tasks table; ``repeats`` maps the first run of a row to all its runs."""
    labels = dict.fromkeys(
        row.label for board in boards for row in board.ours if row.run is not None
    )
    found = {
        (board.slug, row.label): _make_cell(row, repeats)
        for board in boards
        for row in board.ours
        if row.run is not None
    }
    for board in boards:
        _mark_column(board, found, tested)
    trivial = {row.label for board in boards for row in board.rows if row.trivial}
    rows = [
        ModelRow(
            label,
            tuple(found.get((board.slug, label)) for board in boards),
            label in trivial,
            _note_model(label, boards),
        )
        for label in labels
    ]
    rows.sort(key=lambda row: (row.trivial, -_mean(row.cells)))
    computed = tuple(_best_trivial(board) for board in boards)
    if any(b.best_baseline is not None and b.best_baseline.run is None for b in boards):
        rows.append(ModelRow(_BEST_TRIVIAL, computed, trivial=True))
    several = any(cell.seeds > 1 for cell in found.values())
    legend = _explain(boards, tested, several=several)
    rows = _list_notes(boards, rows)
    return ModelTable(tuple(map(_make_column, boards)), tuple(rows), legend)


def _list_notes(boards: Sequence[Board], rows: Sequence[ModelRow]) -> list[ModelRow]:
    """Write the footnotes that have a value per cell: one per kind, with all values."""
    listed: dict[str, list[str]] = {_INVALID: [], _FEWER: [], _TRIVIAL: []}
    for row in rows:
        for board, cell in zip(boards, row.cells, strict=True):
            where = f"{row.label}, {board.task}" if len(boards) > 1 else row.label
            for note in cell.notes if cell else ():
                if note == _INVALID and cell and cell.invalid:
                    listed[note].append(f"{where}: {100 * cell.invalid:.1f} %")
                elif note == _FEWER and cell:
                    listed[note].append(f"{where}: {cell.n or 0:,}")
                elif note == _TRIVIAL and board.best_baseline:
                    listed[note].append(f"{board.task}: {board.best_baseline.label}")
    texts = {kind: f"{kind}: {'; '.join(parts)}" for kind, parts in listed.items()}

    def fill(cell: MetricCell | None) -> MetricCell | None:
        if cell is None:
            return None
        return replace(cell, notes=tuple(texts.get(note, note) for note in cell.notes))

    return [replace(row, cells=tuple(map(fill, row.cells))) for row in rows]


def _make_column(board: Board) -> TaskColumn:
    n = max((row.n or 0 for row in board.ours if row.run is not None), default=0)
    memes = max((row.memes or 0 for row in board.ours), default=0)
    return TaskColumn(board.task, show_metric(board.main), n, show_scope(board), memes, board.unit)


def _make_cell(row: LeaderboardRow, repeats: Mapping[Path, Sequence[Run]]) -> MetricCell:
    runs = repeats.get(row.source.folder, ()) if row.source else ()
    key = row.main.key if row.main else ""
    values = [run.scores[key].value for run in runs if key in run.scores]
    known = [value for value in values if value is not None]
    low, high = (row.main.low, row.main.high) if row.main else (None, None)
    cell = MetricCell(row.value, low, high, row.n, row.memes, row.invalid_rate)
    if len(known) > 1:
        cell = replace(cell, value=fmean(known), deviation=stdev(known), seeds=len(known))
    return cell


def _mark_column(board: Board, found: dict[tuple[str, str], MetricCell], tested: Tested) -> None:
    """Add significance marks, bold values and footnotes to a column."""
    models = [row.label for row in board.ours if row.run is not None]
    values = {label: found[board.slug, label].value for label in models}
    known = {label: value for label, value in values.items() if value is not None}
    best = max(known, key=lambda label: round(known[label], 9), default="")
    size = max((found[board.slug, label].n or 0 for label in models), default=0)
    base, trivial = board.best_baseline, {row.label for row in board.rows if row.trivial}
    for label in models:
        cell = found[board.slug, label]
        notes = []
        if cell.invalid:
            notes.append(_INVALID)
        if cell.n and cell.n != size:
            notes.append(_FEWER)
        if board.judges:
            notes.append("a judge's ratings of edits: judges are not ranked")
        elif base is not None and label not in trivial:
            notes += _place_by_baseline(cell, base.value)
        p = _find_p(board, tested, best, label)
        mark = "" if label == best or board.judges else show_mark(p)
        found[board.slug, label] = replace(cell, mark=mark, notes=tuple(notes))
    others = [label for label in models if label != best]
    sure = [show_mark(_find_p(board, tested, best, label)) for label in others]
    if others and all(sure) and not board.judges:
        found[board.slug, best] = replace(found[board.slug, best], best=True)


def _place_by_baseline(cell: MetricCell, baseline: float | None) -> Iterator[str]:
    """Return a footnote if a model is not clearly above the best trivial baseline."""
    if baseline is None or cell.value is None:
        return
    if cell.value <= baseline:
        yield "not above the best trivial baseline"
    elif cell.span and cell.low is not None and cell.low <= baseline:
        yield "confidence interval includes the best trivial baseline"


def _find_p(board: Board, tested: Tested, one: str, other: str) -> float | None:
    known = tested.get((board.slug, one, other))
    return tested.get((board.slug, other, one)) if known is None else known


def _best_trivial(board: Board) -> MetricCell | None:
    row = board.best_baseline
    if row is None or row.main is None:
        return None
    return MetricCell(row.value, row.main.low, row.main.high, row.n, notes=(_TRIVIAL,))


def _note_model(label: str, boards: Sequence[Board]) -> tuple[str, ...]:
    """Collect the notes on a model: remarks, origins, repeats."""
    rows = [row for board in boards for row in board.ours if row.label == label and row.source]
    rows = [row for row in rows if not row.trivial]
    origins = [row.source.facts.origin for row in rows if row.source]
    unfinished = ["not finished" for row in rows if not row.finished]
    return tuple(dict.fromkeys(filter(None, (*(row.note for row in rows), *origins, *unfinished))))


def _mean(cells: Sequence[MetricCell | None]) -> float:
    values = [cell.value for cell in cells if cell is not None and cell.value is not None]
    return fmean(values) if values else -1.0


def _explain(boards: Sequence[Board], tested: Tested, *, several: bool) -> tuple[str, ...]:
    """Write the legend of the models × tasks table."""
    said = ["In brackets: 95 % confidence intervals, clustered by meme."]
    said += ["± is the SD across repeats."] if several else []
    count = sum(p is not None for p in tested.values())
    if count:
        pairs = f"all {count} comparisons" if count > 1 else "1 comparison"
        said.append(
            "Stars: significantly below the best model of the column (* p < 0.05, ** p < 0.01, "
            "*** p < 0.001); paired tests, "
            f"clustered by meme, Holm-corrected over {pairs}. Bold: significantly better "
            "than every other model."
        )
    if any(board.sample for board in boards):
        said.append(SAMPLE_NOTE)
    return tuple(said)


def render_latex_table(made: ModelTable, style: TableStyle = "booktabs") -> str:
    """Render a LaTeX ``booktabs`` table; tasks that do not fit side by side continue below."""

    def list_spans(row: ModelRow, places: Sequence[int]) -> list[str]:
        return [cell.span if (cell := row.cells[place]) else "" for place in places]

    places = range(len(made.columns))
    return fill_template(
        __file__,
        "models.tex",
        {"latex": quote_latex},
        made=made,
        style=style,
        star="*" if style == "acl" else "",
        scopes="; ".join(dict.fromkeys(column.scope for column in made.columns)),
        blocks=[places[start : start + _ACROSS[style]] for start in places[:: _ACROSS[style]]],
        spans=list_spans,
        letters=lambda notes: ",".join(made.notes[note] for note in notes),
    )


def render_markdown_table(made: ModelTable) -> str:
    """Render the models × tasks table in Markdown with footnotes."""
    head = [
        "model",
        *(f"{quote_markdown(c.task)} ({quote_markdown(c.metric)}, {c.size})" for c in made.columns),
    ]
    lines = [
        [_md_label(made, row), *(_md_cell(made, cell) for cell in row.cells)] for row in made.rows
    ]
    notes = [
        "\n".join(break_lines(f"<sup>{letter}</sup> {quote_markdown(note)}"))
        for note, letter in made.notes.items()
    ]
    parts = [md_table(head, lines), *(quote_markdown(text) for text in made.legend)]
    return "\n\n".join([*parts, *(["  \n".join(notes)] if notes else [])]) + "\n"


def break_lines(text: str, width: int = 78) -> list[str]:
    """Break Markdown text into lines of at most ``width`` columns; wide characters take two.

    A line begins with a letter, so that it does not become a list, a heading or a quotation.

    >>> break_lines("the best of each task: qa: longest - 1. baseline; ocr: constant", 32)
    ['the best of each task: qa:', 'longest - 1. baseline; ocr:', 'constant']
    """
    lines: list[str] = []
    for part in re.split(r" (?=[^\W\d_])", text):
        if lines and count_columns(f"{lines[-1]} {part}") <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return lines


def count_columns(text: str) -> int:
    """Count the columns of text in a terminal.

    >>> count_columns("谐音 pun")
    8
    """
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def _md_label(made: ModelTable, row: ModelRow) -> str:
    name = quote_markdown(row.label)
    return (f"*{name}*" if row.trivial else name) + _md_marks(made, row.notes)


def _md_cell(made: ModelTable, cell: MetricCell | None) -> str:
    if cell is None:
        return "–"
    text = f"**{cell.text}**" if cell.best else cell.text
    stars = cell.mark.replace("*", r"\*")
    span = f" {quote_markdown(cell.span)}" if cell.span else ""
    return f"{text}{stars}{span}{_md_marks(made, cell.notes)}"


def _md_marks(made: ModelTable, notes: Sequence[str]) -> str:
    letters = ",".join(made.notes[note] for note in notes)
    return f"<sup>{letters}</sup>" if letters else ""


def render_csv_table(made: ModelTable) -> str:
    """Render one line per model: value, bounds, n, invalid rate, stars and notes of each task."""
    sizes = ("n", "memes", "invalid", "deviation", "seeds")
    parts = ("value", "low", "high", *sizes, "mark", "best", "notes")
    heads = [f"{column.task} {part}" for column in made.columns for part in parts]
    lines = []
    for row in made.rows:
        cells: list[object] = [row.label, row.trivial]
        for cell in row.cells:
            values = [getattr(cell, part) if cell else None for part in parts[:-1]]
            cells += [*values, "; ".join(cell.notes) if cell else None]
        lines.append(cells)
    return dump_csv(["model", "trivial", *heads], lines)


def render_html_table(made: ModelTable, phrases: Phrases = ENGLISH) -> Markup:
    """Render the models × tasks table as HTML; all data are escaped."""
    return draw("models", made, phrases)


TABLE_FORMS: Mapping[str, Callable[[ModelTable], str]] = {
    "md": render_markdown_table,
    "csv": render_csv_table,
    "html": render_html_table,
}
