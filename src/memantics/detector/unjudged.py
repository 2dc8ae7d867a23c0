"""Why a text is not judged, and what a text says aloud."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memantics.core.language import UNKNOWN
from memantics.core.lines import explain_unread
from memantics.core.memes import SUFFIXES

MOST_TEXT = 20_000
_SURE = 0.8  # how sure the ear must be that something else is meant
NO_PICTURE = "the detector looks at pictures, and there is none"
_ENDINGS = "|".join(map(re.escape, sorted(SUFFIXES)))
# An address of an image may end in a query or a fragment.
_IMAGE_NAME = re.compile(rf".*({_ENDINGS})([?#]\S*)?", re.IGNORECASE)


def explain_unjudged(
    text: str, foreign: str, languages: Sequence[str], *, image: bool, unread: int = 0
) -> str:
    """Why a detector of these languages does not judge a text; empty where it does.

    ``foreign`` is another language, where one was recognised.

    >>> explain_unjudged("bonjour", "fr", ("zh",), image=False)
    'the text is in fr; the detector was trained on zh'
    >>> explain_unjudged("", "", ("zh",), image=True)
    'no text can be read in the image'
    >>> explain_unjudged("memes/今晚.png", "", ("zh",), image=False)
    'the text is the name of an image, which was not opened'
    """
    if not text:
        return "no text can be read in the image" if image else "the text is empty"
    if len(text) > MOST_TEXT:
        return f"the text is longer than {MOST_TEXT:,} characters"
    if not image and _IMAGE_NAME.fullmatch(text):
        return "the text is the name of an image, which was not opened"
    if unread:
        return explain_unread(unread)
    if not foreign:
        return ""
    shown = "letters of another language" if foreign == UNKNOWN else foreign
    return f"the text is in {shown}; the detector was trained on {', '.join(languages)}"


def hear_meant(text: str) -> str:
    """What a Chinese text means by its sound, where that is sure and something else is written."""
    from memantics.phonetics.reading import MAX_CHARACTERS, Settings
    from memantics.phonetics.speech import read_aloud

    if not text.strip() or len(text) > MAX_CHARACTERS:
        return ""
    meant = read_aloud(text, settings=Settings(language="zh", threshold=_SURE)).meant
    return meant.text if meant is not None else ""
