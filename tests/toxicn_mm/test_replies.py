"""Replies of ToxiCN MM's tasks, as models write them."""

from __future__ import annotations

import pytest

from memantics.benchmarks.toxicn_mm.plugin import (
    LETTERS,
    TARGET_NAMES,
    TYPES,
    VERDICTS,
    parse_strictly,
    parse_target,
    parse_type,
    parse_verdict,
)
from memantics.core.records import Field, Form, Option
from memantics.core.task import Unparsed


def type_form(language: str = "zh") -> Form:
    options = tuple(Option(key, TYPES[language][name]) for key, name in LETTERS.items())
    return Form("?", (Field("type", "choice", options),), language)


def target_form(language: str, *, nobody: bool) -> Form:
    names = [word for name, word in TARGET_NAMES[language].items() if nobody or name != "none"]
    return Form("?", (Field("target", "choice", tuple(Option(n, n) for n in names)),), language)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("有害", "harmful"),
        ("无害。", "harmless"),
        ("**有害**\n理由：话里并不客气。", "harmful"),
        ("分析：文字本身并不有害，但合起来看在骂人。\n结论：有害", "harmful"),
        ("这张表情包是无害的", "harmless"),
        ("并非有害", "harmless"),
        ("这个不算有害", "harmless"),
        ('{"结论": "无害"}', "harmless"),
        ("<think>有害？不。</think>无害", "harmless"),
        ("Harmful.", "harmful"),
        ("Conclusion: harmless", "harmless"),
        ("It is not harmful.", "harmless"),
        ("The verdict is: harmful, because it insults.", "harmful"),
        ("non-harmful", "harmless"),
    ],
)
def test_verdicts_are_read(text: str, value: str) -> None:
    assert parse_verdict(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "可能有害，也可能无害",
        "很难说有害",
        "有害或无害",
        "harmful or harmless",
        "It would be wrong to say no one finds it harmful",
        "It can't be called harmful",
        "它并不能算是无害的",
        "I cannot help with that.",
        "harmfulness varies",
        "我看不到图片，无法判断。",
    ],
)
def test_what_is_no_verdict_is_unparsed(text: str) -> None:
    with pytest.raises(Unparsed):
        parse_verdict(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A", "targeted"),
        ("B。", "offence"),
        ("C. 性暗示：往性上引", "sexual"),
        ("答案：D", "dispirited"),
        ("（E）", "none"),
        ("一般冒犯", "offence"),
        ("The answer is E", "none"),
        ("dispirited", "dispirited"),
        ("无害", "none"),
    ],
)
def test_types_are_read_by_letter_or_by_name(text: str, value: str) -> None:
    assert parse_type(text, type_form()) == value


@pytest.mark.parametrize("text", ["F", "有害", "A meme that jokes", "性暗示或者消沉", ""])
def test_what_is_no_type_is_unparsed(text: str) -> None:
    with pytest.raises(Unparsed):
        parse_type(text, type_form())


@pytest.mark.parametrize("language", ["zh", "en"])
def test_every_target_is_read_by_its_name(language: str) -> None:
    form = target_form(language, nobody=True)
    for name, word in TARGET_NAMES[language].items():
        assert parse_target(word, form) == name
        assert parse_target(f"{word.upper()}.", form) == name


def test_a_target_that_was_not_offered_is_unparsed() -> None:
    assert parse_target("没有针对谁", target_form("zh", nobody=True)) == "none"
    with pytest.raises(Unparsed):
        parse_target("没有针对谁", target_form("zh", nobody=False))
    with pytest.raises(Unparsed):
        parse_target("性别或者职业", target_form("zh", nobody=False))


def test_the_strict_parser_takes_the_bare_key_only() -> None:
    keys = {word: name for name, word in VERDICTS["zh"].items()}
    assert parse_strictly("有害。", keys) == "harmful"
    for text in ("我认为有害", "有害，因为它骂人", "", "harmful"):
        with pytest.raises(Unparsed):
            parse_strictly(text, keys)
