"""What MemeIntent's paper says of models, redone from runs and people's ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import fmean

import orjson

from memantics.benchmarks.memeintent.asking import read_scoring
from memantics.benchmarks.memeintent.load import IntentRelease
from memantics.benchmarks.memeintent.scoring import mark
from memantics.core.paper import (
    Cell,
    PaperMaterial,
    PaperPart,
    PaperRow,
    ScoredRun,
    find_score,
    score_cell,
)
from memantics.core.published import PublishedRow
from memantics.core.records import Outcome
from memantics.core.review import Review
from memantics.core.rundir import last_answers, read_bare_items
from memantics.core.services import Services
from memantics.metrics.comparison import contrast_pairs, correct_known
from memantics.metrics.correlation import spearman
from memantics.tasks.factories import mean_score

Material = PaperMaterial[IntentRelease]
_METRICS = {
    "bleu_4": "BLEU",
    "rouge_l": "ROU.",
    "bertscore_f1": "BERT",
    "nli_consistency": "Self.",
}
_SYSTEMS = {"text": "Llama 3 8B on LLaVA captions", "vlm": "LLaVA 1.6 Mistral 7B"}
_MODELS = {
    "Llama 3 8B on LLaVA captions": "meta-llama/Meta-Llama-3-8B-Instruct",
    "LLaVA 1.6 Mistral 7B": "llava-hf/llava-v1.6-mistral-7b-hf",
}
_KINDS = {"none": "No", "auto": "Auto", "human": "Human", "retrieved": "Retrieved"}
_LOST = "This row cannot be read in our copy of the paper."
_NEURAL = {"bertscore_f1": "bertscore", "nli_consistency": "nli"}
# The settings of Figure 6.
_RATED = {
    "completeness": "Textual Completeness",
    "relevance": "Relevance",
    "correctness": "Correctness",
}


def table_3(material: Material) -> PaperPart:
    """Intents: two systems × two set-ups × three kinds of background, then other models."""
    taken = set[Path]()
    rows = []
    for role, system in _SYSTEMS.items():
        for shots in ("zero", "few"):
            for background in ("none", "auto", "human"):
                options = {"role": role, "shots": shots, "background": background}
                printed = _find_row(material, "intent", options)
                fill = _ask(material, "intent", system, options)
                run = _find_run(material, "intent", system, options)
                taken |= {run.folder} if run else set()
                cells = _cells(material, printed, run, fill)
                section = f"{system}, {shots}-shot"
                rows.append(PaperRow(_KINDS[background], cells, section=section))
    rows += _others(material, "intent", taken, ("role", "shots", "background"))
    return PaperPart(
        "Table 3",
        "Automatic evaluation of intent description generation.",
        tuple(_METRICS.values()),
        tuple(rows),
        "BK",
        notes=(
            "A constant sentence gets more ROUGE-L than most systems: read BERT and Self. first.",
        ),
    )


def table_4(material: Material) -> PaperPart:
    """Background knowledge that models wrote."""
    taken = set[Path]()
    rows = []
    for role, system in _SYSTEMS.items():
        for shots in ("zero", "few"):
            options = {"role": role, "shots": shots}
            printed = _find_row(material, "background", options)
            run = _find_run(material, "background", system, options)
            taken |= {run.folder} if run else set()
            fill = _ask(material, "background", system, options)
            cells = _cells(material, printed, run, fill)
            rows.append(PaperRow(f"{shots}-shot", cells, section=system))
    rows += _others(material, "background", taken, ("role", "shots"))
    caption = "Automatic evaluation of background knowledge generation in the AutoBK setting."
    return PaperPart("Table 4", caption, tuple(_METRICS.values()), tuple(rows), "Setup")


def _find_row(material: Material, task: str, options: Mapping[str, str]) -> PublishedRow | None:
    """The legible row of a setting; one that lost its kind of background stands for none."""
    return next(
        (row for row in material.published if row.task == task and row.options == options), None
    )


def _find_run(
    material: Material, task: str, system: str, options: Mapping[str, str]
) -> ScoredRun | None:
    wanted = PublishedRow(
        task=task, system=system, options=dict(options), figures={"rouge_l": 0.0}, digits=3,
        source="", feasible=None,
    )  # fmt: skip
    return material.find_run(wanted, _MODELS[system])


def _ask(material: Material, task: str, system: str, options: Mapping[str, str]) -> str:
    chosen = " ".join(f"--set {name}={value}" for name, value in options.items())
    return (
        f"memantics run {material.name}/{task} {chosen} --set captions=model"
        f" --model openai/{_MODELS[system]} --base-url URL"
    )


def _cells(
    material: Material, printed: PublishedRow | None, run: ScoredRun | None, fill: str
) -> tuple[Cell, ...]:
    cells = []
    for name in _METRICS:
        score = find_score(run.figures.scores, name) if run else None
        more = f" --set {_NEURAL[name]}=FOLDER" if run and name in _NEURAL else ""
        paper = printed.figures.get(name) if printed else None
        cells.append(
            replace(
                score_cell(score, 3, 1.0),
                paper=paper,
                compared=material.compares(run),
                fill=f"{fill}{more}",
                note="" if printed else _LOST,
            )
        )
    return tuple(cells)


def _others(
    material: Material, task: str, taken: set[Path], names: Sequence[str]
) -> list[PaperRow]:
    """The user's other models by setting, and the constant sentence beside them."""
    rows = []
    known: dict[str, Mapping[str, str]] = {}
    for run in material.of_task(task):
        if run.folder in taken:
            continue
        told = " · ".join(
            _KINDS.get(run.facts.options[name], run.facts.options[name])
            for name in names
            if name in run.facts.options
        )
        cells = []
        for name in _METRICS:
            score = find_score(run.figures.scores, name)
            fill = f"memantics score {run.folder}" if name not in _NEURAL else (
                f"memantics run {run.task} --model {run.model} --set {_NEURAL[name]}=FOLDER"
            )  # fmt: skip
            cells.append(replace(score_cell(score, 3, 1.0), fill=fill))
        rows.append(PaperRow(told, tuple(cells), "own", run.model))
        for baseline in run.figures.baselines:
            known.setdefault(baseline.model, {})
            cells = [score_cell(find_score(baseline.scores, name), 3, 1.0) for name in _METRICS]
            label = PaperRow(baseline.model, tuple(cells), "baseline", "Baselines")
            if not known[baseline.model]:
                known[baseline.model] = {"shown": "yes"}
                rows.append(label)
    return sorted(rows, key=lambda row: row.kind == "baseline")


