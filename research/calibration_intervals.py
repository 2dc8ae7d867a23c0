"""Simulate how often the interval of the calibration error contains the true error.

Run ``python -m research.calibration_intervals``. A detector's log-odds are normal with a standard
deviation of 2. The true rate of positive memes differs from its probability by a constant
(``shift``), or towards 0.5 (``sharp``: the detector is too sure). The true calibration error is
that of ten equal-sized bins of 200,000 memes. Memes have one or three items, which share part of
their noise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from statistics import NormalDist

import numpy as np

from memantics.metrics.rounding import Floats
from memantics.metrics.weighted import Case, MetricSpec, measure, prepare

SIZES, PER_MEME, RESAMPLES = (100, 300, 1000), (1, 3), 200
SPEC = MetricSpec("calibration_error", "yes")
TRUTHS: dict[str, Callable[[Floats], Floats]] = {
    "calibrated": lambda p: p,
    "shift 0.05": lambda p: np.clip(p + 0.05, 0, 1),
    "sharp 0.05": lambda p: np.clip(p + np.where(p > 0.5, -0.05, 0.05), 0, 1),
    "sharp 0.15": lambda p: np.clip(p + np.where(p > 0.5, -0.15, 0.15), 0, 1),
}
PHI = np.vectorize(NormalDist().cdf)


def draw_probabilities(rng: np.random.Generator, n: int) -> Floats:
    """Draw the probabilities that a detector states."""
    return np.asarray(1 / (1 + np.exp(-2 * rng.normal(size=n))), float)


def find_true_error(truth: Callable[[Floats], Floats]) -> float:
    """Compute the calibration error without noise of labels."""
    chances = np.sort(draw_probabilities(np.random.default_rng(0), 200_000))
    return float(np.abs((chances - truth(chances)).reshape(10, -1).mean(axis=1)).mean())


def simulate(
    rng: np.random.Generator, n: int, per_meme: int, truth: Callable[[Floats], Floats]
) -> list[Case]:
    """Draw memes with a label and a probability each; items of a meme share half of their noise."""
    memes = np.arange(n) // per_meme
    chances = draw_probabilities(rng, n)
    shared = rng.normal(size=n)[memes] * np.sqrt(0.5) if per_meme > 1 else 0.0
    noise = shared + rng.normal(size=n) * np.sqrt(0.5 if per_meme > 1 else 1.0)
    held = PHI(noise) < truth(chances)
    return [
        Case(str(k), str(memes[k]), "yes" if held[k] else "no", "yes", float(chances[k]))
        for k in range(n)
    ]


def compute_percentiles(cases: list[Case]) -> tuple[float, float, float]:
    """Return the former interval (percentiles of resamples) and the mean of the resamples."""
    rate, rng = prepare(cases, SPEC), np.random.default_rng(0)
    groups = {name: place for place, name in enumerate(dict.fromkeys(c.group for c in cases))}
    places, count = [groups[case.group] for case in cases], len(groups)
    rows = rng.multinomial(count, np.full(count, 1 / count), size=RESAMPLES).astype(float)
    drawn = np.array([rate(row[places]) for row in rows], float)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high), float(drawn.mean())


def list_rows(count: int) -> Iterator[str]:
    """Yield a Markdown table: how often each interval contains the true error, in percent."""
    yield "| detector | true error | items | memes | mean estimate | percentiles | moved | new |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for name, truth in TRUTHS.items():
        true_error = find_true_error(truth)
        for n in SIZES:
            for per_meme in PER_MEME:
                rng = np.random.default_rng([n, per_meme])
                hits, values = np.zeros(3), []
                for _ in range(count):
                    cases = simulate(rng, n, per_meme, truth)
                    found = measure(cases, SPEC, resamples=RESAMPLES)
                    assert found.value is not None
                    assert found.low is not None
                    assert found.high is not None
                    low, high, mean = compute_percentiles(cases)
                    move = found.value - mean
                    spans = ((low, high), (low + move, high + move), (found.low, found.high))
                    hits += [a <= true_error + 1e-9 and true_error <= b for a, b in spans]
                    values.append(found.value)
                cells = " | ".join(f"{100 * hit / count:.1f}" for hit in hits)
                yield (
                    f"| {name} | {true_error:.3f} | {n:,} | {-(-n // per_meme):,} |"
                    f" {np.mean(values):.3f} | {cells} |"
                )


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    for line in list_rows(count):
        print(line, flush=True)


if __name__ == "__main__":
    main()
