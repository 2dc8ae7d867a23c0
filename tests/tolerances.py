"""The rule for numbers across processors (docs/architecture.md), as tests hold it.

``same`` is for what the product computes from given values: labels, counts, order and texts are
equal, floats to 1e-6 of their size. ``NEAR`` is for what stands on an encoder's vectors, which are
in single precision. ``differing`` is for answers that stand on OCR, an encoder or a language model:
they are counted item by item, and a page says how many may differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

CLOSE = 1e-6  # of a figure's size
NEAR = 1e-5  # of a chance or a similarity, which lie between 0 and 1
ZERO = 1e-12  # what is zero in theory


def same(now: object, then: object, *, relative: float = CLOSE, absolute: float = ZERO) -> bool:
    """Whether two values are equal but for the last digits of their floats.

    >>> same({"n": 3, "f1": [0.5]}, {"n": 3, "f1": [0.49999999999999994]})
    True
    >>> same({"n": 3}, {"n": 3.0}), same([1, 2], [2, 1]), same(0.5, 0.500001), same("a", "a ")
    (False, False, False, False)
    """
    return not list_differences(now, then, relative=relative, absolute=absolute)


def list_differences(
    now: Any, then: Any, *, relative: float = CLOSE, absolute: float = ZERO, at: str = ""
) -> list[str]:
    """Where two values differ by more than last digits, for a test to show.

    >>> list_differences({"a": [1.0, 2.0]}, {"a": [1.0, 2.5]})
    ['/a/1: 2.0, was 2.5']
    """
    if isinstance(now, Mapping) and isinstance(then, Mapping) and list(now) == list(then):
        pairs = [(now[key], then[key], f"{at}/{key}") for key in then]
    elif isinstance(now, list | tuple) and isinstance(then, list | tuple):
        if len(now) != len(then):
            return [f"{at}: {len(now)} values, were {len(then)}"]
        pairs = [(a, then[place], f"{at}/{place}") for place, a in enumerate(now)]
    elif type(now) is float and type(then) is float:
        near = math.isclose(now, then, rel_tol=relative, abs_tol=absolute)
        alike = near or (math.isnan(now) and math.isnan(then))
        return [] if alike else [f"{at}: {now}, was {then}"]
    else:
        alike = type(now) is type(then) and now == then
        return [] if alike else [f"{at}: {now!r}, was {then!r}"]
    return [
        line
        for a, b, place in pairs
        for line in list_differences(a, b, relative=relative, absolute=absolute, at=place)
    ]


def differing(now: Mapping[str, object], then: Mapping[str, object]) -> list[str]:
    """The items whose answers differ; both must hold the same items in the same order.

    >>> differing({"a": "pun", "b": "no"}, {"a": "pun", "b": "pun"})
    ['b']
    """
    assert list(now) == list(then)
    return [item for item in then if not same(now[item], then[item])]


def holds(after: object, before: object) -> bool:
    """Whether a record says all that it said; more may be said, such as a guideline's version."""
    if isinstance(before, dict) and isinstance(after, dict):
        return all(name in after and holds(after[name], old) for name, old in before.items())
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(holds, after, before))
    return before == after
