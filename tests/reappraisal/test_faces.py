"""Faces that a generative editor repaints alone: where they are, and what stays as it was."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import memantics as mm
from memantics.core.errors import DataError, InputError, UnknownName
from memantics.core.images import decode, encode_png
from memantics.core.model import EditRequest
from memantics.core.samples import IMAGES
from memantics.models.client import ModelClient
from memantics.models.fake import FakeModel, ScriptedReply, play
from memantics.understanding.reappraisal.faces import (
    FaceEditor,
    GivenFaces,
    ModelFaces,
    YuNetFaces,
    open_faces,
    read_faces,
)
from memantics.understanding.reappraisal.grading import EmbeddedEditor
from memantics.understanding.vision.regions import PixelBox
from tests.kinder import RECORDED
from tests.reappraisal.test_choosing import HASTY
from tests.reappraisal.test_diffusers import make_pipeline
from tests.reappraisal.yunet import write_detector

PICTURE = Image.fromarray(np.random.default_rng(5).integers(60, 200, (90, 120, 3), dtype=np.uint8))
FACE = (30, 20, 70, 60)


class Red:
    """Paints everything red, and remembers what it was asked."""

    name, note = "red", ""
    identity: Mapping[str, Any] = {"name": "red"}

    def __init__(self) -> None:
        self.asked: list[EditRequest] = []

    async def edit(self, request: EditRequest) -> bytes:
        self.asked.append(request)
        return encode_png(Image.new("RGB", (64, 64), "red"))

    async def close(self) -> None:
        return None


def request(*faces: tuple[int, int, int, int]) -> EditRequest:
    mask = Image.new("L", PICTURE.size, 255)
    return EditRequest(encode_png(PICTURE), encode_png(mask), "", "happy", 3, faces=faces)


def paint(painter: Red, *faces: tuple[int, int, int, int]) -> Any:
    made = asyncio.run(FaceEditor(painter).edit(request(*faces)))
    return np.asarray(decode(made, "made")).astype(int)


def test_only_the_face_is_repainted() -> None:
    red = Red()
    made = paint(red, FACE)
    plain = asyncio.run(EmbeddedEditor(sticker=False).edit(request()))
    graded = np.asarray(decode(plain, "graded")).astype(int)
    changed = np.abs(made - graded).max(axis=2) > 0
    rows, columns = np.nonzero(changed)
    assert (made[40, 50] == (255, 0, 0)).all()
    # The rim is soft: nothing further than a fifth of the face outside of it moves.
    assert columns.min() >= FACE[0] - 8
    assert columns.max() < FACE[2] + 8
    assert rows.min() >= FACE[1] - 8
    assert rows.max() < FACE[3] + 8
    [asked] = red.asked
    crop, mask = decode(asked.image, "crop"), np.asarray(decode(asked.mask, "mask").convert("L"))
    assert crop.size == (80, 80)  # half of the face on each side
    assert mask[40, 40] == 255
    assert mask[2, 2] == 0
    assert "smiling happily" in asked.instruction


def test_faces_have_seeds_of_their_own_and_none_gets_a_sticker() -> None:
    red = Red()
    paint(red, FACE, (80, 0, 120, 30))
    assert [own.seed for own in red.asked] == [3, 4]
    assert decode(red.asked[1].image, "crop").size == (60, 45)  # cut at the edge
    stuck = asyncio.run(EmbeddedEditor().edit(request()))
    assert (paint(Red()) == np.asarray(decode(stuck, "stuck"))).all()
    assert FaceEditor(Red()).identity != FaceEditor(Red(), sticker=True).identity


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        (["1,2,3"], "is not a box"),
        (["1,2,3,x"], "is not a box"),
        (["nowhere.onnx"], "is not a box"),
        (["model"], "needs a vision-language model"),
        (["1,2,3,4", "model"], "mixes boxes"),
    ],
)
def test_what_is_no_place_is_named(said: list[str], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        open_faces(said, None, 1)


def test_places_are_for_one_meme(tmp_path: Path) -> None:
    assert open_faces([], None, 9) is None
    found = open_faces(["1, 2,3.5,4", "5,6,7,8"], None, 1)
    assert found == GivenFaces(((1, 2, 3.5, 4), (5, 6, 7, 8)))
    with pytest.raises(InputError, match="works with one meme, not with 2"):
        open_faces(["1,2,3,4"], None, 2)
    path = tmp_path / "m.png"
    PICTURE.save(path)

    def find(*place: float) -> Any:
        half = PICTURE.resize((60, 45))
        x, y, w, h = place
        return asyncio.run(GivenFaces(((x, y, w, h),)).find("m", path, half))

    assert find(30, 20, 40, 40) == ((15, 10, 35, 30),)
    assert find(110, 0, 40, 40) == ((55, 0, 60, 20),)
    with pytest.raises(
        InputError, match=r"--face 120,0,5,5 is outside m, which has 120 x 90 pixels"
    ):
        find(120, 0, 5, 5)


def ask_model(tmp_path: Path, *replies: ScriptedReply) -> tuple[tuple[PixelBox, ...], int]:
    model = FakeModel(play(replies))

    async def work() -> tuple[PixelBox, ...]:
        with ModelClient(model, tmp_path / "client", None, HASTY) as client:
            return await ModelFaces(client).find("m", IMAGES / "en-001.png", PICTURE)

    return asyncio.run(work()), model.asked


def test_a_model_names_places_in_thousandths(tmp_path: Path) -> None:
    wrong = json.dumps({"faces": [[5, 5, 5, 9]]})
    right = json.dumps({"faces": [[0, 0, 100, 100], [250, 200, 600, 700]]})
    found, asked = ask_model(tmp_path, wrong, right)
    assert found == ((30, 18, 72, 63), (0, 0, 12, 9))  # the largest first
    assert asked == 2  # a box without width is asked for again


def test_a_model_that_babbles_sees_no_face(tmp_path: Path) -> None:
    assert ask_model(tmp_path, "a", "b", "c") == ((), 3)


def test_a_box_is_read_to_its_edges() -> None:
    assert read_faces('{"faces": [[0, 0, 1000, 1000]]}').faces == [[0, 0, 1000, 1000]]
    assert read_faces('{"faces": []}').faces == []
    for wrong in ([0, 0, 9], [0, 0, 1001, 9], [-1, 0, 9, 9], [9, 0, 9, 9], [0, 9, 9, 9]):
        with pytest.raises(Exception, match="is not a valid box"):
            read_faces(json.dumps({"faces": [wrong]}))


def test_a_detector_file_finds_faces(tmp_path: Path) -> None:
    (tmp_path / "no.onnx").write_bytes(b"no detector")
    with pytest.raises(DataError, match="not a valid YuNet model"):
        YuNetFaces(tmp_path / "no.onnx")
    path = write_detector(tmp_path / "yunet.onnx", 64)
    found = asyncio.run(YuNetFaces(path).find("m", path, Image.new("RGB", (64, 64))))
    assert found == ((8, 16, 40, 48),)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_pipeline_repaints_the_face_of_a_meme(tmp_path: Path) -> None:
    folder = make_pipeline(tmp_path / "pipeline", inpaint=True)
    params = {"steps": "2", "longest": "32"}
    made = mm.reappraise(
        IMAGES / "en-012.png",
        model=RECORDED,
        target="calm",
        editor=f"diffusers/{folder}",
        out=tmp_path / "faces",
        settings=mm.ReappraiseSettings(editor_params=params, face=["300,300,80,80"], mood=False),
    )
    assert made.status == "done", made.reason
    assert made.checks is not None
    assert any("faces repainted: 1" in note for note in made.checks.notes)
    plain = mm.reappraise(
        IMAGES / "en-012.png",
        model=RECORDED,
        target="calm",
        editor="embedded",
        out=tmp_path / "plain",
        settings=mm.ReappraiseSettings(mood=False),
    )
    pictures = [Image.open(own.folder / "meme.png").convert("RGB") for own in (made, plain)]
    one, other = (np.asarray(own).astype(int) for own in pictures)
    rows, columns = np.nonzero(np.abs(one - other).max(axis=2))
    assert len(rows) > 1000
    assert (columns.min(), columns.max()) > (283, 283)
    assert columns.max() < 397
    assert rows.min() > 283
    assert rows.max() < 397


def test_an_editor_that_paints_nothing_repaints_no_face(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'none' cannot repaint faces"):
        mm.reappraise(
            IMAGES / "en-012.png", out=tmp_path, settings=mm.ReappraiseSettings(face=["1,1,9,9"])
        )
    with pytest.raises(UnknownName):
        mm.reappraise(
            IMAGES / "en-012.png",
            editor="x/y",
            out=tmp_path,
            settings=mm.ReappraiseSettings(face=["1,1,9,9"]),
        )
