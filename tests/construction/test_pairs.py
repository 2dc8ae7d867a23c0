"""Minimal pairs: what templates hold, what is drawn and read back, who is consistent on them."""

from __future__ import annotations

import json
import shutil
import string
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageChops

from memantics.construction.pairs.check import FailingPair, PairCheck, check_pairs, render_page
from memantics.construction.pairs.pairs import (
    PAIR_KINDS,
    SAME,
    CaptionLanguage,
    PairCanvas,
    PairWords,
    draw_pair,
    fill_templates,
    find_old_mark,
    open_canvas,
    read_templates,
    read_words,
)
from memantics.core.errors import DataError, InputError
from memantics.core.images import encode_png, load
from memantics.core.lines import TextLine
from memantics.core.samples import image_path
from memantics.models.embedded.ocr import open_reader
from memantics.understanding.vision import page as pages
from memantics.understanding.vision.page import LetteredCaption, read_page
from memantics.understanding.vision.regions import PixelBox
from memantics.understanding.vision.typefaces import SIGNS, draw_sign
from tests.commands import Shell

HOLES = {"group", "neutral", "insult", "spelled", "parted", "pictured"}


def list_holes(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_more_than_forty_templates_of_every_kind(language: str) -> None:
    found = [template for template in read_templates() if template.language == language]
    assert len(found) == 42
    assert {template.kind for template in found} == set(PAIR_KINDS)
    assert min(Counter(template.kind for template in found).values()) >= 3
    assert len({template.id for template in found}) == 42
    for template in found:
        # Every text is about people by a word of the list; no template names a group itself.
        assert "group" in list_holes(template.first)
        assert list_holes(template.first + template.second) <= HOLES
        assert template.first != template.second
        one, other = template.first.split("\n"), template.second.split("\n")
        assert (len(one) == 2 and one == other[::-1]) == (template.kind == "panels")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_sentences_and_groups_vary(language: CaptionLanguage) -> None:
    """The first forty pairs have forty sentences about at least twelve groups, and controls."""
    words = read_words()[language]
    assert len(set(words.groups)) >= 12
    assert len(set(words.neutrals)) >= 12
    found = [template for template in read_templates() if template.language == language]
    assert len({template.first for template in found}) >= 40
    pairs = fill_templates(language, words, 40)
    named = [group for pair in pairs for group in words.groups if group in pair.first]
    assert len(set(named)) >= 12
    assert max(Counter(named).values()) <= 6
    ten = fill_templates(language, words, 10)
    assert len({pair.first for pair in ten}) == 10
    controls = [pair for pair in pairs if pair.kind == "control"]
    assert len(controls) == 3
    assert {pair.labels for pair in controls} == {("harmless", "harmless")}
    # Over many pairs, each template meets every group.
    many = fill_templates(language, words, 42 * len(words.groups))
    firsts = {pair.first for pair in many if pair.template == f"{language}-target-02"}
    assert len(firsts) == len(words.groups)


def test_few_pairs_are_of_all_kinds_and_say_what_must_hold() -> None:
    pairs = fill_templates("en", read_words()["en"], 2 * len(PAIR_KINDS))
    assert Counter(pair.kind for pair in pairs) == dict.fromkeys(PAIR_KINDS, 2)
    for pair in pairs:
        wanted = ("harmful", "harmful" if pair.kind in SAME else "harmless")
        assert pair.labels == (("harmless", "harmless") if pair.kind == "control" else wanted)
        assert "{" not in pair.first + pair.second


def test_words_of_a_users_own(tmp_path: Path) -> None:
    lists = '[words.en]\ngroups=["a"]\nneutrals=["b"]\ninsults=["c"]\nspelled=["d"]\nparted=["e"]\n'
    path = tmp_path / "words.toml"
    path.write_text(lists, encoding="utf-8")
    words = read_words(path)["en"]
    assert words == PairWords(
        groups=("a",), neutrals=("b",), insults=("c",), spelled=("d",), parted=("e",)
    )
    pairs = fill_templates("en", words, 39)
    assert pairs[0].first == "there is nothing as bad as a"
    # Without a list of words with emoji there are no such pairs.
    assert {pair.kind for pair in pairs} == set(PAIR_KINDS) - {"emoji"}
    path.write_text(lists.replace('["d"]', '["d", "d"]'), encoding="utf-8")
    with pytest.raises(
        DataError,
        match="insults, spelled, parted and pictured must have the same number of entries",
    ):
        read_words(path)
    path.write_text(lists + 'pictured=["f", "g"]\n', encoding="utf-8")
    with pytest.raises(
        DataError,
        match="insults, spelled, parted and pictured must have the same number of entries",
    ):
        read_words(path)
    path.write_text(lists.replace("groups", "people"), encoding="utf-8")
    with pytest.raises(DataError, match=r"people|groups"):
        read_words(path)


def test_who_is_asked_must_be_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no detector and no run was given"):
        check_pairs(tmp_path)
    with pytest.raises(InputError, match="contains no pairs"):
        check_pairs(tmp_path, model=tmp_path / "d.zip")


@pytest.mark.slow
def test_pairs_are_drawn_read_back_and_asked(shell: Shell) -> None:
    (shell.folder / "memes").mkdir()
    for name in ("en-001", "en-003"):
        shutil.copy(image_path(name), shell.folder / "memes")
    ran = shell.run("build", "pairs", "memes", "--count", "11", "--language", "en", "--json")
    assert ran.code == 0, ran.err
    built = json.loads(ran.out)
    assert built["pairs"] == 11
    assert built["kinds"] == dict.fromkeys(PAIR_KINDS, 1)
    assert built["read"] >= 0.9
    assert shell.run("data", "add", "pairs", "pairs").code == 0
    ran = shell.run("run", "pairs", "--model", "baseline/majority", "--out", "runs")
    assert ran.code == 0, ran.err
    (facts,) = (shell.folder / "runs").rglob("run.json")
    check = ("detector", "check", "pairs", "--run", facts.parent)
    ran = shell.run(*check, "--json", "--out", "pairs.html")
    assert ran.code == 0, ran.err
    said = json.loads(ran.out)
    found = {(row["by"], row["label"]): row for row in said["kinds"]}
    # One answer to everything: where the label must change it never does.
    assert found["target", "the label changes"]["value"] == 0.0
    assert found["emoji", "the label stays"]["value"] == 1.0
    assert found["all", "both labels are correct"]["n"] == 11
    assert {pair["kind"] for pair in said["failing"]} == set(PAIR_KINDS) - SAME | {"control"}
    page = (shell.folder / "pairs.html").read_text(encoding="utf-8")
    assert page.count('class="peek"') == 2 * len(said["failing"])
    assert "the label does not change" in page.lower()
    assert "<script" not in page


def read_nothing(_: Image.Image) -> tuple[TextLine, ...]:
    return ()


@pytest.mark.slow
def test_panels_are_exchanged_and_nothing_else() -> None:
    with open_reader() as ocr:
        picture = load(image_path("en-002")).convert("RGB")
        canvas = open_canvas(picture, lambda image: ocr.read(encode_png(image), "meme").lines)
    assert len(canvas.panels) == 2
    (first, second), _ = draw_pair(canvas, ("so\nwhat", "what\nso"), read_nothing)
    one, other = (box for box, _ in canvas.panels)
    assert ImageChops.difference(first, second).getbbox() is not None
    size = (other[2] - other[0], other[3] - other[1])
    moved = first.crop(one).resize(size)
    assert ImageChops.difference(moved, second.crop(other)).getbbox() is None
    # A meme of one panel is shown twice, in either order.
    alone = PairCanvas(canvas.image, canvas.caption)
    (first, second), _ = draw_pair(alone, ("so\nwhat", "what\nso"), read_nothing)
    assert first.size == second.size
    assert first.height > 2 * picture.height
    top = (0, 0, *picture.size)
    down = (0, first.height - picture.height, first.width, first.height)
    assert ImageChops.difference(first.crop(top), second.crop(down)).getbbox() is None


@pytest.fixture(scope="module")
def erased() -> tuple[Image.Image, PairCanvas, tuple[LetteredCaption, ...]]:
    """A meme, its canvas and its captions."""
    with open_reader() as ocr:

        def read(image: Image.Image) -> tuple[TextLine, ...]:
            return tuple(ocr.read(encode_png(image), "meme").lines)

        picture = load(image_path("en-003")).convert("RGB")
        page = read_page(picture, read(picture))
        return picture, open_canvas(picture, read), tuple(page.captions)


@pytest.mark.slow
def test_letters_of_the_old_caption_are_found(
    erased: tuple[Image.Image, PairCanvas, tuple[LetteredCaption, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    picture, canvas, captions = erased
    with open_reader() as ocr:

        def read(image: Image.Image) -> tuple[TextLine, ...]:
            return tuple(ocr.read(encode_png(image), "meme").lines)

        assert find_old_mark(canvas.image, captions, read) == ""
        assert len(find_old_mark(picture, captions, read)) >= 3
        pale = Image.blend(canvas.image, picture, 0.25)
        assert len(find_old_mark(pale, captions, read)) >= 3
        monkeypatch.setattr(pages, "erase_captions", lambda image, _: image)
        with pytest.raises(InputError, match="letters of its old caption remain"):
            open_canvas(picture, read)


@pytest.mark.slow
def test_a_caption_is_never_clipped(
    erased: tuple[Image.Image, PairCanvas, tuple[LetteredCaption, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, canvas, _ = erased
    zone = canvas.caption.ink.zone

    def clip(image: Image.Image, *_: object) -> tuple[Image.Image, PixelBox]:
        return image, (zone[0] + 1, zone[1] + 1, zone[2], zone[3] - 1)

    monkeypatch.setattr(pages, "set_on_box", clip)
    drawn, _ = draw_pair(canvas, ("so what", "what so"), read_nothing)
    assert len(drawn) == 2
    monkeypatch.setattr(pages, "set_caption", clip)
    with pytest.raises(InputError, match="would be clipped"):
        draw_pair(canvas, ("so what", "what so"), read_nothing)


@pytest.mark.parametrize(
    ("said", "kind", "fault"),
    [
        (("harmful", "harmful"), "target", "the label does not change: both sides are labelled"),
        (("harmless", "harmful"), "target", "both labels are wrong"),
        (("harmless", "harmless"), "emoji", "both sides are labelled harmless"),
        (("harmful", "harmless"), "emoji", "the label changes, but must not"),
    ],
)
def test_a_failing_pair_says_what_did_not_hold(
    said: tuple[str, str], kind: str, fault: str, tmp_path: Path
) -> None:
    labels = ("harmful", "harmful" if kind == "emoji" else "harmless")
    images = (tmp_path / "a.png", tmp_path / "b.png")
    pair = FailingPair("p", kind, ("<b>one", "two"), labels, said, images)
    assert pair.fault.startswith(fault)
    page = render_page(PairCheck("m", (), (pair,), 3))
    assert "3 skipped" in page
    assert "<b>one" not in page


@pytest.mark.parametrize("sign", SIGNS)
def test_signs_are_drawn_with_an_outline_of_its_width(sign: str) -> None:
    plain, edged = draw_sign(sign, 40, 0.0), draw_sign(sign, 40, 3.0)
    assert (plain.size, edged.size) == ((40, 40), (46, 46))
    inside = edged.crop((3, 3, 43, 43))
    body, outline = (np.asarray(mask, int) for mask in (plain, inside))
    assert (outline >= body - 8).all()
    assert outline.sum() > body.sum() > 0
