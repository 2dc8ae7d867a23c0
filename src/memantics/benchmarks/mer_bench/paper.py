"""MER-Bench's paper: its tables and figures, redone from data, judgements and people."""

from __future__ import annotations

import re
from dataclasses import replace

from memantics.benchmarks.mer_bench.paper_people import (
    Material,
    figure_4,
    figure_4_wins,
    judges,
    name_judges,
)
from memantics.benchmarks.mer_bench.views import FACTORS, LEVELS, Factor
from memantics.core.paper import (
    Cell,
    Paper,
    PaperPart,
    PaperRow,
    PaperText,
    ScoredRun,
    find_score,
    list_figures,
    score_cell,
)
from memantics.metrics.reappraisal import COMPONENTS, METRICS

COLUMNS = tuple(name.upper() for name in (*METRICS, *COMPONENTS))
KEYS = (*METRICS, *(f"{name}_run" for name in COMPONENTS))
EDITORS = (
    *("Flux9B", "QwenEdit", "Flux4B", "UniPic", "DreamO2", "ZTurbo", "LongCat"),
    *("Step1X", "Bagel7B", "GoT", "IP2P", "OmniG2", "ICEdit", "SD"),
)
TITLES: dict[Factor, str] = {
    "visual_type": "Visual Modality",
    "layout": "Structural Layout",
    "polarity": "Affective Polarity",
}
NAMES = {
    "Object_Animal_Dominant": "Object/Animal-Centric",
    "Photo_RealPerson": "Photographic Human",
    "Cartoon_Anime": "Illustrated/Cartoon",
    "Template_StylizedMeme": "Template Stylized",
    "SinglePanel": "Single-Panel",
    "MultiPanel": "Multi-Panel",
    "Positive": "Positive Valence",
    "Neutral": "Neutral Valence",
    "Negative": "Negative Valence",
}
# Table I; the marks are: emotion recognition, reasoning or regulation, generation, social media.
OTHERS = (
    ("Memotion 3", "Image-Text", "✓✗✗✓"),
    ("MOOD", "Image-Text", "✓✗✗✓"),
    ("GOAT-Bench", "Image-Text", "✓✗✗✓"),
    ("EmotionBench", "Text", "✓✓✓✗"),
    ("EmoBench", "Text", "✓✓✓✗"),
    ("MOSABench", "Image", "✓✗✗✗"),
    ("MM-InstructEval", "Image", "✓✗✓✗"),
    ("MER-Bench", "Image-Text", "✓✓✓✓"),
)
_LITERATURE = "A statement about other data sets: nothing is computed here."
_SPREAD = re.compile(r"± ([\d.]+)")
_RUN_LEVEL = (
    "TAS, CFS, SSS and RFS are components of each run's mean ratings, as in the authors' code; the "
    "paper's text says sample level. The report of a run shows both."
)


def table_1() -> PaperPart:
    """The paper's comparison of data sets."""
    rows = [
        PaperRow(name, tuple(Cell(value, reason=_LITERATURE) for value in (modality, *marks)))
        for name, modality, marks in OTHERS
    ]
    columns = ("Modality", "Recognition", "Reasoning / Regulation", "Generation", "Social media")
    caption = "Comparison of affective data sets."
    return PaperPart("Table I", caption, columns, tuple(rows), "Dataset")


def figure_1(material: Material) -> PaperPart:
    """One meme, and the wish for its better self."""
    row = next(
        (reappraisal_row for reappraisal_row in material.release.rows if reappraisal_row.caption),
        material.release.rows[0],
    )
    texts = (
        PaperText(f"{row.id}: {row.source_emotion}", row.caption),
        PaperText(f"to {row.target_emotion}", row.rewritten),
        PaperText("Visual edits", row.plan),
    )
    return PaperPart("Figure 1", "The task: a meme, its new caption and its edits.", texts=texts)


FIGURE_2 = PaperPart(
    "Figure 2",
    "Construction: find, resolve and train; then every stage verified by people.",
    texts=(
        PaperText(
            "Find, resolve, train: three raters after a training round, an expert for ties",
            "memantics annotate MEMES --workflow find-emotions",
        ),
        PaperText(
            "Clearly negative memes only; emotion, plan and picture by a model",
            "memantics build reappraisal MEMES --verdicts verdicts.jsonl --model MODEL "
            "--editor openai-images/EDITOR",
        ),
        PaperText(
            "Every stage and category verified; what is revised or sent back is made again",
            "memantics annotate builds/MEMES-reappraisal/queue\n"
            "memantics build remake builds/MEMES-reappraisal",
        ),
        PaperText("Publish", "memantics publish builds/MEMES-reappraisal --name NAME --licence ID"),
    ),
)


