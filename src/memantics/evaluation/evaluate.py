"""Evaluate models on benchmarks, score their answers, and estimate costs.

``score`` parses and scores stored answers again without calling a model.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, overload

from pydantic import JsonValue

from memantics.benchmarks.registry import find_published
from memantics.core.errors import InputError, MemanticsError, Unavailable
from memantics.core.parameters import TokenPrices
from memantics.core.registry import home
from memantics.core.result import Result, Table, make_frame, to_plain
from memantics.core.rundir import RUN, last_answers, read_facts
from memantics.core.text import mask_unseen
from memantics.core.waiting import make_sync, run_sync
from memantics.evaluation.facts import Scope, Variation, read_settings
from memantics.evaluation.planning import (
    Estimate,
    EvaluationPlan,
    EvaluationSettings,
    estimate,
    note_greedy,
    plan_evaluation,
)
from memantics.evaluation.reports.runs import (
    Run,
    differing_options,
    load_run,
    load_runs,
    plot_runs,
    render_html,
    split_unfinished,
)
from memantics.evaluation.reports.tables import list_metrics
from memantics.evaluation.run import Job, RunEnd, SuiteSettings, SuiteWatch, run_suite
from memantics.evaluation.score_processes import ScoringPool
from memantics.evaluation.scoring import group_repeats, note_repeats, score_run
from memantics.evaluation.tasks import open_baselines, open_task_of_run
from memantics.models.client import CallSettings, open_cache
from memantics.models.engine import AskSettings, Progress
from memantics.models.progress import ProgressWish, add_progress, read_wish, show_duration

__all__ = [
    "Estimate",
    "EvaluationPlan",
    "EvaluationSettings",
    "Run",
    "RunEnd",
    "Runs",
    "Scope",
    "Variation",
    "conduct",
    "count_failures",
    "estimate_plan",
    "evaluate",
    "evaluate_async",
    "evaluate_suite",
    "evaluate_suite_async",
    "load_run",
    "note_estimates",
    "plan_evaluation",
    "read_settings",
    "results",
    "tabulate_estimates",
]
# The weights of two local models may not fit into memory together.
_ALONE = "local/"
_REASONS = 3
_SHOWN = 200


class SuiteTotal:
    """Sum the progress of all runs of a suite and pass the sum to a callback."""

    def __init__(self, jobs: Sequence[Job], show: Callable[[Progress], None]) -> None:
        self.size = sum(job.total for job in jobs)
        self.seen: dict[int, Progress] = {}
        self._show = show
        self._begin = time.monotonic()

    def begin(self, job: Job) -> None:
        """Do nothing, because a run that begins has no progress yet."""

    def show(self, job: Job, progress: Progress) -> None:
        """Record the progress of one run."""
        self.seen[id(job)] = progress
        self._show(self.add_up())

    def end(self, result: RunEnd) -> None:  # noqa: ARG002 - a watch's seam
        """Report the progress of all runs at the end of one run."""
        self._show(self.add_up())

    def add_up(self) -> Progress:
        """Sum the progress of all runs."""
        total = add_progress(self.seen.values())
        seconds = time.monotonic() - self._begin
        return replace(total, total=max(self.size, total.done), seconds=seconds)


def conclude(
    progress: Progress, ends: Iterable[RunEnd], prices: tuple[float, float] | None = None
) -> str:
    """Summarise time, tokens and cost of a finished evaluation; empty if no tokens were used.

    Calls overlap, so the summed call time is reported separately.

    >>> conclude(Progress(tokens_in=9000, tokens_out=100, seconds=61.0), [], (10.0, 100.0))
    '1:01 elapsed, 0:00 summed over calls; 9,000 tokens in, 100 out; cost 0.1000'
    """
    if not progress.tokens_in + progress.tokens_out:
        return ""
    scored = [end.ended.scores for end in ends if end.ended and end.ended.scores]
    summed = sum(scores.usage.seconds for scores in scored)
    took = f"{show_duration(progress.seconds)} elapsed, {show_duration(summed)} summed"
    words = [f"{took} over calls", f"{progress.tokens_in:,} tokens in, {progress.tokens_out:,} out"]
    words += [f"cost {progress.cost(prices):.4f}"] if prices is not None else []
    return "; ".join(words)


@dataclass(frozen=True, slots=True)
class Runs(Result, Sequence[Run]):
    """Several runs; ``broken`` gives reasons for missing scores, ``skipped`` for missing data."""

    runs: tuple[Run, ...]
    broken: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)

    @overload
    def __getitem__(self, place: int) -> Run: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Run, ...]: ...
    def __getitem__(self, place: int | slice) -> Run | tuple[Run, ...]:
        return self.runs[place]

    def __len__(self) -> int:
        return len(self.runs)

    def to_dict(self) -> dict[str, JsonValue]:
        """Convert to plain data."""
        missing = {"broken": to_plain(self.broken), "skipped": to_plain(self.skipped)}
        return {"runs": [run.to_dict() for run in self.runs], **missing}

    def to_pandas(self) -> Any:
        """Convert to a data frame with one row per metric of each run and baseline."""
        return make_frame(list_metrics(self.runs, find_published(run.task for run in self.runs)))

    def plot(self, axes: Any = None) -> Any:
        """Plot each run's main metric with its 95% confidence interval (Matplotlib)."""
        return plot_runs(self.runs, axes)

    def _repr_html_(self) -> str:
        return render_html(self.runs, {**self.broken, **self.skipped})


