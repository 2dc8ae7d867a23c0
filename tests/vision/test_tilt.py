"""Lines that stand askew, letters that hop, and plates: drawn, measured, and read by the OCR."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw

from memantics.core.images import encode_png
from memantics.core.lines import TextLine
from memantics.models.embedded.ocr import RapidReader
from memantics.understanding.vision.hashes import measure_change
from memantics.understanding.vision.page import (
    erase_captions,
    mask_captions,
    read_page,
    set_caption,
    set_on_box,
)
from tests.vision.pictures import BLACK, Print, blank, photo, print_on

SIZE = 52


def print_tilted(
    image: Image.Image, text: str, tilt: float, fill: str = "black", stroke: int = 0
) -> TextLine:
    """Print a tilted line in the middle of a picture; return it as a good OCR would."""
    font = BLACK.at(SIZE)
    left, top, right, bottom = font.getbbox(text, stroke_width=stroke)
    span = (int(right - left) + 8, int(bottom - top) + 8)
    sheet = Image.new("RGBA", span)
    ImageDraw.Draw(sheet).text(
        (4 - left, 4 - top), text, fill, font, stroke_width=stroke, stroke_fill="black"
    )
    turned = sheet.rotate(tilt, Image.Resampling.BICUBIC, expand=True)
    spot = ((image.width - turned.width) // 2, (image.height - turned.height) // 2)
    image.paste(turned, spot, turned)
    box = (*spot, spot[0] + turned.width, spot[1] + turned.height)
    return TextLine(text, box, 0.99, tilt, span)


def read(image: Image.Image) -> TextLine:
    (line,) = RapidReader().read(encode_png(image), "picture").lines
    return line


@pytest.mark.parametrize("tilt", [-15.0, 12.0])
@pytest.mark.parametrize("ground", [blank(colour="white"), photo(seed=8)], ids=["plain", "photo"])
def test_a_tilted_line_stays_tilted(ground: Image.Image, tilt: float) -> None:
    image = ground.copy()
    fill, stroke = ("black", 0) if ground.getpixel((5, 5)) == (255, 255, 255) else ("white", 4)
    line = print_tilted(image, "少来这套", tilt, fill, stroke)
    (caption,) = read_page(image, [line]).captions
    assert caption.ink.tilt == tilt
    assert abs(caption.ink.span[1] - line.span[1]) <= 10
    made, box = set_caption(erase_captions(image, [caption]), caption, "再来一套")
    assert measure_change(image, made, ~mask_captions(image.size, [caption])) == 0
    seen = read(made)
    assert seen.text == "再来一套"
    assert abs(seen.tilt - tilt) <= 4
    middle = [(box[0] + box[2]) / 2 - image.width / 2, (box[1] + box[3]) / 2 - image.height / 2]
    assert max(map(abs, middle)) <= 8


def test_tilted_letters_without_outline_on_a_picture_get_a_plate() -> None:
    image = photo(seed=8)
    line = print_tilted(image, "少来这套", 12.0, "white")
    (caption,) = read_page(image, [line]).captions
    made, _ = set_caption(erase_captions(image, [caption]), caption, "再来一套")
    assert measure_change(image, made, ~mask_captions(image.size, [caption])) == 0
    assert read(made).text == "再来一套"
    plate, _ = set_on_box(erase_captions(image, [caption]), caption, "再来一套")
    assert (np.asarray(plate) == np.asarray(made)).all()


@pytest.mark.parametrize(
    ("tilt", "span", "askew"),
    [
        (3.9, (200, 40), False),
        (4.0, (200, 40), True),
        (-40.0, (200, 40), True),
        (40.1, (200, 40), False),
        (12.0, (59, 40), False),
        (12.0, (60, 40), True),
        (12.0, (0, 0), False),
    ],
)
def test_what_counts_as_tilted(tilt: float, span: tuple[int, int], askew: bool) -> None:
    assert TextLine("x", (0, 0, 200, 80), 1.0, tilt, span).tilted is askew


def test_tilted_lines_are_captions_of_their_own() -> None:
    image = blank(600, 400)
    lines = [
        TextLine("把你们都抱了", (20, 100, 420, 220), 0.99, -8.0, (400, 60)),
        TextLine("全都抱抱", (20, 200, 320, 330), 0.99, 11.0, (300, 60)),
    ]
    assert len(read_page(image, lines).captions) == 2
    straight = [TextLine(line.text, line.box, line.score) for line in lines]
    assert len(read_page(image, straight).captions) == 1


@pytest.mark.parametrize("stroke", [0, 4])
def test_a_plate_has_the_colours_of_the_caption(stroke: int) -> None:
    image = photo(seed=5)
    lines = print_on(image, Print("随便写点什么", 240, 200, 52, BLACK, "white", "black", stroke))
    (caption,) = read_page(image, lines).captions
    made, _ = set_on_box(image, caption, "随便聊点什么")
    left, top, right, bottom = caption.ink.zone
    inside = np.asarray(made)[top:bottom, left:right].reshape(-1, 3)
    colours, counts = np.unique(inside, axis=0, return_counts=True)
    plate = colours[counts.argmax()]
    wanted = caption.lettering.outline if stroke else caption.ink.ground.colour
    assert tuple(plate) == wanted
    assert read(made).text == "随便聊点什么"


def test_letters_that_hop_are_measured_one_by_one() -> None:
    image, level = blank(600, 300, "white"), blank(600, 300, "white")
    pen, font = ImageDraw.Draw(image), BLACK.at(60)
    for place, (sign, up) in enumerate(zip("鸭梨很大", (0, 30, 6, 34), strict=True)):
        pen.text((120 + 90 * place, 120 - up), sign, "black", font)
    box = (115, 95, 475, 200)
    (hopping,) = read_page(image, [TextLine("鸭梨很大", box, 0.99)]).captions
    (line,) = print_on(level, Print("鸭梨很大", 300, 150, 60, BLACK, "black", "black", 0))
    (straight,) = read_page(level, [line]).captions
    assert abs(hopping.lettering.size - straight.lettering.size) < 8
    assert hopping.ink.box[3] - hopping.ink.box[1] > 1.3 * hopping.lettering.size
    assert (hopping.lettering.hops, straight.lettering.hops) == (True, False)
