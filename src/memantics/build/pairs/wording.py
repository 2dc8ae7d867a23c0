"""Texts of minimal pairs: templates of functionality, filled from lists of words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field

from memantics.core.closed import Closed
from memantics.core.data import read_toml, toml_beside
from memantics.core.errors import DataError

PairKind = Literal["target", "polarity", "negation", "quotation", "counter-speech", "confounder",
                   "panels", "spelling", "emoji", "spacing"]  # fmt: skip
PAIR_KINDS: tuple[PairKind, ...] = get_args(PairKind)
SAME: frozenset[PairKind] = frozenset({"spelling", "emoji", "spacing"})  # what must not change
Language = Literal["en", "zh"]


class PairWords(Closed):
    """Words that fill templates; the last three are the insults, written otherwise.

    ``pictured`` has emoji in the place of letters or sounds; without it no such pair is made.
    """

    groups: tuple[str, ...] = Field(min_length=1)
    neutrals: tuple[str, ...] = Field(min_length=1)
    insults: tuple[str, ...] = Field(min_length=1)
    spelled: tuple[str, ...] = Field(min_length=1)
    parted: tuple[str, ...] = Field(min_length=1)
    pictured: tuple[str, ...] = ()


class PairTemplate(Closed):
    """Two texts that differ in one thing; those of ``panels`` have a line for each panel."""

    id: str
    language: Language
    kind: PairKind
    first: str
    second: str


class PairTexts(Closed):
    """A filled template: both texts, and whether the second is harmful, as the first is."""

    template: str
    language: Language
    kind: PairKind
    first: str
    second: str

    @property
    def labels(self) -> tuple[str, str]:
        """What both must be called."""
        return "harmful", "harmful" if self.kind in SAME else "harmless"


class _Sheet(Closed):
    kinds: dict[PairKind, str]
    words: dict[Language, PairWords]
    template: tuple[PairTemplate, ...]


class _Words(Closed):
    words: dict[Language, PairWords]


def read_templates() -> tuple[PairTemplate, ...]:
    """The templates that ship with the package, 39 a language."""
    return _read_sheet().template


def read_meanings() -> dict[PairKind, str]:
    """In what the two sides of a pair differ, by its kind."""
    return _read_sheet().kinds


def _read_sheet() -> _Sheet:
    return _Sheet.model_validate(toml_beside(__file__, "templates.toml"))


def read_words(path: Path | None = None) -> dict[Language, PairWords]:
    """Lists of words by language: mild ones, or those of a user's TOML file."""
    if path is None:
        return _read_sheet().words
    form, see = "words are a UTF-8 TOML file", "see docs/audit-a-benchmark.md"
    found = read_toml(path, _Words, form, see)
    for language, words in found.words.items():
        others = (words.spelled, words.parted, words.pictured or words.parted)
        if any(len(listed) != len(words.insults) for listed in others):
            fault = "insults, spelled, parted and pictured differ in number"
            raise DataError(path, f"{language}: {fault}")
    return found.words


def fill_templates(language: Language, words: PairWords, count: int) -> list[PairTexts]:
    """So many pairs: all templates in turn, then again with the next words.

    >>> pairs = fill_templates("en", read_words()["en"], 61)
    >>> pairs[0].first, pairs[39].first, len({(pair.first, pair.second) for pair in pairs})
    ('women are annoying', 'immigrants are the worst', 61)
    """
    known = [template for template in read_templates() if template.language == language]
    templates = _take_turns([one for one in known if one.kind != "emoji" or words.pictured])
    turns = enumerate(islice(cycle(templates), count))
    return [_fill(template, words, number // len(templates)) for number, template in turns]


def _take_turns(templates: Sequence[PairTemplate]) -> list[PairTemplate]:
    """Kinds one after the other, so that few pairs are of all kinds."""
    seen: Counter[str] = Counter()
    ranks = []
    for template in templates:
        ranks.append((seen[template.kind], PAIR_KINDS.index(template.kind)))
        seen[template.kind] += 1
    order = sorted(range(len(templates)), key=lambda place: ranks[place])
    return [templates[place] for place in order]


def _fill(template: PairTemplate, words: PairWords, turn: int) -> PairTexts:
    lists = {
        "group": words.groups,
        "neutral": words.neutrals,
        "insult": words.insults,
        "spelled": words.spelled,
        "parted": words.parted,
        "pictured": words.pictured or words.insults,
    }
    chosen = {name: listed[turn % len(listed)] for name, listed in lists.items()}
    return PairTexts(
        template=template.id,
        language=template.language,
        kind=template.kind,
        first=template.first.format(**chosen),
        second=template.second.format(**chosen),
    )
