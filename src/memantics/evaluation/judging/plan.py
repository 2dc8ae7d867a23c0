"""``judge plan``: select the answers that people should rate, and write them as a queue.

Answers are selected with known probabilities, in proportion to the doubt about the judges' ratings.
The probabilities return with the annotations, and the estimate uses their inverse as weights.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import fmean, pstdev
from typing import Annotated

import numpy as np
import orjson

from memantics.core.errors import InputError
from memantics.core.files import write_text
from memantics.core.parameters import Flag
from memantics.core.queue import QueueCard, QueueItem, Shown, copy_picture, write_queue
from memantics.core.records import Item, Outcome
from memantics.core.result import Result, Table
from memantics.core.rundir import RunFacts, read_facts, read_items
from memantics.evaluation.judging.asking import StoredMarks, need_stored, read_stored
from memantics.evaluation.judging.people import People, read_people
from memantics.evaluation.judging.rubrics import BUILT_IN, Dimension, Rubric, open_rubric
from memantics.evaluation.options import RunFolders, find_folder
from memantics.evaluation.rubric import mean_marks, need_text
from memantics.evaluation.scoring import read_outcomes
from memantics.evaluation.tasks import open_task_of_run
from memantics.metrics.prediction_powered import (
    draw_items,
    expected_half_width,
    selection_probabilities,
)
from memantics.metrics.rounding import settle

WORKFLOW = "rate-answers"
SCENARIOS = (0.9, 0.7, 0.5, 0.0)
_FLOOR = 0.1  # doubt about every mark, as a proportion of the scale
_FEWEST_PILOT = 10


@dataclass(frozen=True, slots=True)
class ExpectedInterval:
    """Half the width of the interval to expect, for one correlation of judge and people."""

    quality: str
    correlation: float
    half_width: float
    people_alone: float
    measured: bool


@dataclass(frozen=True, slots=True)
class RatingPlan(Result):
    """A queue of answers to rate, how they were selected, and the intervals to expect."""

    queue: Path
    workflow: Path | None
    answers: int
    items: int
    of: int
    selection: str
    smallest: float
    largest: float
    expected: tuple[ExpectedInterval, ...]

    def table(self) -> Table:
        """The intervals to expect, for each correlation of judge and people."""
        rows = [
            (
                one.quality,
                f"{one.correlation:.2f}{' (pilot)' if one.measured else ''}",
                f"± {one.half_width:.2f}",
                f"± {one.people_alone:.2f}",
            )
            for one in self.expected
        ]
        columns = ("quality", ">correlation", ">95 % interval", ">people alone")
        return Table(columns, tuple(rows), "Interval to expect, with equal probabilities")


@dataclass(frozen=True, slots=True)
class _PlannedRun:
    folder: Path
    facts: RunFacts
    outcomes: Mapping[str, Outcome]
    stored: Sequence[StoredMarks]
    items: Mapping[str, Item]


def plan_ratings(
    runs: RunFolders,
    *,
    budget: Annotated[int, Flag("Number of answers that people rate.", min=3)],
    out: Annotated[str | Path, Flag("Folder of the annotation queue.")] = "ratings",
    people: Annotated[
        str | Path | None,
        Flag("Human ratings of a pilot; they show where the judge errs."),
    ] = None,
    rubric: Annotated[
        str | Path | None,
        Flag("Rubric of your own (TOML). Default: correctness and coverage, 1 to 5."),
    ] = None,
    annotators: Annotated[int, Flag("Number of annotators per answer.", min=1, max=20)] = 1,
    seed: Annotated[int, Flag("Random seed of the selection.", min=0)] = 0,
) -> RatingPlan:
    """Select the answers that people should rate, and write a queue for the annotation app.

    The runs must have been judged before. With two judges or a pilot, answers about which the
    judges' ratings are doubtful are selected more often. Several runs share the selected items, so
    that differences between models are paired.

    Args:
        runs: Judged runs, or their folders.
        budget: How many answers people rate.
        out: Folder of the queue.
        people: Human ratings of a pilot. They guide the selection but not the estimate.
        rubric: A rubric of your own (TOML). Default: correctness and coverage, 1 to 5.
        annotators: How many people rate each answer.
        seed: Seed of the selection.

    Returns:
        The queue, and the intervals to expect.

    Raises:
        InputError: A run was not judged, or ``out`` exists.

    Example:
        >>> mm.judge("runs/one", model="baseline/random")[0].run.model
        'baseline/constant'
        >>> mm.plan_ratings(["runs/one"], budget=6, out="ratings").answers
        6
    """
    folders = [find_folder(run) for run in runs]
    used, place = open_rubric(rubric), Path(out)
    if place.exists() and any(place.iterdir()):
        raise InputError(f"{place} is not empty", hint="choose another --out")
    opened = [_open(folder, used) for folder in folders]
    pilot = None if people is None else read_people(Path(people), used, folders)
    names = sorted({name for run in opened for name in run.outcomes})
    doubt, selection = _measure_doubt(names, opened, used, pilot)
    wanted = min(budget // len(opened), len(names))
    if wanted < 3:
        raise InputError(
            f"a budget of {budget} is too small for {len(opened)} runs",
            hint=f"give at least {3 * len(opened)}",
        )
    chances = selection_probabilities(doubt, wanted)
    drawn = [(names[n], float(chances[n])) for n in draw_items(chances, seed)]
    card = QueueCard(
        title=f"Ratings of {opened[0].facts.title}"[:100],
        workflow=WORKFLOW if used.name == BUILT_IN else used.name,
        warning=opened[0].facts.warning,
        origin=f"judge plan {opened[0].facts.task}",
        annotators_per_item=annotators,
    )
    with _whole_folder(place):
        own = None if used.name == BUILT_IN else _write_workflow(place, used)
        count = write_queue(place, card, list(_list_rows(opened, drawn, place, seed)))
    return RatingPlan(
        queue=place,
        workflow=own,
        answers=count,
        items=len(drawn),
        of=len(names),
        selection=selection,
        smallest=float(chances.min()),
        largest=float(chances.max()),
        expected=tuple(_expect(opened, used, pilot, wanted, len(names))),
    )


def _open(folder: Path, rubric: Rubric) -> _PlannedRun:
    facts = read_facts(folder)
    _, task = open_task_of_run(facts, None)
    outcomes = read_outcomes(folder, task)
    need_text(outcomes, folder)
    stored = read_stored(folder, outcomes, rubric)
    need_stored(folder, stored)
    kept = {o.item.id: o for o in outcomes if o.status == "answered" and isinstance(o.value, str)}
    items = {line.item.id: line.item for line in read_items(folder) if line.item.id in kept}
    return _PlannedRun(folder, facts, kept, stored, items)


def _measure_doubt(
    names: Sequence[str], runs: Sequence[_PlannedRun], rubric: Rubric, pilot: People | None
) -> tuple[list[float], str]:
    """Return how uncertain the ratings of each item are, as a proportion of the scale, and why."""
    known = _errors_by_mark(runs, rubric, pilot) if pilot is not None else {}
    parts: dict[str, list[float]] = {name: [] for name in names}
    several = all(len({s.judge for s in run.stored}) > 1 for run in runs)
    for run in runs:
        for dimension in rubric.dimensions:
            width = dimension.high - dimension.low
            marks = [stored.marks[dimension.id] for stored in run.stored]
            for name, mark in mean_marks(marks).items():
                error = known.get((dimension.id, round(mark)))
                if error is not None:
                    parts[name].append(error)
                elif several:
                    given = [one[name] / width for one in marks if name in one]
                    parts[name].append(sqrt(_FLOOR**2 + pstdev(given) ** 2))
    source = "the pilot's errors of the judge by mark" if known else ""
    if several and not known:
        source = "the disagreement of the judges"
    if not source:
        return [1.0] * len(names), "all answers have the same probability"
    usual = fmean(value for values in parts.values() for value in values)
    doubt = [settle(fmean(values)) if (values := parts[name]) else usual for name in names]
    return doubt, f"selected by {source}"


def _errors_by_mark(
    runs: Sequence[_PlannedRun], rubric: Rubric, pilot: People
) -> dict[tuple[str, int], float]:
    """Return the judge's error for each rating, shrunk towards that of all ratings."""
    found: dict[tuple[str, int], float] = {}
    for dimension in rubric.dimensions:
        pairs = _pair(runs, dimension, pilot)
        if len(pairs) < _FEWEST_PILOT:
            continue
        width = dimension.high - dimension.low
        offset = fmean(rating - mark for mark, rating in pairs)
        squares = [((rating - mark - offset) / width) ** 2 for mark, rating in pairs]
        overall = fmean(squares)
        for level in dimension.levels:
            own = [
                square
                for (mark, _), square in zip(pairs, squares, strict=True)
                if round(mark) == level
            ]
            mean = (sum(own) + 4 * overall) / (len(own) + 4)
            found[dimension.id, level] = sqrt(_FLOOR**2 + mean)
    return found


