"""Messages of reappraisals in English and Chinese: reasons, flaws, advice and notes."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from memantics.core.data import toml_beside

MessageLanguage = Literal["en", "zh"]


@cache
def _load() -> dict[str, dict[str, str]]:
    return toml_beside(__file__, "messages.toml")


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(
        (re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+)", re.escape(texts["en"])), re.DOTALL), name)
        for name, texts in _load().items()
    )


def say(name: str, **values: object) -> str:
    """Return an English message of ``messages.toml`` with its values filled in.

    >>> say("panels", before=4, after=3)
    '4 panels became 3'
    """
    return _load()[name]["en"].format(**values)


def translate(text: str, language: MessageLanguage, *, page: bool = False) -> str:
    """Translate an English message; a text that is not a message is returned unchanged.

    With ``page``, English advice names no commands and files.

    >>> translate("4 panels became 3", "zh"), translate("cloudy", "zh")
    ('分格数由 4 变为 3', 'cloudy')
    >>> translate("Paint over them in meme.png", "en", page=True)
    'Paint over them'
    """
    if language == "zh" or page:
        wanted = "page" if language == "en" else language
        for pattern, name in _patterns():
            if found := pattern.fullmatch(text):
                told = _load()[name].get(wanted)
                return text if told is None else told.format(**found.groupdict())
    return text
