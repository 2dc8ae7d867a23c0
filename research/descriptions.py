"""Measure the pun detector with good, wrong and empty image descriptions.

``python -m research.descriptions`` prints F1 and false positive rate on the development set, nested
in five folds, for the detector that trusts every description and for the shipped rule. With a file
of model descriptions (JSON lines with ``name`` and ``description``), only the memes in it count.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import NDArray

from memantics.understanding.phonetics.detector import (
    LEARNT,
    LEARNT_DESCRIBED,
    SHOWN,
    apply_pun,
    fit_pun,
    score_detection,
)
from memantics.understanding.phonetics.evaluation import (
    PUN_FEATURES,
    CaptionSample,
    fit_order,
    gather,
)
from memantics.understanding.phonetics.homophones import load_lattice
from memantics.understanding.phonetics.reading import ModelName
from research.data import read_puns
from research.protocol import split_folds, take_development_set
from research.pun_weights import DESCRIBED_FEATURES, gather_described
from research.studies.puns import _embed_all, analyze

Flags = NDArray[np.bool_]
# fmt: off
TAGS = (
    "person", "bicycle", "car", "dog", "cat", "bird", "cup", "bottle", "bowl", "chair", "couch",
    "tie", "book", "clock", "teddy bear", "umbrella", "cake", "banana", "apple", "laptop", "tv",
)
# fmt: on


def make_conditions(
    samples: list[CaptionSample], told: Mapping[str, str]
) -> dict[str, Callable[[CaptionSample], str]]:
    """Build the description of each condition; ``told`` contains descriptions by a model."""
    rng = random.Random(0)
    others = [sample.description for sample in samples]
    rng.shuffle(others)
    shuffled = {sample.name: other for sample, other in zip(samples, others, strict=True)}
    tags = {sample.name: ", ".join(rng.sample(TAGS, rng.randint(1, 4))) for sample in samples}
    return {
        "a person's": lambda sample: sample.description,
        "another picture's": lambda sample: shuffled[sample.name],
        "tags": lambda sample: tags[sample.name],
        "short": lambda _sample: "一张图片",
        **({"a strong model's": lambda sample: told[sample.name]} if told else {}),
    }


def judge(model: ModelName, told: Mapping[str, str]) -> tuple[Flags, Mapping[str, Flags]]:
    """Return the gold labels of the captions and the predictions under each condition."""
    parts = split_folds("punmemecn", take_development_set("punmemecn", read_puns()))
    conditions = make_conditions([row.content for part in parts for row in part], told)
    lattice, gold = load_lattice(model, None), list[bool]()
    said: dict[str, list[bool]] = {}
    for part in parts:
        known = [row.content for other in parts if other is not part for row in other]
        asked = [row.content for row in part if not told or row.content.name in told]
        heard = {id(s): analyze(s.caption, model) for s in (*known, *asked)}
        found = [[heard[id(s)] for s in samples] for samples in (known, asked)]
        order = fit_order(known, found[0])
        plain = [
            gather(samples, [one.reorder(order) for one in analyses], _embed_all)
            for samples, analyses in zip((known, asked), found, strict=True)
        ]
        gold += plain[1].pun.tolist()
        alone = apply_pun(plain[1], PUN_FEATURES, fit_pun(plain[0], PUN_FEATURES, LEARNT))[1]
        said.setdefault("none", []).extend(alone.tolist())
        shown = gather_described(known, found[0], order, lattice, _embed_all)
        fitted = fit_pun(shown, DESCRIBED_FEATURES, LEARNT_DESCRIBED)
        for name, describe in conditions.items():
            shown_to = [replace(sample, description=describe(sample)) for sample in asked]
            data = gather_described(shown_to, found[1], order, lattice, _embed_all)
            verdicts = apply_pun(data, DESCRIBED_FEATURES, fitted)[1]
            places = [DESCRIBED_FEATURES.index(feature) for feature in SHOWN]
            shows = data.signals[:, places].max(axis=1) > 0
            said.setdefault(f"{name}, trusted", []).extend(verdicts.tolist())
            said.setdefault(name, []).extend((alone | (shows & verdicts)).tolist())
    return np.array(gold), {name: np.array(values) for name, values in said.items()}


def main() -> None:
    """Print one line per condition."""
    lines = Path(sys.argv[1]).read_bytes().splitlines() if sys.argv[1:] else ()
    told = {row["name"]: row["description"] for row in map(orjson.loads, lines)}
    gold, said = judge("frequencies", told)
    sys.stdout.write(f"{len(gold)} memes, {gold.sum()} puns\n")
    for name, verdicts in said.items():
        found = score_detection(verdicts.astype(float), gold, 0.5)
        sys.stdout.write(f"{name:<32} F1 {found.f1:.3f}, false positive rate {1 - found.tnr:.3f}\n")


if __name__ == "__main__":
    main()
