"""``memantics edit``: an editor over MER-Bench's index."""

from __future__ import annotations

import typer

from memantics.actions import edit as action
from memantics.cli.expose import expose
from memantics.cli.progress import watch
from memantics.cli.terminal import console, plain, tell


def _end(done: action.Edited) -> None:
    for meme, reason in list(done.failed.items())[:5]:
        tell(f"{meme}: {reason}"[:300])
    if done.failed:
        raise typer.Exit(1)


@expose(
    action.edit,
    watch=watch("edit"),
    end=_end,
    defaults={"concurrency": 8},
    hide=("model", "best_of", "mood", "face"),
)
def edit_memes(done: action.Edited) -> None:
    """Edit every meme of MER-Bench's index by one editor, into a folder that the judge takes."""
    text = f"{done.made} made, {done.kept} there before, {len(done.failed)} failed: {done.folder}"
    console().print(plain(text), soft_wrap=True)
