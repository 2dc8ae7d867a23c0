"""``memantics compare``: runs of one task item by item, and models over a suite of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from memantics.actions import compare as action
from memantics.actions.report import find_folder
from memantics.cli.expose import AsJson, spread
from memantics.cli.terminal import console, plain, print_json, show_table, tell
from memantics.core.parameters import Flag
from memantics.report.runs import differing_options

_NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@spread
def compare(
    folders: action.ComparedRuns,
    metrics: action.Metrics = (),
    against_first: action.AgainstFirst = False,
    against: action.Against = "",
    correction: action.Corrections = "holm",
    picture: Annotated[
        Path | None, Flag("Draw the differences of several tasks into this file (SVG).")
    ] = None,
    by: Annotated[
        str | None,
        Flag("An option, or model: compare runs of a grid that differ in it alone."),
    ] = None,
    show: Annotated[
        int | None,
        Flag("How many changed items to show of each pair. Default: 10 of one pair.", min=0),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say which run is better, by how much and how surely, and list the items that changed.

    Runs are compared on the items they share, with items of one meme kept together. P-values are
    corrected for the number of comparisons (Holm). Runs of several tasks are compared by their main
    figures, task by task, and corrected over all of it.
    """
    if against or picture is not None or correction != "holm" or action.spans_tasks(folders):
        suite = action.compare_models(folders, against=against, correction=correction)
        if picture is not None:
            tell(f"picture: {action.draw_comparison(suite, picture)}")
        if as_json:
            print_json(suite.rows)
        else:
            show_table(suite.table())
        return
    if by is not None:
        found_by = action.contrast(folders, by, metrics=metrics)
        if as_json:
            print_json(found_by)
            return
        show_table(found_by.table())
        show_table(found_by.effect_table())
        return
    sides = [action.open_run(find_folder(run)) for run in folders]
    found = action.compare_sides(sides, metrics, against_first=against_first)
    if as_json:
        print_json(found)
        return
    names = {str(side.folder): _name(place) for place, side in enumerate(sides)}
    _show_runs(sides)
    _show_differences(found, names)
    shown = show if show is not None else (10 if len(found) == 1 else 0)
    for one in found:
        _show_changes(one, names, shown)


def _name(place: int) -> str:
    return _NAMES[place] if place < len(_NAMES) else f"R{place + 1}"


def _show_runs(sides: Sequence[action.Side]) -> None:
    out = console()
    out.print(plain(sides[0].facts.title, "bold"))
    everything = [side.facts for side in sides]
    for place, side in enumerate(sides):
        told = [side.facts.model, *differing_options(side.facts, everything)]
        words = " · ".join([*told, *([side.facts.origin] if side.facts.origin else [])])
        out.print(plain(f"  {_name(place)}  {words}"))
        out.print(plain(f"     {side.folder}", "dim"))


def _show_differences(found: Sequence[action.Comparison], names: Mapping[str, str]) -> None:
    show_table(action.tabulate_pairs(found, names))
    for remark in action.list_remarks(found, names):
        console().print(plain(remark, "yellow" if "note: " in remark else "dim"))


def _show_changes(one: action.Comparison, names: Mapping[str, str], show: int) -> None:
    console().print(plain(action.count_changes(one, names), "bold"))
    if not show or not one.changes:
        return
    show_table(action.tabulate_changes(one, names, show))
    if (left := len(one.changes) - show) > 0:
        console().print(plain(f"{left} more: --show N, or --json for all", "dim"))
