"""Bounds on one meme: regions that are read, captions that are measured, pixels that are drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image as Pillow

from memantics.actions.reappraise import reappraise
from memantics.core.errors import InputError
from memantics.core.images import load
from memantics.models.embedded.rapid import MOST_LENGTH, MOST_REGIONS, choose_regions
from memantics.reappraise.chain import MOST_PIXELS
from memantics.vision.captions import TextLine
from memantics.vision.page import MOST_CAPTIONS, read_page


def test_the_largest_regions_are_read() -> None:
    few = [(20, 60)] * MOST_REGIONS
    assert choose_regions(few) == list(range(MOST_REGIONS))
    assert choose_regions([(10, 30), *few]) == list(range(1, MOST_REGIONS + 1))
    assert choose_regions([]) == []


def test_regions_are_short_together() -> None:
    half = (20, 10 * MOST_LENGTH)
    assert choose_regions([half, half]) == [0, 1]
    assert choose_regions([half, half, (20, 20)]) == [0, 1]
    assert choose_regions([half, (20, 20), half]) == [0, 2]
    assert choose_regions([(0, 5)]) == [0]


@pytest.mark.parametrize(("count", "fine"), [(MOST_CAPTIONS, True), (MOST_CAPTIONS + 1, False)])
def test_a_meme_of_too_many_captions_is_refused(count: int, fine: bool) -> None:
    picture = Pillow.new("RGB", (100, 60 * count), "white")
    lines = [TextLine("some words", (10, 60 * i, 90, 60 * i + 14)) for i in range(count)]
    if fine:
        assert len(read_page(picture, lines).captions) == count
    else:
        with pytest.raises(InputError, match=f"{count} captions; {MOST_CAPTIONS} are set anew"):
            read_page(picture, lines)


@pytest.mark.parametrize(("height", "reduced"), [(2000, False), (2001, True)])
def test_a_large_picture_is_reduced(tmp_path: Path, height: int, reduced: bool) -> None:
    assert MOST_PIXELS == 3000 * 2000
    path = tmp_path / "large.png"
    picture = Pillow.new("RGB", (3000, height), "white")
    picture.paste("navy", (400, 400, 2600, 1600))
    picture.save(path, compress_level=1)
    made = reappraise(path, out=tmp_path / "out", editor="none", target="calm")
    assert made.status == "done", made.reason
    size = load(made.folder / "meme.png").size
    assert size[0] * size[1] <= MOST_PIXELS
    assert (size != picture.size) == reduced
    assert size[0] / size[1] == pytest.approx(3000 / height, rel=0.01)
