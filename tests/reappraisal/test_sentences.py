"""Whether a rewritten caption is a sentence about the same subject."""

from __future__ import annotations

import pytest

from memantics.understanding.reappraisal import sentences
from memantics.understanding.reappraisal.sentences import find_subject, is_sentence, keeps_subject


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("93 people died", "i start with one thing", False),
        ("93 people died", "93 people danced", True),
        ("you are an idiot", "we are both rookies", False),
        ("when my boss calls me", "when my boss brings cake", True),
        ("when my boss calls me", "when the sun is out", False),
        ("你是不是有病", "我真有才", False),
        ("你是不是有病", "你真有才", True),
        ("闹钟又响了五次", "今天真好看", False),
        ("Panic!", "Party!", True),
    ],
)
def test_a_caption_keeps_its_subject(old: str, new: str, *, kept: bool) -> None:
    assert keeps_subject([old], [new]) is kept


def test_another_caption_may_keep_the_subject() -> None:
    old = ["my phone is at one percent", "i panic"]
    assert keeps_subject(old, ["my phone is at one percent", "time for a nap"])
    assert not keeps_subject(old, ["the phone is at one percent", "time for a nap"])


@pytest.mark.parametrize(("text", "subject"), [("", set()), ("it is 5 am", {"5", "am"})])
def test_subjects_of_odd_texts(text: str, subject: set[str]) -> None:
    assert find_subject(text) == subject


def test_a_heap_of_words_is_no_sentence() -> None:
    pytest.importorskip("pocketsphinx", reason="the extra phonetics tells English sentences")
    old = "when my boss calls me on a sunday"
    assert is_sentence("when my boss brings cake on a sunday", old)
    assert not is_sentence("sunday cake on brings purple boss when a my", old)
    assert not is_sentence("当老板在星期天叫我", old)


def test_a_heap_of_characters_is_no_sentence() -> None:
    pytest.importorskip("kenlm", reason="the extra trigram tells Chinese sentences")
    assert is_sentence("今天老板请我们吃蛋糕", "今天老板又让我们加班")
    assert not is_sentence("班们又让板今加老我天", "今天老板又让我们加班")


def test_without_a_language_model_every_text_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentences, "rate_fluency", lambda _: None)
    assert is_sentence("sunday cake on brings purple boss when a my", "my boss calls me")
