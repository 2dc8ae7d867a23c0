"""Measure how many flipped labels the label audit finds.

``python -m research.audits NAME/LABEL …`` flips a tenth of the labels and prints one table row per
set; results are in docs/research/audit-labels.md. The baseline is the fast detector alone.
"""

from __future__ import annotations

import argparse

import numpy as np

from memantics.evaluation.audits.labels import MOST
from memantics.metrics.calibration import find_doubtful, rank_margins
from memantics.metrics.rounding import Ints, settle
from memantics.moderation.classifier import find_labelled
from memantics.moderation.held_out import (
    FAST,
    HeldOutVerdicts,
    draw_memes,
    judge_held_out,
    number_labels,
)
from memantics.moderation.resplit import group_memes

SHARE = 0.1
FIRST = 100


def flip(labels: Ints, classes: int, seed: int) -> Ints:
    """Change a tenth of the labels to another class, drawn uniformly."""
    rng = np.random.default_rng(seed)
    turned = labels.copy()
    places = rng.choice(len(labels), round(SHARE * len(labels)), replace=False)
    turned[places] = (labels[places] + rng.integers(1, classes, len(places))) % classes
    return turned


def order(given: Ints, held: HeldOutVerdicts, judge: str) -> Ints:
    """Order memes: those flagged by confident learning first, the others by margin."""
    chances = held.mean if judge == "all" else held.find(judge).chances
    flagged = find_doubtful(given, chances)
    margins = settle(rank_margins(given, chances))
    margins[flagged] -= 10
    return np.argsort(margins, kind="stable")


def measure(name: str, most: int, seed: int) -> None:
    """Print precision at 100 and recall at a tenth, for all classifiers and for one."""
    data = draw_memes(find_labelled(name), most)
    labels = number_labels(data)
    given = flip(labels, len(data.labels.classes), seed)
    wrong = given != labels
    folds = group_memes(data, "text").folds
    held = judge_held_out(data, {"text": folds}, given)["text"]
    cells = [f"{name} ({len(labels):,}, {len(data.labels.classes)} labels)"]
    for judge in ("all", FAST):
        found = wrong[order(given, held, judge)]
        cells.append(f"{found[:FIRST].mean():.2f} / {found[: wrong.sum()].sum() / wrong.sum():.2f}")
    print("|", " | ".join([*cells, f"{wrong.mean():.2f}"]), "|", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="+")
    parser.add_argument("--most", type=int, default=MOST)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    for wanted in chosen.names:
        measure(wanted, chosen.most, chosen.seed)
