"""What a comparison of runs finds: figures that differ, and items that went differently."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from memantics.core.result import Result, Table


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure on the shared items: the second run's value less the first's.

    ``p`` is of the test that is named, ``t_test`` that of a paired t-test over memes where the
    figure is a mean, and ``t_unpaired`` that of Welch's test, which forgets that both runs
    answered about the same memes. The corrected ones take account of all figures of all pairs
    (Holm).
    """

    key: str
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None
    test: str
    p: float | None
    effect: str
    size: float | None
    items: int
    memes: int
    t_test: float | None = None
    corrected: float | None = None
    t_test_corrected: float | None = None
    t_unpaired: float | None = None
    t_unpaired_corrected: float | None = None

    @property
    def ps(self) -> tuple[float | None, float | None]:
        """The p-value, plain and corrected."""
        return self.p, self.corrected

    @property
    def span(self) -> str:
        """The difference with its interval, in words."""
        if self.low is None or self.high is None:
            return f"{self.difference:+.3f}"
        return f"{self.difference:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


@dataclass(frozen=True, slots=True)
class Change:
    """An item that went differently. ``gain`` is positive where the second run is better."""

    item: str
    first: JsonValue
    second: JsonValue
    gold: JsonValue
    gain: float | None


@dataclass(frozen=True, slots=True)
class Comparison(Result):
    """Two runs side by side; ``shared`` items are those that both runs have a score for."""

    first: str
    second: str
    task: str
    shared: int
    left_out: Mapping[str, int]
    differences: tuple[Difference, ...]
    changes: tuple[Change, ...]
    notes: tuple[str, ...]

    def table(self) -> Table:
        """The figures of both runs, their difference and how sure it is."""
        columns = ("figure", ">first", ">second", "difference (95 %)", ">p", ">Holm")
        rows = (
            (row.key, f"{row.first:.3f}", f"{row.second:.3f}", row.span, *map(show_p, row.ps))
            for row in self.differences
        )
        return Table(columns, tuple(rows))

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def show_p(value: float | None) -> str:
    """A p-value as people read it.

    >>> show_p(0.0312), show_p(0.00002), show_p(None)
    ('0.031', '<0.001', '–')
    """
    if value is None:
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"