def results(folder: str | Path = "runs") -> Runs:
    """Load all finished runs of a folder.

    Args:
        folder: Folder of run directories.

    Returns:
        The runs; ``broken`` names the runs that are not finished.

    Raises:
        InputError: The folder contains no run directory.

    Example:
        >>> [run.model for run in mm.results("runs")]
        ['baseline/constant', 'baseline/majority']
    """
    folders = [path for path in sorted(Path(folder).glob("*")) if (path / RUN).is_file()]
    if not folders:
        raise InputError(
            f"{folder} has no run directories", hint="create one with memantics run NAME --out DIR"
        )
    finished, left = split_unfinished(folders)
    return Runs(load_runs(finished), {path.name: why for path, why in left.items()})


async def conduct(jobs: Sequence[Job], calls: CallSettings, watch: SuiteWatch) -> list[RunEnd]:
    """Execute all planned runs; large runs are scored in other processes."""
    models = {job.model.name for job in jobs}
    client = ScoringPool()
    # A batch is answered as a whole, so all its requests must be waiting at the same time.
    waiting = max((getattr(job.model, "at_once", 0) for job in jobs), default=0)
    settings = SuiteSettings(
        ask=AskSettings(concurrency=max(calls.concurrency, waiting)),
        alone=frozenset(name for name in models if name.startswith(_ALONE)),
        score=client.score,
    )
    try:
        with open_cache(calls.use_cache) as cache:
            ends = await run_suite(jobs, cache, settings, watch)
            await asyncio.to_thread(_note_repeats, ends)
            return ends
    finally:
        await client.close()


def _note_repeats(ends: Sequence[RunEnd]) -> None:
    """Write the statistics over repeated runs into the scores of their first runs."""
    jobs = {end.job.folder: end.job for end in ends if end.ended and end.ended.scores}
    if any(job.facts.repeat for job in jobs.values()):
        for folders in group_repeats(list(jobs)):
            if len(folders) > 1:
                note_repeats(folders, jobs[folders[0]].task)


def estimate_plan(jobs: Sequence[Job], calls: CallSettings) -> list[Estimate]:
    """Estimate the requests of the runs, without sending or writing anything."""
    with open_cache(calls.use_cache and (home() / "cache.sqlite").is_file()) as cache:
        return estimate(jobs, cache)


def tabulate_estimates(found: Sequence[Estimate], prices: TokenPrices) -> Iterator[Table]:
    """Make one table per model with the requests that each run would send."""
    columns = ("task", *(f">{name}" for name in ("items", "calls", "images", "tokens in", "out")))
    for model in _models(found):
        listed = [one for one in found if one.job.facts.model == model]
        rows = [(_name_run(one, found), *_add_up(prices, one)) for one in listed]
        total = ("total", *_add_up(prices, *listed))
        yield Table((*columns, ">cost") if prices else columns, (*rows, total), model, total=True)


