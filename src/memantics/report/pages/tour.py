"""The start page of ``memantics demo``: memes, puns, kinder versions, benchmarks."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from memantics.core.finding import Finding
from memantics.core.journal import replace_file
from memantics.detector.explanation import Explanation
from memantics.knowledge.drawing import draw, draw_narrow, read_style
from memantics.knowledge.records import Knowledge
from memantics.phonetics.reading import Heard
from memantics.report.page import fill_page, read_asset
from memantics.report.pages.detector import colour_letters
from memantics.report.standings import Standings
from memantics.report.thumbnails import Thumbnail, make_thumbnail

_SIDE = 480
_NAMES = {"en": "English", "zh": "中文"}


@dataclass(frozen=True, slots=True)
class TourMeme:
    """One meme taken apart; ``why`` and ``sound`` are what this machine's parts say."""

    image: Path
    text: str
    read: str
    meaning: str
    intents: tuple[str, ...]
    harm: str
    knowledge: Knowledge
    sound: Heard | None = None
    why: Explanation | None = None

    @property
    def picture(self) -> Thumbnail:
        """A copy small enough for the page."""
        return make_thumbnail(self.image, _SIDE)

    @property
    def wide(self) -> Markup:
        """The graph for screens."""
        return draw(self.knowledge)

    @property
    def narrow(self) -> Markup:
        """The graph for phones."""
        return draw_narrow(self.knowledge)

    @property
    def letters(self) -> list[tuple[str, str, str]]:
        """The characters of its text, coloured by what they did to the verdict."""
        return colour_letters(self.why)[0][1] if self.why else []


@dataclass(frozen=True, slots=True)
class TourPun:
    """A caption read aloud, what was meant, and whether the engine found it."""

    image: Path
    heard: Heard
    intended: str
    note: str

    @property
    def found(self) -> bool:
        """Whether the reading that we had in mind is the first one."""
        return bool(self.heard.readings) and self.heard.readings[0].text == self.intended

    @property
    def picture(self) -> Thumbnail:
        """A small copy."""
        return make_thumbnail(self.image, _SIDE)


@dataclass(frozen=True, slots=True)
class TourPair:
    """A meme before and after; ``reason`` says why there is no after."""

    image: Path
    before: str
    after: str
    kinder: Path | None
    target: str
    reason: str = ""

    @property
    def pictures(self) -> tuple[Thumbnail, Thumbnail | None]:
        """Both as small copies."""
        after = make_thumbnail(self.kinder, _SIDE) if self.kinder else None
        return make_thumbnail(self.image, _SIDE), after


@dataclass(frozen=True, slots=True)
class NextStep:
    """One command to go on with."""

    goal: str
    chinese: str
    command: str
    guide: str


@dataclass(frozen=True, slots=True)
class TourContent:
    """Everything on the page."""

    memes: Sequence[TourMeme]
    puns: Sequence[TourPun]
    pairs: Sequence[TourPair]
    findings: Sequence[tuple[str, Finding]]
    standings: Sequence[Standings]
    steps: Sequence[NextStep]
    report: str = ""
    highlights: Sequence[str] = field(default_factory=tuple)


def write_tour(content: TourContent, out: Path) -> None:
    """Write the start page, and beside it the same page in Chinese, each in one step."""
    templates = files("memantics.report.pages") / "templates"
    detector, own, template = (
        (templates / name).read_text(encoding="utf-8")
        for name in ("detector.css", "tour.css", "tour.html")
    )
    style = read_asset("page.css") + read_style() + detector + own
    words = tomllib.loads((templates / "tour.toml").read_text(encoding="utf-8"))
    pages = {"en": out, "zh": out.with_suffix(f".zh{out.suffix}")}
    for language, other in (("en", "zh"), ("zh", "en")):
        page = fill_page(
            template,
            (style, ""),
            tour=content,
            language=language,
            other={"page": pages[other].name, "language": other, "name": _NAMES[other]},
            t={key: Markup(texts[language]) for key, texts in words.items()},  # noqa: S704 - ours
        )
        replace_file(pages[language], page.encode("utf-8", "replace"), "page")
