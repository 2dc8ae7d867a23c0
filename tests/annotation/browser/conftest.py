"""A running app and a browser: people with a window each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from memantics.annotation.service import open_service
from tests.annotation.browser.site import Site, Windows, serve_site
from tests.annotation.team import quick_hasher
from tests.browser import launch


@pytest.fixture(scope="package")
def windows() -> Iterator[Windows]:
    """One browser for all tests of this folder.

    Not for the whole session: while it runs, its loop is the running one of this thread.
    """
    with launch() as browser:
        yield Windows(browser)


@pytest.fixture
def site(windows: Windows, database_url: str, tmp_path: Path) -> Iterator[Site]:
    """The app on an empty database of each kind."""
    service = open_service(database_url, tmp_path / "media", hasher=quick_hasher())
    with ExitStack() as stack:
        stack.callback(service.close)
        yield stack.enter_context(serve_site(service, windows))


@pytest.fixture
def local_site(site: Site) -> Site:
    """The app for one person alone."""
    return site
