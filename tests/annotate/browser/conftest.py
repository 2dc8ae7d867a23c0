"""A running app and a browser: people with a window each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from memantics.annotate.service import open_service
from tests.annotate.browser.site import Site, serve_site
from tests.annotate.team import quick_hasher
from tests.browser import launch


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for all tests of a process."""
    with launch() as browser:
        yield browser


@pytest.fixture
def site(chromium: Browser, database_url: str, tmp_path: Path) -> Iterator[Site]:
    """The app on an empty database of each kind."""
    service = open_service(database_url, tmp_path / "media", hasher=quick_hasher())
    with ExitStack() as stack:
        stack.callback(service.close)
        yield stack.enter_context(serve_site(service, chromium))


@pytest.fixture
def local_site(chromium: Browser, tmp_path: Path) -> Iterator[Site]:
    """The app on SQLite, for what does not depend on the database."""
    service = open_service(str(tmp_path / "a.db"), tmp_path / "media", hasher=quick_hasher())
    with ExitStack() as stack:
        stack.callback(service.close)
        yield stack.enter_context(serve_site(service, chromium))
