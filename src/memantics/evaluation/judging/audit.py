"""``judge compare``: which judge to use, measured on stored answers.

Agreement with people by dimension, preference for the judge's own model family, effects of length,
verbosity and position by minimal changes, wrong answers that a judge accepts, consistency, cost.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated

import numpy as np

from memantics.core.errors import InputError
from memantics.core.model import Model
from memantics.core.parameters import Flag
from memantics.core.records import Outcome
from memantics.core.rundir import RunFacts, read_answers, read_facts
from memantics.core.task import Task
from memantics.core.waiting import make_sync
from memantics.evaluation.judging.asking import (
    Judging,
    StoredMarks,
    ask_judge,
    need_stored,
    read_stored,
)
from memantics.evaluation.judging.changes import (
    ACCEPTED,
    CHANGES,
    AnswerChange,
    change_answers,
    draw_sample,
)
from memantics.evaluation.judging.edits import REPEAT, EditAudit, compare_edit_judges, judges_edits
from memantics.evaluation.judging.open_items import find_open_items
from memantics.evaluation.judging.page import JudgeComparison, JudgeFinding
from memantics.evaluation.judging.people import People, read_people
from memantics.evaluation.judging.rubrics import Dimension, open_rubric
from memantics.evaluation.options import RunFolders, find_folder
from memantics.evaluation.rubric import make_judging, mean_marks, need_text, read_marks
from memantics.evaluation.scoring import add_up, read_outcomes
from memantics.evaluation.tasks import open_task_of_run
from memantics.metrics.agreement import krippendorff_alpha, spearman
from memantics.metrics.interval import bootstrap, clustered_wilson, sum_by_cluster
from memantics.metrics.paired import compare_means
from memantics.metrics.rounding import Floats, settle
from memantics.models.client import CallSettings
from memantics.models.kinds import open_model

_FAMILY = re.compile(r"[A-Za-z]+")


@dataclass(frozen=True, slots=True)
class _AuditedRun:
    folder: Path
    facts: RunFacts
    outcomes: Sequence[Outcome]
    stored: Mapping[str, StoredMarks]
    people: People


async def compare_judges_async(
    runs: RunFolders,
    *,
    model: Annotated[
        Sequence[str],
        Flag(
            "LLM judge to test on changed answers; repeatable. Default: none, only stored ratings.",
            "--model -m",
            kind=list[str],
        ),
    ] = (),
    people: Annotated[
        str | Path | None, Flag("Human ratings: a table, or annotations of 'judge plan'.")
    ] = None,
    rubric: Annotated[
        str | Path | None,
        Flag("Rubric of your own (TOML). Default: correctness and coverage, 1 to 5."),
    ] = None,
    sample: Annotated[int, Flag("Number of answers per run that are changed.", min=1)] = 20,
    repeats: Annotated[
        int, Flag("Number of repeated calls per answer, to measure consistency.", min=0, max=20)
    ] = 1,
    image: Annotated[bool, Flag("Show the image to the judge.")] = True,
    calls: CallSettings | None = None,
) -> JudgeComparison:
    """Compare judges: agreement with people, biases, accepted wrong answers, consistency, cost.

    Agreement, self-preference and length use the stored ratings of ``judge``. With ``model``, these
    judges also rate changed answers: changes that keep the meaning, and answers that are wrong on
    purpose. For runs of MER-Bench, they rate edits that are wrong on purpose.

    Args:
        runs: Judged runs, or their folders.
        model: Judges to test with changed answers.
        people: Human ratings, as for :func:`judge`.
        rubric: A rubric of your own (TOML). Default: correctness and coverage, 1 to 5.
        sample: How many answers per run are changed; the same ones for every judge.
        repeats: Repeated calls per answer, which are never taken from the cache.
        image: Whether the judge sees the image.
        calls: Settings of the calls to judge models; see :class:`CallSettings`.

    Returns:
        All findings, with 95% confidence intervals by meme.

    Raises:
        InputError: A run has no stored ratings by this rubric, or judges edits without --model.

    Example:
        >>> judged = mm.judge("runs/one", model="baseline/random")
        >>> found = mm.compare_judges(["runs/one"], model=["baseline/random"], sample=4)
        >>> {one.name for one in found.findings if one.kind == "wrong answer"} >= {"another meme"}
        True
    """
    folders = [find_folder(run) for run in runs]
    used, settings = open_rubric(rubric), calls or CallSettings()
    given = People() if people is None else read_people(Path(people), used, folders)
    how = Judging(used, image, calls=settings)
    judges = [open_model(name, settings.model_settings) for name in dict.fromkeys(model)]
    edited = [folder for folder in folders if _judges_edits(folder)]
    try:
        if edited and len(edited) < len(folders):
            raise InputError(
                "runs with free-text answers and runs on edited memes cannot be compared in "
                "one call",
                hint=f"leave out {edited[0]}",
            )
        if edited:
            return await compare_edit_judges(edited, judges, EditAudit(how, sample, repeats))
        audited = [await _open(folder, judges, how, given) for folder in folders]
        found = list(_measure_stored(audited, used.dimensions))
        for judge in judges:
            found += await _test_judge(judge, audited, how, sample, repeats)
    finally:
        for judge in judges:
            await judge.close()
    names = list(dict.fromkeys(name for run in audited for name in run.stored))
    return JudgeComparison(
        runs=tuple(folder.name for folder in folders),
        judges=tuple(names),
        rated=sum(len({row.item for row in run.people.rows}) for run in audited),
        sample=sample if judges else 0,
        findings=tuple(found),
        open_items=find_open_items(given, used),
    )


compare_judges = make_sync(compare_judges_async)


def _judges_edits(folder: Path) -> bool:
    _, task = open_task_of_run(read_facts(folder), None)
    return judges_edits(read_outcomes(folder, task))


async def _open(folder: Path, judges: Sequence[Model], how: Judging, people: People) -> _AuditedRun:
    facts = read_facts(folder)
    _, task = open_task_of_run(facts, None)
    outcomes = read_outcomes(folder, task)
    need_text(outcomes, folder)
    judging = make_judging(facts.task, outcomes, image=how.image, rubric=how.rubric)
    for judge in judges:
        await ask_judge(folder, facts, judge, judging, how)
    stored = {one.judge: one for one in read_stored(folder, outcomes, how.rubric, how.image)}
    need_stored(folder, [*stored.values()])
    return _AuditedRun(folder, facts, outcomes, stored, people.of_run(folder.resolve().name))


def family_of(model: str) -> str:
    """Return the model family by the first word of its name; a guess.

    >>> family_of("openai/Qwen/Qwen2.5-VL-7B"), family_of("openai/gpt-4o")
    ('qwen', 'gpt')
    """
    match = _FAMILY.search(model.rstrip("/").rpartition("/")[2])
    return match.group().lower() if match else model


def _measure_stored(
    runs: Sequence[_AuditedRun], dimensions: Sequence[Dimension]
) -> Iterator[JudgeFinding]:
    judges = list(dict.fromkeys(name for run in runs for name in run.stored))
    for judge in judges:
        for dimension in dimensions:
            rows = list(_pair_with_people(runs, judge, dimension.id))
            if rows:
                yield from _measure_agreement(judge, dimension.id, rows)
            preference = _measure_preference(runs, judge, dimension.id)
            if preference is not None:
                yield preference
        yield from _measure_cost(runs, judge)


@dataclass(frozen=True, slots=True)
class _Pair:
    mark: float
    rating: float
    meme: str
    length: int


def _pair_with_people(runs: Sequence[_AuditedRun], judge: str, quality: str) -> Iterator[_Pair]:
    for run in runs:
        if judge not in run.stored:
            continue
        marks, means = run.stored[judge].marks[quality], run.people.means(quality)
        for outcome in run.outcomes:
            name = outcome.item.id
            if name in marks and name in means:
                yield _Pair(marks[name], means[name], outcome.item.group, len(str(outcome.value)))


def _measure_agreement(judge: str, quality: str, rows: Sequence[_Pair]) -> Iterator[JudgeFinding]:
    marks, ratings = [row.mark for row in rows], [row.rating for row in rows]
    memes = [row.meme for row in rows]
    gaps = [row.mark - row.rating for row in rows]
    alpha = krippendorff_alpha([[a, b] for a, b in zip(marks, ratings, strict=True)], "interval")
    yield JudgeFinding(judge, "agreement", "Krippendorff's alpha", quality, len(rows), alpha)
    yield JudgeFinding(
        judge, "agreement", "Spearman correlation", quality, len(rows), spearman(marks, ratings)
    )
    yield _average(judge, "bias", "mark minus human rating", quality, gaps, memes)
    x, r, m = (
        np.array(column, float)
        for column in ([math.log2(max(1, row.length)) for row in rows], ratings, marks)
    )
    sums = sum_by_cluster(
        np.column_stack([np.ones(len(rows)), x, r, m, x * x, r * r, x * r, x * m, r * m]), memes
    )
    value = float(_slope(sums.sum(axis=0)[None])[0])
    if not math.isnan(value):
        low, high = bootstrap(sums, _slope, bounds=None) or (None, None)
        yield JudgeFinding(
            judge, "length", "bias per doubling of length", quality, len(rows), value, low, high
        )


def _slope(sums: Floats) -> Floats:
    """Slope of ratings on the logarithm of length, for equal human ratings (least squares)."""
    n, x, r, m, xx, rr, xr, xm, rm = sums.T
    sxx, srr, sxr = settle(n * xx - x * x), settle(n * rr - r * r), n * xr - x * r
    sxm, srm = n * xm - x * m, n * rm - r * m
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = np.where(sxx > 0, sxm / sxx, np.nan)
        below = settle(sxx * srr - sxr * sxr)
        both = np.where(below > 0, (sxm * srr - srm * sxr) / below, np.nan)
        return np.asarray(np.where(srr > 0, both, alone), float)


def _measure_preference(
    runs: Sequence[_AuditedRun], judge: str, quality: str
) -> JudgeFinding | None:
    """Measure how much more a judge gives to its own family than people, or other judges, do."""
    rows: list[tuple[float, float, float, float]] = []
    memes: list[str] = []
    for run in runs:
        if judge not in run.stored:
            continue
        own = family_of(run.facts.model) == family_of(judge)
        marks = run.stored[judge].marks[quality]
        usual = run.people.means(quality) or mean_marks(
            [
                other.marks[quality]
                for name, other in run.stored.items()
                if family_of(name) != family_of(judge)
            ]
        )
        for outcome in run.outcomes:
            name = outcome.item.id
            if name in marks and name in usual:
                gap = marks[name] - usual[name]
                rows.append((gap * own, 1.0 * own, gap * (not own), 1.0 * (not own)))
                memes.append(outcome.item.group)
    if not rows:
        return None
    table = np.array(rows)
    if not table[:, 1].any() or not table[:, 3].any():
        return None
    sums = sum_by_cluster(table, memes)
    low, high = bootstrap(sums, _contrast, bounds=None) or (None, None)
    value = float(_contrast(sums.sum(axis=0)[None])[0])
    return JudgeFinding(
        judge, "self-preference", "own family minus others", quality, len(rows), value, low, high
    )


def _contrast(sums: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(sums[:, 0] / sums[:, 1] - sums[:, 2] / sums[:, 3], float)


def _measure_cost(runs: Sequence[_AuditedRun], judge: str) -> Iterator[JudgeFinding]:
    places = [run.stored[judge] for run in runs if judge in run.stored]
    used = [add_up(read_answers(one.place), one.facts.prices) for one in places]
    n = sum(len(next(iter(one.marks.values()))) for one in places)
    if not n:
        return
    tokens = sum(one.tokens_in + one.tokens_out for one in used)
    yield JudgeFinding(judge, "cost", "tokens per answer", "", n, tokens / n)
    yield JudgeFinding(judge, "cost", "seconds per answer", "", n, sum(o.seconds for o in used) / n)
    if all(one.cost is not None for one in used):
        cost = math.fsum(one.cost or 0.0 for one in used)
        yield JudgeFinding(judge, "cost", "price per 1,000 answers", "", n, 1000 * cost / n)


def _average(
    judge: str,
    kind: str,
    name: str,
    quality: str,
    values: Sequence[float],
    memes: Sequence[str],
) -> JudgeFinding:
    found = compare_means([0.0] * len(values), list(values), list(memes))
    low, high = (found.low, found.high) if found else (None, None)
    return JudgeFinding(judge, kind, name, quality, len(values), fmean(values), low, high)


async def _test_judge(
    judge: Model, runs: Sequence[_AuditedRun], how: Judging, sample: int, repeats: int
) -> list[JudgeFinding]:
    """Let a judge rate changed answers, and rate unchanged answers a second time."""
    found: list[JudgeFinding] = []
    samples = [draw_sample(run.outcomes, sample) for run in runs]
    for change in CHANGES:
        pairs = []
        for run, drawn in zip(runs, samples, strict=True):
            changed = change_answers(change, drawn)
            purpose = f"change: {change.name}, sample {sample}"
            if changed:
                pairs += await _ask_changed(judge, run, changed, replace(how, purpose=purpose))
        if pairs:
            found += _describe_change(judge.name, change, pairs, how.rubric.dimensions)
    repeated = []
    for number in range(1, repeats + 1):
        fresh = replace(how.calls, use_cache=False)
        again = replace(how, purpose=f"{REPEAT} {number}, sample {sample}", calls=fresh)
        for run, drawn in zip(runs, samples, strict=True):
            repeated += await _ask_changed(judge, run, drawn, again)
    if repeated:
        found += _describe_repeats(judge.name, repeated, how.rubric.dimensions)
    return found


@dataclass(frozen=True, slots=True)
class _Changed:
    """The ratings of an answer before (None: not valid) and after a change, by quality."""

    meme: str
    before: Mapping[str, float]
    after: Mapping[str, float]


async def _ask_changed(
    judge: Model, run: _AuditedRun, changed: Sequence[Outcome], how: Judging
) -> list[_Changed]:
    task: Task = make_judging(run.facts.task, changed, image=how.image, rubric=how.rubric)
    said, _ = await ask_judge(run.folder, run.facts, judge, task, how)
    after, before = read_marks(said, how.rubric.qualities), run.stored[judge.name].marks
    return [
        _Changed(
            outcome.item.group,
            {key: by[outcome.item.id] for key, by in before.items() if outcome.item.id in by},
            {key: by[outcome.item.id] for key, by in after.items()},
        )
        for outcome in changed
        if all(outcome.item.id in by for by in after.values())
    ]


def _describe_change(
    judge: str, change: AnswerChange, pairs: Sequence[_Changed], dimensions: Sequence[Dimension]
) -> Iterator[JudgeFinding]:
    for dimension in dimensions:
        key = dimension.id
        if change.wrong is False:
            both = [pair for pair in pairs if key in pair.before]
            if both:
                gains = [pair.after[key] - pair.before[key] for pair in both]
                memes = [pair.meme for pair in both]
                yield _average(judge, "change", change.name, key, gains, memes)
            continue
        least = dimension.low + ACCEPTED * (dimension.high - dimension.low)
        passed = [pair.after[key] >= least for pair in pairs]
        low, high = clustered_wilson(passed, [pair.meme for pair in pairs]) or (None, None)
        kind = "wrong answer" if change.wrong else "right answer"
        value = fmean(map(float, passed))
        yield JudgeFinding(judge, kind, change.name, key, len(pairs), value, low, high)


def _describe_repeats(
    judge: str, pairs: Sequence[_Changed], dimensions: Sequence[Dimension]
) -> Iterator[JudgeFinding]:
    for dimension in dimensions:
        key = dimension.id
        both = [pair for pair in pairs if key in pair.before]
        if not both:
            continue
        same = [settle(pair.after[key] - pair.before[key]) == 0 for pair in both]
        low, high = clustered_wilson(same, [pair.meme for pair in both]) or (None, None)
        value = fmean(map(float, same))
        yield JudgeFinding(
            judge, "consistency", "same mark again", key, len(both), value, low, high
        )
