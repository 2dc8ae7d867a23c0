"""``memantics build pairs`` and ``memantics detector check``: minimal pairs."""

from __future__ import annotations

from pathlib import Path

from memantics.actions import pairs as action
from memantics.cli.expose import expose, save_page
from memantics.cli.terminal import console, plain, say, show_table


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


@expose(action.check_pairs, save=save_page)
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
