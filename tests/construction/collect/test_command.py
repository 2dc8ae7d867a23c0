"""``memantics collect`` with the real OCR, and the page of what was dropped."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from memantics.construction.collect.collect import render_page
from memantics.construction.collect.gather import CollectSettings
from memantics.construction.collect.gather import gather as collect
from memantics.core.samples import image_path
from tests.browser import launch, watch
from tests.commands import Shell
from tests.construction.collect.pictures import ScriptedReader, draw, save
from tests.places import SHARED_DATA, needs_shared_data


@pytest.mark.slow
def test_the_command_reads_filters_and_says_so(shell: Shell) -> None:
    folder = shell.folder / "memes"
    folder.mkdir()
    for name in ("en-001", "CN90001", "CN90001.similar_image"):
        shutil.copy(image_path(name), folder)
    with Image.open(image_path("en-001")) as image:
        image.convert("RGB").save(folder / "copy.jpg", quality=60)
    blank = Image.new("RGB", (400, 300), "white")
    ImageDraw.Draw(blank).text((30, 120), "only words on paper", fill="black", font_size=34)
    blank.save(folder / "paper.png")
    ran = shell.run("collect", folder, "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert told["counts"] == {"kept": 3, "duplicate": 1, "variety": 1}
    assert told["template_clusters"] == 1
    rows = [json.loads(line) for line in (folder / "memes.jsonl").read_text().splitlines()]
    languages = {row["id"]: row["language"] for row in rows}
    assert languages["en-001"] == "en"
    assert languages["CN90001"] == "zh"
    again = shell.run("collect", folder, "--language", "zh")
    assert again.code == 0
    assert "dropped: language" in again.out


def test_wrong_use_is_one_line(shell: Shell) -> None:
    assert "is not a folder" in shell.refused("collect", "nowhere")
    assert "did you mean" in shell.refused("collect", ".", "--set", "sise=1")


def test_the_rules_can_be_read(shell: Shell) -> None:
    ran = shell.run("collect", "--rules")
    assert ran.code == 0
    assert "certainty" in ran.out


@pytest.fixture
def page(tmp_path: Path) -> str:
    folder = tmp_path / "memes"
    save(draw(1), folder / "<img src=x onerror=alert(1)>.png")
    save(draw(2), folder / "b.png")
    save(draw(3), folder / "c.png")
    said = {"<img src=x onerror=alert(1)>.png": "<script>alert(2)</script>", "b.png": ""}
    done = collect(folder, lambda: ScriptedReader(said), CollectSettings(out=tmp_path / "out"))
    assert done.counts["kept"] <= 2
    return render_page(done)


def test_the_page_escapes_what_comes_from_files(page: str) -> None:
    assert "<script>alert" not in page
    assert "onerror=alert(1)>" not in page
    assert "script-src" in page


def test_pictures_are_blurred_until_asked_for(page: str, tmp_path: Path) -> None:
    place = tmp_path / "page.html"
    place.write_text(page, encoding="utf-8")
    with launch() as browser, watch(browser) as seen:
        seen.page.goto(place.as_uri())
        picture = seen.page.locator(".peek img").first
        assert "blur" in picture.evaluate("node => getComputedStyle(node).filter")
        seen.page.locator(".peek").first.click()
        assert picture.evaluate("node => getComputedStyle(node).filter") == "none"
        seen.assert_quiet()


@needs_shared_data
def test_real_memes_are_hardly_ever_taken_for_copies() -> None:
    from memantics.core.images import load
    from memantics.understanding.vision.hashes import find_pairs, hash_image

    paths = sorted((SHARED_DATA / "punmemecn" / "images").glob("*.png"))[:120]
    assert len(paths) == 120
    assert list(find_pairs([hash_image(load(path)) for path in paths], 3)) == []