def contrasts(material: Material) -> PaperPart:
    """RQ1 and RQ2: what background, set-up and model do to ROUGE-L, setting by setting."""
    runs = material.of_task("intent")
    marks = {run.folder: _mark(run) for run in runs}
    found = []
    for factor in ("background", "shots", "role", "model"):
        grid: dict[str, dict[str, ScoredRun]] = {}
        for run in runs:
            chosen = {**run.facts.options, "model": run.model}
            level = chosen.pop(factor, "")
            if factor == "model":
                chosen.pop("role", None)
            names = ("model", "role", "shots", "background")
            key = ", ".join(chosen[name] for name in names if name in chosen)
            grid.setdefault(key, {}).setdefault(level, run)
        for setting, group in grid.items():
            for first, second in combinations(group, 2):
                made = contrast_pairs(marks[group[first].folder], marks[group[second].folder])
                if made is not None and made.p is not None:
                    found.append((factor, f"{first} → {second} ({setting})", made))
    adjusted = correct_known([made.p for *_, made in found])
    rows = [
        PaperRow(
            label,
            (
                Cell(
                    value=contrast.difference,
                    low=contrast.low,
                    high=contrast.high,
                    n=contrast.memes,
                    digits=3,
                ),
                *(
                    Cell(value=_show_p(p), digits=3)
                    for p in (p, contrast.t_paired, contrast.t_unpaired)
                ),
            ),
            "own",
            factor,
        )
        for (factor, label, contrast), p in zip(found, adjusted, strict=True)
    ]
    grid_of = "--set background=none,auto,human --set shots=zero,few"
    if not rows:
        fill = f"memantics run {material.name}/intent {grid_of} --model MODEL"
        rows = [PaperRow("all", tuple(Cell(fill=fill) for _ in range(4)))]
    return PaperPart(
        "RQ1 and RQ2",
        "Contrasts of ROUGE-L between settings that differ in one factor.",
        ("difference", "p (Holm)", "t paired", "t unpaired"),
        tuple(rows),
        "contrast",
        notes=(
            "The paper tests by a two-sided t-test, α = .05; whether paired is not said.",
            "All metrics and figures: memantics compare RUN… --by FACTOR.",
        ),
    )


def _show_p(p: float | None) -> float | str | None:
    return "<0.001" if p is not None and p < 0.001 else p


