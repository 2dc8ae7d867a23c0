"""Reasons for human review: their number by kind, and in Chinese for the annotation app."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Final, NamedTuple

from memantics.core.data import toml_beside

_PART: Final = "; "  # separates reasons, and the two halves of some reasons
IMAGE_MISSING: Final = "only the text was scored, not the image"
# Second halves of other reasons, which say nothing by themselves.
_ADDED: Final = ("the detector was trained on {languages}", "it needs human review")
# Names of kinds of reasons whose text contains values of one meme.
_NAMES: Final = {
    "its probability {value} is in the review band, {low} to {high}": (
        "its probability is in the review band"
    ),
    "the text may be in {language}": "the text may be in another language",
    "part of the text is in {language}": "part of the text is in another language",
    "the text is in {language}, a script without training texts": (
        "the text is in a script without training texts"
    ),
    "only the first {count} characters of the text were scored": (
        "only the beginning of the text was scored"
    ),
    "{count} regions of text were not read: the image holds more text than is read": (
        "part of the text in the image was not read"
    ),
    "1 region of text was not read: the image holds more text than is read": (
        "part of the text in the image was not read"
    ),
    "one sentence without decoration is not harmless ({kinds})": (
        "one sentence without decoration is not harmless"
    ),
    "the text without decoration is not harmless ({kinds})": (
        "the text without decoration is not harmless"
    ),
    "matches {id} ({reason})": "it resembles an entry of the match list",
}
_LIST: Final = "kinds"  # a placeholder whose values are reasons themselves


class _Reason(NamedTuple):
    pattern: re.Pattern[str]
    english: str
    chinese: str


@cache
def _list_patterns() -> tuple[_Reason, ...]:
    texts: dict[str, str] = toml_beside(__file__, "review_reasons.toml")
    # Patterns without a placeholder come first, since a placeholder matches any text.
    ordered = sorted(texts.items(), key=lambda pair: pair[0].count("{"))
    return tuple(
        _Reason(
            re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+?)", re.escape(english)), re.DOTALL),
            english,
            chinese,
        )
        for english, chinese in ordered
    )


def count_reasons(reasons: Iterable[str]) -> dict[str, int]:
    """Count memes by kind of reason, the most frequent first; a meme may have several reasons.

    >>> band = "its probability 0.41 is in the review band, 0.4 to 0.6"
    >>> count_reasons([f"the text is empty; {band}", band.replace("0.41", "0.52")])
    {'its probability is in the review band': 2, 'the text is empty': 1}
    """
    counts: Counter[str] = Counter()
    for found in reasons:
        counts.update({*map(_name_kind, found.split(_PART))} - {""})
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _name_kind(part: str) -> str:
    """Return a reason without the values of one meme; empty for the second half of a reason."""
    for reason in _list_patterns():
        if reason.pattern.fullmatch(part):
            if reason.english in _ADDED:
                return ""
            return _NAMES.get(reason.english, reason.english.partition(": {")[0])
    return part


def translate_reasons(reasons: str, language: str) -> str:
    """Translate the reasons of a verdict for a Chinese page; an unknown part stays in English.

    >>> translate_reasons("part of the text is in de; the detector was trained on zh", "zh")
    '部分文本的语言是 de；检测器的训练语言为 zh'
    >>> translate_reasons("the text without decoration is not harmless (reversed words)", "zh")
    '去掉干扰写法后，文本不是无害的（单词颠倒）'
    >>> translate_reasons("the text is empty", "en")
    'the text is empty'
    """
    if language != "zh":
        return reasons
    return "；".join(_translate(part) for part in reasons.split(_PART))


def _translate(part: str) -> str:
    for reason in _list_patterns():
        if found := reason.pattern.fullmatch(part):
            values = found.groupdict()
            if _LIST in values:
                values[_LIST] = "、".join(map(_translate, values[_LIST].split(", ")))
            return reason.chinese.format(**values)
    return part
