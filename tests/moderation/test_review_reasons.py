"""Reasons for human review on Chinese pages: every reason that a verdict can give is translated."""

from __future__ import annotations

import re

import pytest

from memantics.core.language import UNKNOWN, Understood
from memantics.core.lines import explain_unread
from memantics.moderation.operating_points import OperatingPoint
from memantics.moderation.review_queue import DOUBT
from memantics.moderation.review_reasons import IMAGE_MISSING, count_reasons, translate_reasons
from memantics.moderation.subjects import (
    MOST_TEXT,
    NO_PICTURE,
    explain_doubts,
    explain_not_scored,
)
from memantics.moderation.unseen_ngrams import OUTSIDE_NOTE
from memantics.moderation.verdict import NO_NUMBER, PASSAGE_IN_BAND, SENTENCE_IN_BAND

LONG = "a" * (MOST_TEXT + 1)
REASONS = [
    explain_doubts(LONG, Understood("de", foreign="de"), ["zh"], (), 1),
    explain_doubts("a", Understood("?", foreign=UNKNOWN), ["zh"], (), 3),
    explain_doubts("a", Understood("zh", also="en"), ["zh"], (), 0),
    explain_not_scored("", Understood(""), ["zh"], image=True),
    explain_not_scored("", Understood(""), ["zh"], image=False),
    explain_not_scored("a.png", Understood(""), ["zh"], image=False),
    explain_not_scored(
        "привет", Understood("ru", foreign="ru", legible=False), ["zh"], image=False
    ),
    explain_not_scored("?", Understood("", legible=False), ["zh"], image=False),
    explain_unread(1),
    explain_unread(2),
    OperatingPoint(0.5, (0.3, 0.7)).explain_review(0.5),
    OUTSIDE_NOTE,
    DOUBT,
    NO_PICTURE,
    f"{NO_PICTURE}: 7",
    f"{IMAGE_MISSING}: 7",
    "one sentence is harmful on its own",
    SENTENCE_IN_BAND,
    "one passage is harmful on its own",
    PASSAGE_IN_BAND,
    NO_NUMBER,
    "one sentence without decoration is not harmless (symbols inside words)",
    "the text without decoration is not harmless (letters pulled apart, reversed order)",
    "the text without decoration is not harmless (symbols inside words, reversed words)",
    "matches 7 (9)",
]


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_is_chinese_on_a_chinese_page(reason: str) -> None:
    assert reason
    found = translate_reasons(reason, "zh")
    # Language codes stay, and nothing else that is English.
    assert set(re.findall("[A-Za-z]+", found)) <= {"de", "zh", "en", "ru"}, found
    assert "{" not in found
    assert translate_reasons(reason, "en") == reason


def test_an_unknown_reason_stays_readable_beside_a_known_one() -> None:
    assert translate_reasons("cloudy; the text is empty", "zh") == "cloudy；文本为空"


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_is_counted_by_one_kind_without_values(reason: str) -> None:
    counts = count_reasons([reason, reason])
    assert 0 < len(counts) <= 1 + reason.count("; ")
    assert set(counts.values()) == {2}
    assert not re.search(r"[{}0-9]|\bde\b|\bru\b", " ".join(counts))


def test_memes_with_two_reasons_count_for_both_and_the_most_frequent_comes_first() -> None:
    empty, band = "the text is empty", OperatingPoint(0.5, (0.3, 0.7)).explain_review(0.5)
    assert list(count_reasons([empty, f"{band}; {empty}", empty]).items()) == [
        (empty, 3),
        ("its probability is in the review band", 1),
    ]
    assert count_reasons(["something new", ""]) == {"something new": 1}
