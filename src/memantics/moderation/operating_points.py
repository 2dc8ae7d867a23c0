"""Operating points: precision and recall along thresholds, and error rates by target group.

Rates are measured on memes held out in training. Harmless memes attack nobody, so the false
positive rate of a group is measured on harmless memes that use the group's words. These are words
that memes against the group use far more often than all others (log-odds with a prior: Monroe,
Colaresi and Quinn 2008, "Fightin' Words").
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from memantics.core.errors import InputError
from memantics.core.parameters import Flag
from memantics.core.result import Result, Table
from memantics.metrics.interval import wilson
from memantics.metrics.rounding import settle
from memantics.moderation.examples import Example
from memantics.moderation.features import clean, list_ngrams

EVERYBODY = "all memes"
FEWEST = 5  # minimum harmful memes of a group for a rate
_WORDS = 6
_SURE = 2.5  # minimum log-odds ratio of a group's word, in standard deviations
_PRIOR = 10.0
_FULL = _PRIOR + 1  # keeps the odds finite for a word that occurs in every text
NEAR = 0.1  # distance from the threshold that counts as uncertain


@dataclass(frozen=True, slots=True)
class Rate(Result):
    """A proportion of ``count`` memes with its 95 % confidence interval; None for no memes."""

    count: int
    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class TargetErrors(Result):
    """Error rates for a group.

    ``recall`` is measured on memes against the group, the false positive rate on harmless memes
    with its words.
    """

    target: str
    found: Rate
    alarms: Rate
    words: tuple[str, ...] = ()


def find_target_errors(
    examples: Sequence[Example], labels: Sequence[int]
) -> tuple[TargetErrors, ...]:
    """Compute recall and false positive rate over all memes and by group, largest first.

    Empty if no group has enough harmful memes.
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
        aimed_at = {place for place in harmful if examples[place].target == name}
        said = find_words(words, aimed_at)
        near = [place for place in harmless if words[place] & set(said)]
        found.append(TargetErrors(name, _rate(sorted(aimed_at), labels), _rate(near, labels), said))
    return tuple(found)


def _cut(example: Example) -> frozenset[str]:
    said = list_ngrams("words", clean(example.text))
    return frozenset(word for word in said if len(word) > 1 and word.isalpha())


def find_words(texts: Sequence[frozenset[str]], members: set[int]) -> tuple[str, ...]:
    """List words that some texts use far more often than others, most significant first.

    >>> texts = [frozenset({"a", "b"})] * 9 + [frozenset({"b"})] * 90
    >>> find_words(texts, set(range(9)))
    ('a',)
    """
    inside = Counter(word for place in members for word in texts[place])
    outside = Counter(
        word for place, text in enumerate(texts) if place not in members for word in text
    )
    size, rest = len(members), len(texts) - len(members)
    rated: list[tuple[float, str]] = []
    for word, count in inside.items():
        # The prior assumes the word frequency of all texts.
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
    """Compute a proportion with its 95 % confidence interval.

    >>> rate(1, 2).value, rate(0, 0).value
    (0.5, None)
    """
    if not count:
        return Rate(0)
    low, high = wilson(hits, count) or (None, None)
    return Rate(count, hits / count, low, high)


def tabulate_targets(rows: Sequence[TargetErrors]) -> Table:
    """Show recall and false positive rate by group, in per cent."""
    cells = tuple(
        (
            errors.target,
            *_show_target(errors.found),
            *_show_target(errors.alarms),
            " ".join(errors.words),
        )
        for errors in rows
    )
    columns = (
        "target", ">harmful", ">recall %", ">95 % CI", ">harmless", ">false positives %",
        ">95 % CI", "words",
    )  # fmt: skip
    return Table(columns, cells, "Errors by target; harmless memes are those with its words")


def _show_target(rate: Rate) -> tuple[str, str, str]:
    if rate.value is None or rate.low is None or rate.high is None:
        return f"{rate.count:,}", "–", "–"
    span = f"{100 * rate.low:.1f}–{100 * rate.high:.1f}"
    return f"{rate.count:,}", f"{100 * rate.value:.1f}", span


