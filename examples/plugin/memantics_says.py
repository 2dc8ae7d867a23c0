"""Example plug-in package: a model, a metric and a report format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

from memantics.plugins import (
    Metric,
    ModelKind,
    PredictedAnswer,
    PublishedRows,
    Reply,
    ReportForm,
    Request,
    Run,
)


class Says:
    """Answer every request with the word in the model's name."""

    note = "one word"
    cacheable = False

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def identity(self) -> Mapping[str, str]:
        """Values, besides the request, on which the answers depend."""
        return {"name": self.name}

    async def answer(self, request: Request) -> Reply:  # noqa: ARG002 - every request gets it
        """Return the word."""
        return Reply(self.name.partition("/")[2])

    async def close(self) -> None:
        """Close the model; there is nothing to close."""


def measure_constancy(rows: Sequence[PredictedAnswer]) -> float | None:
    """Return the proportion of valid answers that are the most frequent one."""
    answers = Counter(str(row.predicted) for row in rows if row.predicted is not None)
    return max(answers.values()) / answers.total() if answers else None


def render(runs: Sequence[Run], published: PublishedRows) -> str:  # noqa: ARG001 - runs only
    """List runs with their main metrics."""
    values = [(run.model, run.task, run.scores[run.results.main].value) for run in runs]
    lines = (
        f"<li>{escape(model)} on {escape(task)}: {value}</li>" for model, task, value in values
    )
    return f"<!doctype html><title>Runs</title><ul>{''.join(lines)}</ul>"


KIND = ModelKind("says", "says/WORD", "the same word for every request", lambda name, _: Says(name))
METRIC = Metric(
    "constancy",
    "proportion of valid answers that are the most frequent one",
    measure_constancy,
    answers=frozenset({"choice", "boolean"}),
    bounds=(0.0, 1.0),
)
REPORT = ReportForm(render)
