"""Minimal pairs on pictures: one caption set anew in its place and look, and read back."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from PIL import Image

from memantics.core.errors import InputError
from memantics.core.lines import TextLine
from memantics.vision import page as pages

Read = Callable[[Image.Image], Sequence[TextLine]]
CLEAR = 0.9  # of the letters: less of them read back, and the text is set on a plate


@dataclass(frozen=True, slots=True)
class PairCanvas:
    """A meme without its captions, and the caption whose place and look new texts take."""

    image: Image.Image
    caption: pages.LetteredCaption


def open_canvas(image: Image.Image, read: Read) -> PairCanvas:
    """Take the captions off a meme; one without any is refused."""
    page = pages.read_page(image, read(image))
    if not page.captions:
        raise InputError("it has no caption that could be set anew", hint="give memes with text")

    def area(caption: pages.LetteredCaption) -> int:
        left, top, right, bottom = caption.ink.zone
        return (right - left) * (bottom - top)

    return PairCanvas(pages.erase_captions(image, page.captions), max(page.captions, key=area))


def draw_pair(
    canvas: PairCanvas, texts: tuple[str, str], read: Read
) -> tuple[list[Image.Image], list[float]]:
    """Both texts on the canvas, and which share of each is read back.

    Where letters alone do not read, both stand on plates: a pair differs in its words alone.
    """
    best: tuple[list[Image.Image], list[float]] = ([], [])
    for draw in (pages.set_caption, pages.set_on_plate):
        drawn = [draw(canvas.image, canvas.caption, text)[0] for text in texts]
        shares = [
            measure_recall(text, read(image)) for text, image in zip(texts, drawn, strict=True)
        ]
        if not best[1] or min(shares) > min(best[1]):
            best = drawn, shares
        if min(best[1]) >= CLEAR:
            break
    return best


def measure_recall(text: str, lines: Sequence[TextLine]) -> float:
    """The share of a text's letters that was read, in order; marks and case do not count.

    >>> measure_recall("So am I!", ())
    0.0
    """
    wanted, said = fold(text), fold("".join(line.text for line in lines))
    if not wanted:
        return 1.0
    match = SequenceMatcher(None, wanted, said, autojunk=False)
    return sum(block.size for block in match.get_matching_blocks()) / len(wanted)


def fold(text: str) -> str:
    """Letters and digits of a text alone, in lower case.

    >>> fold("Wet socks, AGAIN")
    'wetsocksagain'
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(sign for sign in plain if sign.isalnum())
