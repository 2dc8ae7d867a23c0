"""The report in Chinese: every text of ours is translated, and texts from data are not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

import memantics as mm
from memantics.core.errors import InputError
from memantics.evaluation.reports.page import ReportSettings, build_report
from memantics.web.page import read_asset
from memantics.web.phrases import read_phrases
from tests.commands import Shell
from tests.report.conftest import Opener
from tests.report.steps import open_everything

CALL = re.compile(r"""(?:\bt|\battribute|phrases\.text)\("((?:[^"\\]|\\.)*)"[,)]""")
SCRIPT_CALL = re.compile(r"""\bT\("((?:[^"\\]|\\.)*)"[,)]""")


@pytest.fixture(scope="module")
def chinese_page(demo_runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("chinese") / "report.zh.html"
    build_report(demo_runs, out, ReportSettings(language="zh"))
    return out


def test_every_text_of_the_template_and_the_script_is_translated_once() -> None:
    chinese = read_phrases("zh")
    template = read_asset("page.html") + read_asset("drawings.svg")
    written = set(CALL.findall(template))
    assert len(written) > 70
    assert written | {"Page {page} of {pages}"} == set(chinese.page)
    assert set(SCRIPT_CALL.findall(read_asset("page.js"))) <= set(chinese.script)


@pytest.mark.parametrize("table", ["page", "script", "said"])
def test_translations_are_chinese_and_keep_their_placeholders(table: str) -> None:
    for english, chinese in getattr(read_phrases("zh"), table).items():
        assert re.search(r"[\u4e00-\u9fff]", chinese) or english == "kappa", english
        named = sorted(re.findall(r"\{(\w+)\}", english))
        assert named == sorted(re.findall(r"\{(\w+)\}", chinese)), english


def test_sentences_of_several_parts_are_translated_whole_or_not() -> None:
    say = read_phrases("zh").say
    assert (
        say("sample data, 12 items, stratified by dimension") == "示例数据，12 个条目，按维度分层"
    )
    assert say("official data, my note") == "official data, my note"
    assert say("PunMemeCN: Pun detection") == "PunMemeCN：双关识别"
    assert say("n = 1,200, 30 memes") == "n = 1,200，30 张表情包"


def test_values_are_escaped_and_isolated() -> None:
    text = read_phrases("zh").text(
        "Models by {metric}, with 95 % confidence intervals.", metric="<b>\u2029"
    )
    assert "<bdi>&lt;b&gt; </bdi>" in text
    assert "<bdi>" not in read_phrases("en").attribute("{metric} by {field}", metric="a", field="b")


def test_the_page_says_nothing_of_ours_in_english(chinese_page: Path) -> None:
    page = chinese_page.read_text(encoding="utf-8")
    assert '<html lang="zh">' in page
    body = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    shown = re.sub(r"<[^>]*>", "\n", body)
    for english in (*read_phrases("zh").page, *read_phrases("zh").said):
        if " " in english and "{" not in english:
            assert english not in shown, english


def test_the_english_page_is_as_it_was(demo_page: Path) -> None:
    page = demo_page.read_text(encoding="utf-8")
    assert '<html lang="en">' in page
    assert "Models and tasks" in page or "Cost and time" in page
    assert '<script type="application/json" id="phrases">{}</script>' in page


def test_only_the_page_has_a_language(shell: Shell, demo_runs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--language works with the HTML page only"):
        mm.report(demo_runs, tmp_path / "report.md", language="zh")
    ran = shell.run("report", *demo_runs, "--format", "csv", "--language", "zh")
    assert ran.code == 2
    assert "--language works with the HTML page only" in ran.err


@pytest.mark.slow
def test_the_item_list_speaks_chinese(opener: Opener, chinese_page: Path) -> None:
    with opener() as seen:
        page = seen.page
        page.goto(chinese_page.as_uri())
        open_everything(page)
        expect(page.locator("#f-run option").first).to_have_text("全部模型")
        expect(page.locator("#count")).to_contain_text("个条目")
        expect(page.locator("#where")).to_contain_text("第 1 页")
        page.select_option("#f-result", "1")
        expect(page.locator(".item .badge.v1").first).to_contain_text("错误")
        seen.assert_quiet()
