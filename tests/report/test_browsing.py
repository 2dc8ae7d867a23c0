"""The item browser of the page, used by mouse and keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from memantics.evaluation.reports.runs import load_runs
from tests.report.conftest import Opener
from tests.report.samples import WARNING
from tests.report.steps import count_items


@pytest.mark.slow
def test_filters(opener: Opener, demo_page: Path, demo_runs: list[Path]) -> None:
    with opener() as seen:
        page = seen.page
        page.goto(demo_page.as_uri())
        assert count_items(page) == 48
        expect(page.locator(".item")).to_have_count(10)
        page.select_option("#f-run", label="openai/sample-vl-72b")
        runs = load_runs(demo_runs)
        for status, number in runs[0].results.counts.items():
            page.select_option("#f-status", status)
            assert count_items(page) == number
        page.select_option("#f-status", "")
        page.select_option("#f-result", "0")
        right = count_items(page)
        page.select_option("#f-result", "1")
        wrong = count_items(page)
        page.select_option("#f-result", "2")
        assert right + wrong + count_items(page) == 48
        assert right == round((runs[0].results.scores[0].value or 0) * 48)
        page.click("#f-reset")
        page.locator("[data-tag=dimension]").select_option("Scene")
        assert count_items(page) == 5
        page.fill("#f-text", "READING 11c")
        expect(page.locator("#count")).to_have_text("0 of 48 items")
        page.click("#f-reset")
        page.fill("#f-text", "READING 11c")
        expect(page.locator("#count")).to_have_text("1 of 48 items")
        page.select_option("#f-board", "punmemecn-detection")
        assert count_items(page) == 30
        seen.assert_quiet()


@pytest.mark.slow
def test_models_can_be_compared(opener: Opener, demo_page: Path) -> None:
    with opener() as seen:
        page = seen.page
        page.goto(demo_page.as_uri())
        page.select_option("#f-result", "none")
        assert 0 < count_items(page) < 48
        for card in page.locator(".item").all():
            assert card.locator(".badge.v0:not(.options *)").count() == 0
        page.select_option("#f-result", "differ")
        assert 0 < count_items(page) < 48


@pytest.mark.slow
def test_pages_and_their_addresses(opener: Opener, demo_page: Path) -> None:
    with opener() as seen:
        page = seen.page
        page.goto(demo_page.as_uri())
        expect(page.locator("#prev")).to_be_disabled()
        page.click("#next")
        expect(page.locator("#where")).to_have_text("Page 2 of 5")
        expect(page.locator(".item h3 a").first).to_have_text("q010")
        page.select_option("#f-status", "answered")
        address = page.url
        page.goto("about:blank")
        page.goto(address)
        expect(page.locator("#f-status")).to_have_value("answered")
        page.goto("about:blank")
        page.goto(demo_page.as_uri() + "#browse/nowhere?run=99&page=77&tag.none=x")
        expect(page.locator("#where")).to_have_text("Page 5 of 5")
        assert count_items(page) == 48
        seen.assert_quiet()


@pytest.mark.slow
def test_an_item_has_its_own_address(opener: Opener, demo_page: Path) -> None:
    with opener() as seen:
        page = seen.page
        page.goto(demo_page.as_uri() + "#item/punmemecn-detection/p023")
        target = page.locator(".item.linked")
        expect(target).to_be_focused()
        expect(target).to_be_in_viewport()
        expect(target.locator("h3 a")).to_have_text("p023")
        page.locator(".board").first.get_by_role("link", name="1 refused").first.click()
        expect(page.locator("#f-status")).to_have_value("refused")
        assert count_items(page) == 1
        page.get_by_role("link", name="Scene", exact=True).first.click()
        expect(page.locator("[data-tag=dimension]")).to_have_value("Scene")
        assert count_items(page) == 5


@pytest.mark.slow
def test_an_item_shows_prompt_answer_gold_and_verdicts(opener: Opener, demo_page: Path) -> None:
    with opener() as seen:
        page = seen.page
        page.goto(demo_page.as_uri() + "#item/mquest-qa/q003")
        card = page.locator(".item.linked")
        expect(card.locator(".options .gold")).to_contain_text("reading 3b")
        expect(card.locator(".answer")).to_have_count(3)
        expect(card.locator(".answer.trivial")).to_have_count(1)
        expect(card.locator(".answer").first).to_contain_text("Answer:")
        prompt = card.locator("details.prompt")
        expect(prompt).to_have_count(1)
        prompt.locator("summary").click()
        expect(prompt).to_contain_text("You read memes.")
        expect(prompt).to_contain_text("[image meme-001.png]")
        card.locator(".answer details summary").first.click()
        expect(card.locator(".answer").first).to_contain_text("Look at the words first")


@pytest.mark.slow
def test_images_are_blurred_until_asked_for_by_mouse_or_key(
    opener: Opener, demo_page: Path
) -> None:
    with opener() as seen:
        page = seen.page
        page.goto(demo_page.as_uri())
        pictures = page.locator(".pictures button.picture")
        expect(page.locator(".pictures .blurred")).to_have_count(10)
        assert "blur" in page.locator(".pictures img").first.evaluate(
            "(e) => getComputedStyle(e).filter"
        )
        assert pictures.first.get_attribute("aria-label") == "Show image meme-000.png of item q000"
        pictures.first.focus()
        page.keyboard.press("Enter")
        # Both questions about this meme show it now.
        expect(pictures.first).to_have_attribute("aria-pressed", "true")
        assert pictures.first.locator("img").evaluate("(e) => getComputedStyle(e).filter") == "none"
        page.keyboard.press("Space")
        expect(pictures.first).to_have_class("picture blurred")
        pictures.nth(4).click()
        expect(pictures.nth(4)).to_have_class("picture")


@pytest.mark.slow
def test_showing_all_images_needs_a_second_word(opener: Opener, demo_page: Path) -> None:
    with opener() as seen:
        page = seen.page
        page.goto(demo_page.as_uri())
        page.click("#reveal")
        expect(page.locator("#confirm")).to_be_visible()
        expect(page.locator("#confirm-text")).to_have_text(WARNING)
        page.keyboard.press("Escape")
        expect(page.locator("#confirm")).to_be_hidden()
        expect(page.locator(".pictures .blurred")).to_have_count(10)
        page.click("#reveal")
        page.click("#confirm-yes")
        expect(page.locator(".pictures .blurred")).to_have_count(0)
        page.click("#next")
        expect(page.locator(".pictures .blurred")).to_have_count(0)
        page.click("#reveal")
        expect(page.locator(".pictures .blurred")).to_have_count(10)
        page.select_option("#f-board", "punmemecn-detection")
        expect(page.locator("#reveal")).to_be_hidden()
        expect(page.locator(".pictures button")).to_have_count(0)
        expect(page.locator(".pictures img")).to_have_count(10)
        seen.assert_quiet()


@pytest.mark.slow
def test_the_keyboard_reaches_everything(opener: Opener, demo_page: Path) -> None:
    with opener() as seen:
        page = seen.page
        page.goto(demo_page.as_uri())
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        page.locator("#f-board").focus()
        reached = []
        for _ in range(9):
            reached.append(
                page.evaluate("document.activeElement.id || document.activeElement.className")
            )
            page.keyboard.press("Tab")
        assert reached[:4] == ["f-board", "f-run", "f-result", "f-status"]
        assert reached[-3:] == ["f-text", "f-reset", "reveal"]
        page.locator("#next").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#where")).to_have_text("Page 2 of 5")
