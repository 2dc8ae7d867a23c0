"""``memantics humans``: replies to a blind queue, and people's ratings to figures."""

from __future__ import annotations

import typer

from memantics.actions import humans as action
from memantics.cli.expose import expose
from memantics.cli.terminal import console, plain, show_table
from memantics.core.records import Score

app = typer.Typer(
    help="Replies rated by people: export a blind queue, and score what came back.",
    no_args_is_help=True,
)


@app.command("export")
@expose(action.export_humans, json=None)
def export(done: action.HumanExport) -> None:
    """Export answers for rating by people: a blind queue, and the key that tells who said what."""
    written = f"{done.rows} ratings of {done.memes} memes: {done.queue}"
    console().print(plain(f"{written}; keep {done.key} from the raters"))


@app.command("score")
@expose(action.score_humans)
def score(done: action.HumanScores) -> None:
    """Join ratings with the key: means by setting, tests, agreement, metrics against people."""
    show_table(done.table())
    if done.contrasts:
        show_table(done.contrast_table())
    show_table(done.agreement_table())
    if done.followed:
        show_table(done.metric_table())


@app.command("preferences")
@expose(action.score_preferences)
def preferences(done: list[Score]) -> None:
    """Compare what people chose among versions of memes with what judges say of them."""
    show_table(action.tabulate_agreement(done))
