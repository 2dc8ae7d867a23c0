"""Fitting of the shipped weights for homophone readings, on the development set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from memantics.understanding.phonetics.detector import LEARNT, LEARNT_DESCRIBED, PunData, fit_pun
from memantics.understanding.phonetics.evaluation import (
    PUN_FEATURES,
    START,
    CaptionSample,
    Embed,
    fit_confidence,
    fit_first_right,
    fit_order,
    gather,
)
from memantics.understanding.phonetics.evidence import (
    PICTURE_FEATURES,
    clean_description,
    describe_picture,
    find_evidence,
)
from memantics.understanding.phonetics.homophones import HomophoneSearch, analyze_caption
from memantics.understanding.phonetics.lattice import Lattice
from memantics.understanding.phonetics.ranking import Linear

DESCRIBED_FEATURES = (*PUN_FEATURES, *PICTURE_FEATURES)


def fit_weights(
    samples: Sequence[CaptionSample], lattice: Lattice, embed: Embed | None = None
) -> dict[str, dict[str, object]]:
    """Fit the entry of ``weights.json`` for a language model on all samples."""
    analyses = [analyze_caption(s.caption, lattice, order=START) for s in samples]
    order = fit_order(samples, analyses)
    ordered = [a.reorder(order) for a in analyses]
    known = {
        "pun": (gather(samples, ordered, embed), PUN_FEATURES, LEARNT),
        "described": (
            gather_described(samples, analyses, order, lattice, embed),
            DESCRIBED_FEATURES,
            LEARNT_DESCRIBED,
        ),
    }
    found = {"rank": _dump(order), "confidence": _dump(fit_confidence(samples, ordered))}
    for kind, (data, names, learnt) in known.items():
        linear, meaning, threshold = fit_pun(data, names, learnt)
        found[kind] = _dump(linear) | {
            "threshold": round(threshold, 4),
            "meaning": [round(value, 3) for value in meaning],
        }
    return found


def fit_readings(samples: Sequence[CaptionSample], lattice: Lattice) -> dict[str, object]:
    """Fit the entry of ``first_right.json`` for a language model on all samples."""
    analyses = [analyze_caption(s.caption, lattice, order=START) for s in samples]
    order = fit_order(samples, analyses)
    return _dump(fit_first_right(samples, [a.reorder(order) for a in analyses]))


def _dump(linear: Linear) -> dict[str, object]:
    weights = {name: round(weight, 4) for name, weight in linear.weights.items()}
    return {"weights": weights, "bias": round(linear.bias, 4)}


def gather_described(
    samples: Sequence[CaptionSample],
    analyses: Sequence[HomophoneSearch],
    order: Linear,
    lattice: Lattice,
    embed: Embed | None,
) -> PunData:
    """Gather features with image descriptions; ``similar`` is 0 without vectors."""
    named = [find_evidence(s.caption, s.description, lattice) for s in samples]
    ordered = [a.reorder(order, frozenset(names)) for a, names in zip(analyses, named, strict=True)]
    data = gather(samples, ordered, embed)
    shown = [
        describe_picture(s.caption, s.description, a.list_changed(), lattice)
        for s, a in zip(samples, ordered, strict=True)
    ]
    rows = np.array([[features.get(name, 0.0) for name in PICTURE_FEATURES] for features in shown])
    if embed is not None:
        seen = embed([clean_description(s.description, s.caption) for s in samples])
        rows[:, PICTURE_FEATURES.index("similar")] = (data.vectors * seen).sum(axis=1)
    return replace(data, signals=np.hstack([data.signals, rows]))
