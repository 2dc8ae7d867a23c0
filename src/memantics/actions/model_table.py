"""Models × tasks in one table, with marks of significance."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from memantics.actions.compare import group_runs, open_contest
from memantics.actions.options import RunLike
from memantics.core.errors import InputError, UnknownName
from memantics.report.model_table import ModelTable, make_table
from memantics.report.model_table_forms import (
    TABLE_FORMS,
    TABLE_STYLES,
    TableStyle,
    render_latex_table,
)
from memantics.run.suite_compare import SuiteComparison, compare_suite


def tabulate_models(runs: Sequence[RunLike]) -> ModelTable:
    """The table of all models and tasks, with marks where models can be compared.

    A task whose benchmark is not here is shown without marks.
    """
    boards, repeats = group_runs(runs)
    contests = []
    for board in boards:
        if not board.judges:
            with suppress(InputError):
                contests.append(open_contest(board, repeats))
    found: SuiteComparison | None = None
    with suppress(InputError):
        found = compare_suite(contests)
    rows = found.rows if found else ()
    tested = {(row.ground, row.first, row.second): row.found.corrected for row in rows}
    return make_table(boards, repeats, tested)


def render_table(runs: Sequence[RunLike], form: str, style: TableStyle | None = None) -> str:
    """The table as ``latex``, ``md``, ``csv`` or ``html``; ``style`` is LaTeX's."""
    if style is not None and style not in TABLE_STYLES:
        raise UnknownName("style", style, TABLE_STYLES)
    if form == "latex":
        return render_latex_table(tabulate_models(runs), style or "booktabs")
    if style is not None:
        raise InputError(f"--style is for LaTeX, not for {form}", hint="add --format latex")
    if form not in TABLE_FORMS:
        raise UnknownName("format of the table", form, ("latex", *TABLE_FORMS))
    return TABLE_FORMS[form](tabulate_models(runs))
