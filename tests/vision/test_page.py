"""Captions measured, taken out and set again on drawn memes."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from memantics.core.lines import TextLine
from memantics.core.samples import IMAGES
from memantics.understanding.vision.hashes import compare_pictures, measure_change
from memantics.understanding.vision.page import (
    MemeStructure,
    erase_captions,
    mask_captions,
    mask_pictures,
    read_page,
    restore_ink,
    set_caption,
)
from tests.vision.pictures import (
    ANTON,
    BALOO,
    BLACK,
    REGULAR,
    Print,
    as_jpeg,
    blank,
    photo,
    print_on,
)

TOP = Print("SO THIS IS FINE", 240, 50)
CHINESE = Print("今天也要早起", 240, 310, face=BLACK)


def set_again(image: Image.Image, page: MemeStructure) -> Image.Image:
    made = erase_captions(image, page.captions)
    for caption in page.captions:
        made, _ = set_caption(made, caption, caption.text)
    return made


@pytest.mark.parametrize(
    ("ground", "line"),
    [
        (blank(), TOP),
        (blank(), CHINESE),
        (blank(colour="white"), Print("plain black text", 240, 90, 40, BALOO, "black", "black", 0)),
        (
            blank(colour="#14102a"),
            Print("夜深了还没睡", 240, 200, 44, REGULAR, "#ffe27a", "black", 0),
        ),
        (photo(), TOP),
        (photo(seed=8), CHINESE),
        (photo(seed=5), Print("随便写点什么", 240, 200, 52, REGULAR, "white", "black", 0)),
    ],
    ids=["sky", "chinese", "paper", "night", "photo", "photo-zh", "photo-thin"],
)
def test_colours_are_measured(ground: Image.Image, line: Print) -> None:
    image = ground.copy()
    page = read_page(image, print_on(image, line))
    (caption,) = page.captions
    wanted = Image.new("RGB", (1, 1), line.fill).getpixel((0, 0))
    assert isinstance(wanted, tuple)
    assert max(abs(a - b) for a, b in zip(caption.lettering.fill, wanted, strict=True)) <= 30
    assert (caption.lettering.outline_width > 0) == (line.stroke > 0)
    if line.stroke:
        assert abs(caption.lettering.outline_width - line.stroke) <= 3
        assert caption.lettering.outline == (0, 0, 0)


@pytest.mark.parametrize("face", [ANTON, BALOO])
def test_the_font_is_recognised(face: object) -> None:
    image = blank()
    assert face in (ANTON, BALOO)
    chosen = ANTON if face is ANTON else BALOO
    page = read_page(image, print_on(image, Print("RECOGNISE THIS", 240, 100, 50, chosen)))
    assert page.captions[0].lettering.face == face


@pytest.mark.parametrize("ground", [blank(), photo()], ids=["sky", "photo"])
def test_a_caption_taken_out_leaves_its_ground(ground: Image.Image) -> None:
    image = ground.copy()
    page = read_page(image, print_on(image, TOP))
    bare = erase_captions(image, page.captions)
    left, top, right, bottom = page.captions[0].ink.box
    gap = np.abs(
        np.asarray(bare, np.int16)[top:bottom, left:right]
        - np.asarray(ground, np.int16)[top:bottom, left:right]
    ).max(axis=2)
    assert np.percentile(gap, 95) < 60
    assert gap.mean() < 24  # letters left standing give more than 100


@pytest.mark.parametrize("ground", [blank(), photo(), as_jpeg(photo(seed=4))])
def test_the_round_trip_changes_nothing_outside_of_captions(ground: Image.Image) -> None:
    image = ground.copy()
    page = read_page(image, print_on(image, TOP, CHINESE))
    made = set_again(image, page)
    inside = mask_captions(page.size, page.captions)
    assert measure_change(image, made, ~inside) == 0
    assert measure_change(image, made, inside) < 0.4
    assert compare_pictures(image, made) <= 10


def test_a_new_text_fills_the_old_box() -> None:
    image = blank()
    page = read_page(image, print_on(image, TOP))
    (caption,) = page.captions
    made, box = set_caption(erase_captions(image, page.captions), caption, "so that is kind")
    old = caption.ink.box
    shared = (min(box[2], old[2]) - max(box[0], old[0])) * (
        min(box[3], old[3]) - max(box[1], old[1])
    )
    area = (old[2] - old[0]) * (old[3] - old[1])
    assert shared / area > 0.9
    assert measure_change(image, made, ~mask_captions(page.size, page.captions)) == 0


def test_lost_spaces_are_found_again() -> None:
    image = blank()
    (line,) = print_on(image, Print("WE SHARE THIS PAGE", 240, 100))
    page = read_page(image, [TextLine("WESHARETHISPAGE", line.box, 0.99)])
    assert page.captions[0].text == "WE SHARE THIS PAGE"


@pytest.mark.parametrize("text", ["PRESENTATION", "AWKWARD MANAGER", "Whole minutes"])
def test_no_space_is_put_into_words(text: str) -> None:
    image = blank()
    face = ANTON if text.isupper() else BALOO
    page = read_page(image, print_on(image, Print(text, 240, 100, face=face)))
    assert page.captions[0].text == text


def test_bars_bubbles_and_overlays_are_told_apart() -> None:
    image = photo(480, 480)
    image.paste("white", (0, 0, 480, 80))
    bubble = Image.new("RGB", (200, 70), "white")
    image.paste(bubble, (40, 180))
    lines = print_on(
        image,
        Print("a caption on a bar", 240, 40, 34, BALOO, "black", "black", 0),
        Print("in a bubble", 140, 215, 28, BALOO, "black", "black", 0),
        Print("OVER THE PICTURE", 240, 430, 44),
    )
    page = read_page(image, lines)
    assert [caption.lettering.kind for caption in page.captions] == ["bar", "bubble", "overlay"]
    mask = mask_pictures(image, page)
    assert not mask[40, 20]
    assert not mask[215, 60]
    assert mask[300, 300]


def test_letters_that_stay_are_put_back_on_a_repainted_picture() -> None:
    image = blank()
    page = read_page(image, print_on(image, TOP))
    repainted = Image.new("RGB", image.size, "tomato")
    back = restore_ink(repainted, image, page.captions)
    left, top, right, bottom = page.captions[0].ink.zone
    ink = page.captions[0].ink.mask
    old = np.asarray(image)[top:bottom, left:right][ink]
    assert (np.asarray(back)[top:bottom, left:right][ink] == old).all()
    assert back.getpixel((5, 355)) == (255, 99, 71)


def test_a_page_without_text_has_no_captions() -> None:
    page = read_page(photo(), [])
    assert page.captions == ()
    assert page.language == "en"


def test_a_tiny_picture_is_read() -> None:
    page = read_page(blank(9, 9), [TextLine("ab cd", (0, 0, 9, 9), 0.9)])
    assert len(page.captions) == 1


def test_the_sample_pack_is_shown_as_the_same_picture_every_time() -> None:
    image = Image.open(IMAGES / "en-001.png").convert("RGB")
    lines = [
        TextLine("WELL,THIS", (170, 20, 545, 105), 0.99),
        TextLine("ISAWKWARD", (165, 110, 555, 205), 0.99),
    ]
    one, two = (set_again(image, read_page(image, lines)) for _ in range(2))
    assert one.tobytes() == two.tobytes()
