"""Thresholds by what they keep: precision and recall on memes that were held out in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memantics.core.errors import InputError
from memantics.metrics.rounding import settle


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """From which probability on a meme is harmful, and the range that is for people."""

    threshold: float
    review: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise InputError(f"threshold {self.threshold} is no probability", hint="use 0 to 1")
        if self.review is not None and not 0 <= self.review[0] < self.review[1] <= 1:
            raise InputError(
                f"{self.review[0]}..{self.review[1]} is no range", hint="such as 0.3..0.7"
            )

    def is_harmful(self, probability: float) -> bool:
        """Whether a meme of that probability is harmful: at the threshold it is.

        >>> [OperatingPoint(0.5).is_harmful(chance) for chance in (0.5, 0.49)]
        [True, False]
        """
        return settle(probability) >= settle(self.threshold)

    def explain_review(self, probability: float) -> str:
        """Why a person should decide on a meme of that probability; empty where none needs to.

        >>> OperatingPoint(0.5, (0.3, 0.7)).explain_review(0.7)
        'its probability 0.70 is between 0.3 and 0.7'
        """
        if self.review is None:
            return ""
        low, high = self.review
        if not settle(low) <= settle(probability) <= settle(high):
            return ""
        return f"its probability {probability:.2f} is between {low:g} and {high:g}"


def list_operating_points(said: Sequence[tuple[float, bool]]) -> list[list[float]]:
    """Rows of threshold, precision and recall, from 0.01 to 0.99; no row where nothing is flagged.

    >>> list_operating_points([(0.9, True), (0.6, False), (0.2, False)])[0]
    [0.01, 0.3333, 1.0]
    """
    harmful = sum(truth for _, truth in said)
    rows = []
    for step in range(1, 100):
        flagged = [truth for chance, truth in said if chance >= step / 100]
        if flagged and harmful:
            hits = sum(flagged)
            rows.append([step / 100, round(hits / len(flagged), 4), round(hits / harmful, 4)])
    return rows


def choose_operating_point(points: Sequence[Sequence[float]], rule: str) -> float:
    """The threshold of a rule such as ``precision=0.9`` or ``recall=0.8``.

    >>> points = [[0.3, 0.6, 0.9], [0.5, 0.8, 0.7], [0.7, 0.95, 0.4]]
    >>> [choose_operating_point(points, rule) for rule in ("precision=0.8", "recall=0.7")]
    [0.5, 0.5]
    """
    name, _, wanted = rule.partition("=")
    place = {"precision": 1, "recall": 2}.get(name)
    try:
        share = float(wanted)
    except ValueError:
        share = -1.0
    if place is None or not 0 < share <= 1:
        raise InputError(f"{rule!r} is no rule", hint="use precision=0.9 or recall=0.8")
    if not points:
        raise InputError(
            "this detector does not keep its held-out predictions", hint="train it again"
        )
    kept = [point[0] for point in points if point[place] >= share]
    if not kept:
        best = max(point[place] for point in points)
        raise InputError(
            f"no threshold has {name} {share:g} on held-out memes",
            hint=f"the highest is {best:.2f}",
        )
    return min(kept) if name == "precision" else max(kept)
