"""Tables and figures of MemeIntent's paper that are computed from data, runs and reviews."""

from __future__ import annotations

import statistics as stats
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import fmean

import orjson

from memantics.benchmarks.factories import mean_within
from memantics.benchmarks.memeintent.asking import FOLDER, read_scoring
from memantics.benchmarks.memeintent.load import IntentRelease
from memantics.benchmarks.memeintent.scoring import mark
from memantics.benchmarks.paper import (
    Cell,
    PaperMaterial,
    PaperPart,
    PaperRow,
    PaperText,
    ScoredRun,
    find_score,
    list_folders,
    note_unshown,
    score_cell,
)
from memantics.benchmarks.paper_file import (
    DeclaredPart,
    fill_systems,
    read_paper,
    show_declared,
    show_scores,
)
from memantics.core.files import read_regular
from memantics.core.queue import IndividualAnnotation, Review
from memantics.core.records import Outcome, Score
from memantics.core.rundir import last_answers, read_bare_items
from memantics.core.task import Services
from memantics.metrics.agreement import spearman
from memantics.metrics.comparison import correct_known, welch_t_test
from memantics.metrics.paired import contrast_pairs

IntentMaterial = PaperMaterial[IntentRelease]
_SETTING = ("role", "shots", "background")
_LEAST = 4
_SCALES = ("completeness", "relevance", "correctness")


def figure_1(material: IntentMaterial, part: DeclaredPart) -> PaperPart:
    """Return example memes with their intents."""
    return part.show(
        texts=(
            PaperText(
                f"meme {meme.id}",
                "\n".join(
                    [f"text: {meme.text}", *meme.intents, *(f"* {f}" for f in meme.background)]
                ),
            )
            for meme in material.release.rows[:2]
        )
    )


def table_1(material: IntentMaterial, part: DeclaredPart) -> PaperPart:
    """Return Table 1: data sets about memes, by size; MemeIntent is the last."""
    name = "MemeIntent" if material.compared else material.name
    rows = show_declared(material, part).rows
    told = [
        Cell(setting, reason=part.reason) for setting in ("Intent Description Generation", "Mixed")
    ]
    if not material.compared:
        told = [Cell(), Cell()]
    cells = (*told, material.statistic("memes"))
    return part.show([*rows, PaperRow(name, cells, section="Interpretation")])


def section_3(material: IntentMaterial, part: DeclaredPart) -> PaperPart:
    """Return the statistics of the paper's Section 3.3; ratings come from the review."""
    rows = list(show_declared(material, part.model_copy(update={"rows": ()})).rows)
    for row in part.rows:
        name, spread = row.key.removesuffix("_sd"), row.key.endswith("_sd")
        values = list(_read_ratings(material, name))
        made = round(stats.pstdev(values) if spread else fmean(values), 3) if values else None
        cell = Cell(row.printed[0], made, n=len(values), digits=2, compared=False)
        rows.append(PaperRow(row.label, (replace(cell, fill=part.command()),)))
    return part.show(rows)


def _read_ratings(material: IntentMaterial, name: str) -> Iterator[float]:
    """Return the mean rating of each kept intent over reviewers."""
    for review in material.reviews:
        if review.card.workflow != "collect-and-edit":
            continue
        for reviewed in review.annotated:
            votes = [] if reviewed.aggregated is None else reviewed.aggregated.annotations
            right = _list_columns(votes, "correctness")
            # An intent with a rating below 4 is dropped; if none of a meme is left, its best
            # intents are kept.
            kept = [bool(marks) and min(marks) >= _LEAST for marks in right]
            best = max((fmean(marks) for marks in right if marks), default=0.0)
            if not any(kept):
                kept = [bool(marks) and fmean(marks) == best for marks in right]
            for marks, stays in zip(_list_columns(votes, name), kept, strict=False):
                if marks and stays:
                    yield fmean(marks)


