"""Every kind of page in Chinese: no English sentence but data, names, code and commands."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest

from memantics.core.retrieval import BY_MEANING, BY_PICTURE, NearMeme, TemplateClusterUse
from memantics.understanding.vision.appearance import describe_layout
from memantics.understanding.vision.panels import Region
from memantics.web.phrases import read_phrases
from tests.report.every_page import PAGES, make_pages

SLOW = {"detector", "analysis", "audit-memeintent", "audit-mer_bench", "audit-punmemecn"}
# Captions, row names and notes of reproduced papers are English: they quote or describe the paper.
PAPERS = {name for name in PAGES if name.startswith("paper")}
# Parts of pages that show code or data: commands, texts of memes and statements about them.
SHOWN_AS_THEY_ARE = (
    r"<(script|style|code|pre|svg)\b.*?</\1>",
    r'<(\w+)[^>]*class="[^"]*\b(?:code|said|letters|hidden-text|entries|intent)\b[^"]*".*?</\1>',
    r'<section class="everything".*?</section>',
)
WORDS = re.compile(r"[A-Za-z][a-z]+(?:[ ,;:]+[a-z][a-z’'-]*){2,}")
DATA = ("the text：", "文本：", "the meme makes fun", "makes fun of", "text of the meme")
# Commands, and a system of a published table.
COMMANDS = re.compile(r"text caption, fine-tuned|memantics [a-z]+ [\w/-]+|--\w+ FILE")


def list_english(page: str) -> list[str]:
    """The texts of a page, attributes included, with three English words in a row."""
    for part in SHOWN_AS_THEY_ARE:
        page = re.sub(part, "\n", page, flags=re.DOTALL)
    texts = re.findall(r'(?:title|aria-label|alt|data-label)="([^"]*)"', page)
    texts += re.sub(r"<[^>]*>", "\n", page.replace("<bdi>", "").replace("</bdi>", "")).split("\n")
    plain = (COMMANDS.sub("", html.unescape(text)) for text in texts)
    return [text for text in plain if WORDS.search(text) and not text.startswith((*DATA, "“"))]


def list_gaps(page: str) -> list[str]:
    """The places of a page with a space after full-width punctuation, except in data."""
    for part in (*SHOWN_AS_THEY_ARE, r"<bdi\b.*?</bdi>"):
        page = re.sub(part, "x", page, flags=re.DOTALL)
    inline = re.sub(r"</?(?:a|b|i|em|strong|span)\b[^>]*>", "", page)
    return re.findall(r"[^<>]{0,20}[：，。；、？！] +[^\s<].{0,20}", inline)


def test_a_space_after_full_width_punctuation_is_found() -> None:
    assert list_gaps("<p><b>建议：</b> 重算</p>") == ["建议： 重算</p>"]
    assert list_gaps("<p>建议：重算。</p>\n <p><bdi>好， 好</bdi></p>") == []


def test_an_english_sentence_is_found() -> None:
    assert list_english("<p>共 3 张 <b>This is in english</b></p>") == ["This is in english"]
    assert list_english('<p title="This is in english">表</p><code>run it now please</code>')


def test_sentences_of_an_analysis_are_in_chinese() -> None:
    say = read_phrases("zh").say
    shapes = ((0, 0.2, 1, 0.6), (0, 0.6, 0.5, 0.8), (0.5, 0.6, 1, 0.8))
    panels = [Region(*shape) for shape in shapes]
    near = NearMeme("7", "so tired", "kb", 0.71, 30)
    cluster = replace(near, bits=1, template_cluster="cat")
    known = TemplateClusterUse("cat", ("1", "2"), "mine", "某种用法")
    sentences = [
        describe_layout((90, 60), panels),
        describe_layout((90, 60), panels[1:]),
        describe_layout((90, 60), [panels[0], Region(0, 0.6, 1, 1)]),
        *(one.summary for one in (near, cluster, known, replace(known, memes=("1",), use=""))),
        BY_MEANING,
        BY_PICTURE,
        "harmful according to a; not harmful according to b",
        "detector (sample): harmful, unlike openai/m; a baseline, not reliable",
        "no language recognised, 2 panels",
        "other readings: 健妄 (jiàn wàng); 健旺 (jiàn wàng)",
    ]
    for english in sentences:
        assert list_english(f"<p>{say(english)}</p>") == [], english
        assert say(english) != english


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else [])
        for n in sorted({*PAGES} - PAPERS)
    ],
)
def test_a_page_is_in_chinese(name: str, tmp_path: Path) -> None:
    made = make_pages(tmp_path, name, "zh")
    assert made
    for file in made:
        page = file.read_text(encoding="utf-8")
        assert '<html lang="zh">' in page
        assert list_english(page) == [], file.name
        assert list_gaps(page) == [], file.name


@pytest.mark.parametrize("name", sorted(PAPERS))
def test_a_paper_has_chinese_headings_and_statuses(name: str, tmp_path: Path) -> None:
    (file,) = make_pages(tmp_path, name, "zh")
    page = file.read_text(encoding="utf-8")
    for text in ("论文复现", "单元格：", "尚未计算，运行所示命令即可填充", "置信区间均为 95%"):
        assert text in page, text
    labels = re.findall(r'<h2 id="[^"]*-title">(.*?)</h2>', page)
    assert [label for label in labels if not re.search(r"[\u4e00-\u9fff]", label)] == []
    assert list_gaps(page) == []
