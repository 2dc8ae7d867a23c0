"""``memantics build pairs`` and ``memantics detector check``: minimal pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from memantics.actions import pairs as action
from memantics.cli.expose import expose
from memantics.cli.terminal import console, plain, say, show_table
from memantics.core.parameters import Flag


@expose(action.build_pairs)
def build_pairs(done: action.BuiltPairs) -> None:
    """Draw minimal pairs on memes: two captions that differ in one thing, layout kept, read back.

    Words come from a list that you name, mild ones by default. No model is asked.
    """
    counts = ", ".join(f"{kind} {count}" for kind, count in done.kinds.items())
    console().print(plain(f"{done.pairs} pairs: {counts}"))
    console().print(plain(f"read back: {done.read:.3f} of the letters; {done.clear:.0%} at 0.9"))
    for name, reason in list(done.failed.items())[:5]:
        console().print(plain(f"carries none: {name}: {reason}"))
    say(str(done.folder))


def _save(
    found: action.PairCheck,
    out: Annotated[Path | None, Flag("Write a page of the failing pairs, blurred.")] = None,
) -> None:
    if out is not None:
        found.save(out)


@expose(action.check_pairs, save=_save)
def check_pairs(done: action.PairCheck, out: Path | None) -> None:
    """Say how consistent a detector or a run is on minimal pairs, kind by kind."""
    show_table(done.table())
    if done.unjudged:
        console().print(plain(f"left out: {done.unjudged} pairs; a side has no answer"))
    if done.failing:
        names = ", ".join(pair.id for pair in done.failing[:3])
        console().print(plain(f"{len(done.failing)} fail, such as {names}"))
    if out is not None:
        say(str(out))
