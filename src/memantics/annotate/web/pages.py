"""Templates, and the words of the interface in English and Chinese (``messages.toml``)."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from string import ascii_uppercase
from typing import Literal, get_args

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

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


HERE = Path(__file__).parent
STATIC: Mapping[str, str] = {
    "annotate.css": "text/css; charset=utf-8",
    "annotate.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


@lru_cache(maxsize=1)
def make_environment() -> Environment:
    """The environment of all pages."""
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals["asset"] = asset
    environment.filters["unlettered"] = drop_letters
    environment.filters["percent"] = show_percent
    environment.filters["figure"] = show_figure
    environment.filters["moment"] = show_moment
    return environment


@lru_cache(maxsize=8)
def read_static(name: str) -> bytes:
    """A file of ours by its known name."""
    return (HERE / "static" / name).read_bytes()


@lru_cache(maxsize=8)
def asset(name: str) -> str:
    """The address of a static file; it changes with its content, so that it can be kept."""
    return f"/static/{name}?v={hashlib.sha256(read_static(name)).hexdigest()[:12]}"


def render(template: str, context: Mapping[str, object], status: int = 200) -> Response:
    """A page as a response."""
    text = make_environment().get_template(template).render(context)
    return HTMLResponse(text, status)


def drop_letters(options: Sequence[str]) -> list[str]:
    """Options without letters of their own: the list that shows them gives each its letter.

    >>> drop_letters(["A. a cat", "B. a dog"]), drop_letters(["A. Milne", "a dog"])
    (['a cat', 'a dog'], ['A. Milne', 'a dog'])
    """
    letters = ascii_uppercase[: len(options)]
    lettered = len(letters) == len(options) and all(
        text.startswith((f"{letter}. ", f"{letter}) "))
        for letter, text in zip(letters, options, strict=True)
    )
    return [text[3:] if lettered else text for text in options]


def show_percent(value: float | None) -> str:
    """A share as people read it.

    >>> show_percent(0.7422), show_percent(None)
    ('74 %', '–')
    """
    return "–" if value is None else f"{value * 100:.0f} %"


def show_figure(value: float | None, digits: int = 2) -> str:
    """A coefficient as people read it.

    >>> show_figure(0.61803), show_figure(None)
    ('0.62', '–')
    """
    return "–" if value is None else f"{value:.{digits}f}"


def show_moment(seconds: float) -> str:
    """A time for machines; the script shows it as people of the reader's language do.

    >>> show_moment(0.0)
    '1970-01-01T00:00:00+00:00'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
