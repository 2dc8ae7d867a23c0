"""Translations of self-contained pages: the keys are English texts; ``phrases.toml`` has Chinese.

``page`` are the texts of templates, ``script`` those of scripts. ``said`` and ``pattern`` are
sentences that other packages write, such as notes; a sentence without a translation stays English.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markupsafe import Markup

# These end a bidirectional isolate, so pages show spaces instead.
SEPARATORS = dict.fromkeys((0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029), " ")
_FILE = Path(__file__).with_name("phrases.toml")


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
            if isinstance(value, str)
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

    def _find(self, english: str) -> Markup:
        return Markup(self.page[english] if self.page else english)  # noqa: S704 - ours

    def say(self, english: str) -> str:
        """Translate a sentence that another package wrote; English if there is no translation.

        >>> read_phrases("zh").say("first 20 items"), read_phrases("zh").say("my own note")
        ('前 20 个条目', 'my own note')
        """
        for joint, translated in (("; ", "；"), (", ", "，")):
            if english in self.said:
                break
            for pattern, told in self.patterns:
                if found := pattern.fullmatch(english):
                    return told.format(*map(self.say, found.groups()))
            if joint in english:
                parts = english.split(joint)
                told_parts = [self.say(part) for part in parts]
                if all(map(str.__ne__, parts, told_parts)):
                    return translated.join(told_parts)
        return self.said.get(english, english)


ENGLISH = Phrases({}, {}, {})


@cache
def read_phrases(language: str) -> Phrases:
    """Read the texts of a language; all but Chinese stay English."""
    if language != "zh":
        return ENGLISH
    read = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    patterns = tuple((re.compile(one["pattern"]), one[language]) for one in read["pattern"])
    return Phrases(read["page"], read["script"], read["said"], patterns)
