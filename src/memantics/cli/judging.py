"""``memantics judge``: free text judged by models."""

from __future__ import annotations

from memantics.actions.judge import Judgement
from memantics.actions.judge import judge as action
from memantics.cli.expose import expose
from memantics.cli.progress import resumable
from memantics.cli.terminal import show_table


@expose(action, watch=resumable, dump=lambda found: [run.to_dict() for run in found])
def judge(found: list[Judgement]) -> None:
    """Have models judge free-text answers: correctness and coverage, checked against people.

    The figures stand beside those of the run from then on, in scores and reports.
    """
    for run in found:
        show_table(run.table())
