"""What a collection dropped and why, as one self-contained page; images are blurred until asked."""

from __future__ import annotations

from collections import defaultdict

from memantics.build.collect.gather import Collected, Kept
from memantics.build.collect.rules import DEFAULT_RULES
from memantics.report.kit import Shown, fill_page
from memantics.report.thumbnails import make_thumbnails

_MOST_BYTES = 40 * 1024 * 1024
_MOST_CARDS = 4000


def render_page(done: Collected) -> str:
    """The page as text: dropped memes by rule, then templates with several memes."""
    dropped = [kept_item for kept_item in done.memes if kept_item.dropped][:_MOST_CARDS]
    pictures = make_thumbnails([kept_item.entry.path for kept_item in dropped], _MOST_BYTES)
    groups: defaultdict[str, list[Shown]] = defaultdict(list)
    for kept_item, picture in zip(dropped, pictures, strict=True):
        groups[kept_item.dropped.rule if kept_item.dropped else ""].append(
            {"meme": kept_item, "picture": picture}
        )
    families: defaultdict[str, list[Kept]] = defaultdict(list)
    for kept_item in done.memes:
        if kept_item.kin.family and kept_item.dropped is None:
            families[kept_item.kin.family].append(kept_item)
    return fill_page(
        "collect.html",
        ("page.css", "collect.css"),
        done=done,
        groups=dict(sorted(groups.items(), key=lambda group: -len(group[1]))),
        families=[members for members in families.values() if len(members) > 1],
        meanings={
            r.name: f"Wanted, by default at least {r.threshold:g}: {r.what}." for r in DEFAULT_RULES
        },
        left_out=sum(kept_item.dropped is not None for kept_item in done.memes) - len(dropped),
    )
