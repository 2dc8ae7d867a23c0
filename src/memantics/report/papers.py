"""A redone paper as Markdown, LaTeX, CSV and JSON: the same cells in the paper's layout."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from memantics.core.data import dump_json
from memantics.core.paper_parts import Cell, CellStatus, PaperPart, PaperRow, PaperSheet
from memantics.core.tables import dump_csv
from memantics.core.template import fill_template
from memantics.core.text import mask_unseen
from memantics.report.tables import md_table, quote_latex, quote_markdown

STATUS_WORDS: Mapping[CellStatus, str] = {
    "reproduced": "computed here; the same to the digits that the paper prints",
    "within interval": "computed here; the paper's value lies in our 95 % interval",
    "differs": "computed here; not the paper's value",
    "computed": "computed here from other data than the paper's, or not printed in the paper",
    "arithmetic": "follows from other figures that the paper prints; no data were used",
    "empty": "not computed yet; the command named beside it fills it",
    "closed": "cannot be computed from what was released; the note says why",
    "none": "not in the paper's table",
}
_CSV_COLUMNS = (
    *("part", "section", "row", "kind", "column", "paper", "value", "low", "high", "sd", "n"),
    *("status", "fill", "reason", "note", "origin"),
)


def describe_cell(cell: Cell) -> str:
    """A cell in one line of text.

    >>> describe_cell(Cell(86.38, 84.0, 80.0, 88.0, n=350, digits=2))
    '84.00 (80.00–88.00, n = 350); paper 86.38, within interval'
    >>> describe_cell(Cell(1.48, 1.39, arithmetic=True)), describe_cell(Cell(9, fill="x"))
    ('1.39; paper 1.48, arithmetic, does not agree', '–; paper 9, empty')
    """
    if cell.status == "none":
        return "–"
    spread = "" if cell.sd is None else f"± {cell.show(cell.sd)}"
    parts = (spread, cell.span, f"n = {cell.n:,}" if cell.n else "")
    inside = ", ".join(part for part in parts if part)
    text = cell.show(cell.value) + (f" ({inside})" if inside else "")
    printed = [f"{cell.printed} {cell.show(cell.paper)}"] if cell.paper is not None else []
    state = [] if cell.status == "computed" and not printed else [str(cell.status)]
    if cell.origin:
        state.append("imported answers")
    if cell.status == "arithmetic" and not cell.agrees:
        state.append("does not agree")
    said = ", ".join(printed + state)
    return f"{text}; {said}" if said else text


def list_sections(part: PaperPart) -> Iterator[tuple[str, PaperRow]]:
    """Rows, each with the section that begins with it, or nothing."""
    last = ""
    for row in part.rows:
        yield (row.section if row.section != last else ""), row
        last = row.section


def list_remarks(part: PaperPart) -> tuple[str, ...]:
    """What stands below a table or figure."""
    origins = (f"Answers {origin}; no model was asked here." for origin in part.origins)
    return (*part.notes, *part.remarks, *part.reasons, *origins)


def render_markdown(paper: PaperSheet) -> str:
    """A section per table and figure."""
    return fill_template(
        __file__,
        "paper.md",
        {"markdown": quote_markdown, "mask": mask_unseen, "fence": _choose_fence},
        paper=paper,
        counts=", ".join(f"{n} {status}" for status, n in paper.counts.items() if n),
        table=_tabulate,
        remarks=list_remarks,
    )


def _choose_fence(body: str) -> str:
    """More marks in a row than the text itself has."""
    return "`" * max(3, *(len(run) + 1 for run in re.findall("`+", body)), 3)


def _tabulate(part: PaperPart) -> str:
    lines = []
    for section, row in list_sections(part):
        if section:
            lines.append([f"**{quote_markdown(section)}**", *("" for _ in part.columns)])
        cells = (quote_markdown(describe_cell(cell)) for cell in row.cells)
        lines.append([quote_markdown(row.label), *cells])
    return md_table([quote_markdown(name) for name in (part.stub, *part.columns)], lines)


def render_latex(paper: PaperSheet) -> str:
    """One ``table`` environment per part, for ``booktabs``; the paper's value in brackets."""
    return fill_template(
        __file__,
        "paper.tex",
        {"latex": quote_latex, "mask": mask_unseen, "cell": _latex_cell},
        paper=paper,
        sections=list_sections,
        line=lambda *cells: " & ".join(map(quote_latex, cells)) + r" \\",
    )


def _latex_cell(cell: Cell) -> str:
    value = cell.show(cell.value)
    if cell.sd is not None:
        value += f" ± {cell.show(cell.sd)}"
    return value if cell.paper is None else f"{value} [{cell.show(cell.paper)}]"


def render_csv(paper: PaperSheet) -> str:
    """One line per cell."""
    return dump_csv(_CSV_COLUMNS, _list_cells(paper))


def _list_cells(paper: PaperSheet) -> Iterator[tuple[object, ...]]:
    for part in paper.parts:
        for row in part.rows:
            for column, cell in zip(part.columns, row.cells, strict=True):
                if cell.status != "none":
                    place = (part.label, row.section, row.label, row.kind, column)
                    said = (cell.paper, cell.value, cell.low, cell.high, cell.sd, cell.n or None)
                    fill = cell.fill if cell.status == "empty" else ""
                    reason = cell.reason if cell.status == "closed" else ""
                    yield (*place, *said, cell.status, fill, reason, cell.note, cell.origin)


def render_json(paper: PaperSheet) -> str:
    """All cells with their status."""
    return dump_json(paper.to_dict())


RENDERERS: Mapping[str, Callable[[PaperSheet], str]] = {
    "md": render_markdown,
    "latex": render_latex,
    "csv": render_csv,
    "json": render_json,
}
