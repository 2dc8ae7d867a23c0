"""Scores of judged runs that are corrected with people's ratings, and sentences that quote them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memantics.core.records import Outcome, Score
from memantics.evaluation.judging.people import People
from memantics.evaluation.judging.rubrics import Dimension
from memantics.metrics.prediction_powered import (
    MeanEstimate,
    PoweredEstimate,
    RatedItems,
    estimate_mean,
    pair_items,
)


@dataclass(frozen=True, slots=True)
class JudgeEstimate:
    """The mean of a quality, corrected with people's ratings; of two runs, their difference.

    ``judge`` names the judge, or the judges whose mean rating was used. ``ratings`` counts single
    ratings. ``against`` names the model that is subtracted, if this is a difference. ``unrated``
    counts the answers of the plan that nobody rated, ``invalid`` the replies that were refused,
    unparsed or failed: no estimate includes them.
    """

    quality: str
    model: str
    judge: str
    ratings: int
    found: PoweredEstimate
    against: str = ""
    planned: bool = False
    unrated: int = 0
    invalid: int = 0

    def sentence(self) -> str:
        """Say the estimate in one sentence that may be quoted."""
        what = f"{self.quality} of {self.model}"
        if self.against:
            what = f"difference in {self.quality}, {self.model} minus {self.against}"
        found = self.found
        sign = "+" if self.against else ""
        people = _show(found.people, sign)
        alone = f"the judge alone {found.judge.value:{sign}.2f}, people alone {people}"
        if self.invalid:
            asked = self.invalid + found.items
            alone += (
                f"; without {self.invalid} of {asked} replies that were refused, unparsed or failed"
            )
        return (
            f"{what}: {_show_reach(found.powered, sign)} by {self.judge}, corrected with "
            f"{self.ratings} human ratings of {found.rated} answers "
            f"({_show_interval(found.powered, sign)}; {alone})"
        )

    def notes(self) -> list[str]:
        """List what a reader of the estimate must know."""
        found, noted = self.found, list[str]()
        if found.powered.low is None:
            noted.append(f"{found.rated_memes} rated memes are too few for an interval")
        elif found.rated_memes < 30:
            noted.append(
                f"{found.rated_memes} rated memes: coverage was simulated from 30 memes on"
            )
        if found.weight == 0 and found.items > found.rated:
            noted.append("the judge's marks say nothing about people's ratings: people alone count")
        if self.unrated:
            noted.append(
                f"{self.unrated} planned answers were not rated: valid only if this is unrelated "
                "to their quality"
            )
        if not self.planned:
            noted.append("valid if the rated answers were selected at random, or by 'judge plan'")
        return [f"{self.quality}: {note}" for note in noted]

    def score(self) -> Score:
        """Return the estimate as a score of the run."""
        powered = self.found.powered
        return Score(
            f"judge_{self.quality}_corrected",
            powered.value,
            self.found.items,
            powered.low,
            powered.high,
            note=f"{self.judge}, corrected with {self.ratings} human ratings of "
            f"{self.found.rated} answers; weight of the judge {self.found.weight:.2f}"
            + (f"; without {self.invalid} invalid replies" if self.invalid else ""),
        )


def _show(found: MeanEstimate, sign: str = "") -> str:
    span = "" if found.low is None else f" ({found.low:{sign}.2f} to {found.high:{sign}.2f})"
    return f"{found.value:{sign}.2f}{span}"


def _show_interval(found: MeanEstimate, sign: str) -> str:
    if found.low is None:
        return "no interval"
    return f"95% confidence interval {found.low:{sign}.2f} to {found.high:{sign}.2f}"


def _show_reach(found: MeanEstimate, sign: str) -> str:
    if found.low is None or found.high is None:
        return f"{found.value:{sign}.2f}"
    reach = max(found.value - found.low, found.high - found.value)
    return f"{found.value:{sign}.2f} ± {reach:.2f}"


def rate_items(
    outcomes: Sequence[Outcome],
    marks: Mapping[str, float],
    people: People,
    dimension: Dimension,
) -> RatedItems:
    """Combine a judge's ratings of a run's answers with people's ratings of some of them."""
    means = people.means(dimension.id)
    kept = [o for o in outcomes if o.status == "answered" and isinstance(o.value, str)]
    chances = people.probabilities
    several = any(len(values) > 1 for values in people.by_item(dimension.id).values())
    return RatedItems(
        [marks.get(o.item.id, math.nan) for o in kept],
        [means.get(o.item.id, math.nan) for o in kept],
        [o.item.group for o in kept],
        dimension.scale,
        # Means of several people lie between the levels.
        dimension.binary
        and not several
        and set(marks.values()) <= set(map(float, dimension.levels)),
        None if chances is None else [chances.get(o.item.id, 1.0) for o in kept],
    )


def estimate_run(
    model: str,
    outcomes: Sequence[Outcome],
    judges: Mapping[str, Mapping[str, float]],
    people: People,
    dimension: Dimension,
) -> list[JudgeEstimate]:
    """Estimate the mean of a quality with each judge; ``judges`` are ratings by judge and item."""
    known = {o.item.id for o in outcomes}
    count = sum(len(v) for item, v in people.by_item(dimension.id).items() if item in known)
    planned = any(row.probability is not None for row in people.rows)
    unrated = sum(people.unrated.values())
    made = []
    for name, marks in judges.items():
        found = estimate_mean(rate_items(outcomes, marks, people, dimension))
        if found is not None:
            invalid = len(outcomes) - found.items
            made.append(
                JudgeEstimate(
                    dimension.id,
                    model,
                    name,
                    count,
                    found,
                    planned=planned,
                    unrated=unrated,
                    invalid=invalid,
                )
            )
    return made


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run with the ratings of its judges, by judge, quality and item, and its human ratings."""

    model: str
    outcomes: Sequence[Outcome]
    marks: Mapping[str, Mapping[str, Mapping[str, float]]]
    people: People


def estimate_difference(
    first: JudgedRun, second: JudgedRun, judge: str, dimension: Dimension
) -> JudgeEstimate | None:
    """Estimate how much the second run's mean exceeds the first's, on the items of both.

    Only items with human ratings of both answers count as rated.
    """
    quality = dimension.id
    shared = {o.item.id for o in first.outcomes if o.status == "answered"} & {
        o.item.id for o in second.outcomes if o.status == "answered"
    }
    sides = []
    for run in (first, second):
        marks = run.marks.get(judge, {}).get(quality, {})
        kept = sorted((o for o in run.outcomes if o.item.id in shared), key=lambda o: o.item.id)
        sides.append(rate_items(kept, marks, run.people, dimension))
    one, other = sides
    if len(one.marks) != len(other.marks):
        return None
    chances = one.probabilities
    if chances is not None and list(chances) != list(other.probabilities or ()):
        return None  # The answers were selected independently, so their pairs have no known weight.
    found = estimate_mean(pair_items(one, other))
    if found is None:
        return None
    held = {
        item
        for item in first.people.by_item(quality).keys() & second.people.by_item(quality).keys()
        if item in shared
    }
    count = sum(len(run.people.by_item(quality)[item]) for run in (first, second) for item in held)
    planned = any(row.probability is not None for row in first.people.rows)
    asked = {o.item.id for o in first.outcomes} & {o.item.id for o in second.outcomes}
    return JudgeEstimate(
        quality,
        second.model,
        judge,
        count,
        found,
        against=first.model,
        planned=planned,
        invalid=len(asked) - found.items,
    )