def _pair(
    runs: Sequence[_PlannedRun], dimension: Dimension, pilot: People
) -> list[tuple[float, float]]:
    pairs = []
    for run in runs:
        means = pilot.of_run(run.folder.resolve().name).means(dimension.id)
        marks = mean_marks([stored.marks[dimension.id] for stored in run.stored])
        pairs += [(marks[name], means[name]) for name in sorted(means.keys() & marks.keys())]
    return pairs


def _expect(
    runs: Sequence[_PlannedRun],
    rubric: Rubric,
    pilot: People | None,
    rated: int,
    items: int,
) -> Iterator[ExpectedInterval]:
    for dimension in rubric.dimensions:
        pairs = _pair(runs, dimension, pilot) if pilot is not None else []
        marks = [
            value
            for run in runs
            for value in mean_marks([s.marks[dimension.id] for s in run.stored]).values()
        ]
        measured = len(pairs) >= _FEWEST_PILOT
        spread = pstdev([rating for _, rating in pairs] if measured else marks)
        correlations: Sequence[float] = SCENARIOS
        if measured:
            columns = np.array(pairs)
            varied = bool((columns.std(axis=0) > 0).all())
            correlations = [float(np.corrcoef(columns.T)[0, 1]) if varied else 0.0]
        # Marks may vary less than ratings do.
        spread = spread or (dimension.high - dimension.low) / 4
        alone = expected_half_width(spread, 0.0, rated, items, dimension.scale)
        for correlation in correlations:
            half = expected_half_width(spread, correlation, rated, items, dimension.scale)
            yield ExpectedInterval(dimension.id, correlation, half, alone, measured)


