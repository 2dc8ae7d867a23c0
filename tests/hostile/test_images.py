"""No image ends a command: whatever a decoder raises is an error of that file alone."""

from __future__ import annotations

import base64
import io
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow
from PIL import ImageDraw, ImageOps

from memantics.annotation.intake import store_image
from memantics.construction.collect.collect import collect
from memantics.core.errors import ImageError, InputError
from memantics.core.images import decode, load, probe, turn_upright
from memantics.core.records import Form, Image, Message, Request
from memantics.core.samples import image_path
from memantics.models.embedded.ocr import open_reader
from memantics.models.wire import WireSettings, encode_request
from memantics.understanding.reappraise import ReappraiseSettings, reappraise
from memantics.understanding.vision.typefaces import ANTON
from memantics.workbench.analyze import analyze
from tests.hostile.images import (
    generate,
    multi_picture_jpeg,
    palette_png_without_palette,
    picture,
    seeds,
    turned,
)
from tests.kinder import RECORDED

SEED = int(os.environ.get("MEMANTICS_HOSTILE_SEED", "13"))
CASES = int(os.environ.get("MEMANTICS_HOSTILE_CASES", "4800"))
REASONS = {"format", "truncated", "too many pixels", "too much work", "too many bytes"}


def look(data: bytes, name: str) -> str:
    """How an image ends: read, or one of the reasons; anything else raises."""
    try:
        facts = probe(data, name)
        assert facts.mime.startswith("image/")
        made = decode(data, name)
    except ImageError as error:
        return error.reason if "\n" not in str(error)[:400] == str(error) else "untidy"
    assert made.mode == "RGB"
    assert made.size in ((facts.width, facts.height), (facts.height, facts.width))
    return "read"


def test_every_kind_of_image_is_read() -> None:
    assert {name: look(data, name) for name, data in seeds().items()} == dict.fromkeys(
        seeds(), "read"
    )


@pytest.mark.slow
def test_mutated_images_are_read_or_refused() -> None:
    ends: dict[str, int] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Pillow remarks about damaged metadata
        for name, data in generate(SEED, CASES):
            try:
                end = look(data, name)
            except Exception as error:  # noqa: BLE001 - the case must be named
                pytest.fail(f"{name}: {type(error).__name__}: {error}")
            ends[end] = ends.get(end, 0) + 1
    assert sum(ends.values()) == CASES
    assert ends.keys() <= REASONS | {"read"}
    # Damage that no decoder notices would test nothing, and so would damage that each does.
    assert ends["read"] > 0.1 * CASES
    assert ends["truncated"] > 0.1 * CASES


def test_a_palette_png_without_a_palette_is_refused() -> None:
    assert look(palette_png_without_palette(), "x.png") == "truncated"


@pytest.mark.parametrize("fill", [False, True])
def test_a_picture_of_several_is_a_jpeg(fill: bool) -> None:
    data = multi_picture_jpeg(fill=fill)
    assert probe(data, "x.jpg").mime == "image/jpeg"
    assert decode(data, "x.jpg").size == picture().size


def difference(one: Pillow.Image, other: Pillow.Image) -> float:
    assert one.size == other.size
    return float(np.abs(np.asarray(one, np.int16) - np.asarray(other, np.int16)).mean())


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_orientation_is_honoured(form: str, orientation: int) -> None:
    data = turned(form, orientation)
    with Pillow.open(io.BytesIO(data)) as image:
        stored = image.convert("RGB")
    with Pillow.open(io.BytesIO(data)) as image:
        expected = ImageOps.exif_transpose(image).convert("RGB")
    assert difference(decode(data, "x"), expected) < 1
    upright = turn_upright(data, "x")
    if orientation == 1:
        assert upright is None
        assert difference(decode(data, "x"), stored) < 1
    else:
        assert upright is not None
        assert difference(decode(upright, "x"), expected) < 1
        assert turn_upright(upright, "x") is None


