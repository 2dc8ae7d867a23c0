"""Consistency on minimal pairs as one page: a table by kind, and failing pairs, blurred."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from memantics.build.pairs.wording import SAME, read_meanings
from memantics.core.formatting import show_figure, show_span
from memantics.core.journal import write_text
from memantics.core.records import Score
from memantics.core.result import Result, Table
from memantics.report.kit import Shown, fill_page
from memantics.report.plot import Mark, draw_axis, draw_strip, fit_scale
from memantics.report.thumbnails import make_thumbnails

_MOST_BYTES = 40 * 1024 * 1024
_MOST_PAIRS = 1000


@dataclass(frozen=True, slots=True)
class FailingPair:
    """A pair that was not judged as it must be: what both sides must be called, and were."""

    id: str
    kind: str
    texts: tuple[str, str]
    labels: tuple[str, str]
    said: tuple[str, str]
    images: tuple[Path, Path]

    @property
    def fault(self) -> str:
        """What should have changed and did not, or the other way round."""
        if self.said[0] == self.said[1]:
            both = "both sides are called " + self.said[0]
            return both if self.kind in SAME else f"the label does not change: {both}"
        stays = "the label changes and must not" if self.kind in SAME else "both labels are wrong"
        return f"{stays}: {self.said[0]}, then {self.said[1]}"


@dataclass(frozen=True, slots=True)
class PairCheck(Result):
    """Consistency on minimal pairs, by kind: both sides as they must be, and what changed.

    ``judge`` is the detector or the run; ``unjudged`` counts pairs with a side without an answer.
    """

    judge: str
    kinds: tuple[Score, ...]
    failing: tuple[FailingPair, ...]
    unjudged: int = 0

    def table(self) -> Table:
        """A row for each kind."""
        rows = tuple(
            (score.by, score.label, show_figure(score.value), show_span(score), str(score.n))
            for score in self.kinds
        )
        return Table(("kind", "what must hold", ">share", ">95 %", ">pairs"), rows, self.judge)

    def save(self, out: str | Path) -> Path:
        """Write the page in one step; returns the file."""
        return write_text(out, render_page(self))


def render_page(check: PairCheck) -> str:
    """The page as text."""
    shown = check.failing[:_MOST_PAIRS]
    pictures = make_thumbnails([path for pair in shown for path in pair.images], _MOST_BYTES)
    groups: defaultdict[str, list[Shown]] = defaultdict(list)
    for pair in shown:
        sides = [
            {"picture": next(pictures), "label": label, "said": said, "text": text}
            for label, said, text in zip(pair.labels, pair.said, pair.texts, strict=True)
        ]
        groups[pair.kind].append({"pair": pair, "sides": sides})
    scale = fit_scale([Score("share", 0.0, 0), Score("share", 1.0, 0)])
    return fill_page(
        "pairs.html",
        ("page.css", "collect.css"),
        check=check,
        axis=draw_axis(scale),
        rows=[(row, draw_strip([Mark(row.by, row, 2)], scale)) for row in check.kinds],
        groups=groups,
        meanings=read_meanings(),
        same=SAME,
        left_out=len(check.failing) - len(shown),
    )
