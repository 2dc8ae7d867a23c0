"""Have models judge free-text answers, and measure their agreement with human ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import JsonValue

from memantics.core.errors import DataError, InputError
from memantics.core.model import Model
from memantics.core.parameters import Flag
from memantics.core.records import Outcome
from memantics.core.result import Result, Table
from memantics.core.rundir import RunFacts, RunWriter, read_facts, write_facts
from memantics.core.tables import read_rows
from memantics.core.task import Task
from memantics.core.waiting import make_sync
from memantics.evaluation.ask import ask
from memantics.evaluation.facts import fingerprint, folder_name, now
from memantics.evaluation.options import ModelsFlag, RunFolders, RunLike, find_folder
from memantics.evaluation.reports.runs import Run, load_run
from memantics.evaluation.rubric import (
    QUALITIES,
    Agreement,
    Ratings,
    make_judging,
    make_scores,
    need_text,
    write_judged,
)
from memantics.evaluation.scoring import read_outcomes, score_run
from memantics.evaluation.tasks import open_baselines, open_task_of_run
from memantics.models.client import CallSettings, open_cache
from memantics.models.engine import AskSettings
from memantics.models.kinds import open_model


@dataclass(frozen=True, slots=True)
class Judgement(Result):
    """A run rated by judge models, and their agreement with each other and with human ratings."""

    run: Run
    judges: tuple[str, ...]
    agreement: tuple[Agreement, ...]

    def table(self) -> Table:
        """Agreement of the judges: one row per rated quality."""
        columns = (
            "quality",
            ">mean (1–5)",
            ">alpha, judges",
            ">alpha, human",
            ">rated",
            ">calibrated",
        )
        rows = []
        for agreement in self.agreement:
            mean = self.run.scores[f"judge_{agreement.quality}"].value
            metrics = (mean, agreement.alpha_judges, agreement.alpha_people)
            shown = ["–" if value is None else f"{value:.2f}" for value in metrics]
            last = "–" if agreement.calibrated is None else f"{agreement.calibrated:.2f}"
            rows.append((agreement.quality, *shown, str(agreement.rated), last))
        return Table(columns, tuple(rows), f"{self.run.model}, judged by {', '.join(self.judges)}")


async def judge_async(
    runs: RunLike | RunFolders,
    *,
    model: ModelsFlag,
    ratings: Annotated[
        str | Path | None,
        Flag("Human ratings: a table with the columns item, correctness and coverage."),
    ] = None,
    image: Annotated[bool, Flag("Show the image to the judge.")] = True,
    calls: CallSettings | None = None,
) -> list[Judgement]:
    """Have models rate the free-text answers of runs: correctness and coverage, 1 to 5.

    The ratings are stored with the run and appear in its scores.

    Args:
        runs: One run, or several: folders or :class:`Run` records.
        model: The judge, ``KIND/NAME``, or several judges.
        ratings: Human ratings: a table with the columns ``item``, ``correctness`` and ``coverage``.
            With them, the result includes the judges' agreement with people and a calibrated mean.
        image: Whether the judge sees the image.
        calls: Settings of the calls to judge models; see :class:`CallSettings`.

    Returns:
        One :class:`Judgement` per run, with the agreement of the judges.

    Raises:
        InputError: No judge is named, the run has no free-text answers, or no judge answered.
        DataError: A row of ``ratings`` is not a valid rating.

    Example:
        >>> (done,) = mm.judge("runs/memeintent", model="openai/NAME")  # doctest: +SKIP
        >>> done.run.scores["judge_correctness"].value  # doctest: +SKIP
    """
    models = [model] if isinstance(model, str) else list(model)
    folders = [find_folder(one) for one in ([runs] if isinstance(runs, RunLike) else runs)]
    if not models:
        raise InputError("no judge model was given", hint="add --model MODEL")
    people, calls = {} if ratings is None else read_ratings(Path(ratings)), calls or CallSettings()
    judges = [open_model(name, calls.model_settings) for name in dict.fromkeys(models)]
    try:
        return [await _judge_run(path, judges, calls, people, image) for path in folders]
    finally:
        for opened in judges:
            await opened.close()


judge = make_sync(judge_async)


async def _judge_run(
    folder: Path, judges: Sequence[Model], calls: CallSettings, people: Ratings, image: bool
) -> Judgement:
    facts = read_facts(folder)
    ref, task = open_task_of_run(facts, None)
    outcomes = read_outcomes(folder, task)
    need_text(outcomes, folder)
    judging = make_judging(facts.task, outcomes, image=image)
    said: dict[str, list[Outcome]] = {}
    for model in judges:
        said[model.name] = await _ask(folder, facts, model, judging, calls, image)
    if not any(o.status == "answered" for verdicts in said.values() for o in verdicts):
        raise InputError(
            f"no judge gave a valid rating for {folder}",
            hint="inspect the replies in the run's folder judges/",
        )
    scores, agreement = make_scores(outcomes, said, people)
    write_judged(folder, scores)
    await score_run(folder, task, open_baselines(ref.card))
    return Judgement(load_run(folder), tuple(said), agreement)


async def _ask(
    folder: Path, facts: RunFacts, judge: Model, task: Task, calls: CallSettings, image: bool
) -> list[Outcome]:
    """Collect the ratings of one judge model, stored as a run inside the judged run."""
    shape: dict[str, JsonValue] = {
        "judged": facts.fingerprint,
        "identity": dict(judge.identity),
        "prompts": dict(task.prompts),
        "image": image,
    }
    run_facts = replace(
        facts,
        title=f"judging {facts.title}",
        main=task.main,
        model=judge.name,
        model_note=judge.note,
        identity=judge.identity,
        prompts=task.prompts,
        invalid=str(task.invalid),
        fingerprint=fingerprint(shape),
        started=now(),
        finished="",
        imported={},
    )
    place = folder / "judges" / folder_name(run_facts)
    with open_cache(calls.use_cache) as cache, RunWriter(place, run_facts) as writer:
        await ask(task, judge, writer, cache, AskSettings(concurrency=calls.concurrency))
    write_facts(place, replace(run_facts, finished=now()))
    return read_outcomes(place, task)


def read_ratings(path: Path) -> Ratings:
    """Read human ratings by quality and item; several rows per item are several raters."""
    found: dict[str, dict[str, list[float]]] = {key: {} for key in QUALITIES}
    for number, row in read_rows(path):
        if not {"item", *QUALITIES} <= set(row):
            raise DataError(
                path.name, "needs the columns item, correctness and coverage", row=number
            )
        for key in QUALITIES:
            cell = row[key].strip()
            if cell not in ("", "1", "2", "3", "4", "5"):
                raise DataError(
                    path.name, f"{key} {cell[:20]!r} is not a rating from 1 to 5", row=number
                )
            if cell:
                found[key].setdefault(row["item"], []).append(float(cell))
    return found
