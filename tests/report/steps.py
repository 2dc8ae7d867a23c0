"""Small steps that several tests of the page share."""

from __future__ import annotations

import re

from playwright.sync_api import Page


def count_items(page: Page) -> int:
    """The number of items that fit the filters."""
    found = re.match(r"[\d,]+", page.locator("#count").inner_text())
    assert found
    return int(found[0].replace(",", ""))


def open_everything(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    page.wait_for_timeout(50)
