"""Findings about judges, and their page in English and Chinese."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from memantics.core.errors import InputError
from memantics.core.files import read_regular_text, write_text
from memantics.core.result import Result, Table
from memantics.evaluation.judging.open_items import OpenItem
from memantics.web.page import fill_page

LANGUAGES = ("en", "zh")
_STYLES = ("page.css", "judges.css")
# Wrong answers of a kind are named on top of the page if more than this proportion is accepted.
_MANY = 0.1
_KEYS = {"right answer": "right", "wrong answer": "wrong"}
_ORDER = (
    "wrong answer", "agreement", "bias", "self-preference", "length", "change", "right answer",
    "consistency", "cost",
)  # fmt: skip


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

    def save(self, page: str | Path, language: str = "en") -> Path:
        """Write one self-contained HTML page, and return its path."""
        return write_text(page, render_comparison(self, language))


@dataclass(frozen=True, slots=True)
class _Section:
    """One kind of findings: its rows have a measure, a quality, n and a cell per judge."""

    head: str
    note: str
    rows: tuple[tuple[str, str, str, tuple[str, ...]], ...]


@cache
def _texts() -> Mapping[str, Any]:
    return tomllib.loads(read_regular_text(Path(__file__).with_name("page.toml")))


def render_comparison(found: JudgeComparison, language: str) -> str:
    """Render the findings about judges as one self-contained page."""
    if language not in LANGUAGES:
        raise InputError(f"{language!r} is not a language of the page", hint="use en or zh")
    texts = _texts()
    told = {
        name: text[language]
        for name, text in texts.items()
        if isinstance(text, dict) and language in text
    }
    return fill_page(
        "judges.html",
        _STYLES,
        language=language,
        found=found,
        t=told,
        scope=told["scope"].format(
            runs=len(found.runs), judges=len(found.judges), rated=found.rated, sample=found.sample
        ),
        accepted=list(_list_accepted(found, told, language)),
        sections=[
            section
            for kind in _ORDER
            if (section := _make_section(found, kind, language)) is not None
        ],
        translate=lambda name: _translate(name, language),
    )


def _translate(name: str, language: str) -> str:
    texts = _texts()
    if language == "en":
        return name
    return str(texts["measures"].get(name) or texts["qualities"].get(name) or name)


def _make_section(found: JudgeComparison, kind: str, language: str) -> _Section | None:
    mine = [one for one in found.findings if one.kind == kind]
    if not mine:
        return None
    texts = _texts()["kinds"][_KEYS.get(kind, kind)]
    rows = []
    for name, quality in dict.fromkeys((one.name, one.quality) for one in mine):
        cells = [_find(mine, judge, name, quality) for judge in found.judges]
        n = max(cell.n for cell in cells if cell is not None)
        between = " 至 " if language == "zh" else " to "
        shown = tuple("–" if cell is None else cell.span.replace(" to ", between) for cell in cells)
        rows.append((_translate(name, language), _translate(quality, language), f"{n:,}", shown))
    return _Section(texts["head"][language], texts["note"][language], tuple(rows))


def _find(
    findings: Sequence[JudgeFinding], judge: str, name: str, quality: str
) -> JudgeFinding | None:
    return next(
        (f for f in findings if (f.judge, f.name, f.quality) == (judge, name, quality)), None
    )


def _list_accepted(found: JudgeComparison, told: Mapping[str, str], language: str) -> list[str]:
    """Say for each judge which wrong answers it accepts, by the first quality."""
    wrong = [one for one in found.findings if one.kind == "wrong answer"]
    quality = wrong[0].quality if wrong else ""
    lines = []
    for judge in found.judges:
        mine = [one for one in wrong if one.judge == judge and one.quality == quality]
        if not mine:
            continue
        named = [
            f"{_translate(one.name, language)} ({one.value:.0%})"
            for one in sorted(mine, key=lambda one: -(one.value or 0))
            if (one.value or 0) > _MANY
        ]
        joined = ("、" if language == "zh" else ", ").join(named)
        key = "accepts" if named else "accepts_none"
        lines.append(told[key].format(judge=judge, names=joined))
    return lines
