"""The audit page in a browser: complete on its own, quiet, and never fooled by data."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from memantics.core.finding import Finding, Gap
from memantics.core.records import Score
from memantics.evaluation.audit import Audit, render_page
from memantics.evaluation.audits import blind as needs
from memantics.evaluation.audits.options import TITLES
from memantics.moderation import resplit
from tests.audit.toys import BENCHMARK, DATA
from tests.browser import launch, watch
from tests.places import ROOT

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def make_sheet() -> Audit:
    broken = Finding(
        key="a",
        title=f"Evil {EVIL}",
        measured=f"share of {EVIL}",
        score=Score("proportion", 0.4, 1234, 0.3, 0.5),
        verdict="broken",
        meaning=f"It says {EVIL}",
        advice="Repair it.",
        expected=0.25,
        reference=EVIL,
        task="toy/qa",
        model=f"openai/{EVIL}",
        rows=tuple(
            Score("proportion", n / 10, n, by="part", label=f"{EVIL} {n}") for n in range(9)
        ),
        details=(EVIL, "x" * 400),
    )
    sound = Finding(
        key="b",
        title="Nothing",
        measured="a thing",
        score=Score("distance", 3.5, 9),
        verdict="sound",
        meaning="All is well.",
        advice="No action needed.",
    )
    return Audit(BENCHMARK, DATA, [broken, sound], [Gap("toy/qa", EVIL, EVIL, EVIL)], ("m",))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launch() as own:
        yield own


@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_is_quiet_and_fits(browser: Browser, tmp_path: Path, width: int) -> None:
    path = tmp_path / "audit.html"
    make_sheet().save(path)
    with watch(browser, width=width) as watched:
        watched.page.goto(path.as_uri())
        watched.assert_quiet()
        assert watched.page.locator("h1").inner_text() == "Audit of Toy"
        assert watched.page.locator("script").count() == 0
        assert watched.page.locator("img").count() == 0
        assert watched.page.get_by_text("0.300–0.500").first.is_visible()
        assert watched.page.locator("svg .reference").count() == 1
        wide = watched.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width


def test_verdicts_are_words_and_not_only_colours() -> None:
    page = render_page(make_sheet())
    assert "1 broken" in page
    assert "0 worth knowing" in page
    assert "Recommendation." in page


@pytest.mark.slow
def test_an_audit_without_findings_says_so() -> None:
    page = render_page(Audit(BENCHMARK, DATA, [], [], ()))
    assert "No check was possible" in page
    assert "No model was run." in page


@pytest.mark.slow
def test_the_guide_explains_every_finding() -> None:
    """Every title that a page may show stands in the guide, as far as it has no placeholder."""
    guide = (ROOT / "docs" / "how-to" / "audit-a-benchmark.md").read_text(encoding="utf-8")
    titles = set(TITLES.values())
    for module in (needs, resplit):
        entries = tomllib.loads(Path(str(module.__file__)).with_name("findings.toml").read_text())
        titles |= {re.sub(r"\{.*?\}", "…", entry["title"]) for entry in entries.values()}
    assert [title for title in sorted(titles - {"…"}) if title not in guide] == []
