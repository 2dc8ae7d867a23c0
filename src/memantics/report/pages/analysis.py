"""Analyses as one self-contained page: image, verdicts, and the graph of what a meme means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from memantics.build.analysis.records import Findings
from memantics.core.journal import replace_file
from memantics.core.retrieved import BY_MEANING, BY_PICTURE
from memantics.knowledge.cards import Legend, make_legend
from memantics.knowledge.drawing import draw, draw_narrow, read_style
from memantics.report.page import fill_page
from memantics.report.pages.knowledge import Entry, make_entries
from memantics.report.thumbnails import Thumbnail, make_thumbnail

_SIDE = 640


@dataclass(frozen=True, slots=True)
class Sheet:
    """One meme on the page."""

    findings: Findings
    picture: Thumbnail
    blurred: bool
    warning: str
    wide: Markup
    narrow: Markup
    legend: tuple[Legend, ...]
    entries: tuple[Entry, ...]
    unlisted: int


Warn = Callable[[Path], str]


def write_page(analyses: Sequence[Findings], out: Path, warn: Warn = lambda _image: "") -> None:
    """Write the page in one step."""
    replace_file(out, render_page(analyses, warn).encode("utf-8", "replace"), "page")


def render_page(analyses: Sequence[Findings], warn: Warn = lambda _image: "") -> str:
    """The page as text; ``warn`` gives the content warning of the data that an image is of."""
    templates = files("memantics.report.pages") / "templates"
    knowledge, text, script, template = (
        (templates / name).read_text(encoding="utf-8")
        for name in ("knowledge.css", "analysis.css", "analysis.js", "analysis.html")
    )
    style = read_style() + knowledge + text
    return fill_page(
        template,
        (style, script),
        sheets=[_make_sheet(each, warn(each.meme.image)) for each in analyses],
        by_meaning=BY_MEANING,
        by_picture=BY_PICTURE,
    )


def _make_sheet(findings: Findings, warning: str) -> Sheet:
    known = findings.knowledge
    entries = tuple(make_entries(known)) if known else ()
    return Sheet(
        findings,
        make_thumbnail(findings.meme.image, _SIDE),
        any(harm.harmful and not harm.baseline for harm in findings.verdicts)
        or bool(warning)
        or bool(known and known.of("Toxicity")),
        warning,
        draw(known) if known and known.individuals else Markup(),
        draw_narrow(known) if known and known.individuals else Markup(),
        tuple(make_legend(known)) if known else (),
        entries,
        len(known.individuals) - len(entries) if known else 0,
    )
