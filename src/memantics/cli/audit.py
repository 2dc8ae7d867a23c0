"""``memantics audit``: what a benchmark measures besides what it means to measure."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.padding import Padding

from memantics.actions.asking import Asking, read_pairs
from memantics.actions.audit import (
    Audit,
    AuditSettings,
    conduct_audit,
    describe_finding,
    tabulate_gaps,
)
from memantics.actions.chains import audit_chains as look_at_chains
from memantics.actions.chains import tabulate_chains
from memantics.actions.progress import Progress
from memantics.cli import flags
from memantics.cli.progress import Watcher, wait_for
from memantics.cli.terminal import console, plain, print_json, show_table, tell

STYLES = {"broken": "red", "worth knowing": "yellow", "sound": "green"}

Name = Annotated[str, typer.Argument(help="A benchmark or one of its tasks, NAME or NAME/TASK.")]
Asked = Annotated[
    list[str] | None,
    typer.Option("--model", "-m", help="Also ask this model; may be repeated."),
]
Most = Annotated[
    int | None, typer.Option(min=1, help="Ask models about N items at most, spread over memes.")
]
Table = Annotated[
    Path | None,
    typer.Option(help="Also check this published table (JSON, as in expected/published.json)."),
]
Runs = Annotated[Path, typer.Option(help="Where the answers of asked models go.")]
Page = Annotated[Path | None, typer.Option(help="Write one self-contained page to this file.")]


@flags.asks_models(price=False)
def audit_benchmark(
    name: Name,
    model: Asked = None,
    data: flags.Data = None,
    split: flags.Split = None,
    option: flags.Options = None,
    limit: Most = 200,
    published: Table = None,
    out: Page = None,
    runs: Runs = Path("runs/audit"),
    *,
    asking: Asking,
    as_json: flags.AsJson = False,
) -> None:
    """Audit a benchmark: shortcuts, dead options, leaks, infeasible tables.

    With a model also: blind run, order of options, consistency of judges. Each finding has a
    figure, a verdict in plain words, and what to do about it.
    """
    options = read_pairs("--set", option)
    wanted = AuditSettings(model or (), data, split, options, limit, published, runs, asking)
    with ExitStack() as bars:
        found = wait_for(conduct_audit(name, wanted, _watch(bars)))
    if out is not None:
        found.save(out)
    if as_json:
        print_json(found)
    else:
        _show(found)
        if out is not None:
            console().print(plain(f"audit: {out}"))
    if found.failed:
        tell(f"{found.failed} calls failed; run the same command to ask again")
        raise typer.Exit(1)


def _watch(bars: ExitStack) -> Callable[[str, int], Callable[[Progress], None]]:
    """A progress bar for each thing that is asked; the one before it ends."""

    def begin(title: str, total: int) -> Callable[[Progress], None]:
        bars.close()
        return bars.enter_context(Watcher(title, total, None)).show

    return begin


def _show(audit: Audit) -> None:
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


def _indent(text: str, style: str = "") -> Padding:
    return Padding(plain(text, style), (0, 0, 0, 2))


def audit_chains(
    folders: flags.Folders,
    show: Annotated[int, typer.Option(min=0, help="How many items at fault to name.")] = 5,
    as_json: flags.AsJson = False,
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
