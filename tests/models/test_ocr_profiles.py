"""Two ways to read images: the edited weights read as the original's, and fast reads captions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from perf.reading import read_as_before
from PIL import Image, ImageDraw

from memantics.benchmarks.registry import SAMPLE_IMAGES
from memantics.core.errors import InputError
from memantics.models.embedded import ocr
from memantics.models.embedded.ocr import RapidReader, RememberingOcr

MEMES = ("en-001", "CN90001")


def test_only_weights_that_mean_nothing_are_zeroed() -> None:
    onnx = pytest.importorskip("onnx")
    body = (ocr._weights() / ocr._DETECTOR).read_bytes()
    edited = ocr.zero_denormals(body)
    assert len(edited) == len(body)
    before, after = (onnx.load_model_from_string(own).graph for own in (body, edited))
    zeroed = 0
    for old, new in zip(before.initializer, after.initializer, strict=True):
        one, other = onnx.numpy_helper.to_array(old), onnx.numpy_helper.to_array(new)
        small = np.abs(one) < 1e-20
        assert not other[small].any()
        assert np.array_equal(one[~small], other[~small])
        zeroed += int((small & (one != 0)).sum())
    assert zeroed > 200_000
    assert ocr.zero_denormals(edited) == edited


@pytest.mark.slow
def test_edited_weights_read_the_same_text() -> None:
    before = read_as_before(alternatives=True)
    unsure = 0
    for name in MEMES:
        data = (SAMPLE_IMAGES / f"{name}.png").read_bytes()
        reading = RapidReader().read(data, name)
        assert reading == before(data, name)
        unsure += sum(len(line.alternatives) for line in reading.lines)
    assert unsure


def test_fast_reads_captions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "_read_thoroughly", lambda *_: pytest.fail("no second look needed"))
    for name, said in (("CN90001", "最近有点键忘"), ("en-001", "IS AWKWARD")):
        data = (SAMPLE_IMAGES / f"{name}.png").read_bytes()
        assert said in RapidReader("fast").read(data, name).text


def test_fast_looks_again_where_it_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def look_again(*found: Any) -> list[Any]:
        asked.append(found)
        return []

    monkeypatch.setattr(ocr, "_read_thoroughly", look_again)
    path = SAMPLE_IMAGES / "CN90001.png"
    with Image.open(path) as image:
        blank = Image.new("RGB", image.size, "white")
    ImageDraw.Draw(blank).line((5, 5, 60, 60), fill="black")
    assert RapidReader("fast").read(_encode(blank), "blank").text == ""
    assert len(asked) == 1


def _encode(image: Image.Image) -> bytes:
    import io

    body = io.BytesIO()
    image.save(body, "PNG")
    return body.getvalue()


def test_profiles_do_not_share_what_they_remember(tmp_path: Path) -> None:
    data = _encode(Image.new("RGB", (4, 4)))
    for profile in ("thorough", "fast"):
        reader = RapidReader(profile)
        assert profile in reader.version
        with RememberingOcr(reader, tmp_path) as ocr:
            ocr.read(data, "x")
    import sqlite3

    ((count,),) = sqlite3.connect(tmp_path / "readings.sqlite").execute(
        "SELECT count(*) FROM readings"
    )
    assert count == 2
    with pytest.raises(InputError, match="OCR profile"):
        RapidReader("quick")  # type: ignore[arg-type]
