"""Render leaderboards as Markdown, CSV, JSON and terminal tables, and register report formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from pydantic import JsonValue
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from memantics.core.data import dump_json
from memantics.core.plugins import Plugins
from memantics.core.records import STATUSES, format_value, show_span
from memantics.core.rundir import RunFacts
from memantics.core.tables import dump_csv
from memantics.core.text import mask_unseen
from memantics.evaluation.facts import name_groups
from memantics.evaluation.reports.leaderboard import (
    Board,
    LeaderboardRow,
    PublishedRows,
    make_boards,
    show_scope,
)
from memantics.evaluation.reports.runs import SAMPLE_NOTE, Run

_RARE = frozenset(
    {"adapted", "decoding", "imported", "perturbation", "repeat", "repeat_of", "spread", "wording"}
)
_MARKDOWN = str.maketrans(
    {mark: f"\\{mark}" for mark in "\\`*_[]|~$"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
)
_LATEX = str.maketrans(
    {mark: f"\\{mark}" for mark in "&%$#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
    | {"–": "--", "—": "---", "±": r"$\pm$", "†": r"$\dagger$", "…": r"\ldots{}"}
    | {"“": "``", "”": "''", "·": r"$\cdot$", "→": r"$\rightarrow$", "<": r"\textless{}"}
    | {">": r"\textgreater{}", "|": r"\textbar{}"}
)
_CSV_COLUMNS = (
    *("task", "data", "split", "limit", "model", "label", "note", "trivial", "finished"),
    *("metric", "by", "part", "value", "low", "high", "n", "memes", *STATUSES),
    *("invalid_rate", "attempts", "tokens_in", "tokens_out", "cost"),
    *("published", "infeasible"),
)
_NONE: PublishedRows = {}


def render_markdown(runs: Sequence[Run], published: PublishedRows = _NONE) -> str:
    """Render leaderboards as Markdown, one section per task: leaderboard, then all metrics."""
    parts = ["# Memantics report"]
    for board in make_boards(runs, published):
        parts += [
            f"## {quote_markdown(board.title)}",
            f"{quote_markdown(board.task)}, {quote_markdown(show_scope(board))}.",
        ]
        if board.sample:
            parts.append(f"> **{SAMPLE_NOTE}**")
        parts += [f"> {quote_markdown(text)}" for text in (*board.warnings, board.caution) if text]
        parts.append(_leaderboard_lines(board))
        parts.append(_metric_lines(board))
    return "\n\n".join(parts) + "\n"


def _leaderboard_lines(board: Board) -> str:
    beside = [board.beside] if board.beside else []
    head = ["model", *(name.replace("_", " ") for name in (board.main, *beside))]
    head += ["95 % CI", "n", _name_groups(board), *STATUSES, "invalid"]
    lines = [
        [
            quote_markdown(row.label) + (f" ({quote_markdown(row.note)})" if row.note else ""),
            format_value(row.value),
            *(_show_beside(row, name) for name in beside),
            show_span(row.main),
            "" if row.n is None else str(row.n),
            "" if row.memes is None else str(row.memes),
            *(str(row.counts[status]) if row.counts else "" for status in STATUSES),
            format_value(row.invalid_rate) if row.counts else "",
        ]
        for row in board.rows
    ]
    return md_table(head, lines)


def _show_beside(row: LeaderboardRow, key: str) -> str:
    found = row.find(key)
    return format_value(found.value if found else None)


def _metric_lines(board: Board) -> str:
    head = ["metric", "part", "n", *(quote_markdown(row.label) for row in board.rows)]
    keys = [(key, "", "") for key in board.metrics]
    for key, by in board.breakdowns:
        keys += [(key, by, label) for label in board.labels(key, by)]
    lines = []
    for key, by, label in keys:
        found = [row.find(key, by, label) for row in board.rows]
        n = max((s.n for row in board.ours if (s := row.find(key, by, label))), default=0)
        part = f"{quote_markdown(by)}: {quote_markdown(label)}" if by else "all"
        cells = [format_value(score.value) if score else "" for score in found]
        lines.append([quote_markdown(key), part, str(n), *cells])
    return md_table(head, lines)


def md_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Render a Markdown table; all columns except the first are right-aligned."""
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *lines))


def quote_markdown(text: str) -> str:
    """Escape text for Markdown."""
    return mask_unseen(text).translate(_MARKDOWN)


def quote_latex(text: str) -> str:
    """Escape text for LaTeX."""
    return mask_unseen(text).translate(_LATEX)


def render_csv(runs: Sequence[Run], published: PublishedRows = _NONE) -> str:
    """Render leaderboards as CSV, one line per model and metric."""
    return dump_csv(_CSV_COLUMNS, (row.values() for row in list_metrics(runs, published)))


def list_metrics(
    runs: Sequence[Run], published: PublishedRows = _NONE
) -> Iterator[dict[str, object]]:
    """Return one flat record per metric of each leaderboard row."""
    for board in make_boards(runs, published):
        for row in board.rows:
            before, after = _csv_row(board, row)
            for s in row.scores:
                values = [s.key, s.by, s.label, s.value, s.low, s.high, row.size(s), row.memes]
                yield dict(zip(_CSV_COLUMNS, (*before, *values, *after), strict=True))


