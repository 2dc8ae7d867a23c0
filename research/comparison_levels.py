"""Simulate the level and the power of every test in ``compare``.

Run ``python -m research.comparison_levels``. Two runs answer the same items. A latent normal value
decides whether an answer is right: it has parts of the meme and the item that both runs share, and
parts of their own. Without a difference, both runs are right with probability 0.7; for the power,
the second run is right with probability 0.8. Memes have one, three or ten items.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from memantics.evaluation.main_metric import BLOCKS
from memantics.metrics.comparison import mean_by_cluster, paired_t_test
from memantics.metrics.paired import (
    Clusters,
    PairedTest,
    compare_auroc,
    compare_blocks,
    compare_hits,
    compare_means,
    compare_ratios,
    f1_metric,
    macro_f1_metric,
)
from memantics.metrics.rounding import Floats, Ints

SIZES = (50, 150, 1000)
PER_MEME = (1, 3, 10)
RHO, SHARED = 0.3, 0.5  # proportions of the latent variance: of memes, and of both runs together
RIGHT, BETTER = 0.7, 0.8


@dataclass(frozen=True, slots=True)
class Simulated:
    """Latent values of two runs (positive: right), the gold classes and the memes."""

    latent: tuple[Floats, Floats]
    gold: Ints
    memes: list[int]


def simulate(rng: np.random.Generator, n: int, per_meme: int, second: float) -> Simulated:
    """Draw the answers of two runs to the same items."""
    count = max(2, round(n / per_meme))
    memes = np.sort(np.arange(n) % count)

    def draw(share: float) -> Floats:
        of_meme = rng.normal(size=count)[memes] * np.sqrt(share * RHO)
        return np.asarray(of_meme + rng.normal(size=n) * np.sqrt(share * (1 - RHO)), float)

    both = draw(SHARED)
    bounds = (NormalDist().inv_cdf(RIGHT), NormalDist().inv_cdf(second))
    one, two = (bound + both + draw(1 - SHARED) for bound in bounds)
    gold = rng.choice(4, size=n, p=[0.45, 0.3, 0.2, 0.05])
    return Simulated((one, two), np.asarray(gold, np.int64), memes.tolist())


def _guess(latent: Floats, gold: Ints, classes: int) -> list[int]:
    """Say the gold class if right, else the next one."""
    truth = gold % classes
    said: list[int] = np.where(latent > 0, truth, (truth + 1) % classes).tolist()
    return said


def compare_hits_of(made: Simulated) -> PairedTest | None:
    """Compare correct and wrong answers."""
    one, two = (latent > 0 for latent in made.latent)
    return compare_hits(one.tolist(), two.tolist(), made.memes)


def compare_mean_of(made: Simulated) -> PairedTest | None:
    """Compare means of skewed values from 0 to 1, like ROUGE-L."""
    one, two = (1 / (1 + np.exp(1.5 - latent)) ** 2 for latent in made.latent)
    return compare_means(one.tolist(), two.tolist(), made.memes)


def compare_f1_of(made: Simulated) -> PairedTest | None:
    """Compare F1 of one of two classes."""
    gold = (made.gold % 2).tolist()
    one, two = (f1_metric(gold, _guess(x, made.gold, 2), 1) for x in made.latent)
    return compare_ratios(one, two, Clusters.of(made.memes), bound=1.0)


def compare_macro_f1_of(made: Simulated) -> PairedTest | None:
    """Compare macro-F1 of four classes, one of them with 5 % of the items."""
    gold = made.gold.tolist()
    one, two = (macro_f1_metric(gold, _guess(x, made.gold, 4)) for x in made.latent)
    return compare_ratios(one, two, Clusters.of(made.memes), bound=1.0)


def compare_auroc_of(made: Simulated) -> PairedTest | None:
    """Compare the AUROC of the probability of the gold class."""
    truth = made.gold % 2
    chances = [1 / (1 + np.exp(-np.where(truth == 1, x, -x))) for x in made.latent]
    one, two = (np.column_stack([1 - p, p]) for p in chances)
    return compare_auroc(one, two, truth, made.memes)


def compare_blocks_of(made: Simulated) -> PairedTest | None:
    """Compare balanced accuracy as any metric without a form in arrays: without each block."""
    memes = list(dict.fromkeys(made.memes))
    order = random.Random(0).sample(range(len(memes)), len(memes))
    blocks = min(BLOCKS, len(memes))
    block_of = {memes[place]: index % blocks for index, place in enumerate(order)}
    codes = np.array([block_of[meme] for meme in made.memes])
    left = np.zeros((2, blocks + 1))
    for side, latent in enumerate(made.latent):
        for block in range(blocks + 1):  # the last one leaves out nothing
            kept = codes != block
            sizes = np.bincount(made.gold[kept], minlength=4)
            hits = np.bincount(made.gold[kept], latent[kept] > 0, 4)
            left[side, block] = float((hits[sizes > 0] / sizes[sizes > 0]).mean())
    gain = left[1] - left[0]
    return compare_blocks(float(gain[-1]), gain[:-1])


def compare_student_of(made: Simulated) -> PairedTest | None:
    """Compare the memes' means of skewed values by a paired t-test."""
    values = [(1 / (1 + np.exp(1.5 - x)) ** 2).tolist() for x in made.latent]
    found = paired_t_test(*(mean_by_cluster(side, made.memes) for side in values))
    return PairedTest(0.0, 0.0, 0.0, found.p, 0.0, 0, "paired t-test") if found else None


TESTS: dict[str, Callable[[Simulated], PairedTest | None]] = {
    "correct answers": compare_hits_of,
    "mean": compare_mean_of,
    "F1": compare_f1_of,
    "macro-F1": compare_macro_f1_of,
    "AUROC": compare_auroc_of,
    "blocks": compare_blocks_of,
    "t-test": compare_student_of,
}


def reject(
    n: int, per_meme: int, second: float, count: int, seed: int = 0
) -> dict[str, float | None]:
    """Proportion of simulated comparisons with p < 0.05; None for a test that refuses them."""
    rng = np.random.default_rng([seed, n, per_meme])
    found: dict[str, list[bool]] = {name: [] for name in TESTS}
    for _ in range(count):
        made = simulate(rng, n, per_meme, second)
        for name, test in TESTS.items():
            if (done := test(made)) is not None:
                found[name].append(done.p < 0.05)
    return {name: sum(hits) / len(hits) if hits else None for name, hits in found.items()}


def list_rows(second: float, count: int) -> Iterator[str]:
    """Yield a Markdown table of rejections, in percent."""
    yield "| items | memes | " + " | ".join(TESTS) + " |"
    yield "|---:|---:|" + "---:|" * len(TESTS)
    for n in SIZES:
        for per_meme in PER_MEME:
            rates = reject(n, per_meme, second, count)
            cells = " | ".join("–" if r is None else f"{100 * r:.1f}" for r in rates.values())
            yield f"| {n:,} | {max(2, round(n / per_meme)):,} | {cells} |"


def main() -> None:
    """Print the level and the power of each test."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    for title, second in (("Level", RIGHT), ("Power", BETTER)):
        print(f"{title}, {count:,} simulations per cell\n", flush=True)
        for line in list_rows(second, count if second == RIGHT else count // 4):
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