@pytest.mark.parametrize("orientation", [0, 9, 300])
def test_an_orientation_that_does_not_exist_is_none(orientation: int) -> None:
    assert difference(decode(turned("PNG", orientation), "x"), picture()) == 0
    assert turn_upright(turned("PNG", orientation), "x") is None


def test_models_get_the_bytes_on_disk_unless_asked_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "turned.jpg"
    path.write_bytes(turned("JPEG", 6))
    request = Request((Message("user", (Image(path), "What is this?")),), Form("", ()))
    stored = encode_request("m", request, WireSettings())
    assert base64.b64encode(path.read_bytes()) in stored
    upright = encode_request("m", request, WireSettings(image_orientation="upright"))
    assert base64.b64encode(path.read_bytes()) not in upright
    assert b"data:image/png;base64," in upright
    assert "image_orientation" not in WireSettings().describe()
    assert WireSettings(image_orientation="upright").describe()["image_orientation"] == "upright"


def test_a_turned_photograph_is_read_by_the_ocr(tmp_path: Path) -> None:
    plain = Pillow.new("RGB", (480, 240), "white")
    ImageDraw.Draw(plain).text((30, 80), "HELLO MONDAY", fill="black", font=ANTON.at(70))
    path = tmp_path / "photo.jpg"
    path.write_bytes(turned("JPEG", 6, plain.transpose(Pillow.Transpose.ROTATE_90)))
    assert load(path).size == plain.size
    with open_reader() as ocr:
        assert "HELLO MONDAY" in ocr.read(path.read_bytes(), path.name).text.upper()


@pytest.fixture
def spoiled(tmp_path: Path) -> list[Path]:
    """A sound meme between images that end decoders in other ways than by an error of theirs."""
    folder = tmp_path / "memes"
    folder.mkdir()
    (folder / "a.png").write_bytes(palette_png_without_palette())
    (folder / "b.png").write_bytes(image_path("en-012").read_bytes())
    (folder / "c.jpg").write_bytes(multi_picture_jpeg(fill=True)[:900])
    return sorted(folder.iterdir())


@pytest.mark.slow
def test_analyze_goes_on(spoiled: list[Path], tmp_path: Path) -> None:
    made = analyze(spoiled)
    assert [one.meme.id for one in made] == ["b"]
    assert [error.reason for error in made.refused] == ["truncated", "truncated"]
    assert "b.png" in made.save(tmp_path / "page.html").read_text(encoding="utf-8")
    with pytest.raises(ImageError, match=r"a\.png"):
        analyze(spoiled[0])


@pytest.mark.slow
def test_reappraise_goes_on(spoiled: list[Path], tmp_path: Path) -> None:
    made = reappraise(
        spoiled,
        model=RECORDED,
        out=tmp_path / "kinder",
        target="calm",
        settings=ReappraiseSettings(mood=False),
    )
    assert [one.status for one in made] == ["failed", "done", "failed"]
    assert "a.png" in made[0].reason
    kinder = made[1].save(tmp_path / "kinder.png")
    assert load(kinder).size == load(spoiled[1]).size
    assert made[1].caption
    with pytest.raises(InputError, match="was not reappraised"):
        made[0].save(tmp_path / "never.png")
    assert not (tmp_path / "never.png").exists()


def test_an_upload_is_refused_by_name(tmp_path: Path) -> None:
    media = tmp_path / "media"
    with pytest.raises(ImageError, match=r"a\.png"):
        store_image(media, 1, "a.png", palette_png_without_palette())
    assert not media.exists()
    stored = store_image(media, 1, "t.jpg", turned("JPEG", 6))
    assert (stored.facts.width, stored.facts.height) == picture().size[::-1]


def test_collect_goes_on(spoiled: list[Path]) -> None:
    made = collect(spoiled[0].parent)
    assert made.counts["kept"] == 1
    assert len(made.memes) == 3
