"""A redone paper as one self-contained page: its tables and figures in its layout and order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from memantics.core.journal import write_text
from memantics.core.paper_parts import Cell, CellStatus, PaperPart, PaperRow, PaperSheet
from memantics.core.records import Score
from memantics.report import plot
from memantics.report.kit import Shown, fill_page
from memantics.report.papers import RENDERERS, STATUS_WORDS, list_remarks
from memantics.report.runs import STARTER_NOTE

_BADGES: dict[CellStatus, str] = {
    "reproduced": "v0",
    "within interval": "v0",
    "differs": "v1",
    "empty": "v2",
}


class RedonePaper(PaperSheet):
    """A redone paper that can be written: as a page, Markdown, LaTeX, CSV or JSON."""

    __slots__ = ()

    def render(self, form: str = "html") -> str:
        """The paper as ``html``, ``md``, ``latex``, ``csv`` or ``json``."""
        return render_page(self) if form == "html" else RENDERERS[form](self)

    def save(self, out: str | Path, form: str = "") -> Path:
        """Write the paper; without ``form``, as the file's name ends (.md, .tex, .csv, .json)."""
        ending = Path(out).suffix.lstrip(".").lower()
        chosen = form or {"tex": "latex"}.get(ending, ending)
        text = self.render(chosen if chosen in RENDERERS else "html")
        return write_text(out, text, "paper")


def render_page(sheet: PaperSheet) -> str:
    """The page as text."""
    return fill_page(
        "paper.html",
        ("page.css", "paper.css"),
        sheet=sheet,
        blocks=[_make_block(place, part) for place, part in enumerate(sheet.parts, 1)],
        badges=_BADGES,
        words=STATUS_WORDS,
        starter_note=STARTER_NOTE if sheet.sample else "",
    )


def _make_block(place: int, part: PaperPart) -> Shown:
    """A part with its drawings, one for each row where it has them, and the shade of each cell."""
    block = {
        "part": part,
        "slug": f"part-{place}",
        **dict.fromkeys(("axis", "strips", "legend"), ""),
        "radars": _draw_radars(part) if part.radar else (),
        "shades": _shade(part),
        "remarks": list_remarks(part),
    }
    if not part.plotted:
        return block
    scale = plot.fit_scale(score for row in part.rows for score in _scores(row.cells))
    legend = [(name, plot.draw_key(tone)) for tone, name in enumerate(part.columns)]
    if any(cell.paper is not None for cell in part.cells):
        legend.append(("the paper", plot.draw_key(None)))
    strips = tuple(_draw(row, part.columns, scale) for row in part.rows)
    return block | {"axis": plot.draw_axis(scale), "strips": strips, "legend": legend}


def _draw_radars(part: PaperPart) -> tuple[tuple[str, Markup], ...]:
    """A polygon for each row that has a value; all share one scale."""
    rows = [
        (row.label, [score.value if score else None for score in _values(row)]) for row in part.rows
    ]
    top = max((value for _, row in rows for value in row if value is not None), default=0.0)
    drawn = [(label, row) for label, row in rows if any(value is not None for value in row)]
    return tuple((label, plot.draw_radar(part.columns, row, top)) for label, row in drawn)


def _shade(part: PaperPart) -> tuple[tuple[str, ...], ...]:
    """How dark each cell is: four steps from the worst to the best of its column."""
    plain = tuple("" for _ in part.columns)
    if not part.shaded:
        return tuple(plain for _ in part.rows)
    columns = []
    for column in zip(*(_values(row) for row in part.rows), strict=True):
        known = [value.value for value in column if value is not None and value.value is not None]
        low, high = min(known, default=0.0), max(known, default=0.0)
        columns.append([_step(value, low, high) for value in column])
    return tuple(zip(*columns, strict=True))


def _step(score: Score | None, low: float, high: float) -> str:
    if score is None or score.value is None or high <= low:
        return ""
    return f"shade{min(4, 1 + int(4 * (score.value - low) / (high - low)))}"


def _values(row: PaperRow) -> list[Score | None]:
    """Our value of each cell."""
    return _scores(row.cells)[::2]


def _draw(row: PaperRow, columns: Sequence[str], scale: plot.Scale) -> Markup:
    marks = []
    for tone, (name, cell) in enumerate(zip(columns, row.cells, strict=True)):
        score, printed = _scores((cell,))
        if score is not None:
            marks.append(plot.Mark(name, score, tone))
        if printed is not None:
            marks.append(plot.Mark(f"{name}, the paper", printed, None))
    return plot.draw_strip(marks, scale)


def _scores(cells: Sequence[Cell]) -> list[Score | None]:
    """What is drawn of cells: our value with its interval, and the paper's."""
    found: list[Score | None] = []
    for cell in cells:
        for value, low, high in ((cell.value, cell.low, cell.high), (cell.paper, None, None)):
            drawn = isinstance(value, int | float) and not isinstance(value, bool)
            found.append(Score("", float(value), cell.n, low, high) if drawn else None)  # type: ignore[arg-type]
    return found
