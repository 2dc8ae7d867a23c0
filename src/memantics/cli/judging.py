"""``memantics judge``: free text judged by models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.actions.asking import Asking
from memantics.actions.judge import judge_runs
from memantics.cli import flags
from memantics.cli.progress import wait_for
from memantics.cli.terminal import print_json, show_table

Ratings = Annotated[
    Path | None,
    typer.Option(help="Marks of people: a table with the columns item, correctness, coverage."),
]


@flags.asks_models()
def judge(
    folders: flags.Folders,
    model: flags.Models,
    ratings: Ratings = None,
    picture: Annotated[bool, typer.Option(help="Show the judge the meme.")] = True,
    *,
    asking: Asking,
    as_json: flags.AsJson = False,
) -> None:
    """Have models judge free-text answers: correctness and coverage, checked against people.

    The figures stand beside those of the run from then on, in scores and reports.
    """
    found = wait_for(judge_runs(folders, model, asking, ratings=ratings, picture=picture))
    if as_json:
        print_json([judgement.to_dict() for judgement in found])
        return
    for judgement in found:
        show_table(judgement.table())