def note_estimates(found: Sequence[Estimate], prices: TokenPrices) -> Iterator[str]:
    """List notes on the whole cost estimate: sums, items already answered, and assumptions."""
    if len(_models(found)) > 1:
        items, calls, images, first, second, *cost = _add_up(prices, *found)
        words = f"{items} items, {calls} calls, {images} images, {first} + {second} tokens"
        yield f"All models: {words}{f', cost {cost[0]}' if cost else ''}."
    done = sum(estimate.done for estimate in found)
    cached = sum(estimate.cached for estimate in found)
    if done or cached:
        yield f"{done:,} items have answers already, {cached:,} are in the cache."
    most = sum(estimate.most_calls for estimate in found)
    if most > sum(estimate.calls for estimate in found):
        yield f"Invalid answers are retried: at most {most:,} calls in total."
    if any(estimate.guessed for estimate in found):
        yield "For requests that contain answers of other runs, the answer length is a guess."
    yield "Tokens are estimates: text by length, images by tiles. Reasoning models need far more."


def _models(found: Sequence[Estimate]) -> list[str]:
    return list(dict.fromkeys(estimate.job.facts.model for estimate in found))


def _name_run(one: Estimate, found: Sequence[Estimate]) -> str:
    facts = one.job.facts
    others = [other.job.facts for other in found if other.job.facts.task == facts.task]
    return " ".join([facts.task, *differing_options(facts, others)])


def _add_up(prices: TokenPrices, *found: Estimate) -> list[str]:
    names = ("items", "calls", "images", "tokens_in", "tokens_out")
    cells = [f"{sum(getattr(estimate, name) for estimate in found):,}" for name in names]
    return [*cells, f"{sum(estimate.cost(prices) for estimate in found):.2f}"] if prices else cells


async def evaluate_async(
    task: str,
    model: str,
    *,
    settings: EvaluationSettings | None = None,
    calls: CallSettings | None = None,
    out: str | Path = "runs",
    progress: ProgressWish = None,
) -> Run:
    """Evaluate one model on one task, and score the answers.

    If an evaluation is interrupted, the same call resumes it; no answer is requested twice.

    Args:
        task: One task, ``NAME/TASK``, such as ``mquest/qa``.
        model: One model, ``KIND/NAME``, such as ``openai/NAME`` or ``baseline/majority``.
        settings: Data, items, options and prompts; see :class:`EvaluationSettings`.
        calls: Settings of model calls; see :class:`CallSettings`.
        out: Folder for the run directory.
        progress: ``"bar"`` draws a progress bar; a function is called with every update.

    Returns:
        The run: its scores with confidence intervals, the counts of answers, and its folder.

    Raises:
        UnknownName: The task, model type or option does not exist.
        InputError: Task and settings define more than one run, or contradict each other.
        DataError: The data of the task are missing or damaged.
        ModelError: The model cannot be reached, or it answers no item.

    Example:
        >>> run = mm.evaluate("mquest/qa", "baseline/longest")
        >>> round(run.scores["accuracy"].value, 3), run.counts["answered"]
        (0.292, 72)
    """
    for name, given in (("task", task), ("model", model)):
        if not isinstance(given, str):
            raise InputError(f"evaluate takes one {name}", hint="use evaluate_suite for several")
    wanted = (settings or EvaluationSettings()).plan(task, model, calls, out)
    jobs, skipped = await asyncio.to_thread(plan_evaluation, wanted)
    asked = sum(job.asked for job in jobs)
    if asked > 1:
        raise InputError(
            f"{task} with these settings gives {asked} runs, but evaluate makes one run",
            hint="name one task and one value of each option, or use evaluate_suite",
        )
    watch = SuiteTotal(jobs, read_wish(progress))
    return collect_runs(await conduct(jobs, wanted.calls, watch), skipped)[0]


evaluate = make_sync(evaluate_async)


