"""Published tables: can their figures be true together?"""

from __future__ import annotations

from collections.abc import Sequence

from memantics.core.finding import Finding, Gap
from memantics.core.published import PublishedRow
from memantics.core.records import Score
from memantics.metrics.feasibility import Claims, find_violations
from memantics.metrics.interval import wilson


def check_tables(
    rows: Sequence[PublishedRow], title: str = "Published tables"
) -> tuple[list[Finding], list[Gap]]:
    """One finding for all rows that have anything to check; arithmetic only."""
    checkable = [row for row in rows if is_checkable(row)]
    if not checkable:
        reason = "no published row gives figures that can be held against each other"
        return [], [Gap("", title.lower(), reason if rows else "no published figures are known")]
    faults = [(row, found) for row in checkable if (found := violations(row))]
    n = len(checkable)
    low, high = wilson(len(faults), n) or (None, None)
    sound = not faults
    return [
        Finding(
            key="tables.feasible",
            title=title,
            measured="share of rows with a figure that no data can give: macro-F1 above the mean "
            "of precision and recall, a whole outside its parts, a share of no whole number, F1 "
            "that does not follow from both recalls",
            figure=Score("share", len(faults) / n, n, low, high),
            expected=0.0,
            reference="every row feasible",
            verdict="sound" if sound else "broken",
            meaning="Every row that can be checked can be true."
            if sound
            else f"{len(faults)} of {n} rows cannot be true as printed.",
            advice="Nothing." if sound else "Do not compare with these rows; recompute them.",
            details=tuple(
                f"{row.source}, {row.task}, {row.system}: {'; '.join(found)}"
                for row, found in faults
            ),
        )
    ], []


def violations(row: PublishedRow) -> tuple[str, ...]:
    """Every check that a row fails, in words."""
    return find_violations(row.figures, _claims(row))


def _claims(row: PublishedRow) -> Claims:
    return Claims(row.digits, row.sizes, row.parts, row.classes)


def is_checkable(row: PublishedRow) -> bool:
    """Whether a row holds figures that bound one another."""
    figures = row.figures.keys()
    return (
        {"macro_f1", "macro_precision", "macro_recall"} <= figures
        or any(whole in figures and set(parts) <= figures for whole, parts in row.parts.items())
        or bool(figures & row.sizes.keys())
        or (row.classes is not None and {"f1", "tpr", "tnr"} <= figures)
    )
