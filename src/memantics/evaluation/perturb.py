"""``probe``: what the answers of a model rest on, by changing one thing at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memantics.core.errors import InputError
from memantics.core.result import Result, Table
from memantics.core.waiting import make_sync
from memantics.evaluation.compare import open_run
from memantics.evaluation.evaluate import SuiteTotal, collect_runs, conduct
from memantics.evaluation.paired import Difference, compare_sides, show_p
from memantics.evaluation.perturbations import check_probe
from memantics.evaluation.planning import Evaluation, plan_evaluation
from memantics.evaluation.reports.runs import Run
from memantics.models.client import Asking
from memantics.models.kinds import ModelSettings
from memantics.models.progress import ProgressWish, read_wish

DEFAULT_PROBES = ("picture=swapped", "picture=blank", "caption=removed", "options=permuted")
RESTS = {
    "picture": ("answers rest on the picture", "the picture makes no difference"),
    "caption": ("answers rest on the caption", "the caption makes no difference"),
    "meme": ("answers rest on the meme", "question and options alone tell as much"),
    "options": ("answers hang on the order of options", "the order makes no difference"),
}


@dataclass(frozen=True, slots=True)
class Probed(Result):
    """One probe of one model: its figure beside the plain one, and what that says.

    ``difference`` is None for contamination probes, which have no plain run to compare with;
    ``recalled`` is then the share of memes that the model knows by heart.
    """

    model: str
    probe: str
    run: str
    difference: Difference | None
    recalled: float | None
    says: str


@dataclass(frozen=True, slots=True)
class ProbeReport(Result):
    """What a model's answers to a task rest on."""

    task: str
    found: tuple[Probed, ...]

    def table(self) -> Table:
        """A line for each model and probe."""
        columns = ("model", "probe", ">plain", ">probed", "difference (95 %)", ">Holm", "")
        return Table(columns, tuple(_row(probe) for probe in self.found), self.task)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def _row(probe: Probed) -> tuple[str, ...]:
    row = probe.difference
    if row is None:
        value = "–" if probe.recalled is None else f"{probe.recalled:.3f}"
        return (probe.model, probe.probe, "", value, "", "", probe.says)
    figures = (f"{row.first:.3f}", f"{row.second:.3f}", row.span, show_p(row.corrected))
    return (probe.model, probe.probe, *figures, probe.says)


async def probe_async(
    task: str,
    *,
    model: str | Sequence[str],
    probes: Sequence[str] = DEFAULT_PROBES,
    base_url: str | None = None,
    settings: Evaluation | None = None,
    progress: ProgressWish = None,
) -> ProbeReport:
    """Run a task plainly and with each probe, and compare item by item, clustered by meme.

    A model that ignores what a probe changes answers as before. ``memory=…`` probes ask what a
    model that has seen the data knows by heart. ``task`` is
    ``NAME/TASK``, ``model`` names one or several, ``probes`` are ``WHAT=HOW``. ``settings`` say the
    rest, as for an evaluation, and ``progress`` is told how far it is (``bar`` draws it).
    """
    asking = Asking(ModelSettings(base_url, timeout=300.0))
    wanted = settings or Evaluation((), (), asking=asking)
    models = [model] if isinstance(model, str) else list(model)
    wanted = replace(wanted, tasks=[task], models=models)
    return await probe_evaluation(wanted, probes, progress)


probe = make_sync(probe_async)


async def probe_evaluation(
    wanted: Evaluation, probes: Sequence[str], progress: ProgressWish = None
) -> ProbeReport:
    """Run and compare what an evaluation and probes say."""
    for one in probes:
        check_probe(one)
    if not probes:
        raise InputError("no probe was given", hint="such as --probe picture=swapped")
    compared = [one for one in probes if not one.startswith("memory=")]
    plain = {run.model: run for run in await _run(wanted, "", progress)} if compared else {}
    found: list[Probed] = []
    for one in dict.fromkeys(probes):
        runs = await _run(wanted, one, progress)
        found += [_compare(plain[r.model], r) if one in compared else _recall(r) for r in runs]
    return ProbeReport(wanted.tasks[0], tuple(_correct(found)))


async def _run(wanted: Evaluation, one: str, progress: ProgressWish) -> Sequence[Run]:
    variation = replace(wanted.variation, probe=one)
    jobs, skipped = plan_evaluation(replace(wanted, variation=variation))
    watch = SuiteTotal(jobs, read_wish(progress))
    return collect_runs(await conduct(jobs, wanted.asking, watch), skipped).runs


def _compare(plain: Run, probed: Run) -> Probed:
    one = compare_sides([open_run(plain.folder), open_run(probed.folder)])[0]
    main = plain.figures.main
    rows = [row for row in one.differences if row.key == main] or list(one.differences)
    row, what = rows[0], probed.facts.probe.partition("=")[0]
    rests, ignores = RESTS[what]
    says = ignores
    if row.high is None or row.low is None:
        says = "too few memes to tell"
    elif row.high < 0 or row.low > 0:
        says = rests
    return Probed(probed.model, probed.facts.probe, str(probed.folder), row, None, says)


def _recall(run: Run) -> Probed:
    score = run.scores["recalled"]
    says = "no meme could be asked about"
    if score.value is not None:
        says = f"{round(score.value * score.n)} of {score.n} memes known by heart"
    return Probed(run.model, run.facts.probe, str(run.folder), None, score.value, says)


def _correct(found: Sequence[Probed]) -> list[Probed]:
    """P-values corrected for all probes of all models together (Holm)."""
    from memantics.metrics.comparison import holm

    known = [
        probe.difference.p for probe in found if probe.difference and probe.difference.p is not None
    ]
    mended = iter(holm(known))
    return [
        replace(probe, difference=replace(probe.difference, corrected=next(mended)))
        if probe.difference and probe.difference.p is not None
        else probe
        for probe in found
    ]
