"""``memantics judge``: rate answers with LLM judges, plan ratings, compare judges, test drift."""

from __future__ import annotations

from pathlib import Path

import typer

from memantics import evaluation
from memantics.cli.expose import expose, make_default_group, save_page
from memantics.cli.progress import resumable
from memantics.cli.terminal import console, plain, show_table

RATE = "rate"
app = typer.Typer(
    cls=make_default_group(RATE),
    help="Rate free-text answers with LLM judges, and correct the scores with human ratings. "
    "'judge RUN' rates a run.",
)


@app.command(RATE)
@expose(
    evaluation.judge,
    watch=resumable,
    dump=lambda found: [run.to_dict() for run in found],
)
def rate(found: list[evaluation.Judgement]) -> None:
    """Rate free-text answers with LLM judges, and correct the scores with human ratings.

    The metrics are added to the scores and reports of the run.
    """
    for run in found:
        show_table(run.table())
        for sentence in run.sentences():
            console().print(plain(sentence), soft_wrap=True)
        for note in run.notes():
            console().print(plain(f"note: {note}", "dim"), soft_wrap=True)
        if run.open_items:
            show_table(evaluation.tabulate_open(run.open_items))


@app.command("plan")
@expose(evaluation.plan_ratings)
def plan(made: evaluation.RatingPlan) -> None:
    """Select answers for human rating; write a queue and print the interval to expect."""
    show_table(made.table())
    console().print(plain(f"{made.answers} answers about {made.items} of {made.of} items"))
    ends = dict.fromkeys((f"{made.smallest:.2f}", f"{made.largest:.2f}"))
    console().print(plain(f"{made.selection} ({' to '.join(ends)})"))
    more = f" --workflow {made.workflow}" if made.workflow else ""
    console().print(plain(f"next: memantics annotate open {made.queue}{more}"), soft_wrap=True)


@app.command("compare")
@expose(evaluation.compare_judges, watch=resumable, save=save_page)
def compare(found: evaluation.JudgeComparison, out: Path | None) -> None:
    """Compare judges: agreement with people, biases, accepted wrong answers, consistency, cost."""
    show_table(found.table())
    if found.open_items:
        show_table(evaluation.tabulate_open(found.open_items))
    if out is not None:
        console().print(plain(f"page: {out}"), soft_wrap=True)


@app.command("drift")
@expose(
    evaluation.judge_drift,
    watch=resumable,
    dump=lambda found: [one.to_dict() for one in found],
)
def drift(found: list[evaluation.JudgeDrift]) -> None:
    """Test whether two versions of a judge give comparable scores."""
    for one in found:
        show_table(one.table())