async def evaluate_suite_async(
    tasks: str | Sequence[str],
    models: str | Sequence[str],
    *,
    settings: EvaluationSettings | None = None,
    calls: CallSettings | None = None,
    out: str | Path = "runs",
    progress: ProgressWish = None,
) -> Runs:
    """Evaluate several models on several tasks, and score the answers.

    Every task is run with every model and every combination of option values. If the suite is
    interrupted, the same call resumes it; no answer is requested twice.

    Args:
        tasks: ``NAME/TASK``, ``NAME`` for all tasks of a benchmark, ``suite`` for all, or a list.
        models: One model, ``KIND/NAME``, or a list of them.
        settings: Data, items, options and prompts; see :class:`EvaluationSettings`.
        calls: Settings of model calls; see :class:`CallSettings`.
        out: Folder for the run directories.
        progress: ``"bar"`` draws a progress bar; a function is called with every update.

    Returns:
        The runs. ``broken`` gives the reason for each run that did not finish, ``skipped`` for each
        task whose data are missing.

    Raises:
        UnknownName: A task, model type or option does not exist.
        InputError: Settings contradict each other.
        DataError: The data of a named task are missing or damaged.
        ModelError: No run finished, since no model could be reached.

    Example:
        >>> models = ["baseline/majority", "baseline/random"]
        >>> runs = mm.evaluate_suite("punmemecn/detection", models)
        >>> [(run.task, run.model) for run in runs]
        [('punmemecn/detection', 'baseline/majority'), ('punmemecn/detection', 'baseline/random')]
    """
    wanted = (settings or EvaluationSettings()).plan(tasks, models, calls, out)
    jobs, skipped = await asyncio.to_thread(plan_evaluation, wanted)
    watch = SuiteTotal(jobs, read_wish(progress))
    return collect_runs(await conduct(jobs, wanted.calls, watch), skipped)


evaluate_suite = make_sync(evaluate_suite_async)


def collect_runs(ends: Sequence[RunEnd], skipped: Mapping[str, InputError]) -> Runs:
    """Return the requested runs; raise an error if none of them has scores."""
    for end in ends:
        if end.fault is not None:
            raise end.fault
    asked = [end for end in ends if end.job.asked]
    errors = dict(_explain(asked))
    scored = [e.job.folder for e in asked if e.ended is not None and e.ended.scores is not None]
    if not scored:
        raise next(iter(errors.values()))
    return Runs(
        load_runs(scored),
        {name: str(error) for name, error in errors.items()},
        {task: str(error) for task, error in skipped.items()},
    )


def dump_end(end: RunEnd) -> dict[str, object]:
    """Return the outcome of a run (scores or error) as plain data for ``--json``."""
    row: dict[str, object] = {"folder": end.job.folder, "facts": end.job.facts}
    if end.ended is not None:
        row["scores"] = end.ended.scores
        row |= {"waiting": end.ended.waiting} if end.ended.waiting else {}
    if end.error is not None:
        row["error"] = str(end.error)
    return row


def list_errors(ends: Sequence[RunEnd]) -> Iterator[str]:
    """List why runs did not finish, each reason once."""
    errors = [(end.job.facts.model, end.error) for end in ends if end.error is not None]
    several = len({end.job.facts.model for end in ends}) > 1
    for line in dict.fromkeys(
        f"{model}: {error}" if several and isinstance(error, Unavailable) else str(error)
        for model, error in errors
    ):
        yield f"error: {line}"
    if errors and len(errors) < len(ends):
        yield f"{len(errors)} of {len(ends)} runs did not finish; repeat the command to resume them"


def _count_ended(ends: Sequence[RunEnd]) -> tuple[int, int]:
    """Count the failed items, and the items that wait for answers of other runs."""
    ended = [end.ended for end in ends if end.ended is not None]
    failed = sum(
        ended_run.scores.counts["failed"] for ended_run in ended if ended_run.scores is not None
    )
    return failed, sum(ended_run.waiting for ended_run in ended)


def count_unanswered(ends: Sequence[RunEnd]) -> int:
    """Count items that failed, wait for failed runs, or have only unparsable replies."""
    return sum(_count_ended(ends)) + sum(unread for _, unread in _find_unread(ends))


