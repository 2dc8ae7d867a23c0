"""Translations of self-contained pages: the keys are English texts; ``page_texts`` has Chinese.

``page`` are the texts of templates, ``script`` those of scripts. ``said`` are sentences that other
packages write, such as notes; a sentence without a translation stays English. A placeholder of one
letter stands for a number, a longer one for a text without a semicolon. ``pattern`` are regular
expressions.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, Literal, get_args

from markupsafe import Markup

from memantics.core.errors import InputError
from memantics.core.translatable import Translatable

PageLanguage = Literal["en", "zh"]
# These end a bidirectional isolate, so pages show spaces instead.
SEPARATORS = dict.fromkeys((0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029), " ")
_FOLDER = Path(__file__).with_name("page_texts")
_TABLES = ("page", "script", "said")
_LONGEST = 1000  # characters; longer texts are data, and matching them would take long


@dataclass(frozen=True, slots=True)
class Phrases:
    """The texts of pages in one language; without entries, all texts stay English."""

    page: Mapping[str, str]
    script: Mapping[str, str]
    said: Mapping[str, str]
    patterns: tuple[tuple[re.Pattern[str], str], ...] = ()

    def text(self, english: str, **values: object) -> Markup:
        """Return a text of a template; its values are escaped, and texts among them isolated.

        >>> str(read_phrases("zh").text("{metric} by {field}", metric="F1", field=3))
        '按3细分的 <bdi>F1</bdi>'
        >>> str(read_phrases("en").text("Judges"))
        'Judges'
        """
        isolated = {
            name: Markup("<bdi>{}</bdi>").format(value.translate(SEPARATORS))
            if isinstance(value, str) and not isinstance(value, Markup)
            else value
            for name, value in values.items()
        }
        return self._find(english).format(**isolated)

    def attribute(self, english: str, **values: object) -> Markup:
        """Return a text for an attribute, which cannot contain elements.

        >>> str(read_phrases("zh").attribute("Page {page} of {pages}", page=1, pages=3))
        '第 1 页，共 3 页'
        """
        return self._find(english).format(**values)

    @property
    def between(self) -> str:
        """Return the separator of the parts of a list.

        >>> read_phrases("zh").between, read_phrases("en").between
        ('、', ', ')
        """
        return "、" if self.page else ", "

    def _find(self, english: str) -> Markup:
        return Markup(self.page[english] if self.page else english)  # noqa: S704 - ours

    def say(self, english: str) -> str:
        """Translate a sentence that another package wrote; English if there is no translation.

        >>> read_phrases("zh").say("first 20 items"), read_phrases("zh").say("my own note")
        ('前 20 个条目', 'my own note')
        >>> read_phrases("zh").say(Translatable("{what}!", "{what}！", what="first 20 items"))
        '前 20 个条目！'
        """
        if not self.said:
            return english
        if isinstance(english, Translatable):
            template = english.chinese or self.said.get(english.template)
            if template is not None:
                return _Filling(self.say).vformat(template, (), english.values)
        if english in self.said:
            return self.said[english]
        for pattern, told in self.patterns if len(english) <= _LONGEST else ():
            if found := pattern.fullmatch(english):
                named = {name: self.say(part) for name, part in found.groupdict().items()}
                rest = () if named else tuple(map(self.say, found.groups()))
                return told.format(*rest, **named)
        for joint, translated in (("; ", "；"), (", ", "，")):
            if joint in english:
                parts = english.split(joint)
                told_parts = [self.say(part) for part in parts]
                if all(map(str.__ne__, parts, told_parts)):
                    return translated.join(told_parts)
        return english


class _Filling(Formatter):
    """Fill a translated template; texts among the values are translated first."""

    def __init__(self, say: Callable[[str], str]) -> None:
        self._say = say

    def format_field(self, value: Any, format_spec: str) -> str:
        """Format one value."""
        said = self._say(value) if isinstance(value, str) else value
        return str(super().format_field(said, format_spec))


ENGLISH = Phrases({}, {}, {})


@cache
def read_phrases(language: str) -> Phrases:
    """Read the texts of a language.

    Raises:
        InputError: Pages do not exist in this language.
    """
    if language not in get_args(PageLanguage):
        raise InputError(f"{language!r} is not a language of the page", hint="use en or zh")
    if language == "en":
        return ENGLISH
    tables: dict[str, dict[str, str]] = {name: {} for name in _TABLES}
    patterns: list[tuple[re.Pattern[str], str]] = []
    for file in sorted(_FOLDER.glob("*.toml")):
        read = tomllib.loads(file.read_text(encoding="utf-8"))
        for name in _TABLES:
            tables[name] |= read.get(name, {})
        patterns += [(re.compile(one["pattern"]), one["zh"]) for one in read.get("pattern", ())]
    return Phrases(**tables, patterns=(*patterns, *_make_patterns(tables["said"])))


def _make_patterns(said: Mapping[str, str]) -> list[tuple[re.Pattern[str], str]]:
    """Make patterns of sentences with placeholders: first those with the most text of their own."""
    open_ones = [english for english in said if re.search(r"\{\w+\}", english)]
    ordered = sorted(open_ones, key=lambda english: -len(re.sub(r"\{.*?\}", "", english)))
    return [(re.compile(_match_template(english), re.DOTALL), said[english]) for english in ordered]


def _match_template(english: str) -> str:
    """Turn a sentence with placeholders into a regular expression.

    With three texts or more, each ends at the next punctuation of the sentence: otherwise a long
    text would be divided in very many ways.

    >>> bool(re.fullmatch(_match_template("{n} of {what}"), "1,200 of all memes"))
    True
    >>> bool(re.fullmatch(_match_template("{n} of {what}"), "some of all memes"))
    False
    """
    several = len(re.findall(r"\{\w\w+", english)) > 2

    def match(found: re.Match[str]) -> str:
        name, end = found[1], found[2] if several else ""
        if len(name) == 1:
            return f"(?P<{name}>[-+]?[0-9][0-9,.]*){found[2]}"
        stop = "; " if not end else f"; |{end}\\ "
        return f"(?P<{name}>(?:(?!{stop}).)+?){found[2]}"

    return re.sub(r"\\\{(\w+)(?::.*?)?\\\}([,:.]?)", match, re.escape(english))
