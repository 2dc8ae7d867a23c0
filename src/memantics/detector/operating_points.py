"""Thresholds by what they keep: precision and recall on memes that were held out in training."""

from __future__ import annotations

from collections.abc import Sequence

from memantics.core.errors import InputError


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
