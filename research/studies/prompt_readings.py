"""Studies of homophone readings given in prompts: how often the first one is right."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from memantics.metrics.weighted import Case, MetricSpec
from memantics.understanding.phonetics.evaluation import (
    CaptionSample,
    fit_confidence,
    fit_first_right,
    fit_order,
    is_first_right,
)
from memantics.understanding.phonetics.reading import PROMPT_THRESHOLD, ModelName
from research.data import read_puns
from research.protocol import Cases, Claim, Row, Study
from research.studies.puns import EXPOSURE, analyze

RIGHT, WRONG = "right", "wrong"
BY_PUN = "given if P(pun) is at least 0.5"
BY_READING = "given if P(reading is right) is at least 0.8"


def measure(
    model: ModelName, known: Sequence[Row[CaptionSample]], asked: Sequence[Row[CaptionSample]]
) -> Cases:
    """Fit both probabilities on the known groups; each case is a caption whose reading is given."""
    learnt = [row.content for row in known]
    order = fit_order(learnt, [analyze(sample.caption, model) for sample in learnt])
    heard = [analyze(sample.caption, model).reorder(order) for sample in learnt]
    pun, first = fit_confidence(learnt, heard), fit_first_right(learnt, heard)
    cases: dict[str, list[Case]] = {BY_PUN: [], BY_READING: []}
    for row in asked:
        analysis = analyze(row.content.caption, model).reorder(order)
        said = RIGHT if is_first_right(row.content, analysis) else WRONG
        for name, linear, least in ((BY_PUN, pun, 0.5), (BY_READING, first, PROMPT_THRESHOLD)):
            chance = linear.probability(analysis.signals) if analysis.candidates else 0.0
            if chance >= least:
                cases[name].append(Case(row.id, row.group, said, RIGHT, chance, row.tags))
    return cases


STUDIES = tuple(
    Study(
        f"readings in prompts/{model}",
        "punmemecn",
        read_puns,
        partial(measure, model),
        (
            Claim(BY_READING, MetricSpec("accuracy"), 0.8),
            Claim(BY_READING, MetricSpec("calibration_error", RIGHT), 0.1),
            Claim(BY_PUN, MetricSpec("accuracy"), None),
            Claim(BY_PUN, MetricSpec("calibration_error", RIGHT), None),
        ),
        exposure=EXPOSURE,
    )
    for model in ("trigram", "frequencies")
)
