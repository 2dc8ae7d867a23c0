"""``memantics detector teach|forget|precedents``: decided memes that a detector remembers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from memantics.actions import precedents as action
from memantics.cli.expose import expose, spread
from memantics.cli.terminal import console, plain, print_json
from memantics.core.parameters import Flag


def _show(found: list[action.Precedent]) -> None:
    for one in found:
        what = one.text[:60].replace("\n", " ") or one.phash or one.sha256[:12]
        console().print(plain(f"{one.id}  {one.label}  {what}  {one.why}"), soft_wrap=True)


@expose(action.teach_precedents)
def teach(done: list[action.Precedent]) -> None:
    """Remember memes with their label: copies of them are judged alike from now on."""
    _show(done)


@expose(action.forget_precedents)
def forget(done: list[action.Precedent]) -> None:
    """Forget precedents; verdicts are the detector's own again."""
    _show(done)


@spread
def precedents(
    detector: action.DetectorFile,
    read: Annotated[Path | None, Flag("CSV of hashes to learn.", "--import")] = None,
    write: Annotated[Path | None, Flag("CSV of hashes to write.", "--export")] = None,
    as_json: Annotated[bool, Flag("Print JSON.", "--json")] = False,
) -> None:
    """List the precedents of a detector, or exchange them as CSV."""
    if read is not None:
        console().print(plain(f"learnt: {action.import_precedents(detector, read):,}"))
    if write is not None:
        console().print(plain(f"{action.export_precedents(detector, write):,} hashes: {write}"))
    if as_json:
        print_json(action.list_precedents(detector))
    elif read is None and write is None:
        _show(action.list_precedents(detector))
