"""Puns: readings by sound, and telling puns from plain captions, with each language model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

import numpy as np

from memantics.metrics.weighted import Case, Figure
from memantics.models.embedded.encoder import open_encoder
from memantics.phonetics.detector import fit_pun
from memantics.phonetics.evaluation import PUN_FEATURES, Sample, fit_order, gather
from memantics.phonetics.ranking import Linear
from memantics.phonetics.reading import ModelName
from memantics.phonetics.speech import Analysis, analyze_caption, load_lattice
from research.data import read_puns
from research.protocol import Cases, Claim, Row, Study

PUN, PLAIN = "pun", "no pun"
SEEN = (
    "the engine was built with all captions at hand in view; lists made from them were replaced by"
    " a dictionary, the costs of the search are older"
)
UNSEEN = {"homophone": 0.21, "polysemy": 0.1233, "no pun": 0.6667}


@cache
def _analyze(caption: str, model: ModelName) -> Analysis:
    return analyze_caption(caption, load_lattice(model, None), order=Linear({"total": 1.0}))


_open_once = cache(open_encoder)


@cache
def _embed(caption: str) -> tuple[float, ...]:
    return tuple(_open_once().encode([caption])[0].tolist())


def _embed_all(captions: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.array([_embed(own) for own in captions], np.float32)


def measure(model: ModelName, known: Sequence[Row[Sample]], asked: Sequence[Row[Sample]]) -> Cases:
    """Order, chances and threshold are learnt from the known groups alone."""
    learnt = [row.content for row in known]
    order = fit_order(learnt, [_analyze(own.caption, model) for own in learnt])

    def read(rows: Sequence[Row[Sample]]) -> list[Analysis]:
        return [_analyze(row.content.caption, model).reorder(order) for row in rows]

    linear, meaning, limit = fit_pun(gather(learnt, read(known), _embed_all), PUN_FEATURES)
    heard = read(asked)
    data = gather([row.content for row in asked], heard, _embed_all)
    weights = np.array([linear.weights[name] for name in PUN_FEATURES])
    odds = data.signals @ weights + data.vectors @ np.array(meaning) + linear.bias
    chances = 1 / (1 + np.exp(-odds))
    found: dict[str, list[Case]] = {"detection": [], "first reading": [], "first five": []}
    for row, own, chance in zip(asked, heard, chances.tolist(), strict=True):
        gold = PLAIN if row.content.intended is None else PUN
        said = PUN if chance >= limit else PLAIN
        found["detection"].append(Case(row.id, row.group, gold, said, chance, row.tags))
        texts = [candidate.path.text for candidate in own.candidates[:5]]
        wanted = row.content.intended
        if row.content.homophone and wanted is not None:
            for name, count in (("first reading", 1), ("first five", 5)):
                hit = wanted if wanted in texts[:count] else None
                found[name].append(Case(row.id, row.group, wanted, hit, None, row.tags))
    return found


def _study(model: ModelName, first: float, five: float) -> Study[Sample]:
    return Study(
        f"puns/{model}",
        "punmemecn",
        read_puns,
        partial(measure, model),
        (
            Claim("first reading", Figure("accuracy"), first),
            Claim("first five", Figure("accuracy"), five),
            Claim("detection", Figure("f1", PUN), 0.67),
            Claim("detection", Figure("false_alarms", PUN), 0.06),
            Claim("detection", Figure("calibration_error", PUN), 0.05),
        ),
        seen=SEEN,
        compositions={"37 % of puns by sense": ("kind", UNSEEN)},
    )


STUDIES = (_study("trigram", 0.75, 0.88), _study("frequencies", 0.66, 0.82))
