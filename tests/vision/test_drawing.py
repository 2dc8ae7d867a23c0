"""Measures of a drawn caption, on pairs with known faults."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageFilter

from memantics.understanding.reappraisal.chain import GHOST, OUTLINED, SMEARED
from memantics.understanding.vision.drawing import (
    compare_ghost,
    compare_outlines,
    find_remains,
    is_clipped,
    measure_smear,
)
from memantics.understanding.vision.page import (
    LetteredCaption,
    erase_captions,
    read_page,
    set_caption,
)
from tests.vision.pictures import Print, blank, photo, print_on

TEXT = "MY BOSS CALLS ME"


def draw(*, plain: bool) -> tuple[Image.Image, Image.Image, LetteredCaption]:
    image = blank() if plain else photo()
    lines = print_on(image, Print(TEXT, 240, 180, 44))
    caption = read_page(image, lines).captions[0]
    return image, erase_captions(image, [caption]), caption


@pytest.mark.parametrize("plain", [True, False])
def test_a_good_drawing_passes_and_a_heavy_one_does_not(*, plain: bool) -> None:
    image, plate, caption = draw(plain=plain)
    before, bare = np.asarray(image), np.asarray(plate)
    again = np.asarray(set_caption(plate, caption, TEXT)[0])
    assert compare_outlines(before, again, caption.ink) < OUTLINED
    assert find_remains(bare, caption.ink) == 0
    assert compare_ghost(before, bare, caption.ink) < GHOST
    assert measure_smear(before, bare, caption.ink) < SMEARED
    style = replace(caption.lettering, weight=caption.lettering.weight + 2)
    heavy = np.asarray(set_caption(plate, replace(caption, lettering=style), TEXT)[0])
    assert compare_outlines(before, heavy, caption.ink) > OUTLINED


@pytest.mark.parametrize("plain", [True, False])
def test_grey_remains_are_found(*, plain: bool) -> None:
    image, plate, caption = draw(plain=plain)
    before = np.asarray(image)
    rest = np.asarray(Image.blend(plate, image, 0.15))
    found = find_remains(rest, caption.ink), compare_ghost(before, rest, caption.ink)
    assert (found[0] > 0) == plain
    assert (found[1] > GHOST) != plain


def test_smear_beside_the_letters_is_found() -> None:
    image, plate, caption = draw(plain=False)
    blurred = np.asarray(plate.filter(ImageFilter.GaussianBlur(9)))
    assert measure_smear(np.asarray(image), blurred, caption.ink) > SMEARED


def test_clipped_text_touches_an_edge_that_was_free() -> None:
    size, inside = (100, 50), (10, 10, 90, 40)
    assert not is_clipped((1, 1, 99, 49), inside, size)
    for box in ((0, 10, 90, 40), (10, 0, 90, 40), (10, 10, 100, 40), (10, 10, 90, 50)):
        assert is_clipped(box, inside, size)
        assert not is_clipped(box, box, size)
