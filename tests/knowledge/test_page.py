"""The page of a meme, looked at in a browser: desktop and phone, light and dark."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from memantics.core.errors import DataError
from memantics.understanding.kb import read_sample_knowledge
from memantics.understanding.knowledge.official import Account, adopt, find_official
from memantics.understanding.knowledge.page import find_image, render_page, write_page
from memantics.understanding.knowledge.records import Individual, Knowledge, Relation
from tests.browser import launch, watch
from tests.knowledge.samples import DUEL, UNTIDY
from tests.places import SHARED_DATA

SAMPLE = {one.meme: one for one in read_sample_knowledge()}
# Where text sticks out of its card, and where two cards of a drawing overlap.
STICKING_OUT = """(drawing) => [...drawing.querySelectorAll('.card')].flatMap((card) => {
  const box = card.querySelector('.box').getBoundingClientRect();
  return [...card.querySelectorAll('text')]
    .filter((text) => text.getBoundingClientRect().right > box.right + 1)
    .map((text) => text.textContent);
})"""
OVERLAPPING = """(drawing) => {
  const boxes = [...drawing.querySelectorAll('.box')].map((box) => box.getBoundingClientRect());
  return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) =>
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)).length;
}"""
CUT_THROUGH = """(drawing) => {
  const boxes = [...drawing.querySelectorAll('.card')]
    .map((card) => [card.dataset.card, card.querySelector('.box').getBBox()]);
  return [...drawing.querySelectorAll('.line')].filter((line) => {
    const path = line.querySelector('path');
    const length = path.getTotalLength();
    for (let at = 0; at <= length; at += 6) {
      const {x, y} = path.getPointAtLength(at);
      for (const [number, box] of boxes) {
        if (number === line.dataset.from || number === line.dataset.to) continue;
        const across = x > box.x + 2 && x < box.x + box.width - 2;
        if (across && y > box.y + 1 && y < box.y + box.height - 1) return true;
      }
    }
    return false;
  }).length;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launch() as browser:
        yield browser


def sample_memes() -> list[Knowledge]:
    chosen = [SAMPLE[name] for name in ("en-012", "en-011", "CN90001", "zh-004")]
    bases = SHARED_DATA / "mquest"
    if bases.is_dir():
        chosen += adopt(find_official(bases)[::29], Account())
    return [*chosen, DUEL, UNTIDY]


def open_page(page: Page, own: Knowledge, folder: Path) -> None:
    out = folder / "page.html"
    write_page(own, out, find_image(own, None))
    page.goto(out.as_uri())


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_pages_are_tidy_at_client_and_on_phones(
    browser: Browser, tmp_path: Path, width: int, height: int
) -> None:
    with watch(browser, width, height) as watched:
        page = watched.page
        for meme in sample_memes():
            open_page(page, meme, tmp_path)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), meme.meme
            drawing = page.locator(".drawing:visible")
            assert drawing.count() == 1
            assert drawing.evaluate(STICKING_OUT) == []
            assert drawing.evaluate(OVERLAPPING) == 0
            assert drawing.evaluate(CUT_THROUGH) == 0, meme.meme
        watched.assert_quiet()


@pytest.mark.slow
def test_an_image_with_a_warning_is_blurred_until_clicked(browser: Browser, tmp_path: Path) -> None:
    with watch(browser) as watched:
        open_page(watched.page, SAMPLE["en-012"], tmp_path)
        picture = watched.page.locator("#picture")
        blur = "(own) => getComputedStyle(own.querySelector('img')).filter"
        assert "blur" in picture.evaluate(blur)
        picture.click()
        assert picture.evaluate(blur) == "none"
        open_page(watched.page, SAMPLE["en-011"], tmp_path)
        assert picture.evaluate(blur) == "none"
        watched.assert_quiet()


@pytest.mark.slow
def test_pointing_at_a_card_lights_its_lines_and_tells_more(
    browser: Browser, tmp_path: Path
) -> None:
    with watch(browser, scheme="dark") as watched:
        page = watched.page
        open_page(page, SAMPLE["en-012"], tmp_path)
        page.hover(".wide .card.d-AnalogicalMapping")
        assert page.locator(".wide .line.lit").count() == 2
        assert page.locator(".wide .card.lit").count() == 3
        assert "dog for a thoughtless sender" in page.locator("#panel").inner_text()
        page.hover("h2")
        assert page.locator("#panel").is_hidden()
        page.click(".wide .card.d-Scene")
        page.hover("h2")
        assert page.locator(".wide .line.lit").count() == 4
        page.keyboard.press("Escape")
        assert page.locator(".wide .line.lit").count() == 0
        watched.assert_quiet()


def test_the_keyboard_reaches_every_card(browser: Browser, tmp_path: Path) -> None:
    with watch(browser) as watched:
        open_page(watched.page, SAMPLE["en-011"], tmp_path)
        watched.page.locator(".wide .card").first.focus()
        watched.page.keyboard.press("Tab")
        assert watched.page.evaluate("document.activeElement.classList.contains('card')")
        assert watched.page.locator("#panel").is_visible()


def test_hostile_knowledge_stays_text(browser: Browser, tmp_path: Path) -> None:
    evil = '"><img src=x onerror=alert(1)><script>alert(2)</script>{{ 7*7 }}'
    own = Knowledge(
        evil,
        (Individual("Scene", evil, evil, evil, (Relation(evil, evil),)),),
        evil,
        "",
        evil,
        evil,
    )
    with watch(browser) as watched:
        open_page(watched.page, own, tmp_path)
        watched.page.wait_for_timeout(100)
        assert watched.page.locator("img").count() == 0
        assert "{{ 7*7 }}" in watched.page.locator("h1").inner_text()
        watched.assert_quiet()


@pytest.mark.slow
def test_images_are_looked_for_where_they_may_be(tmp_path: Path) -> None:
    own = dataclasses.replace(DUEL, image="../../etc/passwd")
    with pytest.raises(DataError, match="points outside"):
        find_image(own, tmp_path)
    assert find_image(own, None) is None
    assert find_image(dataclasses.replace(DUEL, image=""), tmp_path) is None
    page = render_page(DUEL, tmp_path / "7.png")
    assert "missing" in page


@pytest.mark.slow
def test_a_page_of_ten_thousand_stays_readable() -> None:
    many = tuple(Individual("Scene", f"n{number}", f"number {number}") for number in range(10_000))
    page = render_page(Knowledge("1", many), None)
    assert "8,000 more are in the store" in page
    assert "9,970 more individuals are not drawn" in page
    assert len(page) < 2_000_000
