"""``collect``: turn a folder of images into a usable set of memes and a page of rejected ones.

No file is deleted. The page lists rejected memes by rule, with images blurred until clicked.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from memantics.construction.collect.gather import PAGE, Collected, CollectSettings, Kept, gather
from memantics.construction.collect.looks import OWN
from memantics.construction.collect.rules import DEFAULT_RULES, FilterRule, RuleSet, read_thresholds
from memantics.core.files import write_text
from memantics.core.memes import MEMES
from memantics.core.parameters import Argument, Flag, MadeBy, TextTaken
from memantics.core.result import Table, show_cell
from memantics.models.client import ProgressWatch
from memantics.models.embedded.ocr import open_reader
from memantics.models.engine import Progress
from memantics.understanding.templates import CLUSTER_BITS, DUPLICATE_BITS
from memantics.web.page import TemplateValues, fill_page, make_thumbnails
from memantics.web.phrases import PageLanguage

__all__ = ["Collected", "collect"]

_MOST_BYTES = 40 * 1024 * 1024
_MOST_CARDS = 4000


def render_page(done: Collected, language: PageLanguage = "en") -> str:
    """Render the page of a collection: dropped memes by rule, then templates with several memes."""
    dropped = [kept_item for kept_item in done.memes if kept_item.dropped][:_MOST_CARDS]
    pictures = make_thumbnails([kept_item.entry.path for kept_item in dropped], _MOST_BYTES)
    groups: defaultdict[str, list[TemplateValues]] = defaultdict(list)
    for kept_item, picture in zip(dropped, pictures, strict=True):
        groups[kept_item.dropped.rule if kept_item.dropped else ""].append(
            {"meme": kept_item, "picture": picture}
        )
    template_clusters: defaultdict[str, list[Kept]] = defaultdict(list)
    for kept_item in done.memes:
        if kept_item.kin.template_cluster and kept_item.dropped is None:
            template_clusters[kept_item.kin.template_cluster].append(kept_item)
    return fill_page(
        "collect.html",
        ("page.css", "collect.css"),
        language=language,
        done=done,
        groups=dict(sorted(groups.items(), key=lambda group: -len(group[1]))),
        template_clusters=[members for members in template_clusters.values() if len(members) > 1],
        meanings={
            r.name: f"Default minimum: {r.threshold:g}. Measure: {r.what}." for r in DEFAULT_RULES
        },
        skipped=sum(kept_item.dropped is not None for kept_item in done.memes) - len(dropped),
    )


def list_rules() -> tuple[FilterRule, ...]:
    """Return the filter rules with their thresholds."""
    return DEFAULT_RULES


def tabulate_rules() -> Table:
    """Tabulate the filter rules with their thresholds."""
    rows = ((rule.name, show_cell(rule.threshold), rule.what) for rule in DEFAULT_RULES)
    return Table(("rule", ">at least", "of"), tuple(rows))


def make_rules(
    languages: Annotated[
        Sequence[str],
        Flag("Keep memes of this language (en, zh, …); repeatable. Default: all.", "--language"),
    ] = (),
    thresholds: Annotated[
        Sequence[str],
        Flag(
            "Set a threshold, RULE=VALUE; repeatable. See --rules.", "--set", metavar="RULE=VALUE"
        ),
    ] = (),
) -> RuleSet:
    """Return the rules with changed thresholds (``RULE=VALUE``) and the accepted languages."""
    return RuleSet(languages=frozenset(languages), thresholds=read_thresholds(thresholds))


def make_settings(
    out: Annotated[
        Path | None,
        Flag("Folder to copy kept memes to. Default: write memes.jsonl beside the images."),
    ] = None,
    ruleset: Annotated[RuleSet | None, MadeBy(make_rules)] = None,
    copies: Annotated[
        int,
        Flag(
            "Maximum hash distance, in bits, at which memes with the same text are duplicates.",
            min=0,
            max=16,
        ),
    ] = DUPLICATE_BITS,
    cluster_bits: Annotated[
        int, Flag("Maximum hash distance, in bits, within one template cluster.", min=0, max=24)
    ] = CLUSTER_BITS,
    workers: Annotated[int, Flag("Processes that read images.", min=1, max=64)] = 1,
    text: TextTaken = "caption",
) -> CollectSettings:
    """Return collection settings from command-line values."""
    return CollectSettings(out, ruleset or RuleSet(), copies, cluster_bits, workers, text)


def find_page(done: Collected) -> Path:
    """Return the path of the page of dropped memes."""
    return done.folder / OWN / PAGE


def summarise(done: Collected, *, page: bool = True) -> dict[str, object]:
    """Return counts and paths of a collection."""
    return {
        "images": len(done.memes),
        "read_now": done.fresh,
        "counts": done.counts,
        "template_clusters": done.template_clusters,
        "memes": str(done.folder / MEMES),
        "page": str(find_page(done)) if page else None,
    }


def tabulate(done: Collected) -> Table:
    """Tabulate kept memes and the number dropped by each rule."""
    rows = (
        (show_cell(count), rule if rule == "kept" else f"dropped: {rule}")
        for rule, count in done.counts.items()
    )
    return Table((">memes", ""), tuple(rows), f"{len(done.memes):,} images")


def collect(
    folder: Annotated[
        Path | str,
        Argument("Folder of images; subfolders are included.", kind=Path, default=Path()),
    ],
    settings: Annotated[CollectSettings | None, MadeBy(make_settings)] = None,
    *,
    page: Annotated[bool, Flag("Write a page of dropped memes with the reasons.")] = True,
    page_language: Annotated[PageLanguage, Flag("Language of the page: en or zh.")] = "en",
    progress: ProgressWatch | None = None,
) -> Collected:
    """Read a folder of images: text, language, duplicates, template clusters, filters.

    The memes that are kept are listed in ``memes.jsonl``.

    Args:
        folder: Folder of images, searched with its subfolders.
        settings: Rules and where ``memes.jsonl`` goes. Default: beside the images.
        page: Write the page of what was dropped, and why.
        page_language: Language of the page: ``en`` or ``zh``.
        progress: Called with the counts so far.

    Returns:
        The memes that were kept and dropped, with the reasons.

    Raises:
        InputError: The folder holds no images.

    Example:
        >>> mm.collect("memes/").folder
        PosixPath('memes')
    """
    begin = time.monotonic()

    def watch(now: int, total: int) -> None:
        if progress is not None:
            seconds = time.monotonic() - begin
            progress(Progress(done=now, total=total, answered=now, seconds=seconds))

    settings = settings or CollectSettings()
    done = gather(Path(folder), partial(open_reader, text=settings.text), settings, watch)
    if page:
        write_text(find_page(done), render_page(done, page_language))
    return done
