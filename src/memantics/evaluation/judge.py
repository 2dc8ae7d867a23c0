"""Have models judge free-text answers, and correct their scores with human ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from memantics.core.errors import InputError
from memantics.core.model import Model
from memantics.core.parameters import Flag
from memantics.core.records import Outcome, Score
from memantics.core.result import Result, Table
from memantics.core.rundir import read_facts
from memantics.core.waiting import make_sync
from memantics.evaluation.judging.asking import Judging, ask_judge, find_served
from memantics.evaluation.judging.estimates import (
    JudgedRun,
    JudgeEstimate,
    estimate_difference,
    estimate_run,
)
from memantics.evaluation.judging.open_items import OpenItem, find_open_items
from memantics.evaluation.judging.people import People, read_people
from memantics.evaluation.judging.rubrics import Rubric, open_rubric
from memantics.evaluation.options import ModelsFlag, RunFolders, RunLike, find_folder
from memantics.evaluation.reports.runs import Run, load_run
from memantics.evaluation.rubric import (
    Agreement,
    JudgeSetup,
    make_judging,
    make_scores,
    mean_marks,
    need_text,
    read_marks,
    write_judged,
)
from memantics.evaluation.scoring import read_outcomes, score_run
from memantics.evaluation.tasks import open_baselines, open_task_of_run
from memantics.models.client import CallSettings
from memantics.models.kinds import open_model

RubricFlag = Annotated[
    str | Path | None,
    Flag("Rubric of your own (TOML). Default: correctness and coverage, 1 to 5."),
]
ImageFlag = Annotated[bool, Flag("Show the image to the judge.")]
JudgeVersion = Annotated[
    str, Flag("Version of the judge, stored with each rating. Default: that of the server.")
]


@dataclass(frozen=True, slots=True)
class Judgement(Result):
    """A run rated by judge models, their agreement, and estimates corrected with human ratings.

    ``estimates`` are the means of each quality, one per judge and, of several judges, one of their
    mean rating. ``differences`` compare the run with the first one. ``open_items`` are answers on
    which people disagree although they followed the rubric.
    """

    run: Run
    judges: tuple[str, ...]
    agreement: tuple[Agreement, ...]
    estimates: tuple[JudgeEstimate, ...] = ()
    differences: tuple[JudgeEstimate, ...] = ()
    open_items: tuple[OpenItem, ...] = ()

    def table(self) -> Table:
        """Agreement of the judges: one row per rated quality."""
        columns = (
            "quality",
            ">mean",
            ">alpha, judges",
            ">alpha, human",
            ">rated",
            ">corrected",
        )
        rows = []
        for agreement in self.agreement:
            mean = self.run.scores[f"judge_{agreement.quality}"].value
            metrics = (mean, agreement.alpha_judges, agreement.alpha_people)
            shown = ["–" if value is None else f"{value:.2f}" for value in metrics]
            both = [e for e in self.estimates if e.quality == agreement.quality][-1:]
            last = _show_corrected(both[0]) if both else "–"
            rows.append((agreement.quality, *shown, str(agreement.rated), last))
        return Table(columns, tuple(rows), f"{self.run.model}, judged by {', '.join(self.judges)}")

    def sentences(self) -> list[str]:
        """Sentences that may be quoted: one per estimate and difference."""
        return [one.sentence() for one in (*self.estimates, *self.differences)]

    def notes(self) -> list[str]:
        """What a reader of the estimates must know, each once."""
        return list(dict.fromkeys(n for e in self.estimates[-2:] for n in e.notes()))


def _show_corrected(one: JudgeEstimate) -> str:
    found = one.found.powered
    span = "" if found.low is None else f" ({found.low:.2f}–{found.high:.2f})"
    return f"{found.value:.2f}{span}"


async def judge_async(
    runs: RunLike | RunFolders,
    *,
    model: ModelsFlag,
    people: Annotated[
        str | Path | None,
        Flag(
            "Human ratings: a table with the column item and one per dimension, or the annotations "
            "of a queue of 'judge plan'. They correct the scores."
        ),
    ] = None,
    rubric: RubricFlag = None,
    image: ImageFlag = True,
    judge_version: JudgeVersion = "",
    calls: CallSettings | None = None,
) -> list[Judgement]:
    """Have models rate the free-text answers of runs, and correct the scores with human ratings.

    The ratings are stored with the run and appear in its scores. With ``people``, each mean is a
    prediction-powered estimate: its interval is valid whatever the judge's errors, if the rated
    answers were selected at random or by :func:`plan_ratings`.

    Args:
        runs: One run, or several: folders or :class:`Run` records.
        model: The judge, ``KIND/NAME``, or several judges.
        people: Human ratings: a table with the columns ``item``, ``correctness`` and ``coverage``
            (or the dimensions of the rubric), or the annotations of a queue of
            :func:`plan_ratings`. Several runs need the column ``run``.
        rubric: A rubric of your own (TOML). Default: correctness and coverage, 1 to 5.
        image: Whether the judge sees the image.
        judge_version: Version of the judge, stored with each rating. Default: that of the server.
        calls: Settings of the calls to judge models; see :class:`CallSettings`.

    Returns:
        One :class:`Judgement` per run, with agreement, corrected means and, for several runs, the
        differences to the first.

    Raises:
        InputError: No judge is named, the run has no free-text answers, or no judge answered.
        DataError: A row of ``people`` is not a valid rating.

    Example:
        >>> (done,) = mm.judge("runs/one", model="baseline/random")  # for real ratings, a VLM
        >>> done.run.scores["judge_correctness"].value
        3.25
    """
    models = [model] if isinstance(model, str) else list(model)
    folders = [find_folder(one) for one in ([runs] if isinstance(runs, RunLike) else runs)]
    if not models:
        raise InputError("no judge model was given", hint="add --model MODEL")
    how = Judging(open_rubric(rubric), image, judge_version, calls or CallSettings())
    given = People() if people is None else read_people(Path(people), how.rubric, folders)
    judges = [open_model(name, how.calls.model_settings) for name in dict.fromkeys(models)]
    try:
        judged = [await _judge_run(path, judges, how, given) for path in folders]
    finally:
        for opened in judges:
            await opened.close()
    return _conclude(judged, how.rubric)


judge = make_sync(judge_async)


@dataclass(frozen=True, slots=True)
class _Judged:
    """A judged run before its comparison with the first one."""

    folder: Path
    judges: tuple[str, ...]
    agreement: tuple[Agreement, ...]
    estimates: tuple[JudgeEstimate, ...]
    side: JudgedRun


async def _judge_run(
    folder: Path, judges: Sequence[Model], how: Judging, everyone: People
) -> _Judged:
    facts = read_facts(folder)
    ref, task = open_task_of_run(facts, None)
    outcomes = read_outcomes(folder, task)
    need_text(outcomes, folder)
    people = everyone.of_run(folder.resolve().name)
    judging = make_judging(facts.task, outcomes, image=how.image, rubric=how.rubric)
    said: dict[str, list[Outcome]] = {}
    setups: list[JudgeSetup] = []
    for model in judges:
        said[model.name], place = await ask_judge(folder, facts, model, judging, how)
        setups.append(how.setup(model, find_served(place)))
    if not any(o.status == "answered" for verdicts in said.values() for o in verdicts):
        raise InputError(
            f"no judge gave a valid rating for {folder}",
            hint="inspect the replies in the run's folder judges/",
        )
    qualities = how.rubric.qualities
    ratings = {quality: people.by_item(quality) for quality in qualities}
    scores, agreement = make_scores(outcomes, said, ratings, how.rubric)
    marks = {name: read_marks(verdicts, qualities) for name, verdicts in said.items()}
    if len(said) > 1:
        together = " and ".join(said) if len(said) == 2 else f"{len(said)} judges"
        marks[f"the mean of {together}"] = {
            quality: mean_marks([one[quality] for one in marks.values()]) for quality in qualities
        }
    estimates = tuple(
        one
        for dimension in how.rubric.dimensions
        for one in estimate_run(
            facts.model,
            outcomes,
            {name: by_quality[dimension.id] for name, by_quality in marks.items()},
            people,
            dimension,
        )
    )
    write_judged(folder, (*scores, *_correct(estimates)), setups)
    await score_run(folder, task, open_baselines(ref.card))
    side = JudgedRun(facts.model, outcomes, marks, people)
    return _Judged(folder, tuple(said), agreement, estimates, side)


def _correct(estimates: Sequence[JudgeEstimate]) -> list[Score]:
    """Return the corrected score of each quality: that of the judge, or of their mean rating."""
    return [one.score() for one in {one.quality: one for one in estimates}.values()]


def _conclude(judged: Sequence[_Judged], rubric: Rubric) -> list[Judgement]:
    """Compare each run with the first, and find answers that the rubric leaves open."""
    done = []
    for place, one in enumerate(judged):
        differences: list[JudgeEstimate] = []
        if place:
            judge = [*one.side.marks][-1]
            found = (
                estimate_difference(judged[0].side, one.side, judge, dimension)
                for dimension in rubric.dimensions
            )
            differences = [difference for difference in found if difference is not None]
        done.append(
            Judgement(
                load_run(one.folder),
                one.judges,
                one.agreement,
                one.estimates,
                tuple(differences),
                find_open_items(one.side.people, rubric),
            )
        )
    return done
