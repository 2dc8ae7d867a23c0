"""Headless Chromium for tests that look at pages; skipped where there is none, except in CI."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

WAIT = 60_000  # milliseconds: no test may fail because a machine is busy
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def find_chromium() -> str:
    """The browser's path; a missing one skips the test, or fails it where CI=true."""
    for name in ("/usr/bin/chromium", "chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    if os.environ.get("CI") == "true":
        pytest.fail("CI needs Chromium to look at pages: install the package chromium")
    pytest.skip("Chromium is not installed, so pages cannot be looked at")


@contextmanager
def launch() -> Iterator[Browser]:
    """A browser, closed at the end."""
    path = find_chromium()
    expect.set_options(timeout=WAIT)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Watched:
    """A page and what it did: errors on its console, addresses it asked for, dialogs it opened."""

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def assert_quiet(self) -> None:
        """No error, no dialog, and nothing loaded but files of this test."""
        assert self.errors == []
        assert self.dialogs == []
        assert [url for url in self.requests if not url.startswith(("file:", "data:"))] == []


@contextmanager
def watch(
    browser: Browser,
    width: int = 1280,
    height: int = 900,
    scheme: Literal["light", "dark"] = "light",
) -> Iterator[Watched]:
    """A fresh page whose errors, requests and dialogs are written down."""
    size: ViewportSize = {"width": width, "height": height}
    context = browser.new_context(viewport=size, color_scheme=scheme)
    context.set_default_timeout(WAIT)
    watched = Watched(context.new_page())
    page = watched.page
    page.on("pageerror", lambda error: watched.errors.append(str(error)))
    page.on(
        "console",
        lambda message: (
            watched.errors.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    page.on("request", lambda request: watched.requests.append(request.url))

    def dismiss(dialog: object) -> None:
        watched.dialogs.append(str(getattr(dialog, "message", dialog)))
        getattr(dialog, "dismiss")()  # noqa: B009 - playwright types the event as a plain object

    page.on("dialog", dismiss)
    try:
        yield watched
    finally:
        context.close()
