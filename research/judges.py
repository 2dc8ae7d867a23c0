"""Coverage and width of prediction-powered estimates: ``python -m research.judges [REPEATS]``.

Simulated judges from perfect to adversarial rate answers of known mean; people rate 30 to 300 of
them. The table of docs/research/judges.md is this module's output.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from memantics.metrics.prediction_powered import (
    RatedItems,
    draw_items,
    estimate_mean,
    pair_items,
    selection_probabilities,
)
from memantics.metrics.rounding import Floats

Generator = np.random.Generator
ITEMS = 600
RATED = (30, 100, 300)
# The probabilities of the levels: binary rubrics by the proportion of ones, then 1 to 5.
RUBRICS: dict[str, tuple[float, ...]] = {
    "binary, 50 %": (0.5, 0.5),
    "binary, 80 %": (0.2, 0.8),
    "binary, 95 %": (0.05, 0.95),
    "graded, even": (0.1, 0.15, 0.25, 0.3, 0.2),
    "graded, mostly 5": (0.02, 0.03, 0.05, 0.15, 0.75),
}


def _slip(truth: Floats, rate: float, rng: Generator, levels: int) -> Floats:
    """Move a proportion of the marks by one level, up or down; flip binary marks."""
    hit = rng.random(len(truth)) < rate
    if levels == 2:
        return np.where(hit, 1 - truth, truth)
    return np.clip(np.where(hit, truth + rng.choice([-1, 1], len(truth)), truth), 0, levels - 1)


JUDGES: dict[str, Callable[[Floats, Generator, int], Floats]] = {
    "perfect": lambda truth, _, __: truth,
    "3 % errors": lambda truth, rng, top: _slip(truth, 0.03, rng, top),
    "good": lambda truth, rng, top: _slip(truth, 0.12 if top == 2 else 0.4, rng, top),
    "lenient": lambda truth, rng, top: np.minimum(
        truth + (rng.random(len(truth)) < 0.6), top - 1.0
    ),
    "random": lambda truth, rng, top: rng.integers(0, top, len(truth)).astype(float),
    "adversarial": lambda truth, _, top: top - 1.0 - truth,
}


@dataclass(frozen=True)
class Case:
    """One setting: how ratings, judge and selection are simulated."""

    rubric: str
    judge: str
    rated: int
    design: str = "equal"


def draw_levels(rng: Generator, rubric: str, count: int) -> Floats:
    """Draw true ratings."""
    chances = RUBRICS[rubric]
    return np.asarray(rng.choice(len(chances), count, p=chances), float)


def simulate(case: Case, rng: Generator) -> tuple[RatedItems, float]:
    """Draw one data set; return it with the true mean."""
    levels = len(RUBRICS[case.rubric])
    mean = float(np.dot(RUBRICS[case.rubric], np.arange(levels)))
    truth = draw_levels(rng, case.rubric, ITEMS)
    memes = np.arange(ITEMS)
    if case.design == "three answers per meme":
        # Two of three answers about a meme are equally good.
        truth = np.repeat(truth[: ITEMS // 3], 3)
        alone = draw_levels(rng, case.rubric, ITEMS // 3)
        truth[::3] = alone
        memes = np.arange(ITEMS) // 3
    marks = JUDGES[case.judge](truth, rng, levels)
    ratings = np.full(ITEMS, np.nan)
    chances = None
    if case.design == "active":
        other = JUDGES["good"](truth, rng, levels)
        chances = selection_probabilities(0.1 + np.abs(marks - other) / (levels - 1), case.rated)
        chosen = np.array(draw_items(chances, int(rng.integers(1 << 31))))
    else:
        chosen = np.arange(case.rated)
    ratings[chosen] = truth[chosen]
    scale = (0.0, levels - 1.0)
    items = RatedItems(marks, ratings, memes.tolist(), scale, levels == 2, chances)
    if case.design != "difference":
        return items, mean
    second = draw_levels(rng, case.rubric, ITEMS)
    same = rng.random(ITEMS) < 0.6
    second = np.where(same, truth, second)
    rated = np.where(np.isnan(ratings), np.nan, second)
    other_marks = JUDGES[case.judge](second, rng, levels)
    return pair_items(items, RatedItems(other_marks, rated, memes.tolist(), scale)), 0.0


def list_cases() -> Iterator[Case]:
    """Yield all settings."""
    yield from (Case(*one) for one in product(RUBRICS, JUDGES, RATED))
    for design in ("three answers per meme", "active", "difference"):
        for judge, rated in product(("good", "lenient", "adversarial"), (30, 100)):
            yield Case("graded, even", judge, rated, design)
            yield Case("binary, 80 %", judge, rated, design)


def measure(case: Case, repeats: int) -> tuple[float, float, float, float]:
    """Return coverage and mean width, and those of people alone."""
    rng = np.random.default_rng(
        [54, *map(ord, f"{case.rubric}{case.judge}{case.design}"), case.rated]
    )
    held = np.zeros((repeats, 4))
    for place in range(repeats):
        items, mean = simulate(case, rng)
        found = estimate_mean(items)
        assert found is not None
        for column, one in ((0, found.powered), (2, found.people)):
            assert one.low is not None
            assert one.high is not None
            held[place, column] = one.low - 1e-9 <= mean <= one.high + 1e-9
            held[place, column + 1] = one.high - one.low
    coverage, width, alone, width_alone = held.mean(axis=0).tolist()
    return coverage, width, alone, width_alone


def main() -> int:
    """Print the table as Markdown."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    out = sys.stdout.write
    out("| rubric | design | judge | n | coverage | width | people alone | width |\n")
    out("|---|---|---|--:|--:|--:|--:|--:|\n")
    for case in list_cases():
        coverage, width, alone, width_alone = measure(case, repeats)
        out(
            f"| {case.rubric} | {case.design} | {case.judge} | {case.rated} | {coverage:.3f} "
            f"| {width:.3f} | {alone:.3f} | {width_alone:.3f} |\n"
        )
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
