"""The parts of MER-Bench's paper about people and judges: its human study, and several judges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from memantics.benchmarks.mer_bench.humans import (
    DIMENSIONS,
    LIKERT,
    WORKFLOW,
    JudgeStudy,
    agree_among_judges,
    agree_among_people,
    compare_with_people,
    make_study,
    read_people,
    win_rates,
)
from memantics.benchmarks.mer_bench.load import ReappraisalRelease
from memantics.core.paper import (
    Cell,
    PaperMaterial,
    PaperPart,
    PaperRow,
    ScoredRun,
    name_runs,
    score_cell,
)
from memantics.core.records import Score

Material = PaperMaterial[ReappraisalRelease]


def _judges(material: Material) -> dict[str, Path]:
    """One run of each judge and configuration: the one that judged most."""
    best: dict[tuple[str, ...], ScoredRun] = {}
    for run in material.of_task("judge"):
        options = run.facts.options
        key = (
            run.model,
            *(options.get(text, "") for text in ("rationale", "placement", "references")),
        )
        if key not in best or _judged(run) > _judged(best[key]):
            best[key] = run
    runs = list(best.values())
    return dict(zip(name_judges(runs), (run.folder for run in runs), strict=True))


def _judged(run: ScoredRun) -> int:
    return sum(run.figures.counts.values())


def _studies(material: Material) -> Iterator[JudgeStudy]:
    named = _judges(material)
    for review in material.reviews:
        if review.card.workflow == WORKFLOW:
            verdicts = [
                reviewed.verdict for reviewed in review.judged if reviewed.verdict is not None
            ]
            yield make_study(named, read_people(review.folder, verdicts))


def name_judges(runs: Sequence[ScoredRun]) -> list[str]:
    """Judges by configuration (RF-VF, …) where one model judged, else by what tells them apart."""
    config = [f"{r.facts.options['rationale']}-{r.facts.options['placement']}" for r in runs]
    if len({run.model for run in runs}) == 1 and len(set(config)) == len(config):
        return config
    return name_runs(runs)


_PEOPLE = (
    "memantics humans export RUN… --memes 100 --out humans; memantics annotate humans/queue; "
    "memantics paper mer_bench RUN… --verdicts humans/queue"
)


def figure_4(material: Material) -> PaperPart:
    """What people said of the outputs, and how near each judge is to them."""
    studies = list(_studies(material))
    judges = list(_judges(material))
    columns = (
        "people, 1 to 6",
        "raters' alpha",
        *(f"{name}: apart from people" for name in judges),
    )
    rows = [
        PaperRow(name.upper(), tuple(_people_cells(studies, name, judges))) for name in DIMENSIONS
    ]
    return PaperPart(
        "Figure 4",
        "Human study: ratings by dimension, and how far each judge configuration is from people.",
        columns,
        tuple(rows),
        "Dimension",
        notes=(
            "People rate from 1 to 6, judges from 1 to 5; distances are on the scale 0 to 1.",
            "LC and PPE are yes or no: the share of yes stands for the mean.",
        ),
    )


def _people_cells(studies: list[JudgeStudy], name: str, judges: list[str]) -> Iterator[Cell]:
    if not studies:
        yield from (Cell(fill=_PEOPLE) for _ in range(2 + len(judges)))
        return
    study = studies[0]
    said = [value for by in study.people.values() for value in by.get(name, ())]
    mean = fmean(said) if said else None
    if mean is not None and name in LIKERT:
        mean = 1 + 5 * mean
    yield Cell(value=mean, n=len(said), digits=2, fill=_PEOPLE)
    alpha = next(score for score in agree_among_people(study) if score.label == name)
    yield _plain(alpha)
    apart = [
        score
        for score in compare_with_people(study)
        if score.key == "apart" and score.label == name
    ]
    yield from (replace(score_cell(score, 3, 1.0), fill=_PEOPLE) for score in apart)


def _plain(score: Score) -> Cell:
    """A figure as it is; without one there was nothing to vary."""
    cell = score_cell(score, 2, 1.0)
    return cell if cell.value is not None else Cell(reason="All ratings are the same.")


def figure_4_wins(material: Material) -> PaperPart:
    """Win rates of judge configurations."""
    studies = list(_studies(material))
    if not studies or len(studies[0].judges) < 2:
        fill = "memantics run mer_bench --model JUDGE --set rationale=RF,RL --set placement=VF,VL; "
        fill += _PEOPLE
        names = ("RF-VF", "RF-VL", "RL-VF", "RL-VL")
        rows = [PaperRow(name, (Cell(fill=fill),)) for name in names]
    else:
        rows = [
            PaperRow(score.label, (score_cell(score, 1),), "own") for score in win_rates(studies[0])
        ]
    return PaperPart(
        "Figure 4, win rates",
        "How often each configuration is nearer to people than another; a tie is half a win.",
        ("win rate, %",),
        tuple(rows),
        "Configuration",
        plotted=True,
        notes=("The paper says that RF-VF wins most, and prints no figures in its text.",),
    )


def judges(material: Material) -> PaperPart:
    """Several judges, or one asked several times: how far they agree on the same outputs."""
    # Repeats of one judge are judges here; outputs are the same where the view is.
    views: dict[str, list[ScoredRun]] = {}
    for run in material.of_task("judge"):
        views.setdefault(run.facts.options["view"], []).append(run)
    runs = max(views.values(), key=len, default=[])
    named = dict(zip(name_judges(runs), (run.folder for run in runs), strict=True))
    found = list(agree_among_judges(make_study(named, {}))) if len(named) > 1 else []
    fill = "memantics run mer_bench --model JUDGE --model OTHER_JUDGE; or --repeat 3"
    rows = []
    for name in DIMENSIONS:
        scores = {score.key: score for score in found if score.label == name}
        cells = (
            (_plain(scores["alpha"]), score_cell(scores["sd"], 3, 1.0))
            if scores
            else (Cell(fill=fill), Cell(fill=fill))
        )
        rows.append(PaperRow(name.upper(), cells))
    return PaperPart(
        "Judges",
        "Not in the paper: agreement of several judges, and the deviation of one output's ratings.",
        ("alpha", "sd of one output"),
        tuple(rows),
        "Dimension",
    )
