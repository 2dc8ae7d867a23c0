"""``memantics collect``: from a folder of images to memes that can be worked with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from memantics.actions import collect as action
from memantics.actions.collect import Collected
from memantics.cli.expose import AsJson, expose
from memantics.cli.progress import Watcher
from memantics.cli.terminal import console, plain, print_json, show_table
from memantics.core.memes import MEMES
from memantics.core.parameters import Flag


@contextmanager
def _watch(folder: Path) -> Iterator[Mapping[str, Any]]:
    with Watcher(f"collect {folder.resolve().name}", None, None) as view:
        yield {"progress": view.show}


def _show_rules(
    as_json: bool, rules: Annotated[bool, Flag("Show the rules and stop.")] = False
) -> bool:
    if rules and as_json:
        print_json(
            [{"rule": r.name, "at_least": r.threshold, "of": r.what} for r in action.list_rules()]
        )
    elif rules:
        show_table(action.tabulate_rules())
    return rules


@expose(action.collect, json=None, watch=_watch, instead=_show_rules)
def collect_memes(done: Collected, page: bool, as_json: AsJson = False) -> None:
    """Read a folder of images: text, language, copies, templates, filters. Deletes nothing."""
    if as_json:
        print_json(action.summarise(done, page=page))
        return
    show_table(action.tabulate(done))
    console().print(plain(f"{done.families} templates have several memes: keep them together"))
    console().print(plain(f"list: {done.folder / MEMES}"))
    if page:
        console().print(plain(f"what was dropped: {action.find_page(done)}"))
