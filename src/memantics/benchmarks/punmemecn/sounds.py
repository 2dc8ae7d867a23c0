"""Pinyin of captions, as the authors make it, and pinyin read back from a reply."""

from __future__ import annotations

import re
import unicodedata

_HAN = re.compile(r"[\u4e00-\u9fff]")
_LABEL = re.compile(r"(?:->|→|拼音\s*[:：]|pinyin\s*[:：])", re.IGNORECASE)


def keep_chinese(text: str) -> str:
    """The Chinese characters of a text.

    >>> keep_chinese("好巧，OK 藕遇！")
    '好巧藕遇'
    """
    return "".join(_HAN.findall(text))


def spell(text: str) -> str:
    """Pinyin with tone marks, the first reading of each character, what is no Chinese kept.

    >>> spell("好巧，藕遇")
    'hǎo qiǎo ， ǒu yù'
    """
    from pypinyin import pinyin  # loaded at first use

    return " ".join(readings[0] for readings in pinyin(text))


def read_syllables(text: str) -> str:
    """The syllables in a reply, behind its last label, with tone marks, joined by spaces.

    >>> read_syllables("拼音：Hǎo qiǎo, ou3 yu4!")
    'hǎo qiǎo ǒu yù'
    """
    from pypinyin.contrib.tone_convert import to_tone  # loaded at first use

    body = unicodedata.normalize("NFC", _LABEL.split(text)[-1]).lower()
    found = re.findall(r"[^\W\d_]+[1-5]?", body)
    latin = [word for word in found if not _HAN.search(word)]
    return " ".join(to_tone(word) if word[-1].isdigit() else word for word in latin)


def drop_tones(text: str) -> str:
    """Pinyin without tone marks; ü stays.

    >>> drop_tones("nǚ hái")
    'nü hai'
    """
    split = unicodedata.normalize("NFD", text)
    kept = re.sub("[\u0300\u0301\u0304\u030c]", "", split)
    return unicodedata.normalize("NFC", kept)