def _find_unread(ends: Sequence[RunEnd]) -> Iterator[tuple[RunEnd, int]]:
    """Find runs without a single parsable reply, with their number of unparsed replies."""
    for end in ends:
        counts = end.ended.scores.counts if end.ended and end.ended.scores else {}
        if counts.get("unparsed") and not counts.get("answered"):
            yield end, counts["unparsed"]


def _tell_unread(end: RunEnd, unread: int) -> str:
    first = next(a for a in last_answers(end.job.folder).values() if a.status == "unparsed")
    said = " ".join(mask_unseen(first.reply.text).split())
    shown = f"{said[:_SHOWN]}…" if len(said) > _SHOWN else said
    return (
        f"{end.job.facts.task} {end.job.facts.model}: none of {unread} replies could be parsed "
        f"({first.reason}), so its scores are not meaningful; first reply: {shown!r}"
    )


def list_failures(ends: Sequence[RunEnd]) -> Iterator[str]:
    """List adapted and repeated model calls, failed items with reasons, and waiting items."""
    yield from note_greedy(end.job for end in ends)
    ended = [end.ended for end in ends if end.ended is not None]
    yield from dict.fromkeys(
        f"note: {line}" for ended_run in ended for line in ended_run.progress.adapted
    )
    failed, waiting = _count_ended(ends)
    yield from (_tell_unread(*found) for found in _find_unread(ends))
    if failed:
        yield from (f"{count} failed: {reason}" for reason, count in count_failures(ends))
        yield f"{failed} items failed; repeat the command to retry them"
    if waiting:
        yield f"{waiting} items were not asked: they need answers that failed in other runs"


def _explain(ends: Sequence[RunEnd]) -> Iterator[tuple[str, MemanticsError]]:
    """Explain why runs have no scores."""
    for end in ends:
        name = f"{end.job.facts.task} {end.job.facts.model}"
        if end.error is not None:
            yield name, end.error
        elif end.ended is None or end.ended.scores is None:
            hint = "repeat the command to retry them"
            yield (
                name,
                InputError(
                    "no item can be asked: each one needs an answer of another task that failed",
                    hint=hint,
                ),
            )


def count_failures(ends: Sequence[RunEnd]) -> list[tuple[str, int]]:
    """Count failed items by reason, most frequent first."""
    reasons: Counter[str] = Counter()
    for end in ends:
        if end.ended is not None and end.ended.scores and end.ended.scores.counts["failed"]:
            last = last_answers(end.job.folder).values()
            reasons.update(a.reason or "no reason" for a in last if a.status == "failed")
    return reasons.most_common(_REASONS)


def score(
    run: str | Path | Run,
    *,
    invalid: str | None = None,
    options: Mapping[str, str] | None = None,
    metrics: Sequence[str] | None = None,
) -> Run:
    """Parse the answers of a run again, score them, and write ``scores.json``. No model is called.

    Args:
        run: A run or its folder.
        invalid: Policy for refused and unparsed answers: ``wrong``, ``drop``, ``retry:N`` or
            ``retry:N,drop``. Default: the policy of the run.
        options: Task options that replace those of the run; only options that affect scoring are
            allowed (``alpha`` and ``floor`` of MER-Bench).
        metrics: Registered metrics to compute beside the task's own. Default: those of the last
            scoring.

    Returns:
        The run with its new scores.

    Raises:
        InputError: An option affects more than the scoring.
        StoreError: The folder is not a run directory, or is damaged.

    Example:
        >>> round(mm.score("runs/one", invalid="drop").scores["rouge_l"].value, 3)
        0.376
    """
    folder = run.folder if isinstance(run, Run) else Path(run)
    ref, task = open_task_of_run(read_facts(folder), invalid, options)
    run_sync(score_run(folder, task, open_baselines(ref.card), metrics, strict=True))
    facts = read_facts(folder)
    beside = [path.parent for path in folder.resolve().parent.glob("*/run.json")]
    group = [
        neighbour
        for neighbour in beside
        if facts.fingerprint in ((found := read_facts(neighbour)).fingerprint, found.repeat_of)
        and (neighbour / "scores.json").is_file()
    ]
    if len(group) > 1:
        note_repeats(group_repeats(group)[0], task)
    return load_run(folder)
