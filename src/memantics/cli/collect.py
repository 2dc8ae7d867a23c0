"""``memantics collect``: from a folder of images to memes that can be worked with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.actions import collect as action
from memantics.actions.collect import DUPLICATE_BITS, FAMILY_BITS, Collected, CollectSettings
from memantics.cli import flags
from memantics.cli.progress import Watcher
from memantics.cli.terminal import console, plain, print_json, show_table
from memantics.core.memes import MEMES

Folder = Annotated[Path, typer.Argument(help="Folder of images, searched with its subfolders.")]
Languages = Annotated[
    list[str] | None,
    typer.Option("--language", help="Keep memes of this language (en, zh, …); may be repeated."),
]
Thresholds = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="RULE=VALUE", help="Another threshold; see --rules."),
]
OutFolder = Annotated[
    Path | None,
    typer.Option(help="Copy what is kept there. Default: list it beside the images."),
]
Workers = Annotated[int, typer.Option(min=1, max=64, help="Processes that read images.")]
Pictures = Annotated[bool, typer.Option(help="Write the page of what was dropped, and why.")]
ShowRules = Annotated[bool, typer.Option("--rules", help="Show the rules and stop.")]


def collect_memes(
    folder: Folder = Path(),
    out: OutFolder = None,
    language: Languages = None,
    thresholds: Thresholds = None,
    copies: Annotated[
        int, typer.Option(min=0, max=16, help="Bits within which the same text is a copy.")
    ] = DUPLICATE_BITS,
    family: Annotated[
        int, typer.Option(min=0, max=24, help="Bits within which images share a template.")
    ] = FAMILY_BITS,
    workers: Workers = 1,
    page: Pictures = True,
    rules: ShowRules = False,
    as_json: flags.AsJson = False,
) -> None:
    """Read a folder of images: text, language, copies, templates, filters. Deletes nothing."""
    if rules:
        _show_rules(as_json)
        return
    chosen = action.make_rules(language or (), thresholds or ())
    settings = CollectSettings(out, chosen, copies, family, workers)
    with Watcher(f"collect {folder.resolve().name}", None, None) as view:
        done = action.collect(folder, settings, page=page, progress=view.show)
    _show(done, page, as_json)


def _show(done: Collected, page: bool, as_json: bool) -> None:
    if as_json:
        print_json(action.summarise(done, page=page))
        return
    show_table(action.tabulate(done))
    console().print(plain(f"{done.families} templates have several memes: keep them together"))
    console().print(plain(f"list: {done.folder / MEMES}"))
    if page:
        console().print(plain(f"what was dropped: {action.find_page(done)}"))


def _show_rules(as_json: bool) -> None:
    if as_json:
        print_json(
            [{"rule": r.name, "at_least": r.threshold, "of": r.what} for r in action.list_rules()]
        )
        return
    show_table(action.tabulate_rules())