def figure_3(material: Material) -> PaperPart:
    """Memes by category and pair of emotions."""
    keys = [
        "memes",
        *(f"visual_type.{level}" for level in LEVELS["visual_type"]),
        *(f"layout.{level}" for level in LEVELS["layout"]),
        *(f"polarity.{level}" for level in LEVELS["polarity"]),
        *(key for key in material.expected if key.startswith("emotion.")),
        "kept",
    ]
    caption = "Meme pairs by visual type, layout, polarity and emotion; the filtered subset."
    part = list_figures(material, "Figure 3", caption, keys)
    if material.source.published or material.values.get("kept") is not None:
        return part
    # Whoever has the edited images can count this.
    *rows, kept = part.rows
    cell = replace(kept.cells[0], reason="", fill=f"memantics data add {material.name} DIR")
    return replace(part, rows=(*rows, replace(kept, cells=(cell,))))


def _of_view(material: Material, view: str) -> list[ScoredRun]:
    return [run for run in material.of_task("judge") if run.facts.options["view"] == view]


def _metric_row(
    material: Material, run: ScoredRun | None, part: str, fill: str, label: str, section: str
) -> PaperRow:
    """The twelve metrics of an editor or category (``part``: ``editor=NAME``), with deviations."""
    printed = {k: v for row in material.published for k, v in row.figures.items()}
    cells = []
    for key in KEYS:
        name = f"{key}[{part}]" if part else key
        score = find_score(run.figures.scores, name) if run else None
        spread = _SPREAD.search(score.note) if score else None
        known = printed.get(name) if part else None
        cells.append(
            replace(
                score_cell(score, 2),
                paper=None if known is None else round(100 * known, 2),
                sd=float(spread[1]) if spread else None,
                compared=material.compares(run),
                fill=fill if run is None else "",
                reason="" if run is None else "No edit of this row was judged.",
            )
        )
    return PaperRow(label, tuple(cells), "paper" if label in _PRINTED else "own", section)


_PRINTED = frozenset((*EDITORS, *NAMES.values()))


def table_2(material: Material) -> PaperPart:
    """Editors by metric: ten runs of a hundred memes that all editors share."""
    fill = f"memantics run {material.name} --model JUDGE --set view=model"
    runs = _of_view(material, "model")
    rows = []
    for run, judge in zip(runs, name_judges(runs), strict=True):
        found = {s.label for s in run.figures.scores if s.by == "editor"}
        names = [name for name in EDITORS if name in found] + sorted(found - set(EDITORS))
        section = f"judged by {run.model} ({judge})" if judge != run.model else f"judged by {judge}"
        rows += [_metric_row(material, run, f"editor={n}", fill, n, section) for n in names]
    if not runs or material.compared:
        known = {row.label for row in rows}
        put = f"memantics edit {material.name} --editor EDITOR; "
        rows += [
            _metric_row(material, None, f"editor={n}", put + fill, n, "the paper's editors")
            for n in EDITORS
            if n not in known
        ]
    return PaperPart(
        "Table II",
        "Overall performance of editors: mean ± deviation over 10 runs of 100 shared memes, %.",
        COLUMNS,
        tuple(rows),
        "Model",
        shaded=True,
        notes=(
            _RUN_LEVEL,
            "Our copy of the paper has no cells of this table but what its text quotes.",
        ),
    )


def table_3(material: Material) -> PaperPart:
    """Categories by metric: ten runs of fifty edits each, editors drawn evenly."""
    fill = f"memantics run {material.name} --model JUDGE --set view=category"
    runs = _of_view(material, "category")
    shown: list[ScoredRun | None] = [*runs] or [None]
    rows = []
    for factor in FACTORS:
        for level in sorted(LEVELS[factor], key=list(NAMES).index):
            for run in shown:
                section = TITLES[factor]
                if len(runs) > 1 and run is not None:
                    section += f", {run.model}"
                part = f"{factor}={level}"
                rows.append(_metric_row(material, run, part, fill, NAMES[level], section))
    return PaperPart(
        "Table III",
        "Performance by category: mean ± deviation over 10 runs of 50 edits, %.",
        COLUMNS,
        tuple(rows),
        "Category",
        shaded=True,
        notes=(_RUN_LEVEL,),
    )


