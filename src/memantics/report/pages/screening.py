"""What a screening found, on one page: shares, scores, types, and the memes worth a look."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from memantics.core.journal import write_text
from memantics.core.parameters import Flag
from memantics.core.result import Result, Table
from memantics.report.kit import fill_page

if TYPE_CHECKING:
    import pyarrow as pa

# What of each verdict the page needs.
COLUMNS = (
    "id", "status", "reason", "text", "language", "label", "probability", "type", "readings",
    "phash", "family", "out_of_domain",
)  # fmt: skip
STYLES = ("page.css", "screening.css")
_BINS = 20
_SHOWN = 12
_Kept = tuple[float, int, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts over all verdicts, and a few of them: memory does not grow with their number.

    ``families`` are pictures that look alike among the flagged, ``templates`` known ones.
    """

    rows: int
    statuses: Mapping[str, int]
    labels: Mapping[str, int]
    types: Mapping[str, int]
    languages: Mapping[str, int]
    reasons: Mapping[str, int]
    templates: Mapping[str, int]
    scores: tuple[int, ...]
    outside: int
    families: tuple[tuple[str, int], ...]
    certain: tuple[Mapping[str, Any], ...] = ()
    doubtful: tuple[Mapping[str, Any], ...] = ()
    heard: tuple[Mapping[str, Any], ...] = ()


def summarize(tables: Iterable[pa.Table], families: Mapping[str, str]) -> Summary:
    """Count verdicts in one pass over the parts; ``families`` are those of perceptual hashes."""
    import pyarrow.compute as pc

    tally = _Tally(families)
    for table in tables:
        tally.count("statuses", table["status"])
        tally.rows += table.num_rows
        judged = pc.equal(table["status"], "judged")
        rest = table.filter(pc.invert(judged)).select(["status", "reason"]).to_pylist()
        tally.counts["reasons"].update(
            f"{row['status']}: {_shorten(row['reason'])}" for row in rest
        )
        tally.add_judged(table.filter(judged))
    return tally.close()


class _Tally:
    def __init__(self, families: Mapping[str, str]) -> None:
        names = ("statuses", "labels", "types", "languages", "reasons", "templates", "families")
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in names}
        self.counts["labels"].update(dict.fromkeys(("harmless", "harmful", "review"), 0))
        self.rows = self.outside = 0
        self._families = families
        self._scores = np.zeros(_BINS, np.int64)
        self._certain: list[_Kept] = []
        self._doubtful: list[_Kept] = []
        self._heard: list[Mapping[str, Any]] = []
        self._judged = 0

    def count(self, name: str, column: pa.ChunkedArray) -> None:
        for pair in column.value_counts().to_pylist():
            self.counts[name][pair["values"] or "none"] += pair["counts"]

    def add_judged(self, table: pa.Table) -> None:
        import pyarrow.compute as pc

        chances = table["probability"].to_numpy()
        places = np.minimum(_BINS - 1, (chances * _BINS).astype(np.int64))
        self._scores += np.bincount(places, minlength=_BINS)
        self.count("labels", table["label"])
        self.count("languages", table["language"])
        self.outside += pc.sum(table["out_of_domain"]).as_py() or 0
        flagged = table.filter(pc.not_equal(table["label"], "harmless"))
        self.count("types", flagged["type"])
        self.count("templates", flagged["family"].drop_null())
        looks = [look for look in flagged["phash"].to_pylist() if look]
        self.counts["families"].update(
            self._families[look] for look in looks if look in self._families
        )
        for heap, order in ((self._certain, chances), (self._doubtful, -np.abs(chances - 0.5))):
            first = np.lexsort((np.arange(len(order)), -order))[:_SHOWN]
            for place, row in zip(first.tolist(), table.take(first).to_pylist(), strict=True):
                _keep(heap, (float(order[place]), -(self._judged + place), row))
        if len(self._heard) < _SHOWN:
            heard = table.filter(pc.greater(pc.list_value_length(table["readings"]), 0))
            self._heard += heard.slice(0, _SHOWN - len(self._heard)).to_pylist()
        self._judged += table.num_rows

    def close(self) -> Summary:
        counts = self.counts
        return Summary(
            rows=self.rows,
            statuses=dict(counts["statuses"]),
            labels=dict(counts["labels"]),
            types=dict(counts["types"].most_common()),
            languages=dict(counts["languages"].most_common()),
            reasons=dict(counts["reasons"].most_common(20)),
            templates=dict(counts["templates"].most_common(_SHOWN)),
            scores=tuple(self._scores.tolist()),
            outside=self.outside,
            families=tuple((n, k) for n, k in counts["families"].most_common(_SHOWN) if k > 1),
            certain=_unload(self._certain),
            doubtful=_unload(self._doubtful),
            heard=tuple(self._heard),
        )


