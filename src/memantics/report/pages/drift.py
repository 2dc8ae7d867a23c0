"""Two screenings beside each other, on one page: pictures, tests, and the memes behind a shift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from memantics.core.journal import replace_file
from memantics.core.parameters import Flag
from memantics.core.result import Result, Table
from memantics.report.page import fill_page
from memantics.report.pages.screening import STYLES

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
        write_drift(self, Path(page))
        return Path(page)


def write_drift(found: Drift, out: Path) -> None:
    """Write the page in one step."""
    pictures = {aspect.name: _draw(aspect.counts) for aspect in found.aspects}
    page = fill_page("drift.html", STYLES, found=found, pictures=pictures)
    replace_file(out, page.encode("utf-8", "replace"), "page")


def _draw(counts: tuple[tuple[str, int, int], ...]) -> list[tuple[str, float, float, int, int]]:
    """Categories with both shares, and both widths of bars in per cent of the largest share."""
    total_now = max(1, sum(now for _, now, _ in counts))
    total_then = max(1, sum(then for _, _, then in counts))
    shares = [(name, now / total_now, then / total_then) for name, now, then in counts]
    most = max((max(pair[1:]) for pair in shares), default=1.0) or 1.0
    kept = sorted(shares, key=lambda row: -max(row[1:]))[:_MOST_BARS]
    kept.sort(key=lambda row: row[0])
    return [(n, a, b, round(100 * a / most), round(100 * b / most)) for n, a, b in kept]
