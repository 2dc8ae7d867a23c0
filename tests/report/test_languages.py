"""The report in Chinese: every text of ours is translated, and texts from data are not."""

from __future__ import annotations

import re
import time
import tomllib
from pathlib import Path

import pytest
from playwright.sync_api import expect

import memantics as mm
from memantics.core.errors import InputError
from memantics.core.translatable import Translatable
from memantics.evaluation.reports.page import ReportSettings, build_report
from memantics.web.page import read_asset
from memantics.web.phrases import read_phrases
from tests.commands import Shell
from tests.report.conftest import Opener
from tests.report.steps import open_everything

CALL = re.compile(
    r"""(?:\bt|\battribute|phrases\.text|phrases\.attribute)\("((?:[^"\\]|\\.)*)"[,)]"""
)
SENTENCE = re.compile(r"[A-Za-z]{2,} [a-z]{2,}")
TEMPLATES = Path(mm.__file__).parent / "web" / "page_templates"
TEXTS = Path(mm.__file__).parent / "web" / "page_texts"
OTHERS = {"tour.html", "badge.svg"}  # the start page has its own texts; a badge is a picture
SCRIPT_CALL = re.compile(r"""\bT\("((?:[^"\\]|\\.)*)"[,)]""")


@pytest.fixture(scope="module")
def chinese_page(demo_runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("chinese") / "report.zh.html"
    build_report(demo_runs, out, ReportSettings(language="zh"))
    return out


def test_every_text_of_the_templates_and_the_script_is_translated() -> None:
    chinese = read_phrases("zh")
    files = [file for file in TEMPLATES.iterdir() if file.suffix in (".html", ".svg")]
    written = {
        text.replace('\\"', '"')
        for file in files
        if file.name not in OTHERS
        for text in CALL.findall(file.read_text(encoding="utf-8"))
    }
    assert len(written) > 400
    assert written | {"Page {page} of {pages}"} == set(chinese.page)
    assert set(SCRIPT_CALL.findall(read_asset("page.js"))) <= set(chinese.script)


def test_every_text_is_in_one_file() -> None:
    seen: set[tuple[str, str]] = set()
    for file in sorted(TEXTS.glob("*.toml")):
        for name, table in tomllib.loads(file.read_text(encoding="utf-8")).items():
            for english in () if name == "pattern" else table:
                assert (name, english) not in seen, (file.name, english)
                seen.add((name, english))


def test_every_finding_of_an_audit_is_in_chinese() -> None:
    files = sorted(Path(mm.__file__).parent.rglob("findings.toml"))
    assert len(files) == 7
    for file in files:
        for name, entry in tomllib.loads(file.read_text(encoding="utf-8")).items():
            chinese = entry.pop("zh")
            for part in ("title", "measured", "reference", "meaning", "advice"):
                english, told = entry.get(part, ""), chinese.get(part, "")
                pairs = (
                    [(english, told)]
                    if isinstance(english, str)
                    else [(english[verdict], told[verdict]) for verdict in english]
                )
                for one, other in pairs:
                    fields = re.findall(r"\{[^}]*\}", one)
                    assert sorted(fields) == sorted(re.findall(r"\{[^}]*\}", other)), (name, part)
                    assert not one or other, (name, part)


@pytest.mark.parametrize("table", ["page", "script", "said"])
def test_translations_are_chinese_and_keep_their_placeholders(table: str) -> None:
    for english, chinese in getattr(read_phrases("zh"), table).items():
        told = re.sub(r"\{.*?\}", "", chinese)
        assert re.search(r"[\u3000-\u9fff\uff00-\uffef]", told) or not SENTENCE.search(told), (
            english
        )
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


def test_a_sentence_is_translated_by_its_template_and_its_values_too() -> None:
    say = read_phrases("zh").say
    text = Translatable(
        "{what} by {name:.1f}", "{name:.1f} 的{what}", what="first 3 items", name=0.25
    )
    assert text == "first 3 items by 0.2"
    assert say(text) == "0.2 的前 3 个条目"
    assert read_phrases("en").say(text) == "first 3 items by 0.2"
    assert say("9 memes are too few to train on; at least 40 are needed") == (
        "只有 9 张表情包，不足以训练，至少需要 40 张"
    )
    assert say("many memes are too few to train on; at least 40 are needed").startswith("many")


def test_a_long_text_of_others_takes_no_long_time() -> None:
    say = read_phrases("zh").say
    start = time.process_time()
    for text in ("说, 好: 1 " * 100, "a, b: c d " * 90, "M-QUEST: " * 3000, "x; " * 9000):
        assert say(text) == text
    assert time.process_time() - start < 2
    system = "Table 2, detection, GPT (2 shots, few): macro-F1 0.5 is not k/60 for any whole k"
    assert say(system).startswith("表 2，detection，GPT (2 shots, few)：macro-F1 0.5 不对应")


def test_values_are_escaped_and_isolated() -> None:
    text = read_phrases("zh").text(
        "Models by {metric}, with 95 % confidence intervals.", metric="<b>\u2029"
    )
    assert "<bdi>&lt;b&gt; </bdi>" in text
    assert "<bdi>" not in read_phrases("en").attribute("{metric} by {field}", metric="a", field="b")


@pytest.mark.slow
def test_the_report_says_nothing_of_ours_in_english(chinese_page: Path) -> None:
    shown = chinese_page.read_text(encoding="utf-8")
    assert '<html lang="zh">' in shown
    body = re.sub(r"<(script|style)\b.*?</\1>", "", shown, flags=re.DOTALL)
    shown = re.sub(r"<[^>]*>", "\n", body)
    for english in (*read_phrases("zh").page, *read_phrases("zh").said):
        if english.count(" ") > 2 and "{" not in english:
            assert english not in shown, english


def test_the_english_page_is_as_it_was(demo_page: Path) -> None:
    shown = demo_page.read_text(encoding="utf-8")
    assert '<html lang="en">' in shown
    assert "Models and tasks" in shown or "Cost and time" in shown
    assert '<script type="application/json" id="phrases">{}</script>' in shown


@pytest.mark.slow
def test_only_the_page_has_a_language(shell: Shell, demo_runs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--language works with the HTML page only"):
        mm.report(demo_runs, tmp_path / "report.md", language="zh")
    ran = shell.run("report", *demo_runs, "--format", "csv", "--language", "zh")
    assert ran.code == 2
    assert "--language works with the HTML page only" in ran.err


@pytest.mark.slow
def test_the_item_list_speaks_chinese(opener: Opener, chinese_page: Path) -> None:
    with opener() as seen:
        opened = seen.page
        opened.goto(chinese_page.as_uri())
        open_everything(opened)
        expect(opened.locator("#f-run option").first).to_have_text("全部模型")
        expect(opened.locator("#count")).to_contain_text("个条目")
        expect(opened.locator("#where")).to_contain_text("第 1 页")
        opened.select_option("#f-result", "1")
        expect(opened.locator(".item .badge.v1").first).to_contain_text("错误")
        seen.assert_quiet()
