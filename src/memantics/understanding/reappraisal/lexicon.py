"""The lexicon of the offline planner: causes of negative emotions and kinder rewordings."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from memantics.understanding.reappraisal.records import TARGETS, SourceEmotion, TargetEmotion

_FOLDER = Path(__file__).with_name("lexicons")
_LETTERS = re.compile(r"[a-z]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PhraseTurn:
    """A negative phrase that expresses a cause, and its replacements in order of preference."""

    cause: str
    pattern: re.Pattern[str]
    new: tuple[str, ...]

    @property
    def open(self) -> bool:
        """Whether the pattern of the phrase also matches words of the situation."""
        return self.pattern.groups > 0


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of a negative emotion; ``move`` names the reframing, ``lines`` are whole captions."""

    name: str
    emotion: SourceEmotion
    move: str
    cues: re.Pattern[str]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """A phrase replacement and the position where it applies."""

    turn: PhraseTurn
    match: re.Match[str]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The lexicon of one language.

    ``homophones`` are kind words by target emotion. ``ends`` are clauses that continue a sentence,
    by situation and target; ``heavy`` phrases do not get such an ending, and ``contrary`` phrases
    would reverse a replaced word.
    """

    chinese: bool
    causes: Mapping[str, Cause]
    turns: tuple[PhraseTurn, ...]
    homophones: Mapping[TargetEmotion, tuple[str, ...]]
    ends: Mapping[str, Mapping[TargetEmotion, Sequence[str]]]
    heavy: re.Pattern[str]
    contrary: re.Pattern[str]

    def find_turns(self, text: str) -> list[FoundTurn]:
        """Find applicable replacements without overlap.

        Of overlapping matches, the longest is taken, then the earliest entry.

        >>> [found.match.group() for found in read_lexicon("en").find_turns("Oh no, I panic")]
        ['Oh no', 'I panic']
        """
        plain = text.replace("’", "'")
        matches = [
            FoundTurn(turn, match)
            for turn in self.turns
            for match in turn.pattern.finditer(plain)
            if match.group()
        ]
        matches.sort(key=lambda found: found.match.start() - found.match.end())
        kept: list[FoundTurn] = []
        for found in matches:
            start, end = found.match.span()
            if all(
                end <= finding.match.start() or start >= finding.match.end() for finding in kept
            ):
                kept.append(found)
        return sorted(kept, key=lambda found: found.match.start())

    def weigh(self, text: str) -> dict[str, float]:
        """Weigh each cause in a text: 1 per replaceable phrase, 0.5 per other cue.

        >>> read_lexicon("en").weigh("panic before the exam")["pressure"]
        1.5
        """
        weights = dict.fromkeys(self.causes, 0.0)
        covered = list(text)
        for found in self.find_turns(text):
            weights[found.turn.cause] += 1
            covered[slice(*found.match.span())] = " " * len(found.match.group())
        for cause in self.causes.values():
            weights[cause.name] += 0.5 * len(set(cause.cues.findall("".join(covered))))
        return weights

    def drop(self, text: str) -> str:
        """Remove the words that express the emotion from a text.

        >>> read_lexicon("en").drop("my awkward potato")
        'my   potato'
        """
        left = text.replace("’", "'")
        for turn in self.turns:
            left = left if turn.open else turn.pattern.sub(" ", left)
        return left

    def say(self, found: FoundTurn, choice: int) -> str:
        """Return the replacement of a matched phrase, with the capitals of the old words.

        >>> (found,) = read_lexicon("en").find_turns("AWKWARD")
        >>> read_lexicon("en").say(found, 0)
        'KIND OF CHARMING'
        """
        new, old = found.match.expand(found.turn.new[choice]), found.match.group()
        return new if self.chinese else match_case(new, old)


def match_case(new: str, old: str) -> str:
    """Apply the capitals of the old words to the new ones.

    >>> match_case("oh well", "OH NO"), match_case("oh well", "Oh no"), match_case("a", "i")
    ('OH WELL', 'Oh well', 'a')
    """
    letters = _LETTERS.findall(old)
    if letters and not old.islower():
        new = re.sub(r"\bi\b", "I", new)
    if len(letters) > 1 and all(letter.isupper() for letter in letters):
        return new.upper()
    return new[:1].upper() + new[1:] if letters and letters[0].isupper() else new


@cache
def read_lexicon(language: str) -> Lexicon:
    """Load the lexicon of a language: Chinese for ``zh``, else English."""
    chinese = language == "zh"
    path = _FOLDER / ("zh.toml" if chinese else "en.toml")
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    sounds = tables.pop("sounds", {})
    heavy, contrary = tables.pop("heavy", "$^"), tables.pop("contrary", "$^")
    every, ends = sounds.get("every", ""), tables.pop("ends", {})
    return Lexicon(
        chinese=chinese,
        causes={name: _read_cause(name, table, chinese=chinese) for name, table in tables.items()},
        turns=tuple(_read_turns(tables, chinese=chinese)),
        homophones={t: tuple(f"{sounds.get(t, '')} {every}".split()) for t in TARGETS},
        ends=ends,
        heavy=_compile(heavy, chinese=chinese),
        contrary=_compile(contrary, chinese=chinese),
    )


def _read_cause(name: str, table: Mapping[str, object], *, chinese: bool) -> Cause:
    cues, lines = str(table["cues"]), table["lines"]
    assert isinstance(lines, list)
    words = "|".join(map(re.escape, sorted(cues.split(), key=len, reverse=True)))
    emotion: SourceEmotion = table["emotion"]  # type: ignore[assignment]
    return Cause(
        name,
        emotion,
        str(table["move"]),
        _compile(words if chinese else cues, chinese=chinese),
        tuple(lines),
    )


def _read_turns(
    tables: Mapping[str, Mapping[str, object]], *, chinese: bool
) -> Iterator[PhraseTurn]:
    for name, table in tables.items():
        listed = table["turns"]
        assert isinstance(listed, list)
        for entry in listed:
            old, _, new = str(entry).rpartition(" = ")
            options = tuple(option.strip() for option in new.split(" | "))
            yield PhraseTurn(name, _compile(old, chinese=chinese), options)


def _compile(pattern: str, *, chinese: bool) -> re.Pattern[str]:
    """Compile a pattern; English patterns match whole words in any case."""
    whole = pattern if chinese else rf"(?<![\w'])(?:{pattern})(?![\w'])"
    return re.compile(whole, re.IGNORECASE)
