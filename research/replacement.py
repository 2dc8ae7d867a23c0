"""Measure level and power of the shuffle test that ``detector retrain`` runs.

``python -m research.replacement --data hateful_memes`` draws memes for an old detector and other
memes that are annotated, and runs ``memantics.moderation.replacement.measure_gain`` on them. Under
the two null conditions the annotations contain no information that the old detector lacks: they are
coin tosses, or drawn with the probability of the old detector. Under the other conditions they are
the published labels, of which a proportion is flipped. Only development sets are used. Results are
in docs/research/moderation-loop.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from memantics.metrics.interval import wilson
from memantics.metrics.rounding import Floats, Ints
from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.judges import FastJudge
from memantics.moderation.replacement import LEVEL, measure_gain
from research.data import read_harm, read_hateful
from research.protocol import take_development_set

Labeller = Callable[[Ints, Floats, np.random.Generator], Ints]


def toss(truth: Ints, old: Floats, rng: np.random.Generator) -> Ints:
    """Label by coin toss."""
    del old
    return rng.integers(0, 2, len(truth))


def echo(truth: Ints, old: Floats, rng: np.random.Generator) -> Ints:
    """Label with the probability of the old detector, which adds no information."""
    del truth
    return (rng.random(len(old)) < old).astype(np.int64)


def flip(proportion: float) -> Labeller:
    """Label truly, except for a proportion of flipped labels."""

    def label(truth: Ints, old: Floats, rng: np.random.Generator) -> Ints:
        del old
        return np.where(rng.random(len(truth)) < proportion, 1 - truth, truth)

    return label


CONDITIONS: dict[str, tuple[str, Labeller]] = {
    "toss": ("null: coin toss", toss),
    "echo": ("null: drawn with the old detector's probability", echo),
    "true": ("published labels", flip(0.0)),
    "flip20": ("published labels, 20 % flipped", flip(0.2)),
    "flip35": ("published labels, 35 % flipped", flip(0.35)),
}


def read_examples(data: str) -> list[Example]:
    """Read the texts of a development set with their labels, one meme per text."""
    if data == "toxicn_mm":
        rows = {row.group: row.content for row in take_development_set(data, read_harm())}
        return [Example(one.id, one.text, label=one.label) for one in rows.values() if one.text]
    listed = {row.group: row for row in take_development_set(data, read_hateful())}
    return [
        Example(row.id, str(row.content["text"]), label=int(row.tags["label"] == "hateful"))
        for row in listed.values()
    ]


def simulate(
    memes: Sequence[Example], known: int, sizes: Sequence[int], wanted: Sequence[str], seed: int
) -> dict[tuple[str, int], float]:
    """Train one old detector, and test one set of annotations per condition and size.

    Returns p-values; 1 stands for a gain that is not positive, which is never significant.
    """
    rng = np.random.default_rng(seed)
    drawn = [memes[place] for place in rng.permutation(len(memes))[: known + max(sizes)]]
    first, rest = drawn[:known], drawn[known:]
    judge = Detector.train(first, "auto").machine
    assert isinstance(judge, FastJudge)
    said = judge.predict([replace(example, label=None) for example in rest])
    found = {}
    for size in sizes:
        old = np.array([one.probability for one in said[:size]])
        truth = np.array([int(example.label or 0) for example in rest[:size]])
        for name in wanted:
            labels = CONDITIONS[name][1](truth, old, rng)
            pairs = zip(rest[:size], labels.tolist(), strict=True)
            annotated = [replace(example, label=label) for example, label in pairs]
            ridge = judge.detector.ridge
            test = measure_gain(judge, first, annotated, [1.0] * size, old.tolist(), ridge)
            gained = test.p is not None and (test.gain or 0.0) > 0
            found[name, size] = test.p if gained and test.p is not None else 1.0
    return found


def main() -> int:
    """Print one table row per condition and size: how often the test rejects at its level."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", choices=("hateful_memes", "toxicn_mm"), default="hateful_memes")
    parser.add_argument("--known", type=int, default=500)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200])
    parser.add_argument("--conditions", nargs="+", choices=CONDITIONS, default=[*CONDITIONS])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    chosen = parser.parse_args()
    memes = read_examples(chosen.data)
    hits: dict[tuple[str, int], list[bool]] = {}
    for seed in range(chosen.first, chosen.first + chosen.runs):
        tested = simulate(memes, chosen.known, chosen.sizes, chosen.conditions, seed)
        for key, p in tested.items():
            hits.setdefault(key, []).append(p <= LEVEL)
        named = {f"{name} {size}": round(p, 2) for (name, size), p in tested.items()}
        sys.stderr.write(f"{chosen.data}: seed {seed}, p-values {named}\n")
    for (name, size), rejected in sorted(hits.items(), key=lambda one: one[0][1]):
        low, high = wilson(sum(rejected), len(rejected)) or (0.0, 1.0)
        value = f"{100 * np.mean(rejected):.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        print(f"| {chosen.data} | {CONDITIONS[name][0]} | {size} | {len(rejected)} | {value} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
