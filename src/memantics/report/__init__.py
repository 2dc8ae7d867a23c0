"""Scores to tables, plots and one self-contained page."""

from memantics.report.page import ReportSettings, build_report
from memantics.report.runs import STARTER_NOTE, Run, load_runs
from memantics.report.tables import render_csv, render_json, render_markdown, table

__all__ = [
    "STARTER_NOTE",
    "ReportSettings",
    "Run",
    "build_report",
    "load_runs",
    "render_csv",
    "render_json",
    "render_markdown",
    "table",
]
