from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from memantics.evaluation.reports.page import ReportSettings, build_report
from tests.browser import Watched, launch, watch
from tests.report.samples import write_demo

Opener = Callable[..., AbstractContextManager[Watched]]


# Not for the whole session: its event loop would be in the way of later tests' own loops.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with launch() as started:
        yield started


@pytest.fixture(scope="package")
def opener(browser: Browser) -> Opener:
    return partial(watch, browser)


@pytest.fixture(scope="session")
def demo_runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="session")
def demo_page(demo_runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "report.html"
    build_report(demo_runs, out, ReportSettings())
    return out