def figure_5(material: Material) -> PaperPart:
    """RFS of every editor in every category."""
    fill = f"memantics run {material.name} --model JUDGE --set view=model"
    runs = [r for r in _of_view(material, "model") or _of_view(material, "all") if _crossed(r)]
    levels = [(factor, level) for factor in FACTORS for level in LEVELS[factor]]
    rows = []
    for run, judge in zip(runs, name_judges(runs), strict=True):
        for editor in _crossed(run):
            cells = []
            for factor, level in levels:
                by = f"editor × {factor}"
                score = find_score(run.figures.scores, f"rfs_run[{by}={editor} × {level}]")
                missing = "" if score else "No meme of this category was judged."
                cells.append(replace(score_cell(score, 2), reason=missing))
            rows.append(PaperRow(editor, tuple(cells), "own", f"judged by {judge}"))
    if not rows:
        rows = [PaperRow(name, tuple(Cell(fill=fill) for _ in levels)) for name in EDITORS]
    return PaperPart(
        "Figure 5 (a) to (n)",
        "RFS of each editor by category, %.",
        tuple(NAMES[level] for _, level in levels),
        tuple(rows),
        "Editor",
        radar=True,
    )


def _crossed(run: ScoredRun) -> list[str]:
    """The editors whose figures a run gives by category."""
    labels = (s.label for s in run.figures.scores if s.by.startswith("editor × "))
    return list(dict.fromkeys(label.partition(" × ")[0] for label in labels))


def figure_5_overall(material: Material) -> PaperPart:
    """All metrics over everything."""
    fill = f"memantics run {material.name} --model JUDGE --set view=overall"
    runs = _of_view(material, "overall")
    rows = [
        replace(_metric_row(material, run, "", fill, judge, ""), kind="own")
        for run, judge in zip(runs, name_judges(runs), strict=True)
    ] or [_metric_row(material, None, "", fill, "all editors", "")]
    return PaperPart(
        "Figure 5 (o)",
        "All metrics over all editors: mean ± deviation over 10 runs of 50 edits of each, %.",
        COLUMNS,
        tuple(rows),
        "Judge",
        notes=(_RUN_LEVEL,),
    )


def invalid(material: Material) -> PaperPart:
    """What counting or dropping replies does that no attempt made valid."""
    columns = ("invalid, %", "clipped", "lowest", "dropped")
    fill = f"memantics run {material.name} --model JUDGE"
    runs = material.of_task("judge")
    rows = []
    for run, judge in zip(runs, name_judges(runs), strict=True):
        scores = run.figures.scores
        by = "invalid after the last attempt"
        shares = [find_score(scores, f"share[{by}={text}]") for text in _INVALID]
        share = sum(score.value or 0 for score in shares if score)
        plain = find_score(scores, run.figures.main)
        ways = [
            find_score(scores, f"{run.figures.main}[invalid replies counted as={way}]") or plain
            for way in columns[1:]
        ]
        n = shares[0].n if shares[0] else 0
        first = Cell(value=100 * share, digits=1, n=n, fill=fill)
        rows.append(PaperRow(judge, (first, *(score_cell(score, 2) for score in ways)), "own"))
    if not rows:
        rows = [PaperRow("a judge", tuple(Cell(fill=fill) for _ in columns))]
    return PaperPart(
        "Invalid replies",
        "Not in the paper: RFS by what counts where a judge breaks the gate to the end, %.",
        columns,
        tuple(rows),
        "Judge",
    )


_INVALID = ("a rule still broken", "no judgement")

FIGURE_6 = PaperPart(
    "Figure 6",
    "Cases: source and edits side by side, with the judge's ratings and what failed.",
    texts=(PaperText("One page, images blurred until asked for", "memantics gallery RUN"),),
)

PAPER = Paper(
    "MER-Bench: A Comprehensive Benchmark for Multimodal Meme Reappraisal",
    (
        table_1(),
        figure_1,
        FIGURE_2,
        figure_3,
        figure_4,
        figure_4_wins,
        judges,
        table_2,
        table_3,
        figure_5,
        figure_5_overall,
        invalid,
        FIGURE_6,
    ),
)
