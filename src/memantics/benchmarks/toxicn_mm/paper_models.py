"""What ToxiCN MM's paper says of detectors and language models, redone from studies and runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from memantics.benchmarks.toxicn_mm.load import HarmRelease
from memantics.benchmarks.toxicn_mm.wording import HARMFUL
from memantics.core.paper import (
    Cell,
    PaperMaterial,
    PaperPart,
    PaperRow,
    PaperText,
    ScoredDetector,
    ScoredRun,
    find_score,
    name_runs,
    score_cell,
)
from memantics.core.published import PublishedRow
from memantics.core.records import Answer, Score
from memantics.core.rundir import last_answers

Material = PaperMaterial[HarmRelease]
_TYPES = ("targeted", "offence", "sexual", "dispirited")
_FIGURES: Mapping[str, tuple[str, ...]] = {
    "detection": ("macro_precision", "macro_recall", "macro_f1", "f1_harmful"),
    "type": ("macro_precision", "macro_recall", "macro_f1", *(f"f1[type={t}]" for t in _TYPES)),
}
_HEADS = (
    *("P", "R", "F1", "F1 Harm."),
    *("P (type)", "R (type)", "F1 (type)", "F1 Tg.", "F1 Off.", "F1 Sex.", "F1 Disp."),
)
# The rows of Table 5 that are trained, and the variants of 'memantics detector study'.
VARIANTS = {
    "RoBERTa, fine-tuned": "roberta",
    "ResNet, fine-tuned": "resnet",
    "ViT, fine-tuned": "vit",
    **{
        f"{name}{more}, fine-tuned": f"{family}{captions}"
        for name, family in (("RoBERTa + ViT", "fusion"), ("CLIP", "clip"))
        for more, captions in (
            ("", ""), (" + text caption", "+text"), (" + image caption", "+image"),
            (" + MKE", "+both"),
        )
    },
}  # fmt: skip
MODELS = {
    "GPT-3.5 (gpt-3.5-turbo)": "gpt-3.5-turbo",
    "GPT-4 (gpt-4-vision-preview)": "gpt-4-vision-preview",
    "VisualGLM (ChatGLM-6B)": "THUDM/visualglm-6b",
    "Qwen-VL (Qwen-7B)": "Qwen/Qwen-VL-Chat",
    "VisCPM (CPMBee-10B)": "openbmb/VisCPM-Chat",
}
# Cards of single detectors name their figures otherwise, and hold those on held-out memes.
_CARDS = {"detection": "harmful", "type": "types"}
_LONG = 700


def _find(detector: ScoredDetector, task: str, name: str) -> Score | None:
    """A detector's figure, by the names of a study or of a single detector's card."""
    if task in detector.scores:
        return find_score(detector.scores[task], name)
    key, _, part = name.removesuffix("]").partition("[")
    key = {"macro_precision": "precision", "macro_recall": "recall"}.get(key, key)
    key = "f1/harmful" if key == "f1_harmful" else key
    key = f"f1/{part.partition('=')[2]}" if part else key
    return find_score(detector.scores.get(_CARDS[task], ()), key)


def _section(row: PublishedRow) -> str:
    """The block of Table 5 that a row stands in."""
    variant = VARIANTS.get(row.system, "")
    if variant == "roberta" or row.options.get("input") == "text":
        return "Text"
    return "Image" if variant in ("resnet", "vit") else "Multimodal"


def study_command(material: Material) -> str:
    """What trains every trained row of the paper's; captions are compared within one study."""
    kinds = ("text", "image", "resnet", "clip")
    folders = " ".join(f"--{kind}-backbone FOLDER" for kind in kinds)
    return (
        f"memantics detector study paper --data {material.name} {folders} --out study"
        f" && memantics paper {material.name} --detectors study"
    )


def run_command(material: Material, row: PublishedRow) -> str:
    """What asks a language model of the paper's."""
    model = MODELS.get(row.system, row.system)
    given = row.options.get("input", "image_text")
    return (
        f"memantics run {material.name}/detection {material.name}/type --set input={given}"
        f" --set wording=full --model openai/{model} --base-url URL"
    )


