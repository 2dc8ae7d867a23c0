"""Check by arithmetic, without data, whether the values printed in a table can all be true.

A printed value stands for every value that prints the same. Papers round or truncate, so the true
value may be half a unit of the last digit below the printed one, or up to a whole unit above. A
check fails only if no value in this range satisfies it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class RoundingSpan:
    """The range of values that print as the same number."""

    low: float
    high: float


def span(value: float, digits: int) -> RoundingSpan:
    """Return the range that a printed value may stand for, rounded or truncated.

    >>> found = span(0.7198, 4)
    >>> round(found.low, 5), round(found.high, 5)
    (0.71975, 0.7199)
    """
    unit = 10.0**-digits
    return RoundingSpan(value - unit / 2 - _TINY, value + unit + _TINY)


def macro_f1_fits(f1: float, precision: float, recall: float, digits: int) -> bool:
    """Whether macro-F1 is at most the mean of macro precision and macro recall.

    The F1 of a class is the harmonic mean of its precision and recall, so at most their arithmetic
    mean; means over classes keep that order.

    >>> macro_f1_fits(0.3646, 0.3566, 0.3623, 4), macro_f1_fits(0.6876, 0.6897, 0.6861, 4)
    (False, True)
    """
    bound = (span(precision, digits).high + span(recall, digits).high) / 2
    return span(f1, digits).low <= bound


def whole_fits(whole: float, parts: Sequence[float], digits: int) -> bool:
    """Whether a total proportion is between the smallest and largest proportion of its parts.

    >>> whole_fits(0.1323, [0.1465, 0.1468], 4), whole_fits(0.4729, [0.5016, 0.4021], 4)
    (False, True)
    """
    spans = [span(part, digits) for part in parts]
    printed = span(whole, digits)
    return min(s.low for s in spans) <= printed.high and printed.low <= max(s.high for s in spans)


def weighted_fits(whole: float, parts: Sequence[tuple[float, int]], digits: int) -> bool:
    """Whether a total proportion is the mean of its parts, weighted by their sizes.

    >>> weighted_fits(0.5, [(0.25, 10), (0.75, 10)], 2), weighted_fits(0.6, [(0.5, 9), (1, 1)], 2)
    (True, False)
    """
    total = sum(size for _, size in parts)
    low = sum(span(share, digits).low * size for share, size in parts) / total
    high = sum(span(share, digits).high * size for share, size in parts) / total
    printed = span(whole, digits)
    return printed.low <= high and low <= printed.high


def share_fits(share: float, n: int, digits: int) -> bool:
    """Whether some whole number of ``n`` items gives this proportion.

    >>> share_fits(0.1465, 307, 4), share_fits(0.1323, 609, 4)
    (True, False)
    """
    printed = span(share, digits)
    return math.ceil(printed.low * n) <= math.floor(printed.high * n)


def f1_fits(f1: float, rates: tuple[float, float], sizes: tuple[int, int], digits: int) -> bool:
    """Whether a printed F1 of the positive class follows from both recalls and both class sizes.

    >>> f1_fits(0.718, (0.853, 0.739), (652, 1304), 3), f1_fits(0.9, (0.853, 0.739), (1, 2), 3)
    (True, False)
    """
    true, false = (span(rate, digits) for rate in rates)
    ratio = sizes[1] / sizes[0]

    def value(tpr: float, tnr: float) -> float:
        return 2 * tpr / (tpr + 1 + ratio * (1 - tnr))

    printed = span(f1, digits)
    # F1 increases with either recall.
    low = value(max(0.0, true.low), max(0.0, false.low))
    return printed.low <= value(min(1.0, true.high), min(1.0, false.high)) and low <= printed.high


@dataclass(frozen=True, slots=True)
class Claims:
    """The information that a table gives about its metrics besides their values.

    ``digits`` is the number of printed decimals. ``sizes`` are the numbers of items behind a
    proportion. ``parts`` are the metrics that make up another one. ``classes`` are the sizes of the
    positive and negative class if ``f1``, ``tpr`` and ``tnr`` are given.
    """

    digits: int
    sizes: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    classes: tuple[int, int] | None = None


def is_impossible(metrics: Mapping[str, float], claims: Claims) -> bool:
    """Whether printed metrics fail a check that holds for any number of items.

    >>> parts = {"whole": ("a", "b")}
    >>> sizes = {"whole": 20, "a": 10, "b": 10}
    >>> is_impossible({"whole": 0.9, "a": 0.2, "b": 0.4}, Claims(1, sizes, parts))
    True
    >>> is_impossible({"whole": 0.4, "a": 0.2, "b": 0.4}, Claims(1, sizes, parts))
    False
    """
    return bool(find_violations(metrics, replace(claims, sizes={}, classes=None)))


def find_violations(metrics: Mapping[str, float], claims: Claims) -> tuple[str, ...]:
    """List every arithmetic check that printed metrics fail, in words.

    >>> metrics = {"macro_f1": 0.5736, "macro_precision": 0.5768, "macro_recall": 0.5694}
    >>> find_violations(metrics, Claims(digits=4))
    ('macro-F1 0.5736 is above the mean of precision and recall, 0.5731',)
    """
    return (
        *_macro_violations(metrics, claims),
        *_whole_violations(metrics, claims),
        *_share_violations(metrics, claims),
        *_rate_violations(metrics, claims),
    )


def _macro_violations(metrics: Mapping[str, float], claims: Claims) -> tuple[str, ...]:
    names = ("macro_f1", "macro_precision", "macro_recall")
    if any(name not in metrics for name in names):
        return ()
    f1, precision, recall = (metrics[name] for name in names)
    if macro_f1_fits(f1, precision, recall, claims.digits):
        return ()
    bound = _show((precision + recall) / 2, claims.digits)
    return (
        f"macro-F1 {_show(f1, claims.digits)} is above the mean of precision and recall, {bound}",
    )


def _whole_violations(metrics: Mapping[str, float], claims: Claims) -> tuple[str, ...]:
    found: list[str] = []
    for whole, names in claims.parts.items():
        if whole not in metrics or any(name not in metrics for name in names):
            continue
        total, parts = metrics[whole], [metrics[name] for name in names]
        shown = " and ".join(_show(part, claims.digits) for part in parts)
        if not whole_fits(total, parts, claims.digits):
            found.append(
                f"{whole} {_show(total, claims.digits)} is outside the range of its parts, {shown}"
            )
        sizes = [claims.sizes.get(name, 0) for name in names]
        pairs = list(zip(parts, sizes, strict=True))
        if all(sizes) and not weighted_fits(total, pairs, claims.digits):
            mean = sum(part * size for part, size in pairs) / sum(sizes)
            found.append(
                f"{whole} {_show(total, claims.digits)} is not the mean of its parts at"
                f" {' and '.join(map(str, sizes))} items, {_show(mean, claims.digits)}"
            )
    return tuple(found)


def _share_violations(metrics: Mapping[str, float], claims: Claims) -> tuple[str, ...]:
    return tuple(
        f"{name} {_show(metrics[name], claims.digits)} is not k/{n} for any whole k"
        for name, n in claims.sizes.items()
        if name in metrics and not share_fits(metrics[name], n, claims.digits)
    )


def _rate_violations(metrics: Mapping[str, float], claims: Claims) -> tuple[str, ...]:
    if claims.classes is None or any(name not in metrics for name in ("f1", "tpr", "tnr")):
        return ()
    rates = (metrics["tpr"], metrics["tnr"])
    if f1_fits(metrics["f1"], rates, claims.classes, claims.digits):
        return ()
    shown = _show(metrics["f1"], claims.digits)
    return (f"F1 {shown} does not follow from TPR and TNR at {claims.classes} items",)


def _show(value: float, digits: int) -> str:
    return f"{value:.{digits}f}"
