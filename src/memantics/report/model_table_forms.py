"""The table of models × tasks as LaTeX, Markdown, CSV and HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from markupsafe import Markup

from memantics.core.tables import dump_csv
from memantics.core.template import fill_template
from memantics.report.model_table import FigureCell, ModelRow, ModelTable
from memantics.report.plot import draw
from memantics.report.tables import md_table, quote_latex, quote_markdown

TableStyle = Literal["booktabs", "acl", "neurips"]
TABLE_STYLES: tuple[TableStyle, ...] = ("booktabs", "acl", "neurips")
# Tasks that fit side by side, with their intervals below the figures.
_ACROSS: Mapping[TableStyle, int] = {"booktabs": 5, "acl": 6, "neurips": 4}


def render_latex_table(made: ModelTable, style: TableStyle = "booktabs") -> str:
    """A float for ``booktabs``; more tasks than fit side by side go below one another."""

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
    """Pipes, with footnotes below."""
    head = [
        "model",
        *(
            f"{quote_markdown(c.task)} ({quote_markdown(c.figure)}, n = {c.n})"
            for c in made.columns
        ),
    ]
    lines = [
        [_md_label(made, row), *(_md_cell(made, cell) for cell in row.cells)] for row in made.rows
    ]
    notes = [f"<sup>{letter}</sup> {quote_markdown(note)}" for note, letter in made.notes.items()]
    parts = [md_table(head, lines), *(quote_markdown(text) for text in made.legend)]
    return "\n\n".join([*parts, *(["  \n".join(notes)] if notes else [])]) + "\n"


def _md_label(made: ModelTable, row: ModelRow) -> str:
    name = quote_markdown(row.label)
    return (f"*{name}*" if row.trivial else name) + _md_marks(made, row.notes)


def _md_cell(made: ModelTable, cell: FigureCell | None) -> str:
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
    """A line for each model; a task's figure, bounds, n, invalid share, mark and notes."""
    parts = ("value", "low", "high", "n", "invalid", "deviation", "seeds", "mark", "best", "notes")
    heads = [f"{column.task} {part}" for column in made.columns for part in parts]
    lines = []
    for row in made.rows:
        cells: list[object] = [row.label, row.trivial]
        for cell in row.cells:
            values = [getattr(cell, part) if cell else None for part in parts[:-1]]
            cells += [*values, "; ".join(cell.notes) if cell else None]
        lines.append(cells)
    return dump_csv(["model", "trivial", *heads], lines)


def render_html_table(made: ModelTable) -> Markup:
    """The table for a page; everything from data is escaped."""
    return draw("models", made)


TABLE_FORMS: Mapping[str, Callable[[ModelTable], str]] = {
    "md": render_markdown_table,
    "csv": render_csv_table,
    "html": render_html_table,
}
