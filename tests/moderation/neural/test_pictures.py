"""Images are prepared as the encoders' own processors do, in bounds, and broken ones are listed."""

from __future__ import annotations

import importlib
import json
import random
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from memantics.core.errors import DataError, InputError
from memantics.moderation.examples import Example
from memantics.moderation.neural.encoding import (
    Preparation,
    Reader,
    draw_images,
    encode,
    read_preparation,
)
from memantics.moderation.neural.settings import NetworkShape

pytestmark = pytest.mark.slow

KINDS = {
    "clip.image_processing_pil_clip.CLIPImageProcessorPil": {
        "size": {"shortest_edge": 32},
        "crop_size": {"height": 28, "width": 28},
    },
    "chinese_clip.image_processing_pil_chinese_clip.ChineseCLIPImageProcessorPil": {
        "size": {"shortest_edge": 30},
        "crop_size": {"height": 30, "width": 30},
    },
    "vit.image_processing_pil_vit.ViTImageProcessorPil": {"size": {"height": 24, "width": 32}},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [(64, 48), (31, 90), (20, 20)])
def test_as_the_package_does(kind: str, size: tuple[int, int], tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    place, _, name = kind.rpartition(".")
    module: Any = importlib.import_module(f"transformers.models.{place}")
    processor = getattr(module, name)(**KINDS[kind])
    processor.save_pretrained(tmp_path)
    own = read_preparation((tmp_path / "preprocessor_config.json").read_bytes())
    chance = random.Random(1)
    image = Pillow.frombytes("RGB", size, chance.randbytes(size[0] * size[1] * 3))
    found = own.prepare(image).astype(np.float64) / 255
    found = ((found - own.mean) / own.std).transpose(2, 0, 1)
    expected = processor(image)["pixel_values"][0]
    assert np.abs(found - np.asarray(expected)).max() < 1e-5


def test_older_files_give_one_number() -> None:
    assert read_preparation(b'{"size": 224, "do_center_crop": true, "crop_size": 200}') == (
        Preparation(200, 200, 224)
    )
    assert read_preparation(b'{"size": 224}').edge == 0


@pytest.mark.parametrize(
    "facts",
    [
        {"size": {"longest_edge": 9}},
        {"rescale_factor": 2.0},
        {"size": "big"},
        {"size": {"height": 10**9, "width": 10**9}},
        {"size": -1},
        {"resample": 9},
        [],
    ],
)
def test_what_cannot_be_followed_is_refused(facts: object) -> None:
    with pytest.raises(DataError):
        read_preparation(json.dumps(facts).encode())


def test_broken_and_missing_images_are_counted_and_listed(tmp_path: Path) -> None:
    good = tmp_path / "good.png"
    Pillow.new("RGB", (9, 9), "red").save(good)
    broken = tmp_path / "broken.png"
    broken.write_bytes(good.read_bytes()[:40])
    examples = [
        Example("a", "x", image=good),
        Example("b", "x", image=broken),
        Example("c", "x"),
        Example("d", "x", image=tmp_path / "nowhere.png"),
    ]
    reader = Reader(None, Preparation(4, 4), 8)
    encoded = encode(examples, reader, NetworkShape(integration="none"))
    assert [example.id for example in encoded.examples] == ["a"]
    assert encoded.rows == (0,)
    assert [(skip.row, skip.reason) for skip in encoded.skips] == [
        ("b", "image format"),
        ("c", "no image"),
        ("d", "image missing"),
    ]
    assert encoded.pixels is not None
    assert encoded.pixels[0, 0, 0].tolist() == [255, 0, 0]
    with pytest.raises(InputError, match="no example can be used"):
        encode(examples[1:], reader, NetworkShape(integration="none"))


@pytest.mark.parametrize("size", [(20_000, 2), (2, 20_000), (20_000, 1)])
def test_a_strip_does_not_grow_into_gigabytes(size: tuple[int, int]) -> None:
    """Its shorter side brought to 224, the longer one would have millions of pixels."""
    strip = Pillow.new("RGB", size, "red")
    middle = Pillow.new("RGB", (min(400, size[0]), min(400, size[1])), "blue")
    strip.paste(middle, ((size[0] - middle.width) // 2, (size[1] - middle.height) // 2))
    tracemalloc.start()
    found = Preparation(224, 224, edge=224).prepare(strip)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.shape == (224, 224, 3)
    assert (found == (0, 0, 255)).all(), "the middle is kept"
    assert peak < 100_000_000


def test_pixels_on_disk_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "one.png"
    Pillow.new("RGB", (9, 5), "blue").save(path)
    kept = draw_images([path], Preparation(4, 4), tmp_path / "pixels.npy")
    assert np.array_equal(kept.pixels, draw_images([path], Preparation(4, 4)).pixels)
