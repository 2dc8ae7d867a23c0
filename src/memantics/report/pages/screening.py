"""What a screening found, on one page: shares, scores, types, and the memes worth a look."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from memantics.core.journal import replace_file
from memantics.report.page import fill_page

_BINS = 20
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts over all verdicts, and a few of them: memory does not grow with their number."""

    rows: int
    statuses: Mapping[str, int]
    labels: Mapping[str, int]
    types: Mapping[str, int]
    languages: Mapping[str, int]
    reasons: Mapping[str, int]
    scores: tuple[int, ...]
    families: tuple[tuple[str, int], ...]
    certain: tuple[Mapping[str, Any], ...] = ()
    doubtful: tuple[Mapping[str, Any], ...] = ()
    heard: tuple[Mapping[str, Any], ...] = field(default=())


def summarize(rows: Iterable[Mapping[str, Any]]) -> Summary:
    """Count verdicts in one pass."""
    names = ("statuses", "labels", "types", "languages", "reasons", "looks")
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    counts["labels"].update(dict.fromkeys(("harmless", "harmful", "review"), 0))
    scores = [0] * _BINS
    certain: list[tuple[float, int, Mapping[str, Any]]] = []
    doubtful: list[tuple[float, int, Mapping[str, Any]]] = []
    heard: list[Mapping[str, Any]] = []
    total = 0
    for place, row in enumerate(rows):
        total += 1
        counts["statuses"][row["status"]] += 1
        if row["status"] != "judged":
            counts["reasons"][f"{row['status']}: {_shorten(row['reason'])}"] += 1
            continue
        chance = float(row["probability"])
        counts["labels"][row["label"]] += 1
        counts["languages"][row["language"]] += 1
        scores[min(_BINS - 1, int(chance * _BINS))] += 1
        _keep(certain, (chance, -place, row))
        _keep(doubtful, (-abs(chance - 0.5), -place, row))
        if row["label"] != "harmless":
            counts["types"][row["type"] or "none"] += 1
            if row["phash"]:
                counts["looks"][row["phash"]] += 1
        if row["readings"] and len(heard) < _SHOWN:
            heard.append(row)
    return Summary(
        rows=total,
        statuses=dict(counts["statuses"]),
        labels=dict(counts["labels"]),
        types=dict(counts["types"].most_common()),
        languages=dict(counts["languages"].most_common()),
        reasons=dict(counts["reasons"].most_common(20)),
        scores=tuple(scores),
        families=tuple((look, n) for look, n in counts["looks"].most_common(_SHOWN) if n > 1),
        certain=tuple(row for _, _, row in sorted(certain, key=lambda kept: kept[:2])[::-1]),
        doubtful=tuple(row for _, _, row in sorted(doubtful, key=lambda kept: kept[:2])[::-1]),
        heard=tuple(heard),
    )


def _keep(
    heap: list[tuple[float, int, Mapping[str, Any]]], new: tuple[float, int, Mapping[str, Any]]
) -> None:
    """Keep the few largest; places make ties comparable."""
    if len(heap) < _SHOWN:
        heapq.heappush(heap, new)
    elif new[:2] > heap[0][:2]:
        heapq.heapreplace(heap, new)


def _shorten(reason: str) -> str:
    """A reason without the name of its meme, so that equal ones are counted together."""
    head, _, tail = reason.partition(": ")
    return (tail if head.startswith("image ") and tail else reason)[:120]


def write_summary(summary: Summary, facts: Mapping[str, Any], out: Path) -> None:
    """Write the page in one step."""
    shared = (files("memantics.report") / "templates" / "page.css").read_text(encoding="utf-8")
    folder = files("memantics.report.pages") / "templates"
    style = shared + (folder / "screening.css").read_text(encoding="utf-8")
    template = (folder / "screening.html").read_text(encoding="utf-8")
    most = max((*summary.scores, 1))
    bars = [
        (place / _BINS, count, round(100 * count / most))
        for place, count in enumerate(summary.scores)
    ]
    page = fill_page(template, (style, ""), summary=summary, facts=facts, bars=bars)
    replace_file(out, page.encode("utf-8", "replace"), "summary")