def _mark(run: ScoredRun) -> Mapping[str, float]:
    """Each meme's ROUGE-L."""
    answers = last_answers(run.folder)
    outcomes = [
        Outcome(item, answers[item.id].status, answers[item.id].value)
        for item in read_bare_items(run.folder)
        if item.id in answers
    ]
    scoring = replace(read_scoring(run.facts.options, Services()), bert=None, nli=None)
    values = mark("intent", outcomes, scoring)["rouge_l"]
    return {
        outcome.item.group: value
        for outcome, value in zip(outcomes, values, strict=True)
        if value is not None
    }


def across_settings(material: Material) -> PaperPart:
    """Whether settings with better background knowledge also have better intents."""
    rows = []
    pairs = []
    for run in material.of_task("intent"):
        if run.facts.options.get("background") != "auto":
            continue
        other = next(
            (
                scored_run
                for scored_run in material.of_task("background")
                if scored_run.model == run.model
                and all(
                    scored_run.facts.options.get(name) == run.facts.options.get(name)
                    for name in ("role", "shots")
                )
            ),
            None,
        )
        scores = [
            None if scored_run is None else find_score(scored_run.figures.scores, "rouge_l")
            for scored_run in (other, run)
        ]
        label = (
            f"{run.model}, {run.facts.options.get('role')}, {run.facts.options.get('shots')}-shot"
        )
        fill = f"memantics run {material.name}/background --model {run.model}"
        cells = [replace(score_cell(score, 3, 1.0), fill=fill) for score in scores]
        rows.append(PaperRow(label, tuple(cells), "own"))
        if all(score is not None and score.value is not None for score in scores):
            pairs.append([score.value for score in scores if score and score.value is not None])
    fill = f"memantics run {material.name}/intent --set background=auto --set shots=zero,few"
    if not rows:
        rows = [PaperRow("AutoBK", tuple(Cell(fill=fill) for _ in range(2)))]
    value = spearman([figures[0] for figures in pairs], [figures[1] for figures in pairs])
    said = "–" if value is None else f"{value:+.2f}"
    return PaperPart(
        "Section 5.1",
        "Background knowledge and intents across AutoBK settings: ROUGE-L of both.",
        ("background", "intent"),
        tuple(rows),
        "setting",
        notes=(f"Spearman's correlation over {len(pairs)} settings: {said} (from 3 settings on).",),
    )


def figure_6(material: Material) -> PaperPart:
    """What people gave to the replies of each setting."""
    rows = []
    for review in material.reviews:
        if review.card.workflow == "rate-outputs":
            rows += _rate(review)
    fill = f"memantics humans export RUN… --out humans && memantics paper {material.name}"
    fill = f"{fill} --verdicts humans/queue"
    if not rows:
        rows = [PaperRow("all", tuple(Cell(fill=fill) for _ in _RATED))]
    return PaperPart(
        "Figure 6",
        "Human evaluation results on intent description generation: means on scales from 1 to 5.",
        tuple(_RATED.values()),
        tuple(rows),
        "setting",
        plotted=True,
        notes=(
            "The paper draws this figure and prints no values.",
            "Tests, agreement and metrics against people: memantics humans score humans RUN….",
        ),
    )


def _rate(review: Review) -> list[PaperRow]:
    key = review.folder.parent / "key.jsonl"
    if not key.is_file():
        return []
    lines = [orjson.loads(line) for line in key.read_bytes().splitlines() if line.strip()]
    options = ("role", "shots", "background")
    named = {
        line["id"]: " · ".join(
            [line["model"], *(line["options"][o] for o in options if o in line["options"])]
        )
        for line in lines
    }
    by_setting: dict[str, dict[str, list[tuple[float, str]]]] = {}
    for reviewed in review.judged:
        for scale in _RATED:
            votes = [] if reviewed.verdict is None else reviewed.verdict.votes
            given = [v.values.get(scale) for v in votes]
            marks = [float(m) for m in given if isinstance(m, int | float)]
            if marks and reviewed.item.id in named:
                place = by_setting.setdefault(named[reviewed.item.id], {}).setdefault(scale, [])
                place.append((fmean(marks), reviewed.item.group))
    rows = []
    for name, scales in by_setting.items():
        cells = []
        for scale in _RATED:
            pairs = scales.get(scale, [])
            score = mean_score(scale, [v for v, _ in pairs], [m for _, m in pairs])
            cells.append(score_cell(score, 2, 1.0))
        rows.append(PaperRow(name, tuple(cells), "own"))
    return rows
