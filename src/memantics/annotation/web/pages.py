"""Templates of the annotation app, and its texts in English and Chinese (``messages.toml``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from string import ascii_uppercase

from memantics.core.data import toml_beside
from memantics.web.phrases import PageLanguage
from memantics.web.site import LANGUAGES, NAMES, Catalogue, Site, choose_language

__all__ = ["LANGUAGES", "NAMES", "SITE", "Catalogue", "PageLanguage", "choose_language"]
_PROBLEMS = {key: re.compile(text) for key, text in toml_beside(__file__, "problems.toml").items()}


def say_problem(text: str, words: Catalogue) -> str:
    """Translate a validation message into the language of the person.

    >>> say_problem("number 2 has no answer", SITE.words("zh"))
    '第 2 项未填写。'
    """
    for key, pattern in _PROBLEMS.items():
        if match := pattern.fullmatch(text):
            return words(key, **match.groupdict())
    return text


def drop_letters(options: Sequence[str]) -> list[str]:
    """Remove leading option letters, because the list shows its own letters.

    >>> drop_letters(["A. a cat", "B. a dog"]), drop_letters(["A. Milne", "a dog"])
    (['a cat', 'a dog'], ['A. Milne', 'a dog'])
    """
    letters = ascii_uppercase[: len(options)]
    lettered = len(letters) == len(options) and all(
        text.startswith((f"{letter}. ", f"{letter}) "))
        for letter, text in zip(letters, options, strict=True)
    )
    return [text[3:] if lettered else text for text in options]


SITE = Site(Path(__file__).parent, filters={"unlettered": drop_letters})
