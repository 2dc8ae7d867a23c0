"""``memantics power``: how many memes a difference needs."""

from __future__ import annotations

from memantics.actions import compare as action
from memantics.cli.expose import expose
from memantics.cli.terminal import print_lines, show_table


@expose(action.power)
def show_power(done: action.PowerAnalysis) -> None:
    """Say how many memes are needed to see a difference of that size, from pilot runs."""
    show_table(done.table())
    print_lines([done.sentence()])
