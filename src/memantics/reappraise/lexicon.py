"""The embedded planner's lexicon: cues of emotions, kinder words, and endings."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from memantics.reappraise.records import EMOTIONS, Emotion, Target

_FILE = Path(__file__).with_name("reframings.toml")


@dataclass(frozen=True, slots=True)
class Lexicon:
    """One language's words; ``pattern`` finds the old ones, the longest first."""

    cues: dict[Emotion, tuple[str, ...]]
    words: dict[str, str]
    endings: dict[Target, tuple[str, ...]]
    pattern: re.Pattern[str]
    chinese: bool

    def weigh(self, text: str) -> dict[Emotion, int]:
        """How many cues of each emotion a text has.

        >>> read_lexicon("en").weigh("panic before the exam")["tense"]
        2
        """
        folded = text.casefold()
        found = set(re.findall(r"[a-z']+", folded))
        return {
            emotion: sum(cue in folded if self.chinese else cue in found for cue in cues)
            for emotion, cues in self.cues.items()
        }

    def reframe(self, text: str) -> str:
        """A text with its unkind words exchanged; the same text where it has none.

        >>> read_lexicon("en").reframe("Your code is garbage!")
        'Your code is growing!'
        """
        return self.pattern.sub(self._exchange, text)

    def drop(self, text: str) -> str:
        """A text without the words that carry its feeling.

        >>> read_lexicon("en").drop("my awkward potato")
        'my   potato'
        """
        return self.pattern.sub(" ", text)

    def _exchange(self, match: re.Match[str]) -> str:
        old = match.group()
        new = self.words[" ".join(old.casefold().replace("’", "'").split())]
        if self.chinese or old.islower():
            return new
        return new.upper() if old.isupper() and len(old) > 1 else new[:1].upper() + new[1:]


@cache
def read_lexicon(language: str) -> Lexicon:
    """The lexicon of a language: Chinese for ``zh``, else English."""
    chinese = language == "zh"
    with _FILE.open("rb") as file:
        lists = tomllib.load(file)["zh" if chinese else "en"]
    words: dict[str, str] = lists["words"]
    longest = sorted(words, key=len, reverse=True)
    if chinese:
        pattern = "|".join(map(re.escape, longest))
    else:
        # Captions are broken over lines and set with curly quotes.
        parts = (re.escape(word).replace("\\ ", r"\s+").replace("'", "['’]") for word in longest)
        pattern = rf"\b(?:{'|'.join(parts)})\b"
    return Lexicon(
        cues={emotion: tuple(lists["cues"][emotion].split()) for emotion in EMOTIONS},
        words=words,
        endings={target: tuple(each) for target, each in lists["endings"].items()},
        pattern=re.compile(pattern, re.IGNORECASE),
        chinese=chinese,
    )