def _list_columns(votes: Sequence[IndividualAnnotation], name: str) -> list[list[float]]:
    """Return the ratings of each intent of a meme."""
    given = [v.values[name] for v in votes if v.stage == "review" and name in v.values]
    rows = [value for value in given if isinstance(value, list)]
    return [
        [float(mark) for mark in column if isinstance(mark, int | float)]
        for column in zip(*rows, strict=False)
    ]


def prompts(_: IntentMaterial, part: DeclaredPart) -> PaperPart:
    """Return the prompts of a task, and its demonstrations."""
    texts = []
    shown = tomllib.loads((Path(FOLDER) / "demonstrations.toml").read_text(encoding="utf-8"))
    for number, value in enumerate(shown["demonstration"], 1):
        facts = "\n".join(f"* {fact}" for fact in value["background"])
        body = f"{value['text']}\n{value['image_caption']}\n{facts}\n→ {value['intent']}"
        texts.append(PaperText(f"demonstration {number}", body))
    return part.show(texts=texts)


def table_of_systems(material: IntentMaterial, part: DeclaredPart) -> PaperPart:
    """Return two systems in all settings, then other models by setting, and the constant text."""
    rows, taken = fill_systems(material, part)
    task = part.metrics[0].task
    our_rows, baselines = list[PaperRow](), dict[str, PaperRow]()
    for run in material.of_task(task):
        if run.folder in taken:
            continue
        options = run.facts.options
        names = _SETTING if task == "intent" else _SETTING[:2]
        told = [part.names.get(options[n], options[n]) for n in names if n in options]
        found = show_scores(part, {task: run.results.scores}, run)
        ask = f"memantics run {run.task} --model {run.model}"
        cells = (
            replace(c, fill=f"{ask} {m.extra}" if m.extra else f"memantics score {run.folder}")
            for c, m in zip(found, part.metrics, strict=True)
        )
        our_rows.append(PaperRow(" · ".join(told), tuple(cells), "own", run.model))
        for base in run.results.baselines:
            scores = show_scores(part, {task: base.scores})
            baselines.setdefault(base.model, PaperRow(base.model, scores, "baseline", "Baselines"))
    return part.show([*rows, *our_rows, *baselines.values()])


def contrasts(material: IntentMaterial, part: DeclaredPart) -> PaperPart:
    """Return questions RQ1 and RQ2: effects of background, set-up and model on ROUGE-L."""
    runs = material.of_task("intent")
    marks = {run.folder: _mark(run) for run in runs}
    found, used = [], set[Path]()
    for factor in ("background", "shots", "role", "model"):
        grid: dict[str, dict[str, ScoredRun]] = {}
        for run in runs:
            chosen = {**run.facts.options, "model": run.model}
            level = chosen.pop(factor, "")
            if factor == "model":
                chosen.pop("role", None)
            key = ", ".join(chosen[name] for name in ("model", *_SETTING) if name in chosen)
            grid.setdefault(key, {}).setdefault(level, run)
        for setting, runs_by_level in grid.items():
            for first, second in combinations(sorted(runs_by_level, key=_place), 2):
                sides = [marks[runs_by_level[level].folder] for level in (first, second)]
                made = contrast_pairs(*sides)
                if made is not None and made.p is not None:
                    label = f"{first} → {second} ({setting})"
                    apart = welch_t_test(*(list(side.values()) for side in sides))
                    found.append((factor, label, made, apart.p if apart else None))
                    used |= {runs_by_level[level].folder for level in (first, second)}
    adjusted = correct_known([made.p for *_, made, _ in found])
    rows = []
    for (factor, label, made, welch), p in zip(found, adjusted, strict=True):
        size = Cell(value=made.difference, low=made.low, high=made.high, n=made.memes, digits=3)
        chances = (
            Cell(value="<0.001" if value is not None and value < 0.001 else value, digits=3)
            for value in (p, made.t_paired, welch)
        )
        rows.append(PaperRow(label, (size, *chances), "own", factor))
    if not rows:
        return part.show(part.empty("all"))
    others = (run for run in runs if run.folder not in used)
    notes = note_unshown(others, "no run differs in one factor only, or another run is the same")
    shown = (run for run in runs if run.folder in used)
    return replace(part.show(rows, notes=notes), runs=list_folders(shown))


