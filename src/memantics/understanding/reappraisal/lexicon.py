"""The data behind the embedded planner: causes of negative feelings, and how each is turned."""

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
    """What a cause makes people say, and what may be said instead, in the order of liking."""

    cause: str
    pattern: re.Pattern[str]
    new: tuple[str, ...]

    @property
    def open(self) -> bool:
        """Whether words of the situation are part of what it matches."""
        return self.pattern.groups > 0


@dataclass(frozen=True, slots=True)
class Cause:
    """Why somebody feels bad; ``move`` says how that is turned, ``lines`` are whole captions."""

    name: str
    emotion: SourceEmotion
    move: str
    cues: re.Pattern[str]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """A turn and where it applies."""

    turn: PhraseTurn
    match: re.Match[str]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """One language: ``grave`` is what no joke answers, ``homophones`` kind words by target.

    ``ends`` are clauses with which a sentence goes on, by what it tells and target; ``heavy`` is
    what they do not mend, ``contrary`` what makes a turned word say the contrary.
    """

    chinese: bool
    causes: Mapping[str, Cause]
    turns: tuple[PhraseTurn, ...]
    grave: re.Pattern[str]
    homophones: Mapping[TargetEmotion, tuple[str, ...]]
    ends: Mapping[str, Mapping[TargetEmotion, Sequence[str]]]
    heavy: re.Pattern[str]
    contrary: re.Pattern[str]

    def find_turns(self, text: str) -> list[FoundTurn]:
        """The turns that apply, none inside another: longer matches win, then earlier turns.

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
        """How much each cause is in a text: 1 for a turn, a half for each other cue.

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
        """A text without the words that carry its feeling.

        >>> read_lexicon("en").drop("my awkward potato")
        'my   potato'
        """
        left = text.replace("’", "'")
        for turn in self.turns:
            left = left if turn.open else turn.pattern.sub(" ", left)
        return left

    def say(self, found: FoundTurn, choice: int) -> str:
        """The words that stand for a match; capitals follow the old ones.

        >>> (found,) = read_lexicon("en").find_turns("AWKWARD")
        >>> read_lexicon("en").say(found, 0)
        'KIND OF CHARMING'
        """
        new, old = found.match.expand(found.turn.new[choice]), found.match.group()
        return new if self.chinese else match_case(new, old)


def match_case(new: str, old: str) -> str:
    """New words in capitals where the old ones were, or with a large first letter.

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
    """The lexicon of a language: Chinese for ``zh``, else English."""
    chinese = language == "zh"
    path = _FOLDER / ("zh.toml" if chinese else "en.toml")
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    grave, sounds = tables.pop("grave"), tables.pop("sounds", {})
    heavy, contrary = tables.pop("heavy", "$^"), tables.pop("contrary", "$^")
    every, ends = sounds.get("every", ""), tables.pop("ends", {})
    return Lexicon(
        chinese=chinese,
        causes={name: _read_cause(name, table, chinese=chinese) for name, table in tables.items()},
        turns=tuple(_read_turns(tables, chinese=chinese)),
        grave=_compile("|".join(grave.split()) if chinese else grave, chinese=chinese),
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
    """English words are whole words; letters of either case are the same."""
    whole = pattern if chinese else rf"(?<![\w'])(?:{pattern})(?![\w'])"
    return re.compile(whole, re.IGNORECASE)
