"""What the functions behind the commands write is marked, and copies keep their marks."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from memantics.benchmarks.writing import PublishedMeme
from memantics.construction.chats.build import write_punmemecn
from memantics.construction.publish.tables import copy_images
from memantics.core.credentials import EditStep
from memantics.core.marks import ImageMark, read_mark, write_mark
from memantics.core.memes import Meme
from memantics.core.queue import copy_picture
from memantics.core.stamping import ImageStamp, MarkSettings, name_system, open_stamp
from memantics.understanding.reappraisal.chain import reappraise
from memantics.understanding.reappraisal.grading import EmbeddedEditor
from memantics.understanding.reappraisal.making import describe_making
from memantics.understanding.reappraisal.whole import EditWish, WishPlanner
from memantics.understanding.vision.erasing import PictureShelf
from memantics.web.page import make_thumbnail
from memantics.workbench.studio import find_marks
from tests.marks.reading import AI, check_files, read_manifest
from tests.marks.signers import FORMATS, draw, write_chain
from tests.reappraisal.benches import TOP, draw_meme_file, make_meme, make_shop

MARKED = ImageMark("trainedAlgorithmicMedia", "a program", "painter/x")


class Painter(EmbeddedEditor):
    """The embedded editor under the name of a generative one in somebody's home."""

    name = "diffusers//home/somebody/painter"


def wish(second: str = "I DRIFT") -> WishPlanner:
    words = f"{TOP}\n{second}"
    return WishPlanner(
        EditWish("phone", "tense", "relaxed", "a phone", words, "", "Cartoon_Anime", "Negative"),
        "a person",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("editor", "planner", "source", "system"),
    [
        (None, "a person", "composite", ""),
        (EmbeddedEditor(), "a person", "composite", ""),
        (Painter(), "a person", AI, "diffusers/painter"),
        (None, "openai/m, best of 3", AI, "openai/m"),
    ],
)
def test_a_reappraisal(
    tmp_path: Path, editor: EmbeddedEditor | None, planner: str, source: str, system: str
) -> None:
    """All images in the folder are marked and signed; who wrote and who painted decides."""
    path, lines = draw_meme_file(tmp_path)
    stamp = open_stamp(MarkSettings(sign=write_chain(tmp_path), label=True))
    shop = replace(make_shop(tmp_path, replace(wish(), name=planner), lines, editor), stamp=stamp)
    made = asyncio.run(reappraise(make_meme(path), replace(shop, versions=2)))
    assert made.drawn, made.reason
    files = sorted(made.folder.glob("*.png"))
    assert {"meme.png", "before-after.png", "version-1.png", "versions.png"} <= {
        file.name for file in files
    }
    check_files(files, source)
    for file in files:
        mark = read_mark(file.read_bytes())
        assert mark is not None
        assert mark.system == system
        manifest = read_manifest(file.read_bytes())
        assert [one["title"] for one in manifest["ingredients"]] == ["phone.png"]
        assert "somebody" not in str(manifest)
    with Image.open(path) as before, Image.open(made.folder / "meme.png") as after:
        assert after.width == before.width
        assert before.height < after.height < before.height * 1.15
    saved = made.save(tmp_path / "saved.png")
    check_files([saved], source)


@pytest.mark.slow
def test_running_again_with_other_marks_draws_again(tmp_path: Path) -> None:
    path, lines = draw_meme_file(tmp_path)
    shop = make_shop(tmp_path, wish(), lines)
    plain = asyncio.run(reappraise(make_meme(path), shop))
    assert asyncio.run(reappraise(make_meme(path), shop)).resumed
    labelled = replace(shop, stamp=ImageStamp(label=True))
    made = asyncio.run(reappraise(make_meme(path), labelled))
    assert not made.resumed
    with Image.open(plain.folder / "meme.png") as image:
        assert image.height > 400


def test_only_light_and_colours(tmp_path: Path) -> None:
    path, _ = draw_meme_file(tmp_path)
    made = asyncio.run(
        describe_making(Meme("phone", path), "index", EmbeddedEditor(), changed=False)
    )
    assert made.source == "algorithmicallyEnhanced"
    assert made.steps == (EditStep("c2pa.color_adjustments", "light and colours changed"),)


def test_an_edit_of_a_generated_image_is_marked_as_such(tmp_path: Path) -> None:
    """A caption by rules on an image that its file calls AI-generated: a composite with AI."""
    path, lines = draw_meme_file(tmp_path)
    path.write_bytes(write_mark(path.read_bytes(), MARKED))
    made = asyncio.run(reappraise(make_meme(path), make_shop(tmp_path, wish(), lines)))
    check_files([made.folder / "meme.png"], AI)


@pytest.mark.parametrize("form", FORMATS)
def test_copies_keep_marks(tmp_path: Path, form: str) -> None:
    """Published benchmarks, queues, chats, and thumbnails in pages."""
    path = tmp_path / f"meme.{form.lower()}"
    path.write_bytes(write_mark(draw(form), MARKED))
    published = PublishedMeme("published", path)
    assert copy_images([published], tmp_path / "published") == 1
    assert read_mark((tmp_path / "published" / "published.png").read_bytes()) == MARKED
    queued = tmp_path / "queue" / copy_picture(path, tmp_path / "queue", "meme")
    assert queued.read_bytes() == path.read_bytes()
    write_punmemecn(tmp_path / "chats", [], [Meme("meme", path)])
    (square,) = (tmp_path / "chats" / "images").iterdir()
    assert read_mark(square.read_bytes()) == MARKED
    thumbnail = make_thumbnail(path, 30)
    assert read_mark(base64.b64decode(thumbnail.uri.partition(",")[2])) == MARKED


def test_images_of_perturbation_tests(tmp_path: Path) -> None:
    path, lines = draw_meme_file(tmp_path)
    boxes = [(250, 30, 350, 70) for _ in lines[:1]]
    shelf = PictureShelf(tmp_path / "shelf", lambda *_: boxes)
    check_files([shelf.erase(path)], "composite")
    check_files([shelf.blank(path)], "algorithmicMedia")


def test_the_studio_reads_marks(tmp_path: Path) -> None:
    found = find_marks(write_mark(draw("WEBP"), MARKED))
    assert found is not None
    assert (found.source, found.tool, found.system, found.state) == (
        "trainedAlgorithmicMedia",
        "a program",
        "painter/x",
        "",
    )
    assert find_marks(draw()) is None
    signer = open_stamp(MarkSettings(sign=write_chain(tmp_path)))
    making = asyncio.run(
        describe_making(Meme("phone", draw_meme_file(tmp_path)[0]), "index", None, changed=True)
    )
    signed = find_marks(signer.apply(draw("JPEG"), making))
    assert signed is not None
    assert (signed.state, signed.signer) == ("valid", "A signer, Memes and Sons")


def test_names_of_models_tell_no_folders() -> None:
    assert name_system("diffusers//home/me/painter, faces only") == "diffusers/painter"
    assert name_system("embedded") == ""