# Levels of a factor in increasing order: a contrast is the higher level minus the lower one.
_ORDER = ("none", "auto", "retrieved", "human", "zero", "few", "text", "vlm")


def _place(level: str) -> tuple[int, str]:
    return (_ORDER.index(level) if level in _ORDER else len(_ORDER), level)


def _mark(run: ScoredRun) -> Mapping[str, float]:
    """Return the ROUGE-L of the reply for each meme."""
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


def across_settings(material: IntentMaterial, part: DeclaredPart) -> PaperPart:
    """Return whether settings with better background knowledge also give better intents."""
    rows, pairs = [], []
    for run in material.of_task("intent"):
        asked = run.facts.options
        if asked.get("background") != "auto":
            continue
        wrote = [
            other
            for other in material.of_task("background")
            if other.model == run.model
            and all(other.facts.options.get(name) == asked.get(name) for name in _SETTING[:2])
        ]
        scores = [
            find_score(found.results.scores, "rouge_l") if found else None
            for found in (next(iter(wrote), None), run)
        ]
        fill = f"memantics run {material.name}/background --model {run.model}"
        folders = [list_folders(wrote[:1]), list_folders([run])]
        cells = [
            replace(score_cell(score, part.digits, part.scale), fill=fill, runs=folder)
            for score, folder in zip(scores, folders, strict=True)
        ]
        label = f"{run.model}, {asked.get('role')}, {asked.get('shots')}-shot"
        rows.append(PaperRow(label, tuple(cells), "own"))
        values = [score.value for score in scores if score and score.value is not None]
        pairs += [values] if len(values) == 2 else []
    value = spearman([first for first, _ in pairs], [second for _, second in pairs])
    said = "–" if value is None else f"{value:+.2f}"
    note = f"Spearman's correlation over {len(pairs)} settings: {said} (needs at least 3 settings)."
    return part.show(rows or part.empty("AutoBK"), notes=[note])


def figure_6(material: IntentMaterial, part: DeclaredPart) -> PaperPart:
    """Return Figure 6: human ratings of the replies of each setting."""
    rows = [
        row
        for review in material.reviews
        if review.card.workflow == "rate-outputs"
        for row in _rate(review)
    ]
    return part.show(rows or part.empty("all"))


def _rate(review: Review) -> Iterator[PaperRow]:
    key = review.folder.parent / "key.jsonl"
    if not key.is_file():
        return
    lines = [orjson.loads(line) for line in read_regular(key).splitlines() if line.strip()]
    named = {
        line["id"]: " · ".join(
            [line["model"], *(line["options"][o] for o in _SETTING if o in line["options"])]
        )
        for line in lines
    }
    by_setting: dict[str, dict[str, list[tuple[float, str]]]] = {}
    for reviewed in review.annotated:
        for scale in _SCALES:
            votes = [] if reviewed.aggregated is None else reviewed.aggregated.annotations
            given = [v.values.get(scale) for v in votes]
            marks = [float(m) for m in given if isinstance(m, int | float)]
            if marks and reviewed.item.id in named:
                place = by_setting.setdefault(named[reviewed.item.id], {}).setdefault(scale, [])
                place.append((fmean(marks), reviewed.item.group))
    for name, scales in by_setting.items():
        cells = []
        for scale in _SCALES:
            pairs = scales.get(scale, [])
            values, memes = [v for v, _ in pairs], [m for _, m in pairs]
            score = mean_within(Score(scale, None, 0), values, memes, (1.0, 5.0))
            cells.append(score_cell(score, 2, 1.0))
        yield PaperRow(name, tuple(cells), "own")


PAPER = read_paper(
    Path(__file__).with_name("paper.toml"),
    {
        "Figure 1": figure_1,
        "Table 1": table_1,
        "Section 3.3": section_3,
        "Figure 4": prompts,
        "Figure 5": prompts,
        "Table 3": table_of_systems,
        "RQ1 and RQ2": contrasts,
        "Table 4": table_of_systems,
        "Section 5.1": across_settings,
        "Figure 6": figure_6,
    },
)
