"""Pages on a phone: nothing is wider than the screen, and wide tables become cards."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser import watch
from tests.report.every_page import make_pages

WIDER = "document.documentElement.scrollWidth - innerWidth"
HIDDEN = "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"


@pytest.mark.parametrize("name", ["policy_test", "judges", "decisions", "audit-mquest"])
def test_a_page_fits_a_phone(name: str, browser: Browser, tmp_path: Path) -> None:
    (file,) = make_pages(tmp_path, name, "en")
    with watch(browser, width=400) as watched:
        watched.page.goto(file.as_uri())
        assert watched.page.evaluate(WIDER) <= 0
        if not name.startswith("audit"):  # its breakdowns contain drawings and may scroll
            assert max(watched.page.evaluate(HIDDEN)) <= 0
        watched.assert_quiet()
