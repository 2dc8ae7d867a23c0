"""What every drafted text must be: words, in the language asked for, said once."""

from __future__ import annotations

import re
from collections import Counter

from memantics.build.collect.language import UNKNOWN, count_scripts, guess_language
from memantics.build.drafts.asking import name_language
from memantics.core.task import Unparsed
from memantics.core.text import clean_line

_SURE = 0.8
_ENOUGH = 12  # letters: of fewer no language can be told
_RUN = 6  # words (or characters) that come again and again in one text
_TIMES = 3


def check_wording(said: str, what: str, language: str, longest: int) -> str:
    r"""A text of a model as one safe line; what is no text of that language is refused.

    >>> check_wording(" A cat\n sleeps. ", "caption", "en", 100)
    'A cat sleeps.'
    >>> check_wording("…", "caption", "en", 100)
    Traceback (most recent call last):
    memantics.core.task.Unparsed: the caption has no words
    """
    line = clean_line(said, 4 * longest)
    letters = sum(count_scripts(line).values())
    if not letters:
        raise Unparsed(f"the {what} has no words")
    if len(line) > longest:
        raise Unparsed(f"the {what} has {len(line)} characters: write at most {longest}")
    if repeats_itself(line):
        raise Unparsed(f"the {what} repeats itself")
    found = guess_language(line)
    known = found.language not in (UNKNOWN, language) and found.confidence >= _SURE
    if known and letters >= _ENOUGH:
        raise Unparsed(f"the {what} is not in {name_language(language)}: write it in that language")
    return line


def repeats_itself(text: str) -> bool:
    """Whether a text goes round in circles.

    >>> repeats_itself("it is what it is"), repeats_itself("the same old story goes on " * 3)
    (False, True)
    """
    words = re.findall(r"[^\W_]+", text.casefold())
    if len(words) < _RUN * _TIMES:
        words = list("".join(words)) if any(char >= "\u2e80" for char in text) else words
    runs = Counter(tuple(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1))
    return bool(runs) and max(runs.values()) >= _TIMES
