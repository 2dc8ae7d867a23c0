"""``judge drift``: whether scores by two versions of a judge may be compared.

A fixed sample of answers is rated again by the other version. The paired difference of the ratings
is tested against a margin, so that "no difference seen" is not taken for "no difference".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from memantics.core.errors import InputError, UnknownName
from memantics.core.model import Model
from memantics.core.parameters import Flag
from memantics.core.result import Result, Table
from memantics.core.rundir import read_facts
from memantics.core.waiting import make_sync
from memantics.evaluation.facts import now
from memantics.evaluation.judging.asking import (
    Judging,
    StoredMarks,
    ask_judge,
    find_served,
    need_stored,
    read_stored,
)
from memantics.evaluation.judging.changes import draw_sample
from memantics.evaluation.judging.rubrics import Dimension, open_rubric
from memantics.evaluation.options import RunFolders, find_folder
from memantics.evaluation.paired import show_p
from memantics.evaluation.rubric import make_judging, need_text, read_marks
from memantics.evaluation.scoring import read_outcomes
from memantics.evaluation.tasks import open_task_of_run
from memantics.metrics.comparison import correct_known
from memantics.metrics.paired import compare_means
from memantics.metrics.rounding import settle
from memantics.models.client import CallSettings
from memantics.models.kinds import open_model

DriftVerdict = Literal["comparable", "not comparable", "undecided"]


@dataclass(frozen=True, slots=True)
class QualityDrift:
    """The ratings of two versions on the same answers; ``difference`` is later minus earlier.

    ``margin`` is the largest difference that does not matter. ``p`` is Holm-corrected over the
    qualities.
    """

    quality: str
    answers: int
    before: float
    after: float
    difference: float
    low: float | None
    high: float | None
    p: float | None
    same: float
    margin: float
    verdict: DriftVerdict


@dataclass(frozen=True, slots=True)
class JudgeDrift(Result):
    """Whether the scores of a run by two versions of a judge may be compared."""

    run: str
    before: str
    after: str
    changed: tuple[str, ...]
    qualities: tuple[QualityDrift, ...]

    @property
    def comparable(self) -> bool:
        """Whether the difference of every quality is within the margin."""
        return all(one.verdict == "comparable" for one in self.qualities)

    def table(self) -> Table:
        """One row per quality: both means, their difference, and the verdict."""
        rows = tuple(
            (
                one.quality,
                str(one.answers),
                f"{one.before:.2f}",
                f"{one.after:.2f}",
                f"{one.difference:+.2f}"
                + ("" if one.low is None else f" ({one.low:+.2f} to {one.high:+.2f})"),
                show_p(one.p),
                f"{one.same:.0%}",
                f"{one.verdict} (± {one.margin:.2f})",
            )
            for one in self.qualities
        )
        columns = ("quality", ">answers", ">before", ">after", "difference (95 %)", ">Holm")
        title = f"{self.run}: {self.before} → {self.after}"
        return Table((*columns, ">same mark", "scores"), rows, title)


async def judge_drift_async(
    runs: RunFolders,
    *,
    model: Annotated[str, Flag("Judge or version that rates the sample again.", "--model -m")],
    against: Annotated[
        str,
        Flag(
            "Judge whose stored scores are compared. Default: the one named as --model, else the"
            " first judge of the run."
        ),
    ] = "",
    sample: Annotated[int, Flag("Number of answers that are rated again.", min=5)] = 60,
    margin: Annotated[
        float,
        Flag("Largest difference of comparable scores, as a proportion of the scale.", min=0.001),
    ] = 0.05,
    rubric: Annotated[
        str | Path | None,
        Flag("Rubric of your own (TOML). Default: correctness and coverage, 1 to 5."),
    ] = None,
    image: Annotated[bool, Flag("Show the image to the judge.")] = True,
    judge_version: Annotated[
        str, Flag("Version of the judge, stored with each rating. Default: that of the server.")
    ] = "",
    calls: CallSettings | None = None,
) -> list[JudgeDrift]:
    """Test whether another version of a judge gives the same ratings to a fixed sample of answers.

    The stored ratings of a run are not changed. A judge with the same settings is asked without the
    cache, because the server may have changed the model behind the name.

    Args:
        runs: Judged runs, or their folders.
        model: The judge or version that rates the sample again.
        against: The judge whose stored scores are compared. Default: the one with the name of
            ``model``, else the first judge of the run.
        sample: How many answers are rated again; the same ones for every version.
        margin: Largest difference of comparable scores, as a proportion of the scale.
        rubric: A rubric of your own (TOML). Default: correctness and coverage, 1 to 5.
        image: Whether the judge sees the image.
        judge_version: Version of the judge. Default: that of the server.
        calls: Settings of the calls to judge models; see :class:`CallSettings`.

    Returns:
        One result per run: scores are comparable if the whole confidence interval of the difference
        is within the margin.

    Raises:
        InputError: A run has no stored ratings, or the judge gave no valid rating.

    Example:
        >>> judged = mm.judge("runs/one", model="baseline/random")
        >>> (found,) = mm.judge_drift(["runs/one"], model="baseline/random")
        >>> found.qualities[0].difference
        0.0
    """
    used, settings = open_rubric(rubric), calls or CallSettings()
    how = Judging(used, image, judge_version, settings)
    opened = open_model(model, settings.model_settings)
    try:
        return [
            await _test(find_folder(run), opened, how, against, (sample, margin)) for run in runs
        ]
    finally:
        await opened.close()


judge_drift = make_sync(judge_drift_async)


async def _test(
    folder: Path, judge: Model, how: Judging, against: str, rules: tuple[int, float]
) -> JudgeDrift:
    sample, margin = rules
    facts = read_facts(folder)
    _, task = open_task_of_run(facts, None)
    outcomes = read_outcomes(folder, task)
    need_text(outcomes, folder)
    stored = read_stored(folder, outcomes, how.rubric, how.image)
    need_stored(folder, stored)
    before = _choose(stored, judge.name, against)
    rated = before.marks[how.rubric.qualities[0]]
    drawn = draw_sample([o for o in outcomes if o.item.id in rated], sample)
    same = dict(before.facts.identity) == dict(judge.identity)
    if same:
        how = replace(how, calls=replace(how.calls, use_cache=False))
    # The same command resumes on the same day, and asks again on another.
    day = "" if how.version else f", {now()[:10]}"
    how = replace(how, purpose=f"drift, sample {sample}{day}")
    judging = make_judging(facts.task, drawn, image=how.image, rubric=how.rubric)
    said, place = await ask_judge(folder, facts, judge, judging, how)
    after = read_marks(said, how.rubric.qualities)
    memes = {outcome.item.id: outcome.item.group for outcome in drawn}
    found = []
    for dimension in how.rubric.dimensions:
        old = before.marks[dimension.id]
        names = [name for name in memes if name in old and name in after[dimension.id]]
        if not names:
            raise InputError(
                f"{judge.name} gave no valid rating for {folder}",
                hint=f"inspect the replies in {place}",
            )
        pairs = [(old[name], after[dimension.id][name]) for name in names]
        found.append(_compare(dimension, pairs, [memes[name] for name in names], margin))
    corrected = correct_known([one.p for one in found])
    setup = how.setup(judge, find_served(place))
    return JudgeDrift(
        run=folder.name,
        before=_name(before.judge, before.setup.version),
        after=_name(judge.name, setup.version),
        changed=() if same and before.setup.version == setup.version else ("judge or version",),
        qualities=tuple(replace(one, p=p) for one, p in zip(found, corrected, strict=True)),
    )


def _name(judge: str, version: str) -> str:
    return f"{judge} ({version})" if version and version not in judge else judge


def _choose(stored: Sequence[StoredMarks], judge: str, against: str) -> StoredMarks:
    names = [one.judge for one in stored]
    if against and against not in names:
        raise UnknownName("judge", against, dict.fromkeys(names))
    wanted = against or (judge if judge in names else names[0])
    return next(one for one in stored if one.judge == wanted)


def _compare(
    dimension: Dimension,
    pairs: Sequence[tuple[float, float]],
    memes: Sequence[str],
    margin: float,
) -> QualityDrift:
    old, new = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    found = compare_means(old, new, list(memes))
    reach = margin * (dimension.high - dimension.low)
    before, after = sum(old) / len(old), sum(new) / len(new)
    verdict: DriftVerdict = "undecided"
    if found is not None and settle(max(-found.low, found.high)) <= settle(reach):
        verdict = "comparable"
    elif found is not None and settle(found.low) * settle(found.high) > 0:
        verdict = "not comparable"
    return QualityDrift(
        quality=dimension.id,
        answers=len(pairs),
        before=before,
        after=after,
        difference=settle(after - before),
        low=found.low if found else None,
        high=found.high if found else None,
        p=found.p if found else None,
        same=sum(settle(a - b) == 0 for a, b in pairs) / len(pairs),
        margin=reach,
        verdict=verdict,
    )
