"""How Chinese characters are read: every reading of a character, and readings in context."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

_TONE_MARKS = {"\u0304": 1, "\u0301": 2, "\u030c": 3, "\u0300": 4}
_MAX_READINGS = 4


@dataclass(frozen=True, slots=True)
class Sound:
    """One syllable as it is said: toneless pinyin (ü as v) and tone 1 to 5."""

    syllable: str
    tone: int


@lru_cache(maxsize=4096)
def parse_marked(text: str) -> Sound:
    """Read a syllable with a tone mark.

    >>> parse_marked("lǜ"), parse_marked("de")
    (Sound(syllable='lv', tone=4), Sound(syllable='de', tone=5))
    """
    tone = 5
    letters: list[str] = []
    for mark in unicodedata.normalize("NFD", text):
        if mark in _TONE_MARKS:
            tone = _TONE_MARKS[mark]
        elif mark == "\u0308":
            letters[-1] = "v"
        elif mark != "\u0302":
            letters.append(mark)
    return Sound("".join(letters), tone)


@lru_cache(maxsize=32768)
def list_sounds(character: str) -> tuple[Sound, ...]:
    """Every reading of a character, the usual one first; nothing for what is not one.

    >>> [sound.syllable for sound in list_sounds("行")][:2], list_sounds("A")
    (['xing', 'hang'], ())
    """
    from pypinyin.constants import PINYIN_DICT

    known: str = PINYIN_DICT.get(ord(character), "") if len(character) == 1 else ""
    if not known:
        return ()
    sounds = dict.fromkeys(parse_marked(part) for part in known.split(",") if part)
    return tuple(sounds)[:_MAX_READINGS]


def read_in_context(text: str) -> tuple[Sound | None, ...]:
    """The reading of each character where it stands; None for what has none.

    >>> [s.syllable for s in read_in_context("银行行长") if s]
    ['yin', 'hang', 'hang', 'zhang']
    """
    from pypinyin import Style, pinyin

    # Silent characters come back as themselves, one by one, so that places are kept.
    groups = pinyin(text, style=Style.TONE, errors=list)  # type: ignore[arg-type]  # its stubs leave lists out
    if len(groups) != len(text):  # a character that the library drops or joins
        return tuple((list_sounds(character) or (None,))[0] for character in text)
    return tuple(
        parse_marked(group[0]) if list_sounds(character) else None
        for character, group in zip(text, groups, strict=True)
    )


def write_marked(sound: Sound) -> str:
    """Pinyin with its tone mark.

    >>> write_marked(Sound("lv", 4)), write_marked(Sound("jiu", 3)), write_marked(Sound("ma", 5))
    ('lǜ', 'jiǔ', 'ma')
    """
    text = sound.syllable
    mark = next((m for m, tone in _TONE_MARKS.items() if tone == sound.tone), "")
    spot = next((text.index(v) for v in ("a", "e", "ou") if v in text), -1)
    if spot < 0:
        spot = max((i for i, letter in enumerate(text) if letter in "iouv"), default=-1)
    if spot >= 0:
        text = text[: spot + 1] + mark + text[spot + 1 :]
    return unicodedata.normalize("NFC", text.replace("v", "u\u0308"))


@cache
def phrase_sounds() -> dict[str, tuple[Sound, ...]]:
    """Words whose characters are not all read in their usual way."""
    return dict(_unusual_phrases())


def _unusual_phrases() -> Iterator[tuple[str, tuple[Sound, ...]]]:
    from pypinyin.constants import PHRASES_DICT, PINYIN_DICT

    usual = {code: known.partition(",")[0] for code, known in PINYIN_DICT.items()}
    for phrase, parts in PHRASES_DICT.items():
        marked = [part[0] for part in parts]
        known = [usual.get(ord(character), "") for character in phrase]
        if marked != known and len(marked) == len(phrase):
            yield phrase, tuple(parse_marked(part) for part in marked)
