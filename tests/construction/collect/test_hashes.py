"""Images that look alike, and how alike."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from memantics.core.images import load
from memantics.core.samples import image_path, read_samples
from memantics.understanding.vision.hashes import (
    describe_image,
    find_pairs,
    hash_image,
    measure_distance,
)
from tests.construction.collect.pictures import draw

SOME = [meme.id for meme in read_samples()][::8]


def recompress(image: Image.Image, quality: int, scale: float) -> Image.Image:
    size = (int(image.width * scale), int(image.height * scale))
    held = io.BytesIO()
    image.resize(size, Image.Resampling.LANCZOS).save(held, "JPEG", quality=quality)
    return Image.open(held)


@pytest.mark.parametrize("name", SOME)
def test_recompressed_and_resized_copies_stay_within_two_bits(name: str) -> None:
    image = load(image_path(name))
    for quality, scale in ((50, 1.0), (80, 0.6)):
        assert (
            measure_distance(hash_image(image), hash_image(recompress(image, quality, scale))) <= 2
        )


def test_other_pictures_are_far_apart() -> None:
    hashes = [hash_image(draw(seed)) for seed in range(40)]
    assert list(find_pairs(hashes, 8)) == []


def test_other_words_on_the_same_picture_stay_in_the_family() -> None:
    image = draw(3, 480)
    other = image.copy()
    ImageDraw.Draw(other).text((40, 30), "quite another caption", fill="white", font_size=30)
    assert measure_distance(hash_image(image), hash_image(other)) <= 8


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(0, 2**64 - 1), max_size=40),
    st.integers(0, 20),
)
def test_pairs_equal_those_of_a_plain_double_loop(hashes: list[int], within: int) -> None:
    near = hashes + [value ^ 0b101 for value in hashes[:10]]
    expected = [
        (i, j, (near[i] ^ near[j]).bit_count())
        for i in range(len(near))
        for j in range(i + 1, len(near))
        if (near[i] ^ near[j]).bit_count() <= within
    ]
    assert sorted(find_pairs(near, within)) == expected


def test_pairs_across_blocks_are_found() -> None:
    hashes = [number * 0x9E3779B97F4A7C15 % 2**64 for number in range(1, 1600)]
    hashes[1590] = hashes[3] ^ 1
    assert (3, 1590, 1) in list(find_pairs(hashes, 2))


def test_a_recoloured_picture_is_described_otherwise_than_a_recompressed_one() -> None:
    image = draw(5)
    same = describe_image(recompress(image, 70, 0.8))
    red, green, blue = image.split()
    other = describe_image(Image.merge("RGB", (blue, red, green)))
    own = describe_image(image)
    assert float(own @ same) > 0.97 > float(own @ other)