def table_5(material: Material) -> PaperPart:
    """All systems on both tasks: the paper's rows, other detectors, other runs, baselines."""
    first = material.rows_of("detection", "Table 5")
    second = material.rows_of("type", "Table 5")
    # Of several studies the first that has a variant stands in the paper's row.
    detectors = {
        scored_detector.name: scored_detector for scored_detector in reversed(material.detectors)
    }
    rows, used, taken = list[PaperRow](), list[ScoredDetector](), set[Path]()
    for one, other in zip(first, second, strict=True):
        cells: list[Cell] = []
        detector = detectors.get(VARIANTS.get(one.system, ""))
        used += [detector] if detector else []
        for row in (one, other):
            run = material.find_run(row, MODELS.get(row.system, ""))
            taken |= {run.folder} if run else set()
            cells += _published(material, row, run, detector)
        rows.append(PaperRow(one.system, tuple(cells), section=_section(one)))
    rows.sort(key=lambda paper_row: ("Text", "Image", "Multimodal").index(paper_row.section))
    for scored_detector in material.detectors:
        if scored_detector not in used:
            found = [_cell(_find(scored_detector, task, key)) for task, key in _list_columns()]
            rows.append(
                PaperRow(_name(scored_detector, material), tuple(found), "own", "Other detectors")
            )
    rows += _other_runs(material, taken)
    return PaperPart(
        "Table 5",
        "Detection performance: macro precision, recall and F1, and F1 of classes; per cent.",
        _HEADS,
        tuple(rows),
        "Model",
        shaded=True,
        notes=(
            f"Trained rows: means ± standard deviations over seeds on {_tested(material)}.",
            "Intervals resample memes. Darker is better within a column.",
            "The paper chose its models by their test scores; here a validation part does.",
        ),
    )


def _tested(material: Material) -> str:
    """How many memes studies were tested on."""
    sizes = {
        detector.facts.get("tested_on")
        for detector in material.detectors
        if "study" in detector.facts
    }
    told = " or ".join(sorted(f"{size:,}" for size in sizes if isinstance(size, int)))
    return f"{told} test memes" if told else "the test part"


def _list_columns() -> Iterator[tuple[str, str]]:
    return ((task, key) for task, keys in _FIGURES.items() for key in keys)


def _name(detector: ScoredDetector, material: Material) -> str:
    """Its name; namesakes with their folder. A single detector has no test part of its own."""
    twins = sum(scored_detector.name == detector.name for scored_detector in material.detectors) > 1
    marks = [detector.folder.name] if twins else []
    marks += [] if "study" in detector.facts else ["held out inside training"]
    return f"{detector.name} ({', '.join(marks)})" if marks else detector.name


def _cell(score: Score | None) -> Cell:
    """A figure with its standard deviation over seeds, which a study's note holds in points."""
    note = score.note if score else ""
    spread = float(note.split()[1]) if note.startswith("± ") else None
    return replace(score_cell(score), sd=spread, note=note)


def _published(
    material: Material,
    row: PublishedRow,
    run: ScoredRun | None,
    detector: ScoredDetector | None,
) -> Iterator[Cell]:
    trained = row.system in VARIANTS
    fill = study_command(material) if trained else run_command(material, row)
    done = run is not None or (detector is not None and row.task in detector.scores)
    for key in _FIGURES[row.task]:
        score = _find(detector, row.task, key) if detector else None
        score = find_score(run.figures.scores, key) if run else score
        printed = row.figures.get(key)
        yield replace(
            _cell(score),
            paper=None if printed is None else round(100 * printed, 2),
            compared=material.compares(run),
            fill="" if done else fill,
            reason="No meme of this class was asked about." if done else "",
            note="; ".join(text for text in (score.note if score else "", row.reason) if text),
        )


def _other_runs(material: Material, taken: set[Path]) -> list[PaperRow]:
    """Runs that no row of the paper's has, both tasks of a model side by side; then baselines."""
    found: dict[str, dict[str, Sequence[Score]]] = {}
    baselines: dict[str, dict[str, Sequence[Score]]] = {}
    for task in _FIGURES:
        runs = material.of_task(task)
        for run, label in zip(runs, name_runs(runs), strict=True):
            for baseline in run.figures.baselines:
                baselines.setdefault(baseline.model, {})[task] = baseline.scores
            if run.folder not in taken:
                found.setdefault(label, {})[task] = run.figures.scores
    rows = []
    for kind, named, section in (
        ("own", found, "Other runs"),
        ("baseline", {n: fields for n, fields in baselines.items() if n not in found}, "Baselines"),
    ):
        for label, scores in named.items():
            cells = [
                score_cell(find_score(scores.get(task, ()), key)) for task, key in _list_columns()
            ]
            rows.append(PaperRow(label, tuple(cells), kind, section))  # type: ignore[arg-type]
    return rows


def table_5_tests(material: Material) -> PaperPart:
    """The paper says that all results are significant (p < 0.01): the contrasts of a study."""
    rows = []
    for detector in material.detectors:
        contrasts = detector.facts.get("contrasts")
        for groups in contrasts if isinstance(contrasts, list) else ():
            if isinstance(groups, dict):
                seeds = "A fast detector has no seeds; a test over seeds needs two of each."
                cells = (
                    _point(groups, "difference", "low", "high"),
                    Cell(value=_round(groups.get("corrected")), digits=3, reason="One meme."),
                    Cell(value=_round(groups.get("seeds_corrected")), digits=3, reason=seeds),
                )
                task = "type" if groups.get("task") == "type" else "detection"
                rows.append(
                    PaperRow(f"{groups.get('first')} → {detector.name}", cells, section=task)
                )
    if not rows:
        empty = Cell(fill=study_command(material))
        rows = [PaperRow("all", (empty,) * 3)]
    return PaperPart(
        "Table 5, tests",
        "Differences of macro-F1 in points; p-values after Holm, over memes and over seeds.",
        ("difference", "p (memes)", "p (seeds)"),
        tuple(sorted(rows, key=lambda row: row.section)),
        "Variants",
        notes=("The paper: 'all results are statistically significant (t-test, p < 0.01)'.",),
    )


