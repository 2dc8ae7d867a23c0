"""Findings about judges, and their page in English and Chinese."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memantics.core.files import write_text
from memantics.core.result import Result, Table
from memantics.evaluation.judging.open_items import OpenItem
from memantics.web.page import fill_page
from memantics.web.phrases import PageLanguage

_STYLES = ("page.css", "judges.css")
# Wrong answers of a kind are named on top of the page if more than this proportion is accepted.
_MANY = 0.1
# The kinds of findings in the order of the page: the heading and the note of each.
_KINDS = {
    "wrong answer": (
        "Wrong answers accepted",
        (
            "Proportion of answers made wrong on purpose that get at least three quarters "
            "of the scale. It should be 0."
        ),
    ),
    "agreement": (
        "Agreement with people",
        "1 is perfect agreement, 0 is chance.",
    ),
    "bias": (
        "Leniency",
        "Above 0: the judge gives higher marks than people do.",
    ),
    "self-preference": (
        "Self-preference",
        (
            "Above 0: the judge favours answers of its own model family, compared with "
            "people or other judges."
        ),
    ),
    "length": (
        "Length",
        (
            "Change of the mark for answers with equal human ratings. Above 0: the judge "
            "overrates longer answers."
        ),
    ),
    "change": (
        "Changes that keep the meaning",
        "Change of the mark. It should be 0.",
    ),
    "right answer": (
        "Correct answers accepted",
        (
            "Proportion of references, given as an answer, that get at least three quarters"
            " of the scale."
        ),
    ),
    "consistency": (
        "Consistency",
        "Proportion of repeated calls with the same mark.",
    ),
    "cost": (
        "Cost",
        "Tokens include the prompt and the image.",
    ),
}


def _show_cost(value: float) -> str:
    """Show tokens or seconds with three digits at least, and without powers of ten.

    >>> [_show_cost(value) for value in (0.0, 0.0007, 0.0123, 1.2345, 12345.6)]
    ['0', '< 0.01', '0.0123', '1.23', '12,346']
    """
    if 0 < value < 0.01:
        return "< 0.01"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


@dataclass(frozen=True, slots=True)
class JudgeFinding:
    """One measured property of a judge, with its 95% confidence interval.

    ``kind`` is ``agreement``, ``bias``, ``self-preference``, ``length``, ``change``,
    ``wrong answer``, ``right answer``, ``consistency`` or ``cost``; ``name`` is the measure or
    the change.
    """

    judge: str
    kind: str
    name: str
    quality: str
    n: int
    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def span(self) -> str:
        """The value with its interval, as text."""
        if self.value is None:
            return "–"
        if self.kind == "cost":
            return _show_cost(self.value)
        shown = f"{self.value:.2f}"
        return shown if self.low is None else f"{shown} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True, slots=True)
class JudgeComparison(Result):
    """All findings about the judges of some runs, and the answers that the rubric leaves open."""

    runs: tuple[str, ...]
    judges: tuple[str, ...]
    rated: int
    sample: int
    findings: tuple[JudgeFinding, ...]
    open_items: tuple[OpenItem, ...]

    def table(self) -> Table:
        """One row per measure, one column per judge."""
        keys = dict.fromkeys((f.kind, f.name, f.quality) for f in self.findings)
        found = {(f.kind, f.name, f.quality, f.judge): f for f in self.findings}
        rows = []
        for kind, name, quality in keys:
            cells = [found.get((kind, name, quality, judge)) for judge in self.judges]
            n = max(cell.n for cell in cells if cell is not None)
            shown = [cell.span if cell else "–" for cell in cells]
            rows.append((kind, name, quality, str(n), *shown))
        columns = ("", "measure", "quality", ">n", *(f">{judge}" for judge in self.judges))
        return Table(columns, tuple(rows), f"Judges of {len(self.runs)} runs")

    def save(self, page: str | Path, language: PageLanguage = "en") -> Path:
        """Write one self-contained HTML page, and return its path."""
        return write_text(page, render_comparison(self, language))


@dataclass(frozen=True, slots=True)
class _Section:
    """One kind of findings: its rows have a measure, a quality, n and a cell per judge."""

    head: str
    note: str
    rows: tuple[tuple[str, str, str, tuple[str, ...]], ...]


def render_comparison(found: JudgeComparison, language: PageLanguage = "en") -> str:
    """Render the findings about judges as one self-contained page."""
    sections = (_make_section(found, kind) for kind in _KINDS)
    return fill_page(
        "judges.html",
        _STYLES,
        language=language,
        found=found,
        accepted=list(_list_accepted(found)),
        sections=[section for section in sections if section is not None],
    )


def _make_section(found: JudgeComparison, kind: str) -> _Section | None:
    mine = [one for one in found.findings if one.kind == kind]
    if not mine:
        return None
    rows = []
    for name, quality in dict.fromkeys((one.name, one.quality) for one in mine):
        cells = [_find(mine, judge, name, quality) for judge in found.judges]
        n = max(cell.n for cell in cells if cell is not None)
        shown = tuple("–" if cell is None else cell.span for cell in cells)
        rows.append((name, quality, f"{n:,}", shown))
    return _Section(*_KINDS[kind], tuple(rows))


def _find(
    findings: Sequence[JudgeFinding], judge: str, name: str, quality: str
) -> JudgeFinding | None:
    return next(
        (f for f in findings if (f.judge, f.name, f.quality) == (judge, name, quality)), None
    )


def _list_accepted(found: JudgeComparison) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """Yield each judge with the wrong answers that it accepts, by the first quality."""
    wrong = [one for one in found.findings if one.kind == "wrong answer"]
    quality = wrong[0].quality if wrong else ""
    for judge in found.judges:
        mine = [one for one in wrong if one.judge == judge and one.quality == quality]
        shares = sorted(((one.value or 0.0, one.name) for one in mine), reverse=True)
        if mine:
            yield judge, [(name, share) for share, name in shares if share > _MANY]
