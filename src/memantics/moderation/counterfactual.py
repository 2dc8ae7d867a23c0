"""Counterfactual augmentation: training texts in which the name of a group is exchanged.

A detector that learnt from attacks on some groups may react to their names. Copies of harmless
training texts with the names of other groups show it that the names alone are harmless. Harmful
texts are not copied: that makes a detector flag the names of more groups
(docs/research/identity-terms.md).
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Final

from memantics.core.data import toml_beside
from memantics.moderation.examples import Example

COPIES: Final = 1  # counterfactual copies per harmless text that names a group
_HAN = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class GroupTerms:
    """The terms of one language: the group and the number of each form, and the first forms."""

    pattern: re.Pattern[str]
    forms: Mapping[str, tuple[int, str]]
    first: Mapping[tuple[int, str], str]
    groups: int


@dataclass(frozen=True, slots=True)
class Counterfactuals:
    """Examples followed by their counterfactual copies.

    ``origins`` has the index of the original of each example. ``changed`` is the number of
    originals that have copies.
    """

    examples: tuple[Example, ...]
    origins: tuple[int, ...]
    changed: int

    @property
    def note(self) -> str:
        """A sentence for the model card."""
        copies = len(self.examples) - len(set(self.origins))
        return (
            f"counterfactual augmentation: {copies:,} copies of {self.changed:,} harmless memes"
            " that name a group, with the names of other groups"
        )


def add_counterfactuals(
    examples: Sequence[Example], copies: int = COPIES, seed: int = 0
) -> Counterfactuals:
    """Add copies of harmless texts that name a group, with the names of other groups.

    Each copy exchanges every name in the text: the same group becomes the same other group, and
    different groups stay different. Captions of images are not changed.

    >>> memes = [Example("1", "Muslims and a Jew", label=0), Example("2", "Jews", label=1)]
    >>> found = add_counterfactuals(memes, copies=1)
    >>> found.origins, found.changed
    ((0, 1, 0), 1)
    >>> found.examples[2].label, "muslim" in found.examples[2].text.lower()
    (0, False)
    """
    pick = random.Random(seed)
    added: list[Example] = []
    origins: list[int] = []
    for place, example in enumerate(examples):
        texts = [] if example.label else exchange_groups(example.text, copies, pick)
        for number, text in enumerate(texts, 1):
            added.append(replace(example, id=f"{example.id}~group{number}", text=text))
            origins.append(place)
    return Counterfactuals(
        (*examples, *added), (*range(len(examples)), *origins), len(set(origins))
    )


def exchange_groups(text: str, copies: int, pick: random.Random) -> list[str]:
    """Exchange the groups of a text; empty if it names none.

    >>> exchange_groups("两位黑人在等车", 1, random.Random(0)) != ["两位黑人在等车"]
    True
    >>> exchange_groups("a humane womanly cat", 1, random.Random(0))
    []
    """
    terms = read_terms("zh" if _HAN.search(text) else "en")
    named = list(
        dict.fromkeys(
            terms.forms[found.group().lower()][0] for found in terms.pattern.finditer(text)
        )
    )
    others = [group for group in range(terms.groups) if group not in named]
    if not named or len(others) < len(named):
        return []
    made: list[str] = []
    for _ in range(copies):
        drawn = dict(zip(named, pick.sample(others, len(named)), strict=True))
        insert = partial(_replace, drawn, terms)
        made.append(terms.pattern.sub(insert, text))
    return made


def _replace(drawn: Mapping[int, int], terms: GroupTerms, match: re.Match[str]) -> str:
    """Return the name of the drawn group, written with capitals as the name it replaces."""
    found = match.group()
    group, number = terms.forms[found.lower()]
    new = terms.first[drawn[group], number]
    if len(found) > 1 and found.isupper():
        return new.upper()
    return new[0].upper() + new[1:] if found[0].isupper() else new


@cache
def read_terms(language: str) -> GroupTerms:
    """Read the names of the groups in a language."""
    groups = toml_beside(__file__, "counterfactual_terms.toml")[language]["groups"]
    forms: dict[str, tuple[int, str]] = {}
    first: dict[tuple[int, str], str] = {}
    for place, group in enumerate(groups):
        for number, names in group.items():
            first[place, number] = names[0]
            forms |= dict.fromkeys(names, (place, number))
    listed = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    bound = "" if language == "zh" else r"\b"  # Chinese has no spaces between words
    return GroupTerms(re.compile(f"{bound}(?:{listed}){bound}", re.I), forms, first, len(groups))
