"""The forms in which runs are shown besides the page: tables of ours, pages of other packages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memantics.core.plugins import Plugins
from memantics.report.reference import Published
from memantics.report.runs import Run
from memantics.report.tables import render_csv, render_json, render_markdown


@dataclass(frozen=True, slots=True)
class ReportForm:
    """How runs become a text: a page, a table. ``published`` are papers' rows on the same tasks."""

    render: Callable[[Sequence[Run], Published], str]


MARKDOWN, CSV, JSON = map(ReportForm, (render_markdown, render_csv, render_json))
REPORT_FORMS = Plugins(
    "memantics.pages",
    ReportForm,
    {
        "md": "memantics.report.forms:MARKDOWN",
        "csv": "memantics.report.forms:CSV",
        "json": "memantics.report.forms:JSON",
    },
)
