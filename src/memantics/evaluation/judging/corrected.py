"""Human evaluations whose means are corrected: MemeIntent's ratings and MER-Bench's judge.

People rate a sample of the outputs, and a judge all of them. The corrected mean uses both. The
ratings of ``human-eval export`` are drawn at random, so that the estimate is valid.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from memantics.benchmarks.mer_bench.humans import DIMENSIONS, make_study, read_people
from memantics.core.queue import AggregatedAnnotation
from memantics.core.records import Outcome, Score
from memantics.core.rundir import read_facts
from memantics.evaluation.judging.asking import read_stored
from memantics.evaluation.judging.rubrics import built_in_rubric
from memantics.evaluation.scoring import read_outcomes
from memantics.evaluation.tasks import open_task_of_run
from memantics.metrics.prediction_powered import RatedItems, estimate_mean

# The scale of MemeIntent's human evaluation, and the judge's quality that predicts it.
PREDICTED_BY = {
    "completeness": "coverage",
    "relevance": "correctness",
    "correctness": "correctness",
}
CORRECTED = "corrected"


def _score(items: RatedItems, scale: str, judge: str, setting: str) -> Score | None:
    found = estimate_mean(items)
    if found is None:
        return None
    powered, people = found.powered, found.people
    alone = "" if people.low is None else f" ({people.low:.2f}–{people.high:.2f})"
    note = (
        f"{judge}, corrected with ratings of {found.rated} outputs; judge alone "
        f"{found.judge.value:.2f}, people alone {people.value:.2f}{alone}"
    )
    return Score(
        scale, powered.value, found.items, powered.low, powered.high, CORRECTED, setting, note
    )


def correct_intents(
    settings: Mapping[Path, str], ratings: Mapping[str, Mapping[str, Mapping[str, float]]]
) -> list[Score]:
    """Correct MemeIntent's mean ratings of all outputs of judged runs.

    Args:
        settings: The name of the setting, by run folder.
        ratings: Mean human ratings by setting, scale and meme.

    Returns:
        One score per setting, scale and judge; runs that no judge has rated have none.
    """
    rubric = built_in_rubric()
    made: list[Score | None] = []
    for folder, setting in settings.items():
        _, task = open_task_of_run(read_facts(folder), None)
        outcomes = read_outcomes(folder, task)
        kept = [o for o in outcomes if o.status == "answered"]
        for stored in read_stored(folder, outcomes, rubric):
            for scale, by_meme in ratings.get(setting, {}).items():
                marks = stored.marks.get(PREDICTED_BY.get(scale, ""), {})
                if marks:
                    items = _combine(kept, marks, by_meme)
                    made.append(_score(items, scale, stored.judge, setting))
    return [one for one in made if one is not None]


def _combine(
    kept: Sequence[Outcome], marks: Mapping[str, float], by_meme: Mapping[str, float]
) -> RatedItems:
    return RatedItems(
        [marks.get(o.item.id, math.nan) for o in kept],
        [by_meme.get(o.item.group, math.nan) for o in kept],
        [o.item.group for o in kept],
        (1.0, 5.0),
    )


def correct_edits(
    queue: Path, annotations: Sequence[AggregatedAnnotation], runs: Sequence[Path]
) -> list[Score]:
    """Correct the mean of each of MER-Bench's dimensions (0 to 1) over all judged edits.

    Args:
        queue: The queue of the human evaluation.
        annotations: People's annotations of the queue.
        runs: Runs of ``mer_bench/judge``: one per judge.

    Returns:
        One score per judge and dimension.
    """
    names = {run: f"{read_facts(run).model} ({run.name})" for run in runs}
    study = make_study({names[run]: run for run in runs}, read_people(queue, annotations))
    made = []
    for judge, judged in study.judges.items():
        pairs = sorted(judged)
        for dimension in DIMENSIONS:
            means = [study.mean(pair, dimension) for pair in pairs]
            items = RatedItems(
                [judged[pair][dimension] for pair in pairs],
                [math.nan if mean is None else mean for mean in means],
                [study.memes[pair] for pair in pairs],
                (0.0, 1.0),
            )
            made.append(_score(items, dimension, judge, "all edits"))
    return [one for one in made if one is not None]
