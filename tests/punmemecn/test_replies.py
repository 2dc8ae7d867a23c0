"""Replies as models write them, and as nobody should read them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memantics.benchmarks.punmemecn.matching import drop_tones, read_syllables, spell
from memantics.core.records import Form
from memantics.core.task import Task, Unparsed
from tests.punmemecn.release import SAMPLE, make_task

NEGATIVE = {"target": "other", "type": "negative"}
NEGATIVE_TEXT = '{"情感指向对象": "他人", "情感类别": "消极"}'
POSITIVE_TEXT = '{"情感指向对象": "自己", "情感类别": "积极"}'


def form_of(task: str, **options: str) -> tuple[Task, Form]:
    return make_task(task, None, **options), next(make_task(task, SAMPLE, **options).items()).form


def read(task: str, text: str, **options: str) -> object:
    made, form = form_of(task, **options)
    try:
        return made.parse(text, form)
    except Unparsed:
        return None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"情感指向对象": "他人", "情感类别": "消极"}', NEGATIVE),
        ('```json\n{"情感指向对象": "他人",\n "情感类别": "消极"}\n```', NEGATIVE),
        ("{'情感指向对象': '他人', '情感类别': '消极'}", NEGATIVE),
        ('好的。{"情感指向对象": "other", "情感类别": "negative", "理由": "嘲笑"}', NEGATIVE),
        (f"<think>{POSITIVE_TEXT}?</think>{NEGATIVE_TEXT}", NEGATIVE),
        (f"{NEGATIVE_TEXT} 即 {NEGATIVE_TEXT}", NEGATIVE),
        (f"{NEGATIVE_TEXT} 或 {POSITIVE_TEXT}", None),
        ('{"情感指向对象": "自己/他人", "情感类别": "消极"}', None),
        ('{"情感指向对象": "他人"}', None),
        ('{"情感指向对象": ["他人"], "情感类别": "消极"}', None),
        ("他人，消极", None),
        ("{open('pwned', 'w').close()}", None),
        ("{'情感指向对象': __import__('os').getcwd(), '情感类别': '消极'}", None),
        ("{" * 3000, None),
        ("{1: 2}", None),
    ],
)
def test_sentiment(
    text: str, value: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read("sentiment", text) == value
    read("sentiment", text, parser="paper")
    assert not list(tmp_path.glob("pwned"))


def test_sentiment_behind_reasons_takes_the_last() -> None:
    text = f"分析：格式是{POSITIVE_TEXT}，但这里在说对方。\n情感：{NEGATIVE_TEXT}"
    assert read("sentiment", text, prompt="6") == NEGATIVE
    assert read("sentiment", text) is None
    first = {"target": "self", "type": "positive"}
    assert read("sentiment", text, prompt="6", parser="paper") == first


def test_sentiment_in_english() -> None:
    text = 'Sure: {"Target": "Other", "TYPE": "negative"}'
    assert read("sentiment", text, language="en") == NEGATIVE
    assert read("sentiment", text, language="en", parser="paper") == NEGATIVE
    assert read("sentiment", '{"target": "him", "type": "bad"}', language="en") is None


@pytest.mark.parametrize(
    ("text", "ours", "theirs"),
    [
        ("分析：茶和查同音。\n判断：双关", "pun", "pun"),
        ("分析：字面意思。\n判断:非双关", "non-pun", None),  # their third example's own colon
        ("分析：字面意思。\n**判断：** 非双关", "non-pun", None),
        ("Analysis: plain.\nJudgment: non-pun", "non-pun", "non-pun"),
        ("双关", "pun", None),
        ("分析：不好判断。", None, None),
    ],
)
def test_detection_behind_reasons(text: str, ours: object, theirs: object) -> None:
    assert read("detection", text, prompt="6") == ours
    assert read("detection", text, prompt="6", parser="paper") == theirs


@pytest.mark.parametrize(
    ("text", "ours", "theirs"),
    [
        ("B", "B", "B"),
        ("B: 第二张表情包", "B", "B"),
        ("B：第二张表情包", "B", None),
        ("选B", "B", None),
        ("答案：B", "B", None),
        ("E", None, None),
    ],
)
def test_chat(text: str, ours: object, theirs: object) -> None:
    assert read("chat", text) == ours
    assert read("chat", text, parser="paper") == theirs


def test_chat_behind_reasons() -> None:
    text = "分析：A：太高兴。B：正好。\n正确答案：B"
    assert read("chat", text, prompt="7") == "B"
    assert read("chat", text, prompt="7", parser="paper") == "B"


@pytest.mark.parametrize(
    ("text", "counted", "strict", "theirs"),
    [
        ('{"含义": "嘲笑", "匹配": "二", "结论": "有害"}', *["harmful"] * 3),
        ('{"含义": "嘲笑", "匹配": "二", "结论": "可能有害"}', None, None, "harmless"),
        ('{"结论": "无害"}', "harmless", "harmless", None),
        ("{'含义': '嘲笑', '匹配': '二', '结论': '有害'}", *["harmful"] * 3),
        ('{"结论": "有害"} {"结论": "无害"}', None, None, None),
        ("I apologize, but I cannot.", "refusal", None, "refusal"),
        ("很抱歉，我无法回答。", "refusal", None, None),
        ("有害", None, None, None),
    ],
)
def test_harmful(text: str, counted: object, strict: object, theirs: object) -> None:
    assert read("harmful", text) == counted
    assert read("harmful", text, refusal="invalid") == strict
    assert read("harmful", text, parser="paper") == theirs


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hǎo qiǎo ǒu yù a", "hǎo qiǎo ǒu yù a"),
        ("好巧藕遇啊 -> 拼音：Hǎo qiǎo, ǒu yù a。", "hǎo qiǎo ǒu yù a"),
        ("hao3 qiao3 ou3 yu4 a5", "hǎo qiǎo ǒu yù a"),
        ("ha\u030co qia\u030co", "hǎo qiǎo"),
        ("lǜ nǚ", "lǜ nǚ"),
    ],
)
def test_pinyin_as_models_write_it(text: str, said: str) -> None:
    assert read("pinyin", text) == said


def test_pinyin_of_the_authors() -> None:
    assert spell("OK，绿茶！") == "OK， lǜ chá ！"
    assert drop_tones(spell("绿女好")) == "lü nü hao"
    assert read_syllables("没有") == ""


@pytest.mark.parametrize("task", ["detection", "sentiment", "chat", "ocr", "pinyin", "harmful"])
@pytest.mark.parametrize("parser", ["tolerant", "paper"])
def test_no_text_breaks_a_parser(task: str, parser: str) -> None:
    options = {} if task in ("ocr", "pinyin") else {"parser": parser}
    made, form = form_of(task, **options)

    @given(
        st.text(alphabet=st.characters() | st.sampled_from("{}[]'\":判断：ABCD双关非"), max_size=80)
    )
    def check(text: str) -> None:
        with contextlib.suppress(Unparsed):
            made.parse(text, form)

    check()