Band = Literal["allow", "review", "block"]


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """Three contiguous bands of the probability of harm that cover 0 to 1: allow, review, block.

    Without ``review_range``, memes are blocked from ``threshold`` on and allowed below it. A review
    range puts a band of memes for human review between both. A range that does not reach the
    threshold would leave a gap, so the band is extended to the threshold: see :attr:`gap`. ``rule``
    is the rule that chose threshold and range, if any; ``volume`` is the number of memes per unit
    of time that the rule assumes. With ``homophones``, Chinese texts are also scored by their
    homophone reading.
    """

    threshold: float
    review_range: tuple[float, float] | None = None
    rule: str = ""
    homophones: bool = False
    volume: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise InputError(
                f"threshold {self.threshold} is not a probability", hint="use a value from 0 to 1"
            )
        span = self.review_range
        if span is not None and not 0 <= span[0] < span[1] <= 1:
            raise InputError(
                f"{span[0]}..{span[1]} is not a valid review range",
                hint="use LOW..HIGH with 0 <= LOW < HIGH <= 1, for example 0.3..0.7",
            )

    @property
    def review_band(self) -> tuple[float, float] | None:
        """Lower and upper end of the review band; None if every meme is allowed or blocked."""
        if self.review_range is None:
            return None
        low, high = self.review_range
        return min(low, self.threshold), max(high, self.threshold)

    @property
    def gap(self) -> str:
        """Describe the gap between review range and threshold that was closed; empty without one.

        >>> OperatingPoint(0.9, (0.3, 0.5)).gap
        'memes from 0.5 to 0.9 are between the review range and the threshold: they are reviewed'
        """
        if self.review_range is None or self.review_range == self.review_band:
            return ""
        low, high = self.review_range
        ends = (high, self.threshold) if self.threshold > high else (self.threshold, low)
        return (
            f"memes from {ends[0]:g} to {ends[1]:g} are between the review range and the threshold:"
            " they are reviewed"
        )

    @property
    def summary(self) -> str:
        """Threshold and review band in words, as records name the operating point.

        >>> OperatingPoint(0.5).summary, OperatingPoint(0.5, (0.3, 0.7)).summary
        ('threshold 0.5', 'threshold 0.5, review band 0.3 to 0.7')
        """
        ends = self.review_band
        span = "" if ends is None else f", review band {ends[0]:g} to {ends[1]:g}"
        return f"threshold {self.threshold:g}{span}"

    def is_harmful(self, probability: float) -> bool:
        """Return whether the probability is at or above the threshold.

        >>> [OperatingPoint(0.5).is_harmful(probability) for probability in (0.5, 0.49)]
        [True, False]
        """
        return settle(probability) >= settle(self.threshold)

    def band(self, probability: float) -> Band:
        """Return the band of a probability.

        Both ends of a review range belong to it; the threshold belongs to the block band. A value
        that is not a number needs review.

        >>> point = OperatingPoint(0.9, (0.3, 0.5))
        >>> [point.band(probability) for probability in (0.29, 0.3, 0.5, 0.86, 0.9, math.nan)]
        ['allow', 'review', 'review', 'review', 'block', 'review']
        """
        if not math.isfinite(probability):
            return "review"
        value = settle(probability)
        if self.review_range is None:
            return "block" if self.is_harmful(probability) else "allow"
        low, high = self.review_range
        if value < settle(min(low, self.threshold)):
            return "allow"
        if settle(high) > settle(self.threshold):
            return "review" if value <= settle(high) else "block"
        return "review" if value < settle(self.threshold) else "block"

    def explain_review(self, probability: float) -> str:
        """Explain why a probability needs human review; empty outside of the review band.

        >>> OperatingPoint(0.5, (0.3, 0.7)).explain_review(0.7)
        'its probability 0.70 is in the review band, 0.3 to 0.7'
        """
        ends = self.review_band
        if ends is None or self.band(probability) != "review":
            return ""
        return (
            f"its probability {probability:.2f} is in the review band, {ends[0]:g} to {ends[1]:g}"
        )


@dataclass(frozen=True, slots=True)
class ThresholdMetrics(Result):
    """Metrics at one threshold, each with a 95 % confidence interval.

    ``precision`` and ``recall`` are of harmful memes. ``flagged`` and ``near`` (within 0.1 of the
    threshold) are proportions of all memes.
    """

    threshold: float
    precision: Rate
    recall: Rate
    flagged: Rate
    near: Rate


