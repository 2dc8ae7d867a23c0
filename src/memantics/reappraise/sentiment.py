"""How kind a text sounds: one interface, and the lexicon that ships behind it."""

from __future__ import annotations

from functools import cache
from typing import Protocol

from memantics.models.embedded.lexicon import MoodLexicon as MoodWords
from memantics.models.embedded.lexicon import TextMood
from memantics.reappraise.lexicon import read_lexicon
from memantics.vision.captions import has_chinese

_PER_CAUSE = 0.4  # of valence: what one cause of a bad feeling in a text takes away
_PER_INSULT = 0.3


class FeelingMeter(Protocol):
    """Anything that tells how kind a text sounds, such as a trained expert."""

    name: str

    def measure(self, text: str) -> float:
        """From -1, hostile or desperate, to 1, kind or glad."""
        ...


class LexiconMeter:
    """Valence by words (VADER; our own list for Chinese), less what the causes in it weigh.

    >>> LexiconMeter().measure("I panic") < 0 < LexiconMeter().measure("what a lovely day")
    True
    """

    name = "lexicon"

    def measure(self, text: str) -> float:
        """From -1 to 1."""
        mood = feel(text)
        causes = sum(read_lexicon("zh" if has_chinese(text) else "en").weigh(text).values())
        insults = len(mood.rude) + len(mood.gloomy)
        return max(-1.0, min(1.0, mood.valence - _PER_CAUSE * causes - _PER_INSULT * insults))


def feel(text: str) -> TextMood:
    """Valence, rude and gloomy words of a text."""
    return _load().feel(text)


@cache
def _load() -> MoodWords:
    return MoodWords()
