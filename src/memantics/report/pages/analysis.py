"""Analyses as one self-contained page: image, verdicts, and the graph of what a meme means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from markupsafe import Markup

from memantics.build.analysis.records import Findings
from memantics.core.retrieved import BY_MEANING, BY_PICTURE
from memantics.knowledge.cards import make_legend
from memantics.knowledge.drawing import draw, draw_narrow, read_style
from memantics.report.kit import Shown, fill_page
from memantics.report.pages.knowledge import make_entries
from memantics.report.thumbnails import make_thumbnail

_SIDE = 640


Warn = Callable[[Path], str]


def render_page(analyses: Sequence[Findings], warn: Warn = lambda _image: "") -> str:
    """The page as text; ``warn`` gives the content warning of the data that an image is of."""
    return fill_page(
        "analysis.html",
        (read_style(), "knowledge.css", "analysis.css"),
        "analysis.js",
        sheets=[_make_sheet(each, warn(each.meme.image)) for each in analyses],
        by_meaning=BY_MEANING,
        by_picture=BY_PICTURE,
    )


def _make_sheet(findings: Findings, warning: str) -> Shown:
    """One meme on the page."""
    known = findings.knowledge
    entries = tuple(make_entries(known)) if known else ()
    drawn = known if known and known.individuals else None
    return {
        "findings": findings,
        "picture": make_thumbnail(findings.meme.image, _SIDE),
        "blurred": any(harm.harmful and not harm.baseline for harm in findings.verdicts)
        or bool(warning)
        or bool(known and known.of("Toxicity")),
        "warning": warning,
        "wide": draw(drawn) if drawn else Markup(),
        "narrow": draw_narrow(drawn) if drawn else Markup(),
        "legend": make_legend(known) if known else (),
        "entries": entries,
        "unlisted": len(known.individuals) - len(entries) if known else 0,
    }