def measure_thresholds(
    said: Sequence[tuple[float, bool]], chosen: float | None = None
) -> tuple[ThresholdMetrics, ...]:
    """Compute metrics at thresholds in steps of 0.05, and at the chosen threshold.

    >>> rows = measure_thresholds([(0.9, True), (0.6, False), (0.2, False)], 0.6)
    >>> [(row.threshold, row.flagged.value) for row in rows if row.threshold == 0.6]
    [(0.6, 0.6666666666666666)]
    """
    steps = {step / 20 for step in range(1, 20)}
    steps |= set() if chosen is None else {round(chosen, 4)}
    found, harmful = [], sum(truth for _, truth in said)
    for step in sorted(steps):
        point = OperatingPoint(step)
        flagged = [truth for chance, truth in said if point.is_harmful(chance)]
        near = sum(abs(settle(chance - step)) <= NEAR for chance, _ in said)
        found.append(
            ThresholdMetrics(
                step,
                rate(sum(flagged), len(flagged)),
                rate(sum(flagged), harmful),
                rate(len(flagged), len(said)),
                rate(near, len(said)),
            )
        )
    return tuple(found)


def tabulate_thresholds(rows: Sequence[ThresholdMetrics], chosen: float | None = None) -> Table:
    """Show every second threshold and the chosen one as a table."""
    kept = None if chosen is None else round(chosen, 4)
    cells = []
    for row in rows:
        if row.threshold == kept or not round(row.threshold * 100) % 10:
            mark = " *" if row.threshold == kept else ""
            shares = (_show(row.precision), _show(row.recall), _show(row.flagged, 1000))
            # The chosen threshold may need a third digit to differ from a step.
            digits = 2 if settle(row.threshold) == settle(round(row.threshold, 2)) else 3
            shown = f"{row.threshold:.{digits}f}{mark}"
            cells.append((shown, *shares, _show(row.near, 1000)))
    columns = (
        "threshold", ">precision %", ">recall %", ">flagged per 1,000", ">within 0.1, per 1,000",
    )  # fmt: skip
    title = "Metrics of harmful memes by threshold, with 95 % CI" + (
        "; *: current threshold" if kept is not None else ""
    )
    return Table(columns, tuple(cells), title)


def _show(rate: Rate, of: int = 100) -> str:
    if rate.value is None or rate.low is None or rate.high is None:
        return "–"
    digits = 0 if of > 100 else 1
    return f"{of * rate.value:.{digits}f} ({of * rate.low:.0f}–{of * rate.high:.0f})"


def read_range(text: str) -> tuple[float, float] | None:
    """Parse ``LOW..HIGH`` of ``--review-range``; None for an empty text."""
    if not text:
        return None
    found = re.fullmatch(r"(\d*\.?\d+)\.\.(\d*\.?\d+)", text)
    if found is None:
        raise InputError(
            f"{text!r} is not a valid range for --review-range",
            hint="use LOW..HIGH, for example 0.3..0.7",
        )
    return float(found.group(1)), float(found.group(2))


ThresholdFlag = Annotated[
    float | None, Flag("Probability from which a meme is harmful. Default: stored.")
]
ReviewRangeFlag = Annotated[
    tuple[float, float] | None,
    Flag(
        "Probabilities that need human review, such as 0.3..0.7. Default: stored.",
        metavar="LOW..HIGH",
        kind=str,
        read=read_range,
        default="",
    ),
]


def read_point(stored: object, name: str) -> OperatingPoint | None:
    """Read the operating point of a model card; None if the card has none."""
    if stored is None:
        return None
    try:
        found = dict(stored)  # type: ignore[call-overload]
        span = found["review_range"]
        review_range = (float(span[0]), float(span[1])) if span else None
        rule, volume = str(found.get("rule", "")), str(found.get("volume", ""))
        homophones = found.get("homophones") is True
        return OperatingPoint(float(found["threshold"]), review_range, rule, homophones, volume)
    except (TypeError, ValueError, KeyError) as error:
        raise InputError(
            f"the operating point of {name} cannot be read",
            hint="write it again with 'memantics detector set'",
        ) from error
