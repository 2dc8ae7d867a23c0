"""The start page of ``memantics demo``: memes, puns, kinder versions, benchmarks."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from memantics.core.journal import write_text
from memantics.core.lines import TextLine
from memantics.detector.explanation import Explanation
from memantics.knowledge.drawing import draw, draw_narrow, read_style
from memantics.knowledge.records import Knowledge
from memantics.phonetics.reading import Heard
from memantics.report.kit import fill_page
from memantics.report.pages.detector import colour_letters
from memantics.report.standings import Standings
from memantics.report.thumbnails import Thumbnail, make_thumbnail

# The words of the start page in one language, and our English sentences said in it.

Language = Literal["en", "zh"]
_CERTAIN = 0.99


class TourWords(NamedTuple):
    """Texts by key (``t``), translations of our sentences, and patterns of faults of tables."""

    language: Language
    t: dict[str, Markup]
    said: dict[str, str]
    faults: tuple[tuple[re.Pattern[str], str], ...]

    def say(self, text: str) -> str:
        """A sentence of ours in this language; English where there is no translation."""
        return self.said.get(text, text) if self.language == "zh" else text

    def sure(self, confidence: float) -> str:
        """A probability in words that never say 100 %."""
        if confidence > _CERTAIN:
            return self.t["over"]
        return f"{confidence * 100:.0f} %"

    def fault(self, reason: str) -> str:
        """Why a printed figure cannot be true, in plain words."""
        for pattern, told in self.faults:
            if found := pattern.fullmatch(reason):
                return told.format(*(self.say(part.replace("_", " ")) for part in found.groups()))
        return reason

    def tell_faults(self, checked: int, certain: int, more: int) -> str:
        """How many rows of a table cannot be true, and how many more with the stated sizes."""
        told = self.t["faulty"].format(certain=certain, n=checked)
        gap = " " if self.language == "en" else ""
        return told + gap + self.t["faulty_stated"].format(more) if more else told

    def standing(self, board: Standings) -> Markup:
        """How many systems of a table are above its trivial baseline, and how that was judged."""
        above = board.count("above")
        return self.t["all_above" if above == len(board.rows) else "some_above"].format(
            n=len(board.rows),
            above=above,
            level=board.count("level"),
            below=board.count("below"),
            name=self.say(board.trivial.name),
            value=f"{board.trivial.value:.3f}",
            basis=self.t["by_interval" if board.by_interval else "by_figure"],
        )


def read_words(language: Language) -> TourWords:
    """The words of one language, from ``tour.toml``."""
    source = Path(__file__).with_name("tour.toml")
    read = tomllib.loads(source.read_text(encoding="utf-8"))
    said, faults = read.pop("said"), read.pop("fault")
    return TourWords(
        language,
        {key: Markup(texts[language]) for key, texts in read.items()},  # noqa: S704 - ours
        said,
        tuple((re.compile(one["pattern"]), one[language]) for one in faults),
    )


_SIDE = 480
_NAMES = {"en": "English", "zh": "中文"}
_OTHER: dict[Language, Language] = {"en": "zh", "zh": "en"}


@dataclass(frozen=True, slots=True)
class TourMeme:
    """One meme taken apart; ``why`` and ``sound`` are what this machine's parts say.

    ``gloss`` and ``background`` tell in English what a Chinese caption says and plays on;
    ``printed`` are its lines of text with their roles, in an image of that ``size``.
    """

    image: Path
    language: str
    text: str
    read: str
    meaning: str
    intents: tuple[str, ...]
    harm: str
    knowledge: Knowledge
    gloss: str = ""
    background: str = ""
    sound: Heard | None = None
    why: Explanation | None = None
    printed: tuple[TextLine, ...] = ()
    size: tuple[int, int] = (0, 0)

    @property
    def beside(self) -> list[str]:
        """Text of the picture that was not taken for its caption."""
        others = [line.text for line in self.printed if line.role != "caption"]
        return [text for text in others if any(map(str.isalnum, text))]

    @property
    def picture(self) -> Thumbnail:
        """A copy small enough for the page."""
        return make_thumbnail(self.image, _SIDE)

    @property
    def wide(self) -> Markup:
        """The graph for screens."""
        return draw(self.knowledge, linked=False)

    @property
    def narrow(self) -> Markup:
        """The graph for phones."""
        return draw_narrow(self.knowledge, linked=False)

    @property
    def misread(self) -> bool:
        """Whether OCR read other words than are printed; capitals, breaks and order aside."""
        said = " ".join((self.read, *self.beside))
        return bool(self.read) and sorted(said.casefold().split()) != sorted(
            self.text.casefold().split()
        )

    @property
    def letters(self) -> list[tuple[str, str, str]]:
        """The characters of its text, coloured by what they did to the verdict."""
        return colour_letters(self.why)[0][1] if self.why else []


@dataclass(frozen=True, slots=True)
class TourPun:
    """A caption read aloud, what was meant (in Chinese and English), and whether it was found."""

    image: Path
    heard: Heard
    intended: str
    note: str
    gloss: str = ""
    background: str = ""

    @property
    def found(self) -> bool:
        """Whether the engine gives the reading that we had in mind as the one that is meant."""
        return self.heard.meant is not None and self.heard.meant.text == self.intended

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
class TableFault:
    """A printed row that cannot be true: ``certain`` whatever the numbers of items are."""

    source: str
    system: str
    reasons: tuple[str, ...]
    certain: bool


@dataclass(frozen=True, slots=True)
class TourTable:
    """What arithmetic says of the tables of one paper; the plainest fault comes first."""

    title: str
    paper: str
    checked: int
    faults: tuple[TableFault, ...] = ()

    @property
    def certain(self) -> int:
        """How many rows cannot be true whatever the numbers of items are."""
        return sum(fault.certain for fault in self.faults)

    @property
    def more(self) -> int:
        """How many more cannot be true with the numbers of items that the paper states."""
        return len(self.faults) - self.certain


@dataclass(frozen=True, slots=True)
class NextStep:
    """A command to go on with, its guide, and the extra of the package that it needs."""

    goal: str
    chinese: str
    command: str
    guide: str
    extra: str = ""


@dataclass(frozen=True, slots=True)
class TourContent:
    """Everything on the page."""

    memes: Sequence[TourMeme]
    puns: Sequence[TourPun]
    pairs: Sequence[TourPair]
    tables: Sequence[TourTable]
    standings: Sequence[Standings]
    steps: Sequence[NextStep]
    report: str = ""
    highlights: Sequence[str] = field(default_factory=tuple)


def write_tour(content: TourContent, out: Path) -> None:
    """Write the start page, and beside it the same page in Chinese, each in one step."""
    styles = ("page.css", read_style(), "detector.css", "tour.css")
    pages: dict[Language, Path] = {"en": out, "zh": out.with_suffix(f".zh{out.suffix}")}
    for language, other in _OTHER.items():
        words = read_words(language)
        page = fill_page(
            "tour.html",
            styles,
            tour=content,
            memes=put_first(content.memes, language),
            language=language,
            other={"page": pages[other].name, "language": other, "name": _NAMES[other]},
            guides=find_guides(content.steps, out.parent),
            words=words,
            t=words.t,
        )
        write_text(pages[language], page)


def put_first(memes: Sequence[TourMeme], language: Language) -> list[TourMeme]:
    """Of each two memes, the one in the reader's language first."""
    placed = sorted(enumerate(memes), key=lambda one: (one[0] // 2, one[1].language != language))
    return [meme for _, meme in placed]


def find_guides(steps: Sequence[NextStep], folder: Path) -> dict[str, str]:
    """Addresses of guides in the folder ``docs`` beside the page's own; none where it is not."""
    return {
        step.guide: f"../docs/{quote(step.guide)}"
        for step in steps
        if (folder.resolve().parent / "docs" / step.guide).is_file()
    }
