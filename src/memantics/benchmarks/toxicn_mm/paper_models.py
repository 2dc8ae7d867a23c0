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
from memantics.core.records import Item, Score
from memantics.core.rundir import last_answers, read_items

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
_MODELS = {
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


def _fill(material: Material, row: PublishedRow) -> str:
    variant = VARIANTS.get(row.system)
    if variant:
        return (
            f"memantics detector study {variant} --data {material.name} --out study"
            f" && memantics paper {material.name} --detectors study"
        )
    model = _MODELS.get(row.system, row.system)
    given = row.options.get("input", "image_text")
    return (
        f"memantics run {material.name}/detection {material.name}/type --set input={given}"
        f" --set wording=full --model openai/{model} --base-url URL"
    )


def table_5(material: Material) -> PaperPart:
    """All systems on both tasks: the paper's rows, other detectors, other runs, baselines."""
    first = material.rows_of("detection", "Table 5")
    second = material.rows_of("type", "Table 5")
    detectors = {own.name: own for own in material.detectors}
    rows, used, taken = list[PaperRow](), set[str](), set[Path]()
    for one, other in zip(first, second, strict=True):
        cells: list[Cell] = []
        variant = VARIANTS.get(one.system, "")
        detector = detectors.get(variant)
        used |= {variant} if detector else set()
        for row in (one, other):
            run = material.find_run(row, _MODELS.get(row.system, ""))
            taken |= {run.folder} if run else set()
            cells += _published(material, row, run, detector)
        rows.append(PaperRow(one.system, tuple(cells), section=_section(one)))
    rows.sort(key=lambda own: ("Text", "Image", "Multimodal").index(own.section))
    for name, own in detectors.items():
        if name not in used:
            cells = [_cell(_find(own, task, key)) for task, key in _list_columns()]
            rows.append(PaperRow(_name(own), tuple(cells), "own", "Other detectors"))
    rows += _other_runs(material, taken)
    return PaperPart(
        "Table 5",
        "Detection performance: macro precision, recall and F1, and F1 of classes; per cent.",
        _HEADS,
        tuple(rows),
        "Model",
        notes=(
            "Trained rows are means over seeds on the test part; intervals resample memes.",
            "The paper chose its models by their test scores; here a validation part does.",
        ),
    )


def _list_columns() -> Iterator[tuple[str, str]]:
    return ((task, key) for task, keys in _FIGURES.items() for key in keys)


def _name(detector: ScoredDetector) -> str:
    held = "" if "study" in detector.facts else " (held out inside training)"
    return f"{detector.name}{held}"


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
    for key in _FIGURES[row.task]:
        score = _find(detector, row.task, key) if detector else None
        score = find_score(run.figures.scores, key) if run else score
        printed = row.figures.get(key)
        yield replace(
            _cell(score),
            paper=None if printed is None else round(100 * printed, 2),
            compared=material.compared,
            fill="" if run or detector else _fill(material, row),
            reason="No meme of this class was asked about." if run or detector else "",
            note="; ".join(own for own in (score.note if score else "", row.reason) if own),
        )


def _other_runs(material: Material, taken: set[Path]) -> list[PaperRow]:
    """Runs that no row of the paper's has, both tasks of a model side by side; then baselines."""
    found: dict[str, dict[str, Sequence[Score]]] = {}
    baselines: dict[str, dict[str, Sequence[Score]]] = {}
    for task in _FIGURES:
        runs = material.of_task(task)
        for run, label in zip(runs, name_runs(runs), strict=True):
            for own in run.figures.baselines:
                baselines.setdefault(own.model, {})[task] = own.scores
            if run.folder not in taken:
                found.setdefault(label, {})[task] = run.figures.scores
    rows = []
    for kind, named, section in (
        ("own", found, "Other runs"),
        ("baseline", {n: own for n, own in baselines.items() if n not in found}, "Baselines"),
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
        for own in contrasts if isinstance(contrasts, list) else ():
            if isinstance(own, dict):
                cells = (
                    _point(own, "difference", "low", "high"),
                    Cell(value=_round(own.get("corrected")), digits=3),
                    Cell(value=_round(own.get("seeds_corrected")), digits=3),
                )
                task = "type" if own.get("task") == "type" else "detection"
                rows.append(PaperRow(f"{own.get('first')} → {detector.name}", cells, section=task))
    fill = f"memantics detector study paper --data {material.name} --out study"
    if not rows:
        rows = [PaperRow("all", tuple(Cell(None, fill=fill) for _ in range(3)))]
    return PaperPart(
        "Table 5, tests",
        "Differences of macro-F1 in points; p-values after Holm, over memes and over seeds.",
        ("difference", "p (memes)", "p (seeds)"),
        tuple(rows),
        "Variants",
        notes=("The paper: 'all results are statistically significant (t-test, p < 0.01)'.",),
    )


def _point(own: Mapping[str, JsonValue], *names: str) -> Cell:
    value, low, high = (
        100 * v if isinstance(v := own.get(name), int | float) else None for name in names
    )
    return Cell(value=value, low=low, high=high, digits=2)


def _round(value: JsonValue) -> float | None:
    return round(float(value), 4) if isinstance(value, int | float) else None


def case_study(material: Material) -> PaperPart:
    """Harmful memes on which models differ: their captions, verdicts and reasons."""
    runs = material.of_task("detection")
    labels = name_runs(runs)
    items = {
        line.item.id: line.item
        for run in runs
        for line in read_items(run.folder)
        if line.item.gold == HARMFUL
    }
    answers = [last_answers(run.folder) for run in runs]
    hits = {
        name: sum(name in own and own[name].value == HARMFUL for own in answers) for name in items
    }
    # Those that some models see and others do not come first.
    order = sorted(items, key=lambda name: (abs(2 * hits[name] - len(runs)), name))
    texts = tuple(
        PaperText(f"{name}: {items[name].tags.get('type', '')}, "
                  f"{items[name].tags.get('modality', '')}",
                  "\n".join(_tell_case(material, items[name], labels, answers)))
        for name in order[:3]
    )  # fmt: skip
    fill = f"memantics run {material.name}/detection --set wording=full --set reasons=last"
    return PaperPart(
        "Table 6",
        "Case study: harmful memes with captions, verdicts and reasons.",
        texts=texts,
        notes=() if texts else (f"Filled by: {fill} --model MODEL.",),
    )


def _tell_case(
    material: Material, item: Item, labels: Sequence[str], answers: Sequence[Mapping[str, object]]
) -> Iterator[str]:
    known = {own.id: own for part in material.release.parts.values() for own in part}
    meme = known.get(item.group)
    yield f"text: {item.form.context.get('text', '')}"
    if meme is not None:
        yield f"text caption: {meme.text_caption}"
        yield f"image caption: {meme.image_caption}"
    for label, own in zip(labels, answers, strict=True):
        answer = own.get(item.id)
        if answer is None:
            continue
        mark = "✓" if getattr(answer, "value", None) == HARMFUL else "✗"
        reply = " ".join(str(getattr(answer, "text", "")).split())
        yield f"{mark} {label}: {reply[:_LONG]}"


def figure_c1(material: Material) -> PaperPart:
    """The share of harmful memes that is found, by where the harm lies."""
    parts = ("fusion", "text", "image", "both")
    runs = material.of_task("detection")
    named: dict[str, Sequence[Score]] = {
        own.name: own.scores["detection"] for own in material.detectors if "detection" in own.scores
    }
    named |= {label: run.figures.scores for run, label in zip(runs, name_runs(runs), strict=True)}
    rows = [
        PaperRow(
            name,
            tuple(score_cell(find_score(scores, f"accuracy[modality={own}]")) for own in parts),
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
        run = material.find_run(row, _MODELS.get(row.system, ""))
        cells = tuple(_published(material, row, run, None))[: len(figures)]
        rows.append(PaperRow(row.system, cells))
    return PaperPart(
        "Table C1",
        "Chinese multimodal language models on harmful meme detection; per cent.",
        ("P", "R", "F1"),
        tuple(rows),
        "Model",
    )
