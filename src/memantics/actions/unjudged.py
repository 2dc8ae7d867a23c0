"""Which texts a detector does not judge, and why: one rule for all who ask one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from memantics.core.language import UNKNOWN, settle_language
from memantics.core.memes import SUFFIXES
from memantics.detector.examples import Example
from memantics.detector.fast import Prediction
from memantics.models.embedded.lines import explain_unread

__all__ = ["MOST_TEXT", "explain_unjudged", "mark_unjudged"]
MOST_TEXT = 20_000
_IMAGE_NAME = re.compile(rf".*({'|'.join(map(re.escape, sorted(SUFFIXES)))})", re.IGNORECASE)


def explain_unjudged(
    text: str, language: str, languages: Sequence[str], *, image: bool, unread: int = 0
) -> str:
    """Why a detector of these languages does not judge a text; empty where it does.

    The rule of ``detector predict``, ``analyze``, ``screen``, the service and the studio. A
    language that is not known, or that the text cannot be in, is guessed; ``unread`` is how many
    regions of text an OCR left out.

    >>> explain_unjudged("bonjour", "fr", ("zh",), image=False)
    'the text is in fr; the detector was trained on zh'
    >>> explain_unjudged(" ", "", ("zh",), image=True)
    'no text can be read in the image'
    >>> explain_unjudged("memes/今晚.png", "zh", ("zh",), image=False)
    'the text is the name of an image, which was not opened'
    """
    if not text.strip():
        return "no text can be read in the image" if image else "the text is empty"
    if len(text) > MOST_TEXT:
        return f"the text is longer than {MOST_TEXT:,} characters"
    if not image and _IMAGE_NAME.fullmatch(text.strip()):
        return "the text is the name of an image, which was not opened"
    if unread:
        return explain_unread(unread)
    language = settle_language(text, language)
    if language in languages:
        return ""
    shown = "no language that can be told" if language == UNKNOWN else language
    return f"the text is in {shown}; the detector was trained on {', '.join(languages)}"


def mark_unjudged(
    examples: Sequence[Example],
    said: Sequence[Prediction],
    languages: Sequence[str],
    is_outside: Callable[[str], bool | None],
) -> list[Prediction]:
    """Predictions that say where they are no verdict, and where a text is unlike those learnt.

    An image without text is judged by what it shows; detectors of texts refuse it.
    """
    return [
        prediction
        if example.image and not example.text.strip()
        else replace(
            prediction,
            unjudged=explain_unjudged(example.text, "", languages, image=bool(example.image)),
            out_of_domain=is_outside(example.text),
        )
        for example, prediction in zip(examples, said, strict=True)
    ]
