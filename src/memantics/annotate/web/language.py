"""The words of the interface, in English and Chinese, side by side in ``messages.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, get_args

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
NAMES: Mapping[Language, str] = {"en": "English", "zh": "中文"}
_FILE = Path(__file__).with_name("messages.toml")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The messages of one language; calling it looks one up and fills it in.

    >>> read_catalogue("en")("work.left", count=3)
    '3 left'
    """

    language: Language
    messages: Mapping[str, str]

    def __call__(self, key: str, **values: object) -> str:
        """The message, with its named holes filled."""
        return self.messages[key].format_map(values) if values else self.messages[key]


@lru_cache
def read_catalogue(language: Language) -> Catalogue:
    """All messages of a language."""
    sections = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return Catalogue(
        language,
        {
            f"{section}.{key}": texts[language]
            for section, entries in sections.items()
            for key, texts in entries.items()
        },
    )


def choose_language(chosen: str, accepted: str) -> Language:
    """A person's own choice, else the first that the browser asks for, else English.

    >>> choose_language("", "fr;q=1, zh-CN;q=0.9"), choose_language("en", "zh")
    ('zh', 'en')
    """
    for wanted in (chosen, *(part.partition(";")[0].strip() for part in accepted.split(","))):
        for language in LANGUAGES:
            if wanted.lower().split("-")[0] == language:
                return language
    return "en"


_PROBLEMS = (
    (re.compile(r"an answer is needed"), "problem.needed"),
    (re.compile(r"number (?P<place>\d+) has no answer"), "problem.place"),
    (re.compile(r"(?P<count>\d+) answers are needed, one for each"), "problem.each"),
    (re.compile(r"choose .*|say yes or no"), "problem.choose"),
    (re.compile(r"at most (?P<most>[\d,]+) characters( each)?"), "problem.long"),
    (re.compile(r"at most (?P<most>\d+) entries"), "problem.many"),
    (re.compile(r"one entry comes twice"), "problem.twice"),
    (re.compile(r"this name is taken"), "problem.taken"),
    (re.compile(r"letters, digits and .*"), "join.name_hint"),
    (re.compile(r"(?P<low>\d+) to (?P<high>\d+) characters"), "problem.length"),
)


def say_problem(text: str, words: Catalogue) -> str:
    """What the data layer says about a field, in the language of the person.

    >>> say_problem("number 2 has no answer", read_catalogue("zh"))
    '第 2 项还没有回答。'
    """
    for pattern, key in _PROBLEMS:
        if match := pattern.fullmatch(text):
            return words(key, **match.groupdict())
    return text
