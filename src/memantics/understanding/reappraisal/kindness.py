"""Kindness of captions: valence by word lists, and an independent classifier.

The classifier is logistic regression on multilingual sentence embeddings, fitted by
``python -m perf.kindness`` on texts that people wrote and labelled negative or positive
(metrics: docs/research/reappraisal-checks.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import orjson

from memantics.models.embedded.encoder import open_encoder
from memantics.models.embedded.lexicon import MoodLexicon as MoodWords
from memantics.models.embedded.lexicon import TextMood
from memantics.understanding.phonetics.homophones import read_homophones
from memantics.understanding.vision.regions import has_chinese

WEIGHTS = Path(__file__).parent / "kindness.json"
_LONGEST = 40  # maximum number of characters; longer texts get no homophone reading, to save time
_SITES = re.compile(r"\S*\.(?:com|net|org|me|cn)\S*|@\w+|imgflip|mematic|memegenerator|quickmeme")
_MARKS = re.compile(r"[^\w\s']")


def feel(text: str) -> TextMood:
    """Return valence, rude words and gloomy words of a text."""
    return _load().feel(text)


@cache
def _load() -> MoodWords:
    return MoodWords()


def clean_caption(text: str) -> str:
    """Keep only lower-case letters.

    URLs, punctuation and capitals would tell the classifier which text is rewritten.

    >>> clean_caption("So AM I!  made by pics.com")
    'so am i made by'
    """
    plain = re.sub(r"\\+n|\\", " ", text).casefold()
    return " ".join(_MARKS.sub(" ", _SITES.sub(" ", plain)).split())


def read_caption(text: str) -> str:
    """Return the intended reading of a caption, or the caption itself."""
    if not has_chinese(text) or len(text) > _LONGEST:
        return text
    found = read_homophones(text)
    return found.intended.text if found.intended else text


def rate_kindness(captions: Sequence[str]) -> float:
    """Return the probability that captions are kind, not negative.

    The intended readings of puns are rated, not the printed texts.
    """
    text = clean_caption(" ".join(map(read_caption, captions)))
    model = _load_weights()["zh" if has_chinese(text) else "en"]
    vector = open_encoder().encode([text])[0]
    total = model[-1] + sum(a * float(b) for a, b in zip(model[:-1], vector, strict=True))
    return round(1 / (1 + math.exp(-total)), 4)


@cache
def _load_weights() -> dict[str, list[float]]:
    found: dict[str, list[float]] = orjson.loads(WEIGHTS.read_bytes())
    return found
