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

from PIL import Image, ImageOps
from pydantic import Field

from memantics.core.data import read_toml, toml_beside
from memantics.core.errors import DataError, InputError
from memantics.core.lines import TextLine
from memantics.core.records import Closed
from memantics.understanding.vision import page as pages
from memantics.understanding.vision.regions import PixelBox

PairKind = Literal["target", "polarity", "negation", "quotation", "counter-speech", "confounder",
                   "panels", "spelling", "emoji", "spacing", "control"]  # fmt: skip
PAIR_KINDS: tuple[PairKind, ...] = get_args(PairKind)
# Kinds of difference that must not change the label.
SAME: frozenset[PairKind] = frozenset({"spelling", "emoji", "spacing", "control"})
_CONTROL: PairKind = "control"  # both texts are harmless
CaptionLanguage = Literal["en", "zh"]
ReadImage = Callable[[Image.Image], Sequence[TextLine]]
DrawCaption = Callable[[Image.Image, pages.LetteredCaption, str], tuple[Image.Image, PixelBox]]
_ALIKE = 0.1  # accepted size difference of two panels
_TRACE = 3  # letters of an old caption that OCR must not read after erasing
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
        if self.kind == _CONTROL:
            return "harmless", "harmless"
        return "harmful", "harmful" if self.kind in SAME else "harmless"


class _PairSheet(Closed):
    kinds: dict[PairKind, str]
    words: dict[CaptionLanguage, PairWords]
    template: tuple[PairTemplate, ...]


class _PairWordsFile(Closed):
    words: dict[CaptionLanguage, PairWords]


def read_templates() -> tuple[PairTemplate, ...]:
    """Return the templates of the package, 42 per language."""
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
    """Return ``count`` pairs: all templates in turn, each with the next words of the lists.

    >>> pairs = fill_templates("en", read_words()["en"], 61)
    >>> pairs[0].first, pairs[42].first, len({(pair.first, pair.second) for pair in pairs})
    ('there is nothing as bad as women', 'there is nothing as bad as immigrants', 61)
    """
    known = [template for template in read_templates() if template.language == language]
    templates = _take_turns([one for one in known if one.kind != "emoji" or words.pictured])
    turns = enumerate(islice(cycle(templates), count))
    size = len(templates)
    return [_fill(template, words, number % size + number // size) for number, template in turns]


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
    """Fill a template; after each turn through the groups, a group gets another insult."""
    shifted = turn + turn // len(words.groups)
    lists = {
        "group": words.groups,
        "neutral": words.neutrals,
        "insult": words.insults,
        "spelled": words.spelled,
        "parted": words.parted,
        "pictured": words.pictured or words.insults,
    }
    chosen = {
        name: listed[(turn if name == "group" else shifted) % len(listed)]
        for name, listed in lists.items()
    }
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
    """Erase the captions of a meme; raise if it has none, or if some of its letters remain."""
    page = pages.read_page(image, read(image))
    if not page.captions:
        raise InputError(
            "the meme has no caption that can be replaced", hint="give memes with text"
        )
    clean = pages.erase_captions(image, page.captions)
    if mark := find_old_mark(clean, page.captions, read):
        raise InputError(
            f"letters of its old caption remain after erasing it: {mark!r}",
            hint="give memes with captions on a plain background",
        )
    return PairCanvas(clean, max(page.captions, key=_measure_area), _find_panels(page))


def find_old_mark(
    clean: Image.Image, captions: Sequence[pages.LetteredCaption], read: ReadImage
) -> str:
    """Return letters of old captions that OCR still reads in an erased image; empty if none.

    The contrast of each erased zone is stretched before OCR, which shows pale traces.
    """
    for caption in captions:
        zone = ImageOps.autocontrast(clean.crop(caption.ink.zone), cutoff=1)
        said, old = fold("".join(line.text for line in read(zone))), fold(caption.text)
        match = SequenceMatcher(None, old, said, autojunk=False)
        block = match.find_longest_match()
        if block.size and block.size >= min(_TRACE, len(old)):
            return old[block.a : block.a + block.size]
    return ""


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
    exchanged. Raises InputError if a text does not fit, or if its letters would be clipped.
    """
    best: tuple[list[Image.Image], list[float]] = ([], [])
    fault: InputError | None = None
    for draw in (pages.set_caption, pages.set_on_box):
        try:
            if "\n" in texts[0]:
                drawn = _draw_panels(canvas, texts[0].split("\n"), draw)
            else:
                drawn = [_set(canvas.image, canvas.caption, text, draw) for text in texts]
        except InputError as error:
            fault = error
            continue
        shares = [
            measure_recall(text, read(image)) for text, image in zip(texts, drawn, strict=True)
        ]
        if not best[1] or min(shares) > min(best[1]):
            best = drawn, shares
        if min(best[1]) >= CLEAR:
            break
    if not best[0] and fault is not None:
        raise fault
    return best


def _set(
    image: Image.Image, caption: pages.LetteredCaption, text: str, draw: DrawCaption
) -> Image.Image:
    """Draw a text; raise if its ink reaches the edge of its zone, beyond which it is cut off."""
    drawn, box = draw(image, caption, text)
    if is_clipped(box, caption.ink.zone):
        raise InputError(
            f"the text {text!r} would be clipped at the edge of the caption",
            hint="give memes with more room for the caption",
        )
    return drawn


def is_clipped(box: PixelBox, zone: PixelBox) -> bool:
    """Whether an ink box reaches the edge of the zone in which it is drawn.

    >>> is_clipped((1, 1, 9, 9), (0, 0, 10, 10)), is_clipped((1, 1, 10, 9), (0, 0, 10, 10))
    (False, True)
    """
    return box[0] <= zone[0] or box[1] <= zone[1] or box[2] >= zone[2] or box[3] >= zone[3]


def _draw_panels(canvas: PairCanvas, lines: Sequence[str], draw: DrawCaption) -> list[Image.Image]:
    """Draw one line per panel, or on two copies of the image, in both orders."""
    if not canvas.panels:
        halves = [_set(canvas.image, canvas.caption, line, draw) for line in lines]
        return [_stack(halves), _stack(halves[::-1])]
    first = canvas.image
    for (_, caption), line in zip(canvas.panels, lines, strict=True):
        first = _set(first, caption, line, draw)
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
