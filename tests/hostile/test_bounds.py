"""Bounds on one meme: regions that are read, captions that are measured, pixels that are drawn."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image as Pillow
from PIL import ImageDraw, ImageFont

from memantics.core.errors import InputError
from memantics.core.images import load
from memantics.core.lines import TextLine
from memantics.core.memes import Meme
from memantics.models.embedded import ocr
from memantics.models.embedded.ocr import (
    MOST_LENGTH,
    MOST_REGIONS,
    OcrProfile,
    RapidReader,
    choose_regions,
)
from memantics.moderation.data import make_examples
from memantics.moderation.detect import Detector, Moderator
from memantics.moderation.screen import screen
from memantics.moderation.screening import ScreenSettings, read_rows
from memantics.understanding.reappraisal.chain import MOST_PIXELS
from memantics.understanding.reappraisal.chain import reappraise as take_through
from memantics.understanding.reappraisal.workshop import Workshop
from memantics.understanding.reappraise import reappraise
from memantics.understanding.vision.page import MOST_CAPTIONS, read_page
from memantics.workbench.analyze import analyze
from tests.reappraisal.benches import FixedPlanner
from tests.scale.inline import InlineEngine


def test_the_largest_regions_are_read() -> None:
    few = [(20, 60)] * MOST_REGIONS
    assert choose_regions(few) == list(range(MOST_REGIONS))
    assert choose_regions([(10, 30), *few]) == list(range(1, MOST_REGIONS + 1))
    assert choose_regions([]) == []


def test_regions_are_short_together() -> None:
    half = (20, 10 * MOST_LENGTH)
    assert choose_regions([half, half]) == [0, 1]
    assert choose_regions([half, half, (20, 20)]) == [0, 1]
    assert choose_regions([half, (20, 20), half]) == [0, 2]
    assert choose_regions([(0, 5)]) == [0]


@pytest.mark.slow
@pytest.mark.parametrize(("count", "fine"), [(MOST_CAPTIONS, True), (MOST_CAPTIONS + 1, False)])
def test_a_meme_of_too_many_captions_is_refused(count: int, fine: bool) -> None:
    picture = Pillow.new("RGB", (100, 60 * count), "white")
    lines = [TextLine("some words", (10, 60 * i, 90, 60 * i + 14)) for i in range(count)]
    if fine:
        assert len(read_page(picture, lines).captions) == count
    else:
        with pytest.raises(InputError, match=f"{count} captions; the limit is {MOST_CAPTIONS}"):
            read_page(picture, lines)


@pytest.mark.slow
@pytest.mark.parametrize(("height", "reduced"), [(1333, False), (1334, True)])
def test_a_large_picture_is_reduced(tmp_path: Path, height: int, reduced: bool) -> None:
    assert MOST_PIXELS == 2000 * 2000
    path = tmp_path / "large.png"
    picture = Pillow.new("RGB", (3000, height), "white")
    picture.paste("navy", (400, 300, 2600, 1000))
    picture.save(path, compress_level=1)
    shop = Workshop(FixedPlanner(), lambda *_: (), tmp_path / "out", target="calm")
    made = asyncio.run(take_through(Meme("large", path), shop))
    assert made.status == "done", made.reason
    size = load(made.folder / "meme.png").size
    assert size[0] * size[1] <= MOST_PIXELS
    assert (size != picture.size) == reduced
    assert size[0] / size[1] == pytest.approx(3000 / height, rel=0.01)


def draw_lines(path: Path, lines: int, words: int, size: int, side: int) -> Path:
    """A page of text: lines of so many times five words."""
    page = Pillow.new("RGB", (side, side), "white")
    pen, font = ImageDraw.Draw(page), ImageFont.load_default(size)
    for row in range(lines):
        text = " ".join(["angry words fill the page"] * words)
        pen.text((5, row * round(1.3 * size)), text, fill="black", font=font)
    page.save(path)
    return path


@pytest.fixture
def crowded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three lines where two are read."""
    monkeypatch.setattr(ocr, "MOST_REGIONS", 2)
    return draw_lines(tmp_path / "crowded.png", 3, 1, 40, 640)


@pytest.mark.parametrize("profile", ["thorough", "fast"])
def test_what_is_not_read_is_counted(crowded: Path, profile: OcrProfile) -> None:
    found = RapidReader(profile).read(crowded.read_bytes(), "x")
    assert (len(found.lines), found.unread) == (2, 1)
    whole = draw_lines(crowded.with_name("whole.png"), 2, 1, 40, 640)
    assert RapidReader(profile).read(whole.read_bytes(), "x").unread == 0


@pytest.mark.slow
def test_a_meme_that_is_read_in_part_needs_review(crowded: Path, tmp_path: Path) -> None:
    why = "1 region of text was not read: the image holds more text than is read"
    (found,) = (moderator := Moderator(Detector.load_sample())).read([crowded.read_bytes()])
    (verdict,) = moderator.judge([found])  # type: ignore[list-item]
    assert (verdict.status, verdict.outcome) == ("scored", "review")
    assert why in verdict.review
    settings = ScreenSettings(
        detector=Detector.load_sample().save(tmp_path / "d.zip"), readings="none"
    )
    screen([crowded], settings, out=tmp_path / "out", engine=InlineEngine())
    (row,) = read_rows(tmp_path / "out")
    assert (row["status"], row["label"]) == ("scored", "review")
    assert why in row["reason"]
    (harm,) = analyze(crowded).harms
    assert why in harm.reason
    with pytest.raises(InputError, match=r"crowded\.png: 1 region of text was not read"):
        make_examples([crowded])
    made = reappraise(crowded, out=tmp_path / "kinder")
    assert (made.status, made.stage) == ("failed", "reading")
    assert made.reason.startswith(why)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "alone"), [(2, False), (5, True)])
def test_long_lines_are_recognised_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: int, alone: bool
) -> None:
    page = draw_lines(tmp_path / "page.png", 3, words, 20, 1280)
    engine = ocr.load_engine(ocr._weights())
    sizes: list[int] = []
    ask = engine._load_rec_model().session

    def count(batch: object) -> object:
        sizes.append(len(batch))  # type: ignore[arg-type]
        return ask(batch)

    monkeypatch.setattr(engine._load_rec_model(), "session", count)
    RapidReader().read(page.read_bytes(), "x")
    assert sizes == ([1, 1, 1] if alone else [3])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="measures memory by /proc")
def test_a_page_of_dense_text_is_refused_within_bounds(tmp_path: Path) -> None:
    """Before, it was measured letter by letter: 97 s and 1.9 GB. Now: 17 s and 0.8 GB."""
    draw_lines(tmp_path / "page.png", 111, 14, 28, 4000)
    code = (
        "import resource, sys; from memantics.cli.main import main\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (60, 60))\n"
        "sys.argv[1:] = ['reappraise', 'page.png', '--out', 'out']\n"
        "try: main()\n"
        "finally: print(open('/proc/self/status').read(), file=open('status', 'w'))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2, ended.stderr[-500:]
    assert "regions of text were not read: the image holds more text" in ended.stderr
    # The peak of the process itself: what ``getrusage`` tells of children is the largest of all.
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", (tmp_path / "status").read_text())
    assert int(peak) < 1_200_000