def _point(groups: Mapping[str, JsonValue], *names: str) -> Cell:
    value, low, high = (
        100 * v if isinstance(v := groups.get(name), int | float) else None for name in names
    )
    return Cell(value=value, low=low, high=high, digits=2)


def _round(value: JsonValue) -> float | None:
    return round(float(value), 4) if isinstance(value, int | float) else None


def case_study(material: Material) -> PaperPart:
    """Harmful memes on which models part: captions, reasons, and who found the harm."""
    runs = material.of_task("detection")
    labels = name_runs(runs)
    answers = [last_answers(run.folder) for run in runs]
    verdicts: dict[str, Mapping[str, float]] = {
        label: {name: float(answer.value == HARMFUL) for name, answer in said.items()}
        for label, said in zip(labels, answers, strict=True)
    }
    verdicts |= {
        _name(detector, material): detector.said for detector in material.detectors if detector.said
    }
    memes = {
        meme.id: meme
        for part in reversed(list(material.release.parts.values()))
        for meme in part
        if meme.harmful and any(meme.id in said for said in verdicts.values())
    }

    def part(name: str) -> float:
        """How far the judges are from agreeing: nobody missing, half of them right is 0."""
        given = [said[name] for said in verdicts.values() if name in said]
        return abs(2 * sum(given) - len(given)) + len(verdicts) - len(given)

    texts = [
        PaperText(
            f"{name}: {memes[name].type}, {memes[name].modality}",
            "\n".join(
                [
                    f"text: {memes[name].text}",
                    f"text caption: {memes[name].text_caption}",
                    f"image caption: {memes[name].image_caption}",
                    *_explain(name, labels, answers),
                    f"prediction: {_predict(name, verdicts)}",
                ]
            ),
        )
        for name in sorted(memes, key=lambda name: (part(name), name))[:3]
    ]
    fill = f"memantics run {material.name}/detection --set wording=full --set reasons=last"
    return PaperPart(
        "Table 6",
        "Case study: harmful memes with captions, reasons and predictions.",
        texts=tuple(texts),
        notes=("✓: most seeds find the harm.",)
        if texts
        else (f"Filled by: {fill} --model MODEL.",),
    )


def _explain(
    name: str, labels: Sequence[str], answers: Sequence[Mapping[str, Answer]]
) -> Iterator[str]:
    for label, group in zip(labels, answers, strict=True):
        if name in group:
            yield f"{label}: {' '.join(group[name].text.split())[:_LONG]}"


def _predict(name: str, verdicts: Mapping[str, Mapping[str, float]]) -> str:
    given = {label: said[name] for label, said in verdicts.items() if name in said}
    return ", ".join(f"{label} {'✓' if value > 0.5 else '✗'}" for label, value in given.items())


def figure_c1(material: Material) -> PaperPart:
    """The share of harmful memes that is found, by where the harm lies."""
    parts = ("fusion", "text", "image", "both")
    runs = material.of_task("detection")
    named: dict[str, Sequence[Score]] = {
        detector.name: detector.scores["detection"]
        for detector in material.detectors
        if "detection" in detector.scores
    }
    named |= {label: run.figures.scores for run, label in zip(runs, name_runs(runs), strict=True)}
    rows = [
        PaperRow(
            name,
            tuple(
                replace(
                    score_cell(find_score(scores, f"accuracy[modality={part}]")),
                    reason="No harmful meme of this kind was asked about.",
                )
                for part in parts
            ),
            "own",
        )
        for name, scores in named.items()
    ]
    fill = f"memantics run {material.name}/detection --model MODEL"
    if not rows:
        rows = [PaperRow("all", tuple(Cell(fill=fill) for _ in parts))]
    return PaperPart(
        "Figure C1",
        "Accuracy on harmful memes of the test part by modality combination; per cent.",
        ("T-I", "Harm.T only", "Harm.I only", "both"),
        tuple(rows),
        "Model",
        plotted=True,
        notes=("The paper draws this figure and prints no values.",),
    )


def table_c1(material: Material) -> PaperPart:
    """Chinese multimodal language models."""
    figures = ("macro_precision", "macro_recall", "macro_f1")
    rows = []
    for row in material.rows_of("detection", "Table C1"):
        run = material.find_run(row, MODELS.get(row.system, ""))
        cells = tuple(_published(material, row, run, None))[: len(figures)]
        rows.append(PaperRow(row.system, cells))
    return PaperPart(
        "Table C1",
        "Chinese multimodal language models on harmful meme detection; per cent.",
        ("P", "R", "F1"),
        tuple(rows),
        "Model",
    )
