"""``memantics audit``: what a benchmark measures besides what it means to measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.padding import Padding

from memantics.actions.audit import Audit, conduct_audit, describe_finding, tabulate_gaps
from memantics.actions.chains import audit_chains as look_at_chains
from memantics.actions.chains import tabulate_chains
from memantics.actions.options import Folders
from memantics.run.engine import Progress
from memantics.cli.expose import AsJson, expose, save_page, spread
from memantics.cli.progress import Watcher, resumable
from memantics.cli.terminal import console, plain, print_json, show_table, tell
from memantics.core.parameters import Flag
from memantics.core.waiting import make_sync

STYLES = {"broken": "red", "worth knowing": "yellow", "sound": "green"}


@contextmanager
def _watch() -> Iterator[Mapping[str, Any]]:
    """A progress bar for each thing that is asked; the one before it ends."""
    with resumable(), ExitStack() as bars:

        def begin(title: str, total: int) -> Callable[[Progress], None]:
            bars.close()
            return bars.enter_context(Watcher(title, total, None)).show

        yield {"watch": begin}


def _end(found: Audit) -> None:
    if found.failed:
        tell(f"{found.failed} calls failed; run the same command to ask again")
        raise typer.Exit(1)


@expose(
    make_sync(conduct_audit),
    watch=_watch,
    save=save_page,
    end=_end,
    hide=("prices",),
    first=(
        "resplit",
        "labels",
        "everything",
        "reviewed",
        "models",
        "data",
        "split",
        "options",
        "limit",
        "published",
        "probed",
        "out",
    ),
)
def audit_benchmark(audit: Audit, out: Path | None) -> None:
    """Audit a benchmark: shortcuts, dead options, leaks, impossible tables.

    With a model also: blind run, order of options, consistency of judges. Each finding has a
    figure, a verdict in plain words, and what to do about it.
    """
    to = console()
    to.print(plain(f"Audit of {audit.card.title}, {audit.data.kind} data", "bold"))
    counts = ", ".join(f"{n} {verdict}" for verdict, n in audit.counts.items())
    to.print(plain(f"  {len(audit.findings)} findings: {counts}"))
    for finding in audit.findings:
        to.print()
        to.print(plain(f"{finding.verdict:<14}{finding.title}", STYLES[finding.verdict]))
        to.print(_indent(describe_finding(finding)))
        to.print(_indent(finding.meaning))
        if finding.verdict != "sound":
            to.print(_indent(f"To do: {finding.advice}", "dim"))
    if audit.gaps:
        show_table(tabulate_gaps(audit))
    for what, path in audit.files.items():
        to.print(plain(f"{what}: {path}"))
    if out is not None:
        console().print(plain(f"audit: {out}"))


def _indent(text: str, style: str = "") -> Padding:
    return Padding(plain(text, style), (0, 0, 0, 2))


@spread
def audit_chains(
    folders: Folders,
    show: Annotated[int, Flag("How many items at fault to name.", min=0)] = 5,
    as_json: AsJson = False,
) -> None:
    """Audit chains of thought: cut off, silent on what they must name, contrary to the answer."""
    found = [look_at_chains(folder) for folder in folders]
    if as_json:
        print_json(found)
        return
    show_table(tabulate_chains(found))
    for audit in found:
        for word, items in (("silent", audit.silent), ("contrary", audit.contrary)):
            for item in items[:show]:
                console().print(plain(f"{word}: {item}"))
