"""Words and phrases that express a negative emotion, by language.

They decide whether a word list finds captions negative, which homophone reading of a pun is
probable, and which words need not stay in new captions. They write no captions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from memantics.core.data import toml_beside
from memantics.understanding.vision.regions import has_chinese


@dataclass(frozen=True, slots=True)
class NegativeExpressions:
    """The expressions of one language, in the order of their list."""

    patterns: tuple[re.Pattern[str], ...]

    def find(self, text: str) -> list[str]:
        """Find expressions without overlap, in the order of the text.

        Of overlapping matches, the longest is taken, then the earliest entry.

        >>> find_expressions("Oh no, I panic").find("Oh no, I panic")
        ['Oh no', 'I panic']
        """
        plain = text.replace("’", "'")
        matches = [
            match for pattern in self.patterns for match in pattern.finditer(plain) if match.group()
        ]
        matches.sort(key=lambda match: match.start() - match.end())
        kept: list[re.Match[str]] = []
        for match in matches:
            if all(match.end() <= one.start() or match.start() >= one.end() for one in kept):
                kept.append(match)
        return [match.group() for match in sorted(kept, key=lambda match: match.start())]

    def drop(self, text: str) -> str:
        """Remove expressions from a text; those that match words of the situation stay.

        >>> find_expressions("my awkward potato").drop("my awkward potato")
        'my   potato'
        """
        left = text.replace("’", "'")
        for pattern in self.patterns:
            left = left if pattern.groups else pattern.sub(" ", left)
        return left


def find_expressions(text: str) -> NegativeExpressions:
    """Return the expressions in the language of a text: Chinese or English."""
    return load_expressions("chinese" if has_chinese(text) else "english")


@cache
def load_expressions(language: str) -> NegativeExpressions:
    """Load the expressions of ``english`` or ``chinese``; English ones match whole words."""
    stored: Mapping[str, Mapping[str, Sequence[str]]] = toml_beside(__file__, "expressions.toml")
    return NegativeExpressions(
        tuple(
            re.compile(one if language == "chinese" else rf"(?<![\w'])(?:{one})(?![\w'])", re.I)
            for listed in stored[language].values()
            for one in listed
        )
    )
