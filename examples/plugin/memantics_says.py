"""A kind of model and a form of report, in a package that Memantics does not know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from memantics.core.records import Reply, Request
from memantics.evaluation.reports.leaderboard import Published
from memantics.evaluation.reports.runs import Run
from memantics.evaluation.reports.tables import ReportForm
from memantics.models.kinds import ModelKind


class Says:
    """Answers every request with the word in its name."""

    note = "one word"
    cacheable = False

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def identity(self) -> Mapping[str, str]:
        """What its answers depend on besides the request."""
        return {"name": self.name}

    async def answer(self, request: Request) -> Reply:  # noqa: ARG002 - whatever is asked
        """The word."""
        return Reply(self.name.partition("/")[2])

    async def close(self) -> None:
        """Nothing is open."""


def render(runs: Sequence[Run], published: Published) -> str:  # noqa: ARG001 - ours alone
    """A list of runs with their main figures."""
    figures = [(run.model, run.task, run.scores[run.figures.main].value) for run in runs]
    lines = (
        f"<li>{escape(model)} on {escape(task)}: {value}</li>" for model, task, value in figures
    )
    return f"<!doctype html><title>Runs</title><ul>{''.join(lines)}</ul>"


KIND = ModelKind("says", "says/WORD", "one word, whatever is asked", lambda name, _: Says(name))
PAGE = ReportForm(render)