def _csv_row(board: Board, row: LeaderboardRow) -> tuple[list[object], list[object]]:
    before: list[object] = [board.task, board.kind, board.split, board.limit]
    before += [row.model, row.label, row.note, row.trivial, row.finished]
    after: list[object] = [row.counts[s] if row.counts else None for s in STATUSES]
    after.append(row.invalid_rate)
    usage, paper = row.usage, row.published
    after += (
        [usage.attempts, usage.tokens_in, usage.tokens_out, usage.cost] if usage else [None] * 4
    )
    return before, [*after, *((paper.source, paper.reason) if paper else (None, None))]


def render_json(runs: Sequence[Run], published: PublishedRows = _NONE) -> str:
    """Render leaderboards as JSON: all rows with all metrics, and each run's settings."""
    boards: list[JsonValue] = [_board_json(board) for board in make_boards(runs, published)]
    return dump_json({"format": 1, "boards": boards})


def _board_json(board: Board) -> JsonValue:
    return {
        "task": board.task,
        "title": board.title,
        "main": board.main,
        "unit": board.unit,
        "data": board.kind,
        "notice": SAMPLE_NOTE if board.sample else "",
        "warnings": list(board.warnings),
        "split": board.split,
        "limit": board.limit,
        "differences": list(board.differences),
        "rows": [_row_json(row) for row in board.rows],
        "runs": [{"folder": run.name, "facts": _list_facts(run.facts)} for run in board.runs],
    }


def _row_json(row: LeaderboardRow) -> JsonValue:
    return {
        "label": row.label,
        "model": row.model,
        "note": row.note,
        "trivial": row.trivial,
        "finished": row.finished,
        "run": row.run,
        "counts": dict(row.counts) if row.counts else None,
        "memes": row.memes,
        "invalid_rate": row.invalid_rate,
        "usage": asdict(row.usage) if row.usage else None,
        "published": row.published.model_dump(mode="json") if row.published else None,
        "scores": [asdict(score) for score in row.scores],
    }


def table(runs: Sequence[Run]) -> Group:
    """Make one ``rich`` table per task that fits into 80 terminal columns."""
    boards = make_boards(runs)
    parts: list[Table | Text] = []
    for board in boards:
        parts += [_terminal_table(board), Text("")]
        parts += [Text(mask_unseen(line)) for line in list_named_metrics(board)]
        parts += [
            Text(mask_unseen(f"{row.label}: {row.source.facts.origin}"), style="yellow")
            for row in board.rows
            if row.source is not None and row.source.facts.origin
        ]
    if any(board.sample for board in boards):
        parts.append(Text(SAMPLE_NOTE, style="yellow"))
    return Group(*parts)


def list_named_metrics(board: Board) -> Iterator[str]:
    """Return one line per ``--metric`` and leaderboard row: value and 95% confidence interval."""
    runs = [row.source for row in board.rows if row.source is not None]
    for name in dict.fromkeys(name for run in runs for name in run.results.metrics):
        for row in board.rows:
            if (score := row.find(name)) is not None:
                span = show_span(score)
                interval = f" (95 % CI {span})" if span else ""
                yield f"{name}: {row.label} {format_value(score.value)}{interval}"


def _name_groups(board: Board) -> str:
    sizes = [(row.n or 0, row.memes) for row in board.rows if row.memes is not None]
    return name_groups(board.unit, *max(sizes, default=(0, 0)))


def _terminal_table(board: Board) -> Table:
    title = Text(mask_unseen(board.title), style="bold")
    title.append(
        f"\n{mask_unseen(board.task)}, {mask_unseen(show_scope(board))}", style="dim not bold"
    )
    if (memes := max((row.memes or 0 for row in board.rows), default=0)) > 0:
        title.append(f"; {memes:,} {_name_groups(board)}", style="dim not bold")
    title.append(f"; score: {mask_unseen(board.main).replace('_', ' ')}", style="dim not bold")
    # The box adds a space between columns; more would leave too little room for names.
    made = Table(title=title, title_justify="left", title_style="", box=box.SIMPLE_HEAD)
    made.padding, made.pad_edge, made.show_edge = (0, 0), False, False
    made.add_column("model", overflow="fold")
    beside = [board.beside] if board.beside else []
    if beside:
        title.append(f"; second metric: {beside[0].replace('_', ' ')}", style="dim not bold")
    for heading in ("score", *("second" for _ in beside), "95 % CI", "n", *STATUSES):
        made.add_column(heading, justify="right", no_wrap=True)
    for row in board.rows:
        style = "dim" if row.trivial else ""
        cells = [format_value(row.value), *(_show_beside(row, name) for name in beside)]
        cells += [show_span(row.main), "" if row.n is None else str(row.n)]
        cells += [str(row.counts[s]) if row.counts else "" for s in STATUSES]
        name = Text(mask_unseen(row.label), style=style or "bold")
        if not row.finished:
            name.append(" (unfinished)", style="yellow not bold")
        made.add_row(name, *(Text(cell, style=style) for cell in cells))
    return made


def _list_facts(facts: RunFacts) -> dict[str, JsonValue]:
    """List the settings of a run; optional settings without a value are skipped."""
    return {name: value for name, value in asdict(facts).items() if value or name not in _RARE}


@dataclass(frozen=True, slots=True)
class ReportForm:
    """A report format. ``published`` are results of papers on the same tasks."""

    render: Callable[[Sequence[Run], PublishedRows], str]


MARKDOWN, CSV, JSON = map(ReportForm, (render_markdown, render_csv, render_json))
REPORT_FORMS = Plugins(
    "memantics.reports",
    ReportForm,
    {
        "md": "memantics.evaluation.reports.tables:MARKDOWN",
        "csv": "memantics.evaluation.reports.tables:CSV",
        "json": "memantics.evaluation.reports.tables:JSON",
    },
)
