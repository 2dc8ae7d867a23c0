"""Measure which inputs a model's answers depend on, by changing one input at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memantics.core.errors import InputError
from memantics.core.result import Result, Table
from memantics.core.waiting import make_sync
from memantics.evaluation.compare import open_run
from memantics.evaluation.evaluate import (
    EvaluationSettings,
    SuiteTotal,
    collect_runs,
    conduct,
)
from memantics.evaluation.paired import Difference, compare_sides, show_p
from memantics.evaluation.perturbations import check_perturbation
from memantics.evaluation.planning import EvaluationPlan, plan_evaluation
from memantics.evaluation.reports.runs import Run
from memantics.models.client import CallSettings
from memantics.models.progress import ProgressWish, read_wish

DEFAULT_PERTURBATIONS = ("image=swapped", "image=blank", "caption=removed", "options=permuted")
RESTS = {
    "image": ("answers depend on the image", "no effect of the image"),
    "caption": ("answers depend on the caption", "no effect of the caption"),
    "meme": ("answers depend on the meme", "question and options alone suffice"),
    "options": ("answers depend on the option order", "no effect of the option order"),
}


@dataclass(frozen=True, slots=True)
class Perturbed(Result):
    """One perturbation of one model: the perturbed score, the plain score, and their difference.

    ``difference`` is None for contamination tests, which have no plain run. For these tests,
    ``recalled`` is the proportion of memes that the model reproduces from memory.
    """

    model: str
    perturbation: str
    run: str
    difference: Difference | None
    recalled: float | None
    conclusion: str


@dataclass(frozen=True, slots=True)
class PerturbationReport(Result):
    """Perturbation results of one task: the inputs that each model's answers depend on."""

    task: str
    found: tuple[Perturbed, ...]

    def table(self) -> Table:
        """One row per model and perturbation."""
        columns = (
            "model",
            "perturbation",
            ">plain",
            ">perturbed",
            "difference (95 %)",
            ">Holm",
            "",
        )
        return Table(columns, tuple(_row(perturbation) for perturbation in self.found), self.task)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def _row(perturbation: Perturbed) -> tuple[str, ...]:
    row = perturbation.difference
    if row is None:
        value = "–" if perturbation.recalled is None else f"{perturbation.recalled:.3f}"
        return (
            perturbation.model,
            perturbation.perturbation,
            "",
            value,
            "",
            "",
            perturbation.conclusion,
        )
    values = (f"{row.first:.3f}", f"{row.second:.3f}", row.span, show_p(row.corrected))
    return (perturbation.model, perturbation.perturbation, *values, perturbation.conclusion)


async def perturb_async(
    task: str,
    *,
    model: str | Sequence[str],
    perturbations: Sequence[str] = DEFAULT_PERTURBATIONS,
    settings: EvaluationSettings | None = None,
    calls: CallSettings | None = None,
    out: str | Path = "runs",
    progress: ProgressWish = None,
) -> PerturbationReport:
    """Run a task plainly and with each perturbation (change of one input), and compare by item.

    If a model ignores the input that a perturbation changes, its answers stay the same. Differences
    are paired by item and clustered by meme. ``contamination=…`` tests whether the model has
    memorised the data.

    Args:
        task: ``NAME/TASK``.
        model: One model, ``KIND/NAME``, or several.
        perturbations: Perturbations, ``WHAT=HOW``, such as ``image=swapped``.
        settings: Data, items and options; see :class:`EvaluationSettings`.
        calls: Settings of model calls; see :class:`CallSettings`.
        out: Folder for the run directories.
        progress: ``"bar"`` draws a progress bar; a function is called with every update.

    Returns:
        The difference from the plain run for each model and perturbation.

    Raises:
        UnknownName: The task, model type or perturbation does not exist.
        InputError: No perturbation is given, or the task does not support it.

    Example:
        >>> wanted = ["options=permuted"]
        >>> made = mm.perturb("mquest/qa", model="baseline/longest", perturbations=wanted)
        >>> round(made.found[0].difference.difference, 3)
        0.028
    """
    wanted = (settings or EvaluationSettings()).plan(task, model, calls, out)
    return await perturb_evaluation(wanted, perturbations, progress)


perturb = make_sync(perturb_async)


async def perturb_evaluation(
    wanted: EvaluationPlan, perturbations: Sequence[str], progress: ProgressWish = None
) -> PerturbationReport:
    """Run the plain task and its perturbations, and compare them."""
    for one in perturbations:
        check_perturbation(one)
    if not perturbations:
        raise InputError(
            "at least one perturbation is needed", hint="for example --perturb image=swapped"
        )
    compared = [one for one in perturbations if not one.startswith("contamination=")]
    plain = {run.model: run for run in await _run(wanted, "", progress)} if compared else {}
    found: list[Perturbed] = []
    for one in dict.fromkeys(perturbations):
        runs = await _run(wanted, one, progress)
        found += [_compare(plain[r.model], r) if one in compared else _recall(r) for r in runs]
    return PerturbationReport(wanted.tasks[0], tuple(_correct(found)))


async def _run(wanted: EvaluationPlan, one: str, progress: ProgressWish) -> Sequence[Run]:
    variation = replace(wanted.variation, perturbation=one)
    jobs, skipped = plan_evaluation(replace(wanted, variation=variation))
    watch = SuiteTotal(jobs, read_wish(progress))
    return collect_runs(await conduct(jobs, wanted.calls, watch), skipped).runs


def _compare(plain: Run, perturbed: Run) -> Perturbed:
    one = compare_sides([open_run(plain.folder), open_run(perturbed.folder)])[0]
    main = plain.results.main
    rows = [row for row in one.differences if row.key == main] or list(one.differences)
    row, what = rows[0], perturbed.facts.perturbation.partition("=")[0]
    rests, ignores = RESTS[what]
    conclusion = ignores
    if row.high is None or row.low is None:
        conclusion = "too few memes for a test"
    elif row.high < 0 or row.low > 0:
        conclusion = rests
    return Perturbed(
        perturbed.model, perturbed.facts.perturbation, str(perturbed.folder), row, None, conclusion
    )


def _recall(run: Run) -> Perturbed:
    score = run.scores["recalled"]
    conclusion = "no meme fits this test"
    if score.value is not None:
        conclusion = f"{round(score.value * score.n)} of {score.n} memes reproduced"
    return Perturbed(
        run.model, run.facts.perturbation, str(run.folder), None, score.value, conclusion
    )


def _correct(found: Sequence[Perturbed]) -> list[Perturbed]:
    """Correct p-values over all perturbations of all models (Holm)."""
    from memantics.metrics.comparison import holm

    known = [
        perturbation.difference.p
        for perturbation in found
        if perturbation.difference and perturbation.difference.p is not None
    ]
    repaired = iter(holm(known))
    return [
        replace(perturbation, difference=replace(perturbation.difference, corrected=next(repaired)))
        if perturbation.difference and perturbation.difference.p is not None
        else perturbation
        for perturbation in found
    ]
