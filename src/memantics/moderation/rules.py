"""Rules that choose an operating point on held-out memes, and the counts to expect from it.

All counts come from memes that were held out in training, in bins of the probability of harm. They
are valid for data with the same proportion of harmful memes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Annotated, Final, Literal

from memantics.core.errors import InputError
from memantics.core.parameters import Flag
from memantics.core.result import Result
from memantics.metrics.rounding import settle
from memantics.moderation.operating_points import OperatingPoint, Rate, rate

BINS: Final = 1000
LOW_RECALL: Final = 0.1  # minimum recall; a rule that finds fewer harmful memes is hardly useful
HIGH_REVIEW: Final = 0.5  # with more reviews than this, a detector saves hardly any work
# for each of these recall values, the threshold with the highest precision is suggested
_USEFUL = (0.1, 0.25, 0.5)
_EXAMPLES = (
    "use precision=0.9, recall=0.8, reviews=50/day with --volume 20000/day,"
    " or cost=miss:10,false_positive:1,review:0.2"
)
# how far from the threshold, in bins, a review band may be if reviews= allows few memes
_NEAR_BINS: Final = 50
_COSTS = ("miss", "false_positive", "review")
_PER_TIME = re.compile(r"(\d+(?:\.\d+)?)/(hour|day|week|month)")
RuleKind = Literal["precision", "recall", "reviews", "cost"]

RuleFlag = Annotated[
    str,
    Flag(
        "Choose the operating point on held-out memes: precision=0.9, recall=0.8, reviews=50/day"
        " (with --volume), or cost=miss:10,false_positive:1,review:0.2.",
        metavar="RULE",
    ),
]
VolumeFlag = Annotated[
    str, Flag("Memes per hour, day, week or month, for reviews=: 20000/day.", metavar="COUNT/TIME")
]


@dataclass(frozen=True, slots=True)
class HeldOutScores:
    """Numbers of harmful and harmless held-out memes in each of 1,000 bins of the probability."""

    harmful: tuple[int, ...]
    harmless: tuple[int, ...]

    @property
    def positives(self) -> int:
        """Number of harmful memes."""
        return sum(self.harmful)

    @property
    def total(self) -> int:
        """Number of all memes."""
        return self.positives + sum(self.harmless)

    def count(self, point: OperatingPoint, band: str) -> tuple[int, int]:
        """Count harmful and harmless memes in a band of an operating point."""
        places = [n for n in range(BINS) if point.band(n / BINS) == band]
        return sum(self.harmful[n] for n in places), sum(self.harmless[n] for n in places)

    def dump(self) -> list[list[int]]:
        """Rows of bin, harmful and harmless memes, without empty bins."""
        rows = zip(range(BINS), self.harmful, self.harmless, strict=True)
        return [list(row) for row in rows if row[1] or row[2]]


def count_scores(said: Sequence[tuple[float, bool]]) -> HeldOutScores:
    """Count memes by probability and label.

    >>> count_scores([(0.9, True), (0.9004, False), (1.0, True)]).dump()
    [[900, 1, 1], [999, 1, 0]]
    """
    counts = Counter((_find_bin(probability), harmful) for probability, harmful in said)
    return HeldOutScores(
        tuple(counts[place, True] for place in range(BINS)),
        tuple(counts[place, False] for place in range(BINS)),
    )


def _find_bin(probability: float) -> int:
    return min(BINS - 1, int(settle(probability) * BINS + 1e-9))


def read_scores(stored: object, name: str) -> HeldOutScores | None:
    """Read the held-out counts of a model card; None if the card has none."""
    if not stored:
        return None
    harmful, harmless = [0] * BINS, [0] * BINS
    try:
        for place, positive, negative in stored:  # type: ignore[attr-defined]
            if not 0 <= int(place) < BINS or min(int(positive), int(negative)) < 0:
                raise ValueError
            harmful[int(place)], harmless[int(place)] = int(positive), int(negative)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the counts on held-out memes in {name} cannot be read",
            hint="train the detector again",
        ) from error
    return HeldOutScores(tuple(harmful), tuple(harmless))


@dataclass(frozen=True, slots=True)
class Rule:
    """A parsed rule: its kind, its target, and for ``cost`` the cost of each error."""

    kind: RuleKind
    target: float = 0.0
    costs: tuple[float, float, float] = (0.0, 0.0, 0.0)


def read_rule(text: str, volume: str = "") -> Rule:
    """Parse a rule; raise InputError with examples if it is not valid.

    >>> read_rule("reviews=50/day", "20000/day")
    Rule(kind='reviews', target=0.0025, costs=(0.0, 0.0, 0.0))
    >>> read_rule("cost=miss:10,false_positive:1,review:0.2").costs
    (10.0, 1.0, 0.2)
    """
    kind, _, wanted = text.partition("=")
    if kind == "cost":
        return Rule("cost", costs=_read_costs(text, wanted))
    if kind == "reviews":
        return Rule("reviews", _read_budget(text, wanted, volume))
    if kind not in ("precision", "recall") or not _is_proportion(wanted):
        raise InputError(f"{text!r} is not a valid operating point", hint=_EXAMPLES)
    return Rule("precision" if kind == "precision" else "recall", float(wanted))


def _is_proportion(text: str) -> bool:
    return bool(re.fullmatch(r"\d*\.?\d+", text)) and 0 < float(text) <= 1


def _read_costs(text: str, wanted: str) -> tuple[float, float, float]:
    parts = [part.partition(":") for part in wanted.split(",")]
    named = {name.strip(): value for name, _, value in parts}
    numbers = [named.get(name, "") for name in _COSTS]
    if len(parts) != len(_COSTS) or not all(re.fullmatch(r"\d*\.?\d+", one) for one in numbers):
        raise InputError(
            f"{text!r} does not name the costs of a miss, a false positive and a review",
            hint=_EXAMPLES,
        )
    miss, false_positive, review = map(float, numbers)
    return miss, false_positive, review


def _read_budget(text: str, wanted: str, volume: str) -> float:
    budget, whole = _PER_TIME.fullmatch(wanted), _PER_TIME.fullmatch(volume)
    if budget is None or whole is None or budget[2] != whole[2] or not float(whole[1]):
        raise InputError(
            f"{text!r} needs the number of memes in the same time",
            hint="for example reviews=50/day with --volume 20000/day",
        )
    return min(1.0, float(budget[1]) / float(whole[1]))


def choose_point(
    scores: HeldOutScores | None, text: str, volume: str, threshold: float
) -> OperatingPoint:
    """Choose an operating point by a rule.

    Args:
        scores: Held-out memes of the detector.
        text: The rule; see :func:`read_rule`.
        volume: Memes per time, for ``reviews=``.
        threshold: Threshold of the training, around which ``reviews=`` places the review band.

    Raises:
        InputError: The rule is not valid, or no threshold reaches it.
    """
    rule = read_rule(text, volume)
    if scores is None or not scores.positives or scores.positives == scores.total:
        raise InputError(
            "the detector file has no held-out predictions, which an operating-point rule needs",
            hint="train the detector again, or give --threshold",
        )
    if rule.kind == "cost":
        return replace(_minimise_cost(scores, rule.costs), rule=text)
    if rule.kind == "reviews":
        point = _spend_reviews(scores, rule.target, threshold)
        return replace(point, rule=text, volume=volume)
    return OperatingPoint(_find_threshold(scores, rule), rule=text)


def list_thresholds(scores: HeldOutScores) -> list[tuple[float, float, float]]:
    """List precision and recall at thresholds in steps of 0.001 that flag at least one meme."""
    harmful = list(accumulate(reversed(scores.harmful)))[::-1]
    harmless = list(accumulate(reversed(scores.harmless)))[::-1]
    return [
        (place / BINS, harmful[place] / (harmful[place] + harmless[place]), harmful[place] / most)
        for place in range(1, BINS)
        if harmful[place] + harmless[place] and (most := harmful[0])
    ]


def _find_threshold(scores: HeldOutScores, rule: Rule) -> float:
    rows = list_thresholds(scores)
    column = 1 if rule.kind == "precision" else 2
    kept = [row[0] for row in rows if settle(row[column]) >= settle(rule.target)]
    if kept:
        return min(kept) if rule.kind == "precision" else max(kept)
    best = max((row[column] for row in rows), default=0.0)
    useful = "; ".join(_list_useful(scores))
    raise InputError(
        f"no threshold reaches {rule.kind} {rule.target:g} on held-out memes",
        hint=f"the highest {rule.kind} is {best:.2f}" + (f"; {useful}" if useful else ""),
    )


def _spend_reviews(scores: HeldOutScores, share: float, threshold: float) -> OperatingPoint:
    """Widen the review band around the threshold while it contains at most the target share."""
    both = [one + two for one, two in zip(scores.harmful, scores.harmless, strict=True)]
    middle = min(BINS, round(threshold * BINS))
    low = high = middle  # the band is bins low to high - 1
    left = share * scores.total
    while low > 0 or high < BINS:
        down = low > 0 and (high == BINS or middle - low <= high - middle)
        place = low - 1 if down else high
        left -= both[place]
        if left < -1e-9:
            break
        low, high = (place, high) if down else (low, place + 1)
    if low == high:
        # The bins at the threshold have more memes than the target: use the nearest one that fits.
        low = _find_sparse_bin(both, middle, share * scores.total)
        if low < 0:
            return OperatingPoint(middle / BINS)
        high = low + 1
    return OperatingPoint(high / BINS, (low / BINS, high / BINS))


def _find_sparse_bin(counts: Sequence[int], middle: int, most: float) -> int:
    """Find the bin nearest to the threshold with some memes, but at most so many; -1 for none.

    >>> _find_sparse_bin([9, 2, 9, 9], 3, 2.5), _find_sparse_bin([9, 2, 9, 9], 3, 1.5)
    (1, -1)
    """
    near = range(max(0, middle - _NEAR_BINS), min(len(counts), middle + _NEAR_BINS))
    fits = [place for place in near if 0 < counts[place] <= most + 1e-9]
    return min(fits, key=lambda place: abs(place + 0.5 - middle), default=-1)


def _minimise_cost(scores: HeldOutScores, costs: tuple[float, float, float]) -> OperatingPoint:
    """Find the operating point with the lowest cost on held-out memes.

    If several have the same cost, the one with the narrowest review band is chosen.

    One pass over the bins suffices: it keeps the best lower end so far and combines it with each
    upper end of the review band.
    """
    miss, false_positive, review = costs
    passed, blocked = 0.0, false_positive * sum(scores.harmless)
    reviewed = 0.0  # counts of all memes below the current bin
    best = (blocked, 0, 0, 0)
    # the lowest cost of a lower end: missed memes below it minus the reviews that it saves
    start = (0.0, 0)
    for place in range(BINS):
        harmful, harmless = scores.harmful[place], scores.harmless[place]
        passed += miss * harmful
        blocked -= false_positive * harmless
        reviewed += review * (harmful + harmless)
        start = min(start, (passed - reviewed, -(place + 1)))
        low, high = -start[1], place + 1
        cost = settle(start[0] + reviewed + blocked)
        best = min(best, (cost, high - low, high, low))
    _, _, high, low = best
    span = (low / BINS, high / BINS) if low < high else None
    return OperatingPoint(high / BINS, span)


@dataclass(frozen=True, slots=True)
class ExpectedCounts(Result):
    """Proportions of held-out memes at an operating point, with 95 % confidence intervals.

    ``allowed``, ``reviewed`` and ``blocked`` are proportions of all memes, ``missed`` of harmful
    memes that are allowed, ``false_positives`` of harmless memes that are blocked, ``precision`` of
    blocked memes that are harmful, ``recall`` of harmful memes that are blocked.
    """

    memes: int
    allowed: Rate
    reviewed: Rate
    blocked: Rate
    missed: Rate
    false_positives: Rate
    precision: Rate
    recall: Rate


def expect(scores: HeldOutScores, point: OperatingPoint) -> ExpectedCounts:
    """Count held-out memes in each band of an operating point: allow, review, block."""
    allow, review, block = (scores.count(point, band) for band in ("allow", "review", "block"))
    total, harmful = scores.total, scores.positives
    return ExpectedCounts(
        total,
        rate(sum(allow), total),
        rate(sum(review), total),
        rate(sum(block), total),
        rate(allow[0], harmful),
        rate(block[1], total - harmful),
        rate(block[0], sum(block)),
        rate(block[0], harmful),
    )


def describe_point(scores: HeldOutScores | None, point: OperatingPoint) -> list[str]:
    """Describe an operating point: bands, errors, expected counts.

    If its recall is low, other thresholds are suggested.
    """
    by = f" ({point.rule})" if point.rule else ""
    ends = point.review_band
    bands = f"threshold {point.threshold:.4g}{by}"
    if ends is not None:
        bands += f", review band {ends[0]:.4g} to {ends[1]:.4g}"
    lines = [f"note: {point.gap}"] if point.gap else []
    if scores is None or not scores.total:
        return [f"{bands}: precision and recall on held-out memes are unknown", *lines]
    found = expect(scores, point)
    errors = f"precision {_percent(found.precision)}, recall {_percent(found.recall)}"
    of, time = (1000.0, "") if not point.volume else _read_volume(point.volume)
    counts = ", ".join(
        f"{_multiply(one, of)} {name}"
        for name, one in (
            ("allowed", found.allowed),
            ("reviewed", found.reviewed),
            ("blocked", found.blocked),
        )
    )
    alike = f"if {100 * scores.positives / scores.total:.1f} % of them are harmful, as in training"
    blocked = f"{_percent(found.false_positives)} of harmless memes are blocked"
    lines = [
        f"{bands}: on {found.memes:,} held-out memes {errors}",
        f"expect of {of:,.0f} memes{time}: {counts} ({alike})",
        f"errors: {_percent(found.missed)} of harmful memes are allowed, {blocked}",
        *lines,
    ]
    if point.rule.startswith("reviews=") and ends is None:
        lines.append(
            f"warning: no meme is reviewed because of its probability: every band near the"
            f" threshold has more memes than {point.rule} allows; allow more reviews, or train on"
            " more memes"
        )
    return [*lines, *_offer_others(scores, found)]


def _offer_others(scores: HeldOutScores, found: ExpectedCounts) -> Iterator[str]:
    caught = 1 - (found.missed.value or 0.0)
    reviewed = found.reviewed.value or 0.0
    if caught < LOW_RECALL:
        yield (
            f"warning: {100 * (1 - caught):.1f} % of harmful memes are allowed at this operating"
            " point; choose a lower target, or train on more memes"
        )
    elif reviewed > HIGH_REVIEW:
        yield (
            f"warning: {100 * reviewed:.1f} % of all memes need human review at this operating"
            " point; choose a narrower range or a higher cost of reviews, or train on more memes"
        )
    else:
        return
    yield from _list_useful(scores)


def _list_useful(scores: HeldOutScores) -> Iterator[str]:
    """Describe the threshold with the highest precision for each of some recall values.

    A threshold that is the best one for several recall values is described once, for the highest.
    """
    rows = list_thresholds(scores)
    useful: dict[tuple[float, float, float], float] = {}
    for least in _USEFUL:
        kept = [row for row in rows if settle(row[2]) >= least]
        if kept:
            useful[max(kept, key=lambda row: (row[1], row[2]))] = least
    for (threshold, precision, recall), least in useful.items():
        yield (
            f"nearest useful threshold with recall of at least {100 * least:.0f} %:"
            f" {threshold:g} (precision {100 * precision:.1f} %, recall {100 * recall:.1f} %)"
        )


def _read_volume(text: str) -> tuple[float, str]:
    found = _PER_TIME.fullmatch(text)
    return (float(found[1]), f" per {found[2]}") if found else (1000.0, "")


def _percent(one: Rate) -> str:
    if one.value is None or one.low is None or one.high is None:
        return "unknown"
    return f"{100 * one.value:.1f} % ({100 * one.low:.1f} to {100 * one.high:.1f})"


def _multiply(one: Rate, of: float) -> str:
    if one.value is None or one.low is None or one.high is None:
        return "an unknown number"
    return f"{of * one.value:,.0f} ({of * one.low:,.0f} to {of * one.high:,.0f})"
