"""Pages bring the glyphs of their Chinese along: bare machines have no Chinese font."""

from __future__ import annotations

import base64
import re
from io import BytesIO
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont

import memantics
from memantics.core.fonts import embed_chinese
from memantics.evaluation.reports.page import ReportSettings, build_report
from tests.report.conftest import Opener

FAMILY = "Chinese of Memantics"
LOADED = f"""async () => {{
    const faces = await document.fonts.load('16px "{FAMILY}"', '狮');
    return faces.map((face) => face.status);
}}"""


def read_font(style: str) -> TTFont:
    found = re.search(r"base64,([^)]+)\)", style)
    assert found
    return TTFont(BytesIO(base64.b64decode(found.group(1))))


@pytest.mark.parametrize("page", ["", "only Latin, “quotes” – and 😀", "Ü\u2e7f"])
def test_without_chinese_there_is_no_font(page: str) -> None:
    assert embed_chinese(page) == ""


def test_the_font_holds_what_the_page_shows_and_no_more() -> None:
    made = embed_chinese("今晚又狮眠了，今晚 and Latin")
    assert set(read_font(made).getBestCmap()) == set(map(ord, "今晚又狮眠了，"))
    assert made == embed_chinese("了眠狮又晚今，")


def test_the_font_is_for_chinese_alone() -> None:
    """Without the range, Chromium kept empty boxes for the first words on a machine without one."""
    found = re.search(r"unicode-range: ([^;]+);", embed_chinese("狮"))
    assert found
    ranges = [part.removeprefix("U+").split("-") for part in found.group(1).split(", ")]
    signs = {n for low, high in ranges for n in range(int(low, 16), int(high, 16) + 1)}
    assert set(map(ord, "⺀今晚，！：")) <= signs
    assert not set(map(ord, "aé“”–…×")) & signs


def test_a_character_that_we_lack_leaves_the_others() -> None:
    """GB2312 ships; what is beyond it is left to the reader's machine."""
    assert set(read_font(embed_chinese("中\u9fff")).getBestCmap()) == {ord("中")}


def test_our_own_chinese_words_have_all_their_glyphs() -> None:
    """What the app, the studio and their workflows say is read on bare machines, too."""
    root = Path(memantics.__file__).parent
    files = [file for kind in ("toml", "html", "js") for file in root.rglob(f"*.{kind}")]
    assert len(files) > 100
    shown = {c for file in files for c in file.read_text(encoding="utf-8") if c >= "\u2e80"}
    chinese = {ord(c) for c in shown if c < "\ua4d0" or "\uff00" <= c <= "\uffef"}
    assert len(chinese) > 500
    assert chinese <= set(read_font(embed_chinese("".join(map(chr, chinese)))).getBestCmap())


def test_a_report_shows_it_under_its_policy(
    opener: Opener, demo_runs: list[Path], tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    build_report(demo_runs[:1], page, ReportSettings(title="狮眠", images=False))
    assert set(map(ord, "狮眠")) <= set(read_font(page.read_text("utf-8")).getBestCmap())
    with opener() as seen:
        seen.page.goto(page.as_uri())
        assert seen.page.evaluate(LOADED) == ["loaded"]
        seen.assert_quiet()
