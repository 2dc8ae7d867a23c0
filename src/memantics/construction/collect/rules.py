"""Filter rules for memes, each with a name, a threshold and a reason."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from memantics.construction.collect.looks import FileLook
from memantics.core.data import toml_beside
from memantics.core.errors import InputError, require_known
from memantics.core.language import BY_SCRIPT, DENSE_SCRIPTS, UNKNOWN, Guess, count_scripts

_ADDRESS = re.compile(
    r"(?:https?://|www\.)\S+|@[\w.\-]+|#\w+|\b[\w\-]+\.(?:com|net|org|cn)\b", re.I
)


@dataclass(frozen=True, slots=True)
class MemeCandidate:
    """Store a meme to be filtered: its measures, printed text and language."""

    look: FileLook
    text: str
    guess: Guess
    text_given: bool = False


@dataclass(frozen=True, slots=True)
class Dropped:
    """Store the rule that dropped a meme, and the reason."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class FilterRule:
    """Define one filter: ``measure`` must reach ``threshold``; ``reason`` shows the measure."""

    name: str
    what: str
    threshold: float
    measure: Callable[[MemeCandidate], float]
    reason: str


def count_letters(text: str) -> int:
    """Count letters of any script.

    >>> count_letters("a1 好!")
    2
    """
    return sum(char.isalpha() for char in text)


def count_words(text: str) -> int:
    """Count distinct words; URLs do not count.

    >>> count_words("no no no"), count_words("@somebody www.example.com"), count_words("今晚失眠")
    (1, 0, 4)
    """
    plain = _ADDRESS.sub(" ", unicodedata.normalize("NFKC", text).casefold())
    dense = {char for char in plain if _is_dense(char)}
    rest = "".join(" " if _is_dense(char) else char for char in plain)
    words = set(re.findall(r"[^\W\d_]+(?:['’][^\W\d_]+)*", rest))
    return len(words) + len(dense)


def _is_dense(char: str) -> bool:
    return char.isalpha() and unicodedata.name(char, "").split(" ")[0] in DENSE_SCRIPTS


def _certainty(candidate: MemeCandidate) -> float:
    # OCR confidence does not matter if a person gave the text.
    return 1.0 if candidate.text_given else candidate.look.certainty


def _line_height(candidate: MemeCandidate) -> float:
    return float("inf") if candidate.text_given else float(candidate.look.line_height)


_MEASURES: Mapping[str, Callable[[MemeCandidate], float]] = {
    "text": lambda candidate: count_letters(candidate.text),
    "meaning": lambda candidate: count_words(candidate.text),
    "size": lambda candidate: min(candidate.look.width, candidate.look.height),
    "certainty": _certainty,
    "height": _line_height,
    "picture": lambda candidate: 1.0 - candidate.look.covered,
    "variety": lambda candidate: candidate.look.variety,
    "watermark": lambda candidate: float(not candidate.look.watermark),
}
DEFAULT_RULES = tuple(
    FilterRule(name, measure=_MEASURES[name], **told)
    for name, told in toml_beside(__file__, "rules.toml").items()
)


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Hold the rules with their thresholds and the accepted languages (empty: all)."""

    rules: tuple[FilterRule, ...] = DEFAULT_RULES
    languages: frozenset[str] = frozenset()
    thresholds: Mapping[str, float] = field(default_factory=dict)

    def judge(self, candidate: MemeCandidate) -> Dropped | None:
        """Return the first rule that drops a meme, or None if it is kept."""
        if candidate.look.error:
            return Dropped("decode", candidate.look.error)
        for rule in self.rules:
            value = rule.measure(candidate)
            if value < self.thresholds.get(rule.name, rule.threshold):
                return Dropped(rule.name, rule.reason.format(value))
        return self._judge_language(candidate)

    def _judge_language(self, candidate: MemeCandidate) -> Dropped | None:
        found = candidate.guess.language
        if not self.languages or found in self.languages:
            return None
        if found == UNKNOWN and count_scripts(candidate.text) and self.languages - BY_SCRIPT:
            # too short to detect a language, so the accepted languages do not exclude it
            return None
        if found == UNKNOWN:
            return Dropped("language", "its language cannot be detected")
        wanted = " or ".join(sorted(self.languages))
        return Dropped("language", f"language detected as {found}, expected {wanted}")


def read_thresholds(pairs: Iterable[str]) -> dict[str, float]:
    """Parse ``RULE=VALUE`` settings; raise for unknown rules and invalid numbers.

    >>> read_thresholds(["meaning=3"])
    {'meaning': 3.0}
    """
    known = [rule.name for rule in DEFAULT_RULES]
    found = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        require_known("rule", name, known)
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not 0 <= number < float("inf"):
            raise InputError(
                f"--set {pair}: {value!r} is not a valid threshold", hint=f"for example {name}=2"
            )
        found[name] = number
    return found
