"""Panels and caption regions on drawn pictures whose layout is known, and on the sample data."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from memantics.core.samples import IMAGES, read_samples
from memantics.understanding.vision.panels import Region, count_panels, find_panels
from memantics.understanding.vision.regions import (
    LayoutCheck,
    join_lines,
    measure_match,
    measure_overlap,
)


def photo(width: int, height: int, seed: int) -> Image.Image:
    """Soft random blobs: what a photograph is to a finder of lines."""
    coarse = np.random.default_rng(seed).integers(0, 255, size=(9, 9, 3), dtype=np.uint8)
    picture = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
    noise = np.random.default_rng(seed + 1).integers(-12, 12, size=(height, width, 3))
    return Image.fromarray(np.clip(np.asarray(picture) + noise, 0, 255).astype(np.uint8))


def grid(rows: int, columns: int, gutter: int, colour: str, bar: int = 0) -> Image.Image:
    """Photographs in a grid, with a white caption bar on top where ``bar`` is its height."""
    width, height = 240, 200
    size = (
        columns * width + (columns - 1) * gutter,
        rows * height + (rows - 1) * gutter + bar,
    )
    page = Image.new("RGB", size, colour)
    if bar:
        page.paste("white", (0, 0, size[0], bar))
        ImageDraw.Draw(page).text((20, bar // 3), "when the layout is the joke", fill="black")
    for row in range(rows):
        for column in range(columns):
            place = (column * (width + gutter), bar + row * (height + gutter))
            page.paste(photo(width, height, 10 * row + column), place)
    return page


def as_jpeg(image: Image.Image, quality: int = 70) -> Image.Image:
    data = io.BytesIO()
    image.save(data, "JPEG", quality=quality)
    return Image.open(io.BytesIO(data.getvalue()))


@pytest.mark.parametrize("colour", ["white", "black"])
@pytest.mark.parametrize("gutter", [4, 12])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (1, 3)])
def test_grids_with_gutters(rows: int, columns: int, gutter: int, colour: str) -> None:
    page = grid(rows, columns, gutter, colour)
    assert count_panels(page) == rows * columns
    assert count_panels(as_jpeg(page)) == rows * columns


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 2), (2, 2)])
def test_a_caption_bar_is_no_panel(rows: int, columns: int) -> None:
    page = grid(rows, columns, 8, "black", bar=70)
    assert count_panels(page) == rows * columns
    assert count_panels(page.transpose(Image.Transpose.FLIP_TOP_BOTTOM)) == rows * columns


def test_panels_that_touch() -> None:
    left, right = Image.new("RGB", (200, 300), "navy"), Image.new("RGB", (200, 300), "gold")
    page = Image.new("RGB", (400, 300))
    page.paste(left, (0, 0))
    page.paste(right, (200, 0))
    ImageDraw.Draw(page).ellipse((60, 100, 140, 200), fill="white")
    assert count_panels(page) == 2


def test_a_horizon_is_no_gutter() -> None:
    page = Image.new("RGB", (400, 400), "skyblue")
    page.paste("green", (0, 260, 400, 400))
    ImageDraw.Draw(page).ellipse((150, 200, 250, 330), fill="brown")
    assert count_panels(page) == 1


def test_a_border_is_no_panel() -> None:
    page = Image.new("RGB", (440, 440), "black")
    page.paste(photo(400, 400, 5), (20, 20))
    assert count_panels(page) == 1


def test_flat_and_tiny_pictures_are_one_panel() -> None:
    for size in ((300, 300), (1, 1), (3, 200), (20, 20)):
        assert count_panels(Image.new("RGB", size, "teal")) == 1


def test_panels_tile_the_picture_in_reading_order() -> None:
    found = find_panels(grid(2, 2, 8, "white"))
    assert [(round(p.left), round(p.top)) for p in found] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert sum((p.right - p.left) * (p.bottom - p.top) for p in found) > 0.9


@pytest.mark.slow
def test_every_sample_meme_has_its_panels() -> None:
    wrong = [
        (meme.id, meme.panels, count)
        for meme in read_samples()
        if (count := count_panels(Image.open(IMAGES / meme.file))) != meme.panels
    ]
    assert len(wrong) <= len(read_samples()) // 20, wrong


def test_joining_lines_into_captions() -> None:
    lines = [(100, 10, 300, 40), (120, 48, 280, 78), (90, 300, 310, 330), (400, 12, 500, 40)]
    found = join_lines(lines, (600, 400))
    assert len(found) == 3
    assert found[0] == Region(100 / 600, 10 / 400, 300 / 600, 78 / 400)
    assert join_lines([(5, 5, 5, 9)], (10, 10)) == ()


def test_matching_is_one_to_one_and_symmetric() -> None:
    top, low = Region(0.1, 0, 0.9, 0.2), Region(0.2, 0.8, 0.8, 1)
    wide, far = Region(0, 0.02, 1, 0.2), Region(0, 0.4, 0.3, 0.5)
    assert measure_overlap(top, top) == pytest.approx(1)
    assert measure_match([top, low], [wide, low]) == 1
    assert measure_match([top, top], [top]) == pytest.approx(2 / 3)
    assert measure_match([top, low], [far]) == measure_match([far], [top, low]) == 0
    assert measure_match([], []) == 1
    assert measure_match([top], []) == 0


def test_comparing_layouts_of_files(tmp_path: Path) -> None:
    grid(1, 2, 8, "white").save(tmp_path / "two.png")
    grid(1, 1, 8, "white").resize((488, 200)).save(tmp_path / "one.png")
    boxes = {"two.png": [(0, 0, 240, 40)], "one.png": [(0, 160, 488, 200)]}
    asked = []

    def find_lines(data: bytes, name: str) -> list[tuple[int, int, int, int]]:
        asked.append(name)
        return boxes[name]

    check = LayoutCheck(find_lines)
    found = check.compare(tmp_path / "two.png", tmp_path / "one.png")
    assert found == {"panels": "2 1", "captions": "0.0000"}
    same = check.compare(tmp_path / "two.png", tmp_path / "two.png")
    assert same["captions"] == "1.0000"
    assert asked == ["two.png", "one.png"]
    plain = LayoutCheck().compare(tmp_path / "two.png", tmp_path / "one.png")
    assert plain == {"panels": "2 1"}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("first", "panels"), [(136, 2), (135, 1), (238, 2), (340, 2), (341, 1)])
def test_panels_are_even_or_none(first: int, panels: int, turned: bool) -> None:
    """The smaller of two is at least two fifths of the larger: 136 of 340, not 135 of 341."""
    page = Image.new("RGB", (480, 480), "white")
    page.paste("red", (0, 0, first, 480))
    page.paste("blue", (first + 4, 0, 480, 480))
    page = page.transpose(Image.Transpose.ROTATE_90) if turned else page
    assert count_panels(page) == panels
