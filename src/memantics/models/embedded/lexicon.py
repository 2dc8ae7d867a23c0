"""Word-list sentiment for the embedded reader (offline baseline), and its homophone interface.

English uses VADER, Chinese a small word list (``words.toml``). The Chinese list contains everyday
words only; the reader ignores all others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Protocol

from memantics.core.data import toml_beside
from memantics.core.errors import need_offline

_CHINESE = re.compile(r"[一-鿿]")


@dataclass(frozen=True, slots=True)
class PunReading:
    """Whether a caption is a pun, its intended reading, and the words that change in it."""

    is_pun: bool = False
    intended: str = ""
    written: str = ""
    homophone: str = ""


NOTHING = PunReading()


class HomophoneReader(Protocol):
    """The interface for finding homophones. ``version`` changes whenever results may change."""

    @property
    def version(self) -> str:
        """The version of the component; it changes whenever results may change."""
        ...

    def read(self, text: str, /) -> PunReading:
        """Return the most probable reading of a text in which words are replaced by homophones."""
        ...


class NoHomophones:
    """A homophone reader that finds nothing, used without the phonetics package."""

    version = "none"

    def read(self, text: str, /) -> PunReading:  # noqa: ARG002
        """Return a result that calls no text a pun."""
        return NOTHING


def has_chinese(text: str) -> bool:
    """Return whether a text contains a Chinese character.

    >>> has_chinese("ok 好"), has_chinese("ok")
    (True, False)
    """
    return _CHINESE.search(text) is not None


_DENIAL = "不没别勿无未"


@dataclass(frozen=True, slots=True)
class TextMood:
    """The sentiment of a text: ``valence`` from -1 to 1, and its rude and gloomy words."""

    valence: float
    rude: tuple[str, ...] = ()
    gloomy: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _ValenceWords:
    positive: tuple[str, ...]
    negative: tuple[str, ...]
    rude: re.Pattern[str]
    gloomy: re.Pattern[str]


class MoodLexicon:
    """Scores sentiment by words; word lists and VADER are loaded at first use."""

    version = "lexicon-1"

    def feel(self, text: str) -> TextMood:
        """Return the sentiment of a text in English, Chinese or both.

        >>> MoodLexicon().feel("what a lovely day").valence > 0.4
        True
        >>> MoodLexicon().feel("你这个笨蛋，真讨厌")
        TextMood(valence=-0.5, rude=('笨蛋',), gloomy=())
        """
        lower = text.casefold()
        valence = self._chinese(lower) if has_chinese(text) else self._english(text)
        return TextMood(
            valence,
            tuple(dict.fromkeys(self._words.rude.findall(lower))),
            tuple(dict.fromkeys(self._words.gloomy.findall(lower))),
        )

    def _english(self, text: str) -> float:
        return float(self._vader.polarity_scores(text)["compound"])

    def _chinese(self, text: str) -> float:
        good = bad = 0
        for words, sign in ((self._words.positive, 1), (self._words.negative, -1)):
            for word in words:
                at = text.find(word)
                if at >= 0:
                    turned = at > 0 and text[at - 1] in _DENIAL
                    good += (sign > 0) != turned
                    bad += (sign > 0) == turned
        return (good - bad) / (good + bad + 1)

    @cached_property
    def function_words(self) -> frozenset[str]:
        """English function words, such as articles and prepositions."""
        return frozenset(self._lists["en"]["function"].split())

    @cached_property
    def _lists(self) -> dict[str, dict[str, str]]:
        return toml_beside(__file__, "words.toml")

    @cached_property
    def _words(self) -> _ValenceWords:
        chinese, english = self._lists["zh"], self._lists["en"]
        return _ValenceWords(
            positive=tuple(chinese["positive"].split()),
            negative=tuple(chinese["negative"].split()),
            rude=_pattern(chinese["rude"], english["rude"]),
            gloomy=_pattern(chinese["gloomy"], english["gloomy"]),
        )

    @cached_property
    def _vader(self) -> Any:
        need_offline("vaderSentiment")
        from vaderSentiment.vaderSentiment import (
            SentimentIntensityAnalyzer,
        )

        return SentimentIntensityAnalyzer()


@cache
def read_sentences() -> dict[str, dict[str, Any]]:
    """Return the reference sentences by topic and language, from ``sentences.toml``."""
    return toml_beside(__file__, "sentences.toml")


def _pattern(chinese: str, english: str) -> re.Pattern[str]:
    phrases = (" ".join(phrase.split()) for phrase in english.split(","))
    words = [re.escape(word) for word in sorted(chinese.split(), key=len, reverse=True)]
    longest_first = sorted((re.escape(phrase) for phrase in phrases if phrase), key=len)[::-1]
    return re.compile(rf"{'|'.join(words)}|\b(?:{'|'.join(longest_first)})\b")
