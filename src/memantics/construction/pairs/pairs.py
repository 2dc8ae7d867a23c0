"""Minimal pairs: templates filled from word lists, drawn in the position and style of a caption.

Each drawn text is read back by OCR.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from itertools import cycle, islice
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from PIL import Image
from pydantic import Field

from memantics.core.data import read_toml, toml_beside
from memantics.core.errors import DataError, InputError
from memantics.core.lines import TextLine
from memantics.core.records import Closed
from memantics.understanding.vision import page as pages
from memantics.understanding.vision.regions import PixelBox

PairKind = Literal["target", "polarity", "negation", "quotation", "counter-speech", "confounder",
                   "panels", "spelling", "emoji", "spacing"]  # fmt: skip
PAIR_KINDS: tuple[PairKind, ...] = get_args(PairKind)
# Kinds of difference that must not change the label.
SAME: frozenset[PairKind] = frozenset({"spelling", "emoji", "spacing"})
CaptionLanguage = Literal["en", "zh"]
ReadImage = Callable[[Image.Image], Sequence[TextLine]]
DrawCaption = Callable[[Image.Image, pages.LetteredCaption, str], tuple[Image.Image, PixelBox]]
_ALIKE = 0.1  # accepted size difference of two panels
CLEAR = 0.9  # proportion of letters read back below which the text is set on a background box


class PairWords(Closed):
    """Hold words that fill templates; the last three fields are obfuscated insults.

    ``pictured`` has emoji in place of letters or sounds; without it, no such pair is made.
    """

    groups: tuple[str, ...] = Field(min_length=1)
    neutrals: tuple[str, ...] = Field(min_length=1)
    insults: tuple[str, ...] = Field(min_length=1)
    spelled: tuple[str, ...] = Field(min_length=1)
    parted: tuple[str, ...] = Field(min_length=1)
    pictured: tuple[str, ...] = ()


class PairTemplate(Closed):
    """Define two texts that differ in one thing; with ``panels``, one line per panel."""

    id: str
    language: CaptionLanguage
    kind: PairKind
    first: str
    second: str


class PairTexts(Closed):
    """Store a filled template: both texts, and whether each is harmful."""

    template: str
    language: CaptionLanguage
    kind: PairKind
    first: str
    second: str

    @property
    def labels(self) -> tuple[str, str]:
        """The required labels of both texts."""
        return "harmful", "harmful" if self.kind in SAME else "harmless"


class _PairSheet(Closed):
    kinds: dict[PairKind, str]
    words: dict[CaptionLanguage, PairWords]
    template: tuple[PairTemplate, ...]


class _PairWordsFile(Closed):
    words: dict[CaptionLanguage, PairWords]


def read_templates() -> tuple[PairTemplate, ...]:
    """Return the templates of the package, 39 per language."""
    return _read_sheet().template


def read_meanings() -> dict[PairKind, str]:
    """Return the difference between the two sides of a pair, by kind."""
    return _read_sheet().kinds


def _read_sheet() -> _PairSheet:
    return _PairSheet.model_validate(toml_beside(__file__, "templates.toml"))


def read_words(path: Path | None = None) -> dict[CaptionLanguage, PairWords]:
    """Return word lists by language: the package's mild words, or those of a user's TOML file."""
    if path is None:
        return _read_sheet().words
    form, see = "the word file is not UTF-8 TOML", "see docs/how-to/audit-a-benchmark.md"
    found = read_toml(path, _PairWordsFile, form, see)
    for language, words in found.words.items():
        others = (words.spelled, words.parted, words.pictured or words.parted)
        if any(len(listed) != len(words.insults) for listed in others):
            fault = "insults, spelled, parted and pictured must have the same number of entries"
            raise DataError(path, f"{language}: {fault}")
    return found.words


def fill_templates(language: CaptionLanguage, words: PairWords, count: int) -> list[PairTexts]:
    """Return ``number`` pairs: all templates in turn, then again with the next words.

    >>> pairs = fill_templates("en", read_words()["en"], 61)
    >>> pairs[0].first, pairs[39].first, len({(pair.first, pair.second) for pair in pairs})
    ('women are annoying', 'immigrants are the worst', 61)
    """
    known = [template for template in read_templates() if template.language == language]
    templates = _take_turns([one for one in known if one.kind != "emoji" or words.pictured])
    turns = enumerate(islice(cycle(templates), count))
    return [_fill(template, words, number // len(templates)) for number, template in turns]


def _take_turns(templates: Sequence[PairTemplate]) -> list[PairTemplate]:
    """Alternate kinds of difference, so that a small number of pairs covers all of them."""
    seen: Counter[str] = Counter()
    ranks = []
    for template in templates:
        ranks.append((seen[template.kind], PAIR_KINDS.index(template.kind)))
        seen[template.kind] += 1
    order = sorted(range(len(templates)), key=lambda place: ranks[place])
    return [templates[place] for place in order]


def _fill(template: PairTemplate, words: PairWords, turn: int) -> PairTexts:
    lists = {
        "group": words.groups,
        "neutral": words.neutrals,
        "insult": words.insults,
        "spelled": words.spelled,
        "parted": words.parted,
        "pictured": words.pictured or words.insults,
    }
    chosen = {name: listed[turn % len(listed)] for name, listed in lists.items()}
    return PairTexts(
        template=template.id,
        language=template.language,
        kind=template.kind,
        first=template.first.format(**chosen),
        second=template.second.format(**chosen),
    )


class PairCanvas(NamedTuple):
    """Store a meme without its captions, and the caption whose position and style are reused.

    ``panels`` are two panels of similar size with one caption each: their boxes and captions.
    """

    image: Image.Image
    caption: pages.LetteredCaption
    panels: tuple[tuple[PixelBox, pages.LetteredCaption], ...] = ()


def open_canvas(image: Image.Image, read: ReadImage) -> PairCanvas:
    """Erase the captions of a meme; raise if it has none."""
    page = pages.read_page(image, read(image))
    if not page.captions:
        raise InputError("it has no caption that can be replaced", hint="give memes with text")
    clean = pages.erase_captions(image, page.captions)
    return PairCanvas(clean, max(page.captions, key=_measure_area), _find_panels(page))


def _measure_area(caption: pages.LetteredCaption) -> int:
    left, top, right, bottom = caption.ink.zone
    return (right - left) * (bottom - top)


def _find_panels(page: pages.MemeStructure) -> tuple[tuple[PixelBox, pages.LetteredCaption], ...]:
    """Return the panels of a two-panel meme with their largest captions."""
    wide, high = page.size
    found = []
    for number, panel in enumerate(page.panels):
        box = (panel.left * wide, panel.top * high, panel.right * wide, panel.bottom * high)
        left, top, right, bottom = map(round, box)
        inside = [
            caption
            for caption in page.captions
            if caption.block.panel == number
            and left <= caption.ink.zone[0] < caption.ink.zone[2] <= right
            and top <= caption.ink.zone[1] < caption.ink.zone[3] <= bottom
        ]
        if inside:
            found.append(((left, top, right, bottom), max(inside, key=_measure_area)))
    sizes = [(right - left, bottom - top) for (left, top, right, bottom), _ in found]
    alike = len(found) == len(page.panels) == 2 and all(
        abs(one - other) <= _ALIKE * one for one, other in zip(*sizes, strict=True)
    )
    return tuple(found) if alike else ()


def draw_pair(
    canvas: PairCanvas, texts: tuple[str, str], read: ReadImage
) -> tuple[list[Image.Image], list[float]]:
    """Draw both texts on the canvas; return the images and the proportion of each read back.

    If plain letters cannot be read back, both texts get a background box, so that only the words
    differ. Texts of two lines fill two panels; the second meme is the first with its panels
    exchanged.
    """
    best: tuple[list[Image.Image], list[float]] = ([], [])
    for draw in (pages.set_caption, pages.set_on_box):
        if "\n" in texts[0]:
            drawn = _draw_panels(canvas, texts[0].split("\n"), draw)
        else:
            drawn = [draw(canvas.image, canvas.caption, text)[0] for text in texts]
        shares = [
            measure_recall(text, read(image)) for text, image in zip(texts, drawn, strict=True)
        ]
        if not best[1] or min(shares) > min(best[1]):
            best = drawn, shares
        if min(best[1]) >= CLEAR:
            break
    return best


def _draw_panels(canvas: PairCanvas, lines: Sequence[str], draw: DrawCaption) -> list[Image.Image]:
    """Draw one line per panel, or on two copies of the image, in both orders."""
    if not canvas.panels:
        halves = [draw(canvas.image, canvas.caption, line)[0] for line in lines]
        return [_stack(halves), _stack(halves[::-1])]
    first = canvas.image
    for (_, caption), line in zip(canvas.panels, lines, strict=True):
        first = draw(first, caption, line)[0]
    second = first.copy()
    boxes = [box for box, _ in canvas.panels]
    for box, other in zip(boxes, boxes[::-1], strict=True):
        size = (box[2] - box[0], box[3] - box[1])
        second.paste(first.crop(other).resize(size), box[:2])
    return [first, second]


def _stack(panels: Sequence[Image.Image]) -> Image.Image:
    wide, high = panels[0].size
    gap = max(4, high // 40)
    sheet = Image.new("RGB", (wide, 2 * high + gap), "white")
    for place, panel in enumerate(panels):
        sheet.paste(panel, (0, place * (high + gap)))
    return sheet


def measure_recall(text: str, lines: Sequence[TextLine]) -> float:
    """Return the proportion of a text's letters that OCR read, in order.

    Punctuation, emoji and case do not count.

    >>> measure_recall("So am I!", ())
    0.0
    """
    wanted, said = list(map(fold, text.split("\n"))), fold("".join(line.text for line in lines))
    if not any(wanted):
        return 1.0
    matches = [SequenceMatcher(None, line, said, autojunk=False) for line in wanted]
    found = sum(block.size for match in matches for block in match.get_matching_blocks())
    return found / sum(map(len, wanted))


def fold(text: str) -> str:
    """Return only letters and digits of a text, in lower case.

    >>> fold("Wet socks, AGAIN")
    'wetsocksagain'
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(sign for sign in plain if sign.isalnum())
