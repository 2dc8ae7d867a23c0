"""``memantics match-list …``: labelled memes whose copies get the same label by hash matching."""

from __future__ import annotations

from pathlib import Path

import typer

from memantics import moderation
from memantics.cli.expose import expose
from memantics.cli.terminal import console, plain

app = typer.Typer(
    help="Manage match lists: known memes whose copies get the same label.", no_args_is_help=True
)


def _show(entries: list[moderation.MatchEntry]) -> None:
    for entry in entries:
        content = entry.text[:60].replace("\n", " ") or entry.phash or entry.sha256[:12]
        line = f"{entry.id}  {entry.label}  {content}  {entry.reason}"
        console().print(plain(line), soft_wrap=True)


@app.command("add")
@expose(moderation.add_to_match_list)
def add(done: list[moderation.MatchEntry]) -> None:
    """Add labelled memes to a match list; copies of them then get the same label."""
    _show(done)


@app.command("remove")
@expose(moderation.remove_from_match_list)
def remove(done: list[moderation.MatchEntry]) -> None:
    """Remove entries by id; the detector scores their copies again."""
    _show(done)


@app.command("list")
@expose(moderation.read_match_list)
def show(done: list[moderation.MatchEntry]) -> None:
    """List the entries of a detector's match list, oldest first."""
    _show(done)


@app.command("import")
@expose(moderation.import_match_list)
def bring_in(done: int) -> None:
    """Import hashes from a CSV file or a hash list of ThreatExchange."""
    console().print(plain(f"imported: {done:,}"))


@app.command("export")
@expose(moderation.export_match_list)
def send_out(done: int, out: Path) -> None:
    """Export hashes as CSV, or as a hash list of ThreatExchange."""
    console().print(plain(f"{done:,} hashes: {out}"))
