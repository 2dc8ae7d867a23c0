"""Studies of homophone readings and of pun detection, with each language model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

import numpy as np

from memantics.metrics.weighted import Case, MetricSpec
from memantics.models.embedded.encoder import SentenceEncoder
from memantics.understanding.phonetics.detector import LEARNT, LEARNT_DESCRIBED, apply_pun, fit_pun
from memantics.understanding.phonetics.evaluation import (
    PUN_FEATURES,
    START,
    CaptionSample,
    fit_order,
    gather,
)
from memantics.understanding.phonetics.homophones import (
    HomophoneSearch,
    analyze_caption,
    load_lattice,
)
from memantics.understanding.phonetics.reading import ModelName
from research.data import read_puns
from research.protocol import Cases, Claim, Row, Study
from research.pun_weights import DESCRIBED_FEATURES, gather_described

PUN, PLAIN = "pun", "no pun"
DETECTION, DESCRIBED = "detection", "detection, image described"
EXPOSURE = (
    "The search costs were chosen with all captions in view; a dictionary replaced word lists that"
    " were made from them. Descriptions are the annotators' first lines without quotations."
)
UNSEEN = {"homophone": 0.21, "polysemy": 0.1233, "no pun": 0.6667}


@cache
def analyze(caption: str, model: ModelName) -> HomophoneSearch:
    """Find the readings of a caption, ranked by the initial weights."""
    return analyze_caption(caption, load_lattice(model, None), order=START)


_open_once = cache(SentenceEncoder)


@cache
def _embed(caption: str) -> tuple[float, ...]:
    return tuple(_open_once().encode([caption])[0].tolist())


def _embed_all(captions: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.array([_embed(caption) for caption in captions], np.float32)


def measure(
    model: ModelName, known: Sequence[Row[CaptionSample]], asked: Sequence[Row[CaptionSample]]
) -> Cases:
    """Fit ranking, probabilities and thresholds on the known rows and predict the others."""
    rows = {"known": known, "asked": asked}
    samples = {part: [row.content for row in one] for part, one in rows.items()}
    found = {part: [analyze(sample.caption, model) for sample in samples[part]] for part in rows}
    order = fit_order(samples["known"], found["known"])
    heard = {part: [each.reorder(order) for each in found[part]] for part in rows}
    lattice = load_lattice(model, None)
    plain = {part: gather(samples[part], heard[part], _embed_all) for part in rows}
    shown = {
        part: gather_described(samples[part], found[part], order, lattice, _embed_all)
        for part in rows
    }
    cases: dict[str, list[Case]] = {}
    for name, data, features, learnt in (
        (DETECTION, plain, PUN_FEATURES, LEARNT),
        (DESCRIBED, shown, DESCRIBED_FEATURES, LEARNT_DESCRIBED),
    ):
        fitted = fit_pun(data["known"], features, learnt)
        chances, said = apply_pun(data["asked"], features, fitted)
        cases[name] = [
            Case(
                row.id,
                row.group,
                PLAIN if row.content.intended is None else PUN,
                PUN if verdict else PLAIN,
                chance,
                row.tags,
            )
            for row, chance, verdict in zip(asked, chances.tolist(), said.tolist(), strict=True)
        ]
    for name, count in (("first reading", 1), ("first five", 5)):
        cases[name] = [
            _rank(row, own, count)
            for row, own in zip(asked, heard["asked"], strict=True)
            if row.content.homophone
        ]
    return cases


def _rank(row: Row[CaptionSample], heard: HomophoneSearch, count: int) -> Case:
    wanted = row.content.intended or ""
    texts = [candidate.path.text for candidate in heard.candidates[:count]]
    hit = wanted if wanted in texts else None
    return Case(row.id, row.group, wanted, hit, None, row.tags)


def _study(model: ModelName, first: float | None, five: float | None) -> Study[CaptionSample]:
    return Study(
        f"puns/{model}",
        "punmemecn",
        read_puns,
        partial(measure, model),
        (
            Claim("first reading", MetricSpec("accuracy"), first),
            Claim("first five", MetricSpec("accuracy"), five),
            *(
                claim
                for cases, f1 in ((DETECTION, 0.67), (DESCRIBED, 0.72))
                for claim in (
                    Claim(cases, MetricSpec("f1", PUN), f1),
                    Claim(cases, MetricSpec("false_positive_rate", PUN), 0.06),
                    Claim(cases, MetricSpec("calibration_error", PUN), 0.05),
                )
            ),
        ),
        exposure=EXPOSURE,
        compositions={"37 % of puns are polysemy puns": ("kind", UNSEEN)},
    )


STUDIES = (_study("trigram", 0.75, 0.88), _study("frequencies", 0.66, 0.82))