def _unload(heap: list[_Kept]) -> tuple[Mapping[str, Any], ...]:
    return tuple(row for _, _, row in sorted(heap, key=lambda kept: kept[:2])[::-1])


def _keep(heap: list[_Kept], new: _Kept) -> None:
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
    most = max((*summary.scores, 1))
    bars = [
        (place / _BINS, count, round(100 * count / most))
        for place, count in enumerate(summary.scores)
    ]
    page = fill_page("screening.html", STYLES, summary=summary, facts=facts, bars=bars)
    write_text(out, page, "summary")


# Two screenings beside each other, on one page: pictures, tests, and the memes behind a shift.

_MOST_BARS = 20


@dataclass(frozen=True, slots=True)
class DriftLimits:
    """A shift counts where it is sure and large: both limits are passed."""

    alpha: Annotated[
        float, Flag("Chance of a false alarm over all comparisons (Holm).", min=0, max=1)
    ] = 0.01
    distance: Annotated[
        float, Flag("Share of memes that must lie elsewhere to count.", min=0, max=1)
    ] = 0.1


@dataclass(frozen=True, slots=True)
class DriftedAspect:
    """One distribution in both folders: ``counts`` are category, now and then.

    ``p`` is corrected for the number of comparisons; ``drivers`` are memes of the category that
    grew most.
    """

    name: str
    p: float | None
    distance: float
    beyond: bool
    counts: tuple[tuple[str, int, int], ...]
    grown: str = ""
    drivers: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Drift(Result):
    """What moved between two screenings, by how much, and the limits that hold.

    ``note`` says where another detector judged now.
    """

    now: Path
    then: Path
    memes: tuple[int, int]
    aspects: tuple[DriftedAspect, ...]
    alpha: float
    distance: float
    note: str = ""

    @property
    def beyond(self) -> tuple[str, ...]:
        """The aspects beyond the limits."""
        return tuple(aspect.name for aspect in self.aspects if aspect.beyond)

    @property
    def table(self) -> Table:
        """One row for each aspect."""
        return Table(
            ("aspect", ">p (Holm)", ">elsewhere", "grew most", "beyond the limits"),
            tuple(
                (
                    aspect.name,
                    "–" if aspect.p is None else f"{aspect.p:.2g}",
                    f"{aspect.distance:.1%}",
                    aspect.grown or "–",
                    "yes" if aspect.beyond else "no",
                )
                for aspect in self.aspects
            ),
        )

    def save(self, page: str | Path) -> Path:
        """Write one self-contained page; returns the file."""
        pictures = {aspect.name: _draw(aspect.counts) for aspect in self.aspects}
        return write_text(page, fill_page("drift.html", STYLES, found=self, pictures=pictures))


def _draw(counts: tuple[tuple[str, int, int], ...]) -> list[tuple[str, float, float, int, int]]:
    """Categories with both shares, and both widths of bars in per cent of the largest share."""
    total_now = max(1, sum(now for _, now, _ in counts))
    total_then = max(1, sum(then for _, _, then in counts))
    shares = [(name, now / total_now, then / total_then) for name, now, then in counts]
    most = max((max(pair[1:]) for pair in shares), default=1.0) or 1.0
    kept = sorted(shares, key=lambda row: -max(row[1:]))[:_MOST_BARS]
    kept.sort(key=lambda row: row[0])
    return [(n, a, b, round(100 * a / most), round(100 * b / most)) for n, a, b in kept]
