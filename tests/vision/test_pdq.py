"""PDQ hashes equal those of Meta's own program, which made the expected values."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from memantics.core.samples import IMAGES
from memantics.understanding.vision.pdq import hash_pdq, measure_pdq
from tests.serve.clients import find_python

# Hash and quality of sample images by pdqhash 0.2.8, the bindings of Meta's C++ program.
PUBLISHED = json.loads((Path(__file__).parent / "pdq.json").read_text("utf-8"))


def draw(wide: int, high: int) -> Image.Image:
    """Coarse noise, equal on all machines: blocks of random colours, without interpolation."""
    colours = np.random.default_rng(wide * high).integers(0, 256, (9, 9, 3), np.uint8)
    rows, columns = (np.arange(size) * 9 // size for size in (high, wide))
    return Image.fromarray(colours[rows[:, None], columns])


@pytest.mark.parametrize("name", PUBLISHED)
def test_hashes_equal_those_of_the_published_program(name: str) -> None:
    if name.startswith("draw "):
        wide, _, high = name.removeprefix("draw ").partition("x")
        image = draw(int(wide), int(high))
    else:
        image = Image.open(IMAGES / name)
    assert list(measure_pdq(image)) == PUBLISHED[name]


def test_small_and_plain_images_have_no_hash() -> None:
    assert measure_pdq(Image.new("RGB", (4, 400), "red")) == ("0" * 64, 0)
    assert hash_pdq(Image.new("RGB", (400, 400), "red")) == ""


SCRIPT = """
import sys, json, numpy, pdqhash
from PIL import Image
for path in sys.argv[1:]:
    bits, quality = pdqhash.compute(numpy.asarray(Image.open(path).convert("RGB")))
    print(json.dumps([numpy.packbits(numpy.asarray(bits, bool)).tobytes().hex(), int(quality)]))
"""


@pytest.mark.slow
def test_the_published_program_gives_the_same_on_all_sample_images() -> None:
    python = find_python("threatexchange")
    paths = sorted(map(str, IMAGES.glob("*.png")))
    done = subprocess.run(
        [python, "-c", SCRIPT, *paths], capture_output=True, text=True, check=True
    )
    expected = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(expected) == len(paths) > 50
    assert [list(measure_pdq(Image.open(path))) for path in paths] == expected


if __name__ == "__main__":  # writes the images whose hashes another program computes
    for size in ((64, 64), (65, 63), (100, 128), (511, 513), (128, 64), (1000, 750)):
        draw(*size).save(Path(sys.argv[1]) / f"draw {size[0]}x{size[1]}.png")
