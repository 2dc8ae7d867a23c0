"""Pages that show one meme blur it by the content warning of the data that it is of."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.core.memes import Meme
from memantics.core.registry import Registered, write_registered
from memantics.core.samples import IMAGES
from memantics.serve.settings import ServedModels
from memantics.understanding.kb import KnowledgeStore, MemeKnowledge, StoreReader
from memantics.understanding.knowledge.records import Knowledge
from memantics.workbench.analyze import Analyses, Analysis
from tests.browser import launch
from tests.serve.visiting import assert_at_home, serve_pages, visit

BLURRED, WARNING = 'class="picture blurred"', "Harmful memes in Chinese"


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The images of a release whose card warns, and a folder of nobody's."""
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))
    release, other = tmp_path / "release", tmp_path / "other"
    for folder in (release, other):
        folder.mkdir()
        (folder / "a.png").write_bytes(sorted(IMAGES.glob("*.png"))[0].read_bytes())
    write_registered(Registered("toxicn_mm", release, None, 1, "sum", "today"))
    return release, other


def test_the_page_of_an_analysis(folders: tuple[Path, Path], tmp_path: Path) -> None:
    for folder, blurred in zip(folders, (True, False), strict=True):
        found = Analysis(Meme("a", folder / "a.png"))
        for page in (
            found.save(tmp_path / "one.html").read_text(),
            Analyses((found,)).save(tmp_path / "all.html").read_text(),
        ):
            assert (BLURRED in page, WARNING in page) == (blurred, blurred)


def test_the_page_of_a_meme_of_a_store(folders: tuple[Path, Path], tmp_path: Path) -> None:
    for folder, blurred in zip(folders, (True, False), strict=True):
        known = MemeKnowledge("a", (), image="a.png")
        page = known.save(tmp_path / "a.html", images=folder).read_text()
        assert (BLURRED in page, WARNING in page) == (blurred, blurred)
    named = MemeKnowledge("a", (), collection="toxicn_mm").save(tmp_path / "a.html", images=None)
    assert WARNING in named.read_text()


def test_the_store_and_its_memes_in_a_browser(folders: tuple[Path, Path], tmp_path: Path) -> None:
    with_one = tmp_path / "store"
    store = KnowledgeStore.create(with_one)
    store.add([Knowledge("a", (), image="a.png", language="en")])
    del store
    for folder, blurred in zip(folders, (True, False), strict=True):
        reader = StoreReader(with_one, folder)
        sheet = reader.sheet("a")
        assert (sheet.blurred, WARNING in sheet.known.warning) == (blurred, blurred)
        assert [card.blurred for card in reader.search("", "", 0, 5)[1]] == [blurred]


HIDDEN = "element => getComputedStyle(element).filter.includes('blur')"


@pytest.mark.slow
def test_pages_hide_the_picture_until_somebody_asks(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    """In a browser, by mouse and by keyboard: page of a meme, analyses, the store, a meme in it."""
    release, _ = folders
    known = MemeKnowledge("a", (), image="a.png")
    found = Analysis(Meme("a", release / "a.png"))
    pages = [
        known.save(tmp_path / "known.html", images=release).as_uri(),
        found.save(tmp_path / "one.html").as_uri(),
        Analyses((found, found)).save(tmp_path / "all.html").as_uri(),
    ]
    store = KnowledgeStore.create(tmp_path / "store")
    store.add([Knowledge("a", (), image="a.png", language="en")])
    del store
    models = ServedModels(store=tmp_path / "store", images=release)
    with serve_pages(models) as address, launch() as browser:
        for number, url in enumerate((*pages, f"{address}/browse/store/meme?id=a")):
            with visit(browser, 900) as seen:
                seen.page.goto(url)
                picture = seen.page.locator(".picture img").first
                assert picture.evaluate(HIDDEN), url
                assert WARNING in seen.page.locator("body").inner_text(), url
                seen.page.screenshot(path=tmp_path / f"{number}.png")
                seen.page.locator("button.picture, .picture button").first.focus()
                seen.page.keyboard.press("Enter")
                assert not picture.evaluate(HIDDEN), url
                assert_at_home(seen, address)
        with visit(browser, 900) as seen:
            seen.page.goto(f"{address}/browse/store")
            card = seen.page.locator(".card img")
            assert card.evaluate(HIDDEN)
            card.hover()
            assert card.evaluate(HIDDEN)  # a list shows nothing by accident
            seen.page.screenshot(path=tmp_path / "store.png")
