"""From a folder of images to memes that can be worked with; nothing is deleted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from memantics.actions.desk import Watch
from memantics.build.collect.families import DUPLICATE_BITS, FAMILY_BITS
from memantics.build.collect.gather import PAGE, Collected, CollectSettings, gather
from memantics.build.collect.looks import OWN
from memantics.build.collect.rules import DEFAULT_RULES, FilterRule, RuleSet, read_thresholds
from memantics.core.journal import write_text
from memantics.core.memes import MEMES
from memantics.core.parameters import Argument, Flag, MadeBy, TextTaken
from memantics.core.result import Table, show_cell
from memantics.models.embedded.ocr import open_reader
from memantics.report.pages.collection import render_page
from memantics.run.engine import Progress

__all__ = ["Collected", "collect"]


def list_rules() -> tuple[FilterRule, ...]:
    """The rules by which images are dropped, with their thresholds."""
    return DEFAULT_RULES


def tabulate_rules() -> Table:
    """The rules with their thresholds."""
    rows = ((rule.name, show_cell(rule.threshold), rule.what) for rule in DEFAULT_RULES)
    return Table(("rule", ">at least", "of"), tuple(rows))


def make_rules(
    languages: Annotated[
        Sequence[str],
        Flag("Keep memes of this language (en, zh, …); may be repeated.", "--language"),
    ] = (),
    thresholds: Annotated[
        Sequence[str], Flag("Another threshold; see --rules.", "--set", metavar="RULE=VALUE")
    ] = (),
) -> RuleSet:
    """The rules with other thresholds (``RULE=VALUE``), and the languages that are kept."""
    return RuleSet(languages=frozenset(languages), thresholds=read_thresholds(thresholds))


def make_settings(
    out: Annotated[
        Path | None, Flag("Copy what is kept there. Default: list it beside the images.")
    ] = None,
    ruleset: Annotated[RuleSet | None, MadeBy(make_rules)] = None,
    copies: Annotated[
        int, Flag("Bits within which the same text is a copy.", min=0, max=16)
    ] = DUPLICATE_BITS,
    family: Annotated[
        int, Flag("Bits within which images share a template.", min=0, max=24)
    ] = FAMILY_BITS,
    workers: Annotated[int, Flag("Processes that read images.", min=1, max=64)] = 1,
    text: TextTaken = "caption",
) -> CollectSettings:
    """How a folder is read, from what a user says."""
    return CollectSettings(out, ruleset or RuleSet(), copies, family, workers, text)


def find_page(done: Collected) -> Path:
    """The page of what was dropped."""
    return done.folder / OWN / PAGE


def summarise(done: Collected, *, page: bool = True) -> dict[str, object]:
    """What came of a folder, in counts and places."""
    return {
        "images": len(done.memes),
        "read_now": done.fresh,
        "counts": done.counts,
        "families": done.families,
        "memes": str(done.folder / MEMES),
        "page": str(find_page(done)) if page else None,
    }


def tabulate(done: Collected) -> Table:
    """How many memes were kept, and how many each rule dropped."""
    rows = (
        (show_cell(count), rule if rule == "kept" else f"dropped: {rule}")
        for rule, count in done.counts.items()
    )
    return Table((">memes", ""), tuple(rows), f"{len(done.memes):,} images")


def collect(
    folder: Annotated[
        Path | str,
        Argument("Folder of images, searched with its subfolders.", kind=Path, default=Path()),
    ],
    settings: Annotated[CollectSettings | None, MadeBy(make_settings)] = None,
    *,
    page: Annotated[bool, Flag("Write the page of what was dropped, and why.")] = True,
    progress: Watch | None = None,
) -> Collected:
    """Read a folder of images: text, language, copies, templates, filters.

    What is kept is listed in ``memes.jsonl``; a ``page`` shows what was dropped, and why.
    ``settings`` say what is kept and how it is read, ``progress`` is told how far it is.
    """
    begin = time.monotonic()

    def watch(now: int, total: int) -> None:
        if progress is not None:
            seconds = time.monotonic() - begin
            progress(Progress(done=now, total=total, answered=now, seconds=seconds))

    settings = settings or CollectSettings()
    done = gather(Path(folder), partial(open_reader, text=settings.text), settings, watch)
    if page:
        write_text(find_page(done), render_page(done))
    return done
