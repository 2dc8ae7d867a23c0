"""Printed text: classic overlay captions, white bars, speech and thought bubbles, labels.

Each function fits its text: it breaks lines and shrinks until the text lies inside its space.
Chinese breaks anywhere (not before closing marks), English at spaces; a line
break in the text is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from PIL import ImageFont

from sample_data.draw.canvas import INK, SAMPLING, Canvas, Point, Printed, rounded

FONTS = Path(__file__).resolve().parent.parent / "fonts"
LOUD, ROUND, CHINESE = "Anton-Regular.ttf", "Baloo2-Bold.ttf", "NotoSansSC-Black-subset.otf"
Edge = Literal["top", "bottom"]
Box = tuple[float, float, float, float]
_NO_START = "，。！？、；：）》】”’…"


def is_chinese(text: str) -> bool:
    """Whether a text has any Chinese character."""
    return any("\u4e00" <= c <= "\u9fff" for c in text)


@lru_cache(maxsize=256)
def _font(name: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(FONTS / name), size, layout_engine=ImageFont.Layout.BASIC)


def _pieces(line: str) -> list[str]:
    """The smallest parts between which a line may break."""
    if not is_chinese(line):
        words = line.split(" ")
        return [w + " " for w in words[:-1]] + words[-1:]
    parts: list[str] = []
    for c in line:
        latin = c.isascii() and c != " "
        glue = c in _NO_START or (latin and parts and parts[-1][-1].isascii() and parts[-1] != " ")
        if parts and glue:
            parts[-1] += c
        else:
            parts.append(c)
    return parts


def _wrap(text: str, font: ImageFont.FreeTypeFont, width: float) -> list[str]:
    lines: list[str] = []
    for given in text.split("\n"):
        line = ""
        for piece in _pieces(given):
            if line and font.getlength((line + piece).rstrip()) > width:
                lines.append(line.rstrip())
                line = ""
            line += piece
        lines.append(line.rstrip())
    return lines


def _balance(text: str, font: ImageFont.FreeTypeFont, width: float) -> list[str]:
    """Break into as few lines as needed, all about equally long."""
    best = _wrap(text, font, width)
    narrow = width
    while narrow > width * 0.4:
        narrow *= 0.94
        lines = _wrap(text, font, narrow)
        if len(lines) > len(best) or max(map(font.getlength, lines)) > narrow:
            break
        best = lines
    return best


def _fit(
    text: str, name: str, space: Point, sizes: tuple[int, int]
) -> tuple[ImageFont.FreeTypeFont, list[str], float]:
    """The largest size at which the text fits; the font, the lines and the line height."""
    width, height = space[0] * SAMPLING, space[1] * SAMPLING
    for size in range(sizes[1], sizes[0] - 1, -1):
        font = _font(name, size * SAMPLING)
        pitch = size * SAMPLING * (1.16 if name != ROUND else 1.06)
        lines = _balance(text, font, width)
        if max(map(font.getlength, lines)) <= width and pitch * len(lines) <= height:
            return font, lines, pitch
    raise ValueError(f"text does not fit at {sizes[0]} px: {text!r}")


@dataclass(frozen=True, slots=True)
class Look:
    """How a text is set: font, colours, outline width, smallest and largest size, alignment."""

    font: str = ROUND
    colour: str = INK
    outline: str = INK
    stroke: float = 0
    sizes: tuple[int, int] = (16, 40)
    stick: Literal["top", "middle", "bottom"] = "middle"


PLAIN = Look()


def write(canvas: Canvas, text: str, box: Box, look: Look = PLAIN) -> None:
    """Fit a text into a box (x0, y0, x1, y1), centred, without noting it as a caption."""
    name = CHINESE if is_chinese(text) else look.font
    x0, y0, x1, y1 = box
    font, lines, pitch = _fit(text, name, (x1 - x0, y1 - y0), look.sizes)
    free = (y1 - y0) * SAMPLING - pitch * len(lines)
    share = {"top": 0.0, "middle": 0.5, "bottom": 1.0}[look.stick]
    y = y0 * SAMPLING + free * share + pitch / 2
    for line in lines:
        canvas.brush.text(
            ((x0 + x1) / 2 * SAMPLING, y),
            line,
            font=font,
            fill=look.colour,
            anchor="mm",
            stroke_width=round(look.stroke * SAMPLING),
            stroke_fill=look.outline,
        )
        y += pitch


def overlay(canvas: Canvas, text: str, where: Edge = "bottom", share: float = 0.3) -> None:
    """A classic caption: bold white capitals with a dark outline at the "top" or "bottom".

    ``share`` is the part of the height it may take.
    """
    margin = 20
    top = (margin, margin, canvas.width - margin, canvas.height * share)
    low = (margin, canvas.height * (1 - share), canvas.width - margin, canvas.height - margin)
    largest = round(canvas.width / (9.5 if is_chinese(text) else 9))
    shown = text if is_chinese(text) else text.upper()
    look = Look(
        font=LOUD,
        colour="#ffffff",
        outline="#000000",
        stroke=max(3.0, canvas.width / 150),
        sizes=(18, largest),
        stick=where,
    )
    write(canvas, shown, top if where == "top" else low, look)
    canvas.printed.append(Printed(text.replace("\n", " "), "overlay"))


def add_bar(canvas: Canvas, text: str, height: int = 120, where: Edge = "top") -> Canvas:
    """A new, taller canvas with a white caption bar above (or below) the picture."""
    whole = Canvas(canvas.width, canvas.height + height)
    top = where == "top"
    whole.image.paste(canvas.image, (0, height * SAMPLING if top else 0))
    start = 0 if top else canvas.height
    box = (28.0, start + 12.0, whole.width - 28.0, start + height - 12.0)
    write(whole, text, box, Look(colour="#15121f", sizes=(20, 46)))
    note = Printed(text.replace("\n", " "), "bar")
    whole.printed = [note, *canvas.printed] if top else [*canvas.printed, note]
    whole.panels = canvas.panels
    return whole


def bubble(canvas: Canvas, text: str, box: Box, tail: Point, colour: str = "#ffffff") -> None:
    """A speech bubble filling ``box`` with its tail pointing at ``tail``."""
    x0, y0, x1, y1 = box
    pen = canvas.pen
    middle = min(max(tail[0], x0 + 50), x1 - 50)
    edge = y1 - 3 if tail[1] > y1 else y0 + 3
    foot = [(middle - 20, edge), tail, (middle + 20, edge)]
    shape = rounded((x0, y0), (x1, y1), 30)
    pen.polygon(shape, colour)
    pen.polygon(foot, colour)
    # The inside again, short of the outline: it opens the bubble towards its tail.
    pen.polygon(rounded((x0 + 2, y0 + 2), (x1 - 2, y1 - 2), 28), colour, line=None)
    write(canvas, text, (x0 + 16, y0 + 8, x1 - 16, y1 - 8), Look(sizes=(15, 44)))
    canvas.printed.append(Printed(text.replace("\n", " "), "bubble"))


def thought(canvas: Canvas, text: str, box: Box, tail: Point) -> None:
    """A thought bubble: a rounded cloud with three discs towards ``tail``."""
    x0, y0, x1, y1 = box
    pen = canvas.pen
    start = ((x0 + x1) / 2, y1 if tail[1] > y1 else y0)
    for step, radius in ((0.35, 15), (0.62, 10), (0.85, 6)):
        spot = (start[0] + (tail[0] - start[0]) * step, start[1] + (tail[1] - start[1]) * step)
        pen.oval(spot, (radius, radius), "#ffffff")
    pen.box((x0, y0), (x1, y1), "#ffffff", 46)
    write(canvas, text, (x0 + 24, y0 + 10, x1 - 24, y1 - 10), Look(sizes=(15, 44)))
    canvas.printed.append(Printed(text.replace("\n", " "), "bubble"))


def label(canvas: Canvas, text: str, box: Box, colour: str = "#ffffff") -> None:
    """A label on a thing: outlined text that fits a box, as in object-labelling memes."""
    outline = "#000000" if colour != INK else "#ffffff"
    write(canvas, text, box, Look(colour=colour, outline=outline, stroke=3.5, sizes=(15, 40)))
    canvas.printed.append(Printed(text.replace("\n", " "), "label"))


def sign(canvas: Canvas, text: str, box: Box, colour: str = "#fff7dc") -> None:
    """A board or note with dark text on it: a door sign, a sticky note, a screen."""
    x0, y0, x1, y1 = box
    canvas.pen.box((x0, y0), (x1, y1), colour, 10)
    write(canvas, text, (x0 + 10, y0 + 6, x1 - 10, y1 - 6), Look(sizes=(13, 40)))
    canvas.printed.append(Printed(text.replace("\n", " "), "label"))
