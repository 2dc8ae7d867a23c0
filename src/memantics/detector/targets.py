"""Whom a detector fails: harmful memes that it misses, and harmless ones that it accuses.

Harmless memes attack nobody. False alarms of a group are therefore counted among the harmless memes
that use its words: those that memes against it use far more often than all others do (log-odds
with a prior: Monroe, Colaresi and Quinn 2008, "Fightin' Words").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from memantics.core.result import Result, Table
from memantics.detector.examples import Example
from memantics.detector.features import clean, name_pieces
from memantics.metrics.interval import wilson

EVERYBODY = "all memes"
FEWEST = 5  # harmful memes of a group, below which a share says nothing
_WORDS = 6
_SURE = 2.5  # deviations from "as often as elsewhere"
_PRIOR = 10.0
_FULL = _PRIOR + 1  # so that a word of every text has finite odds


@dataclass(frozen=True, slots=True)
class Rate(Result):
    """A share of ``count`` memes with its 95 % interval; None where there are none."""

    count: int
    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class TargetErrors(Result):
    """How a detector treats a group: harmful memes against it, harmless ones with its words."""

    target: str
    found: Rate
    alarms: Rate
    words: tuple[str, ...] = ()


def find_target_errors(
    examples: Sequence[Example], labels: Sequence[int]
) -> tuple[TargetErrors, ...]:
    """Recall and false alarms over all memes and by group, the largest first.

    Empty where no group with enough harmful memes is known.
    """
    sizes = Counter(e.target for e in examples if e.target and e.label == 1)
    groups = [name for name, count in sizes.most_common() if count >= FEWEST]
    if not groups:
        return ()
    words = [_cut(example) for example in examples]
    harmless = [place for place, e in enumerate(examples) if e.label == 0]
    harmful = [place for place, e in enumerate(examples) if e.label == 1]
    found = [
        TargetErrors(EVERYBODY, _rate(harmful, labels), _rate(harmless, labels)),
    ]
    for name in groups:
        numbers = {place for place in harmful if examples[place].target == name}
        said = find_words(words, numbers)
        near = [place for place in harmless if words[place] & set(said)]
        found.append(TargetErrors(name, _rate(sorted(numbers), labels), _rate(near, labels), said))
    return tuple(found)


def _cut(example: Example) -> frozenset[str]:
    said = name_pieces("words", clean(example.text))
    return frozenset(word for word in said if len(word) > 1 and word.isalpha())


def find_words(texts: Sequence[frozenset[str]], numbers: set[int]) -> tuple[str, ...]:
    """The words that some texts use far more often than the others, the surest first.

    >>> texts = [frozenset({"a", "b"})] * 9 + [frozenset({"b"})] * 90
    >>> find_words(texts, set(range(9)))
    ('a',)
    """
    inside = Counter(word for place in numbers for word in texts[place])
    outside = Counter(
        word for place, text in enumerate(texts) if place not in numbers for word in text
    )
    size, rest = len(numbers), len(texts) - len(numbers)
    rated: list[tuple[float, str]] = []
    for word, count in inside.items():
        # The prior takes the word to be as frequent as in all texts.
        prior = _PRIOR * (count + outside[word]) / len(texts)
        one, two = count + prior, outside[word] + prior
        odds = math.log(one / (size + _FULL - one)) - math.log(two / (rest + _FULL - two))
        sure = odds / math.sqrt(1 / one + 1 / two)
        if count > 2 and sure >= _SURE:
            rated.append((-sure, word))
    return tuple(word for _, word in sorted(rated)[:_WORDS])


def _rate(places: Sequence[int], labels: Sequence[int]) -> Rate:
    return rate(sum(labels[place] for place in places), len(places))


def rate(hits: int, count: int) -> Rate:
    """A share with its interval.

    >>> rate(1, 2).value, rate(0, 0).value
    (0.5, None)
    """
    if not count:
        return Rate(0)
    low, high = wilson(hits, count) or (None, None)
    return Rate(count, hits / count, low, high)


def tabulate_targets(rows: Sequence[TargetErrors]) -> Table:
    """Recall and false alarms by group, in per cent."""
    cells = tuple(
        (errors.target, *_show(errors.found), *_show(errors.alarms), " ".join(errors.words))
        for errors in rows
    )
    columns = (
        "attacked", ">harmful", ">found", ">95 %", ">harmless", ">called harmful", ">95 %", "words",
    )  # fmt: skip
    return Table(columns, cells, "Errors by target; harmless: those that use the words of a target")


def _show(rate: Rate) -> tuple[str, str, str]:
    if rate.value is None or rate.low is None or rate.high is None:
        return f"{rate.count:,}", "–", "–"
    span = f"{100 * rate.low:.1f}–{100 * rate.high:.1f}"
    return f"{rate.count:,}", f"{100 * rate.value:.1f}", span