@contextmanager
def _whole_folder(folder: Path) -> Iterator[None]:
    """Remove a folder that was empty before, if writing into it fails: the rerun needs it empty."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _list_rows(
    runs: Sequence[_PlannedRun], drawn: Sequence[tuple[str, float]], queue: Path, seed: int
) -> Iterator[QueueItem]:
    """Yield the answers in random order, without the model and the judges' ratings."""
    rows = [(run, name, chance) for name, chance in drawn for run in runs if name in run.outcomes]
    order = np.random.default_rng([seed, 1]).permutation(len(rows))
    pictures: dict[str, list[str]] = {}
    for number, place in enumerate(order.tolist(), 1):
        run, name, chance = rows[place]
        item = run.items[name]
        if name not in pictures:
            pictures[name] = [
                copy_picture(image.path, queue, f"{item.group}-{n}")
                for n, image in enumerate(item.images)
                if image.path.is_file()
            ]
        yield _make_row(
            f"r{number:04}", item, str(run.outcomes[name].value), pictures[name]
        ).model_copy(
            update={
                "hidden": {
                    "run": run.folder.resolve().name,
                    "item": name,
                    "probability": chance,
                }
            }
        )


def _make_row(name: str, item: Item, answer: str, images: list[str]) -> QueueItem:
    gold = item.gold if isinstance(item.gold, list) else [item.gold]
    told = [Shown(label=key, value=text) for key, text in item.form.context.items() if text]
    return QueueItem(
        id=name,
        group=item.group,
        images=images,
        shown=[
            *told,
            Shown(label="Question", value=item.form.question),
            Shown(label="References", value=[str(text) for text in gold], kind="list"),
            Shown(label="Answer", value=answer),
        ],
    )


def _write_workflow(folder: Path, rubric: Rubric) -> Path:
    """Write the annotation workflow of a user's rubric into the folder of the queue."""
    fields = "\n\n".join(_write_field(one) for one in rubric.dimensions)
    ids = ", ".join(_quote(one.id) for one in rubric.dimensions)
    text = (
        f"name = {_quote(rubric.name)}\nshuffle = true\n"
        f"title = {{ en = {_quote(rubric.name)}, zh = {_quote(rubric.name)} }}\n"
        'instructions = { en = "Rate what the answer means, not how it is put.", '
        'zh = "请按回答的含义评分，不看措辞。" }\n\n'
        f'[settings]\nprelabels = "hidden"\n\n{fields}\n\n'
        '[[stages]]\nid = "rate"\nkind = "independent"\nannotators = 1\n'
        f'title = {{ en = "Rate", zh = "打分" }}\nfields = [{ids}]\n\n'
        f'[[aggregate]]\nfields = [{ids}]\nrule = "mean"\nstage = "rate"\n'
    )
    return write_text(folder / "workflow.toml", text, "workflow")


def _write_field(one: Dimension) -> str:
    levels = " ".join(f"{n}: {one.levels[n]}." for n in sorted(one.levels, reverse=True))
    label = _quote(f"{one.question} {levels}"[:900])
    return (
        f'[[fields]]\nid = {_quote(one.id)}\nkind = "scale"\nlow = {one.low}\nhigh = {one.high}\n'
        f"label = {{ en = {label}, zh = {label} }}"
    )


def _quote(text: str) -> str:
    """Quote a text for TOML, whose basic strings are those of JSON."""
    return orjson.dumps(text).decode()
