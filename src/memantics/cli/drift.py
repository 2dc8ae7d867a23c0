"""``memantics drift``: whether what is screened now is still what was screened then."""

from __future__ import annotations

import typer

from memantics.actions import drift as action
from memantics.cli.expose import expose, save_page
from memantics.cli.terminal import show_table, tell


def _end(found: action.Drift) -> None:
    """Exit code 1 beyond the limits, for whatever watches."""
    if found.beyond:
        tell(f"beyond the limits: {', '.join(found.beyond)}")
        raise typer.Exit(1)


@expose(action.drift, save=save_page, end=_end)
def drift(found: action.Drift) -> None:
    """Say whether memes screened now differ from those screened then; exit code 1 if they do.

    Scores, verdicts, types, languages, novelty and templates are compared, and p-values corrected
    for all of them (Holm). A shift counts where it is sure (--alpha) and large (--distance).
    """
    show_table(found.table)
    if found.note:
        tell(f"note: {found.note}")
