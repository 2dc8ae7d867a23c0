"""``memantics reappraise`` and ``build reappraisal``: memes with a kinder feeling about them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from memantics.actions import reappraise as action
from memantics.actions import reappraise_lines as lines
from memantics.actions.reappraise import EMBEDDED, Reappraisal, ReappraisalDrafts
from memantics.cli.expose import expose
from memantics.cli.progress import Prices, watch
from memantics.cli.reviewing import review_in_terminal
from memantics.cli.terminal import console, plain, print_lines, show_table, tell
from memantics.core.errors import InputError
from memantics.core.parameters import Flag
from memantics.core.result import Table

Interactive = Annotated[bool, Flag("Accept, edit or skip each stage yourself.", "--interactive -i")]


@contextmanager
def _watch(prices: Prices, interactive: Interactive = False) -> Iterator[Mapping[str, Any]]:
    if interactive and not sys.stdin.isatty():
        raise InputError("--interactive needs a terminal", hint="edit plan.json in --out instead")
    review = {"review": review_in_terminal} if interactive else {}
    with watch("reappraise", tokens=True)(prices) as watchers:
        yield {**watchers, **review}


def _end(results: Sequence[Reappraisal]) -> None:
    failed = [result for result in results if result.status == "failed"]
    if failed and lines.none_read(results):
        for result in failed:
            tell(f"error: {result.reason}")
        raise typer.Exit(2)
    if failed or any(result.status == "flawed" for result in results):
        raise typer.Exit(1)


@expose(
    action.reappraise,
    watch=_watch,
    dump=lambda results: [result.to_dict() for result in results],
    end=_end,
    defaults={"concurrency": 8},
    first=("target", "model", "editor", "out", "interactive", "force", "versions", "choose"),
)
def reappraise(results: Sequence[Reappraisal], model: str, versions: int) -> None:
    """Turn negative memes around: captions rewritten in place, panels and layout kept."""
    out, shown = console(), lines.tabulate_results(results)
    if shown.rows:
        show_table(shown)
        print_lines(lines.tell_sources(results))
    for result in results:
        if not result.drawn and not lines.none_read(results):
            out.print(plain(f"{result.meme}: {result.stage} {result.status}: {result.reason}"))
    print_lines(lines.tell_flaws(results))
    for result in results:
        print_lines(lines.tell_versions(result, versions))
    drawn = [result for result in results if result.drawn]
    if drawn:
        notes: dict[str, list[str]] = {}
        for one in drawn:
            for note in one.checks.notes if one.checks else ():
                notes.setdefault(note, []).append(one.meme)
        for note, memes in notes.items():
            of_all = len(memes) == len(drawn)
            out.print(plain(note if of_all else f"{', '.join(memes)}: {note}", "dim"))
        by = " Planned by our lexicon, a baseline." if model == EMBEDDED else ""
        count = Counter(result.status for result in results)
        left = "".join(f", {count[name]} {name}" for name in ("flawed", "declined") if count[name])
        place = drawn[0].folder.parent
        out.print(plain(f"{count['done']} of {len(results)} done{left}: {place}.{by}"))


def _count(made: ReappraisalDrafts) -> dict[str, object]:
    facts = {"folder": str(made.folder), "drafts": len(made.drafts), "editors": made.counts}
    return facts | {"left_out": dict(made.left_out)}


def _end_drafts(made: ReappraisalDrafts) -> None:
    if any(count["failed"] or count["flawed"] for count in made.counts.values()):
        raise typer.Exit(1)


@expose(
    action.reappraisal,
    watch=watch("reappraise", tokens=True),
    dump=_count,
    end=_end_drafts,
    defaults={"concurrency": 8},
    first=("model",),
)
def build_reappraisal(made: ReappraisalDrafts) -> None:
    """Turn every meme of a folder around with one or more editors; people check the drafts."""
    counts = made.counts
    columns = ("done", "flawed", "declined", "failed")
    rows = tuple((name, *(str(group[each]) for each in columns)) for name, group in counts.items())
    show_table(Table(("editor", *(f">{each}" for each in columns)), rows))
    out = console()
    for name, results in made.made.items():
        for result in [r for r in results if r.status in ("failed", "flawed", "declined")][:5]:
            out.print(plain(f"{name} {result.meme}: {result.status}: {result.reason}"[:300]))
    for reason, count in Counter(made.left_out.values()).items():
        out.print(plain(f"left out, {reason}: {count}"))
    out.print(plain(f"{len(made.drafts)} drafts; for people to check: {made.queue}"))
