"""The table of models × tasks as LaTeX, Markdown, CSV and HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from markupsafe import Markup

from memantics.report.model_table import FigureCell, ModelRow, ModelTable
from memantics.report.plot import draw
from memantics.report.tables import guard_cell, md_table, quote_latex, quote_markdown

TableStyle = Literal["booktabs", "acl", "neurips"]
TABLE_STYLES: tuple[TableStyle, ...] = ("booktabs", "acl", "neurips")
# Tasks that fit side by side, with their intervals below the figures.
_ACROSS: Mapping[TableStyle, int] = {"booktabs": 5, "acl": 6, "neurips": 4}
_LABEL = "tab:memantics"


def render_latex_table(made: ModelTable, style: TableStyle = "booktabs") -> str:
    """A float for ``booktabs``; more tasks than fit side by side go below one another."""
    star = "*" if style == "acl" else ""
    caption = rf"\caption{{{_caption(made)}}}", rf"\label{{{_LABEL}}}"
    lines = [
        "% needs \\usepackage{booktabs}",
        rf"\begin{{table{star}}}[{'t' if style != 'booktabs' else 'htbp'}]",
        r"\centering",
        r"\small" if style == "acl" else r"\footnotesize",
    ]
    # NeurIPS has captions above its tables, ACL below.
    lines += caption if style == "neurips" else ()
    lines += [r"\setlength{\tabcolsep}{4pt}"] if style != "booktabs" else []
    width = _ACROSS[style]
    for start in range(0, len(made.columns), width):
        lines += ["", r"\vspace{1ex}"] if start else []
        lines += _latex_tabular(made, range(len(made.columns))[start : start + width])
    lines += [rf"\par\vspace{{0.5ex}}\raggedright\scriptsize {_latex_notes(made)}"]
    lines += () if style == "neurips" else caption
    return "\n".join([*lines, rf"\end{{table{star}}}"]) + "\n"


def _caption(made: ModelTable) -> str:
    scopes = "; ".join(dict.fromkeys(column.scope for column in made.columns))
    return f"Main figure of each task ({quote_latex(scopes)}). " + quote_latex(
        " ".join(made.legend)
    )


def _latex_tabular(made: ModelTable, places: Sequence[int]) -> Iterator[str]:
    columns = [made.columns[place] for place in places]
    yield rf"\begin{{tabular}}{{l{'c' * len(columns)}}}"
    yield r"\toprule"
    yield " & ".join(["Model", *(quote_latex(c.task) for c in columns)]) + r" \\"
    figures = [f"{quote_latex(c.figure)}, $n={c.n}$" for c in columns]
    yield " & ".join(["", *(rf"{{\scriptsize {text}}}" for text in figures)]) + r" \\"
    yield r"\midrule"
    before = made.rows[0].trivial if made.rows else False
    for row in made.rows:
        if row.trivial and not before:
            yield r"\midrule"
        before = row.trivial
        cells = [row.cells[place] for place in places]
        name = quote_latex(row.label) + _latex_marks(made, row.notes)
        yield " & ".join([name, *(_latex_cell(made, cell) for cell in cells)]) + r" \\"
        spans = [quote_latex(cell.span) if cell else "" for cell in cells]
        if any(spans):
            yield " & ".join(["", *(rf"{{\scriptsize {s}}}" if s else "" for s in spans)]) + r" \\"
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _latex_cell(made: ModelTable, cell: FigureCell | None) -> str:
    if cell is None:
        return "--"
    text = quote_latex(cell.text)
    text = rf"\textbf{{{text}}}" if cell.best else text
    mark = rf"\textsuperscript{{{cell.mark}}}" if cell.mark else ""
    return text + mark + _latex_marks(made, cell.notes)


def _latex_marks(made: ModelTable, notes: Sequence[str]) -> str:
    letters = ",".join(made.notes[note] for note in notes)
    return rf"\textsuperscript{{\textit{{{letters}}}}}" if letters else ""


def _latex_notes(made: ModelTable) -> str:
    return " ".join(
        rf"\textsuperscript{{\textit{{{letter}}}}}{quote_latex(note)}."
        for note, letter in made.notes.items()
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
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = [f"{column.task} {part}" for column in made.columns for part in parts]
    writer.writerow(["model", "trivial", *heads])
    for row in made.rows:
        cells: list[object] = [row.label, row.trivial]
        for cell in row.cells:
            values = [getattr(cell, part) if cell else None for part in parts[:-1]]
            cells += [*values, "; ".join(cell.notes) if cell else None]
        writer.writerow([guard_cell(value) for value in cells])
    return out.getvalue()


def render_html_table(made: ModelTable) -> Markup:
    """The table for a page; everything from data is escaped."""
    return draw("models", made)


TABLE_FORMS: Mapping[str, Callable[[ModelTable], str]] = {
    "md": render_markdown_table,
    "csv": render_csv_table,
    "html": render_html_table,
}
