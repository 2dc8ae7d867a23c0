"""What M-QUEST's paper says of models, redone from runs: tables, figures, cases, prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from memantics.benchmarks.mquest.load import MquestRelease
from memantics.core.paper import (
    Cell,
    PaperMaterial,
    PaperPart,
    PaperRow,
    PaperText,
    ScoredRun,
    find_score,
    name_runs,
    same_system,
    score_cell,
)
from memantics.core.published import PublishedRow
from memantics.core.records import Image, Item
from memantics.core.rundir import last_answers, read_bare_items, read_items
from memantics.tasks.choices import list_options

Material = PaperMaterial[MquestRelease]
NAMES = {
    "Toxicity": "Toxicity",
    "TextualMaterial": "Textual Material",
    "VisualMaterial": "Visual Material",
    "Scene": "Scene",
    "BackgroundKnowledge": "Background Knowledge",
    "OverallIntent": "Overall Intent",
    "Emotion": "Emotion",
    "AnalogicalMapping": "Analogical Mapping",
    "TargetCommunity": "Target Community",
    "SemioticProjection": "Semiotic Projection",
}
_MODELS = {
    "BLIP2-Flan-T5-xl": "Salesforce/blip2-flan-t5-xl",
    "InstructBLIP-Vicuna-7B": "Salesforce/instructblip-vicuna-7b",
    "LLaVA-v1.6-Vicuna": "llava-hf/llava-v1.6-vicuna-7b-hf",
    "LLaVA-v1.5": "llava-hf/llava-1.5-7b-hf",
    "Pixtral-12B": "mistral-community/pixtral-12b",
    "Qwen3-VL-8B-Instruct": "Qwen/Qwen3-VL-8B-Instruct",
    "Qwen2-VL-7B-Instruct": "Qwen/Qwen2-VL-7B-Instruct",
    "Qwen2.5-VL-7B-Instruct": "Qwen/Qwen2.5-VL-7B-Instruct",
}
# What the paper's section on models says of each.
_TRAITS = {
    "BLIP2-Flan-T5-xl": ("no", "no"),
    "InstructBLIP-Vicuna-7B": ("yes", "no"),
    "LLaVA-v1.6-Vicuna": ("no", "yes"),
    "LLaVA-v1.5": ("no", "yes"),
    "Pixtral-12B": ("no", "no"),
    "Qwen3-VL-8B-Instruct": ("yes", "yes"),
    "Qwen2-VL-7B-Instruct": ("yes", "yes"),
    "Qwen2.5-VL-7B-Instruct": ("yes", "yes"),
}
_TABLE_2 = (
    "accuracy",
    "group_accuracy",
    "toxicity_accuracy",
    "reasoning_accuracy",
    "macro_accuracy",
)
_HEADS = ("All", "Group (T+R)", "T only", "R only", "Macro Avg.")
_OFFICIAL = (
    "The paper's 609 questions were not released.",
    "Of its columns, runs on split toxmquest350 can reproduce 'T only'.",
    "Three of its rows are impossible whatever the numbers of questions: not between their parts.",
    "The other rows are impossible over the 609, 307 and 302 questions that the paper states.",
)
_CHARACTERS = 1200


def _ask(material: Material, row: PublishedRow) -> str:
    """The command that asks a published system; two of them cannot reason in text."""
    split = " --split toxmquest350" if material.compared else ""
    plain = " --set order=letter_only" if "BLIP" in row.system else ""
    model = _MODELS.get(row.system, row.system)
    return f"memantics run {material.name}{split}{plain} --model openai/{model} --base-url URL"


def _name(runs: Sequence[ScoredRun]) -> list[str]:
    """What runs are called: the paper's systems as the paper calls them."""
    found = []
    for run, label in zip(runs, name_runs(runs), strict=True):
        known = (
            system
            for system, model in _MODELS.items()
            if any(same_system(run.model, text) for text in (system, model))
        )
        found.append(label if label != run.model else next(known, label))
    return found


def table_2(material: Material) -> PaperPart:
    """Accuracy of systems: all questions, pairs, toxicity, reasons, and the macro mean."""
    rows = material.systems(
        "qa", "Table 2", _TABLE_2, lambda row: _ask(material, row), models=_MODELS
    )
    return PaperPart(
        "Table 2",
        "Accuracy of VLMs on the M-QUEST: all questions, grouped per meme (T+R), toxicity, "
        "combined reasoning across other dimensions, and the macro-average; per cent.",
        _HEADS,
        rows,
        "VLMs",
        notes=(
            *(_OFFICIAL if material.compared else ()),
            "n of Group counts linked pairs, else memes; n of Macro Avg. counts dimensions.",
        ),
    )


def traits(material: Material) -> PaperPart:
    """Table 2 by what its models were trained for, as the paper explains the differences."""
    heads = ("instruction tuning", "reasoning")
    known: dict[str, Mapping[str, str]] = {
        system: dict(zip(heads, texts, strict=True)) for system, texts in _TRAITS.items()
    }
    known |= material.traits
    names = dict.fromkeys(name for texts in known.values() for name in texts)
    rows = []
    for trait in names:
        for value in sorted({texts[trait] for texts in known.values() if trait in texts}):
            members = [model for model, texts in known.items() if texts.get(trait) == value]
            rows += _trait_rows(material, f"{trait}: {value}", members)
    return PaperPart(
        "Table 2 by model traits",
        "Mean accuracy of the models that share a trait; n counts models.",
        _HEADS,
        tuple(rows),
        "trait",
        notes=(
            "Traits of the paper's models are those that its section on models names.",
            "--traits FILE gives those of yours.",
        ),
    )


def _trait_rows(material: Material, label: str, members: Sequence[str]) -> list[PaperRow]:
    printed = [row for row in material.rows_of("qa", "Table 2") if row.system in members]
    names = [*members, *(_MODELS[name] for name in members if name in _MODELS)]
    runs = [run for run in material.of_task("qa") if any(same_system(run.model, n) for n in names)]
    rows = []
    if printed:
        means = {key: 100 * fmean(row.figures[key] for row in printed) for key in _TABLE_2}
        cells = tuple(
            Cell(value=mean, n=len(printed), digits=2, arithmetic=True) for mean in means.values()
        )
        rows.append(PaperRow("the paper's models", cells, section=label))
    if runs:
        rows.append(
            PaperRow("your runs", tuple(_mean(runs, text) for text in _TABLE_2), "own", label)
        )
    return rows


def _mean(runs: Sequence[ScoredRun], figure: str) -> Cell:
    found = [find_score(run.figures.scores, figure) for run in runs]
    values = [score.value for score in found if score is not None and score.value is not None]
    return Cell(value=100 * fmean(values), n=len(values), digits=2) if values else Cell()


def figure_2(material: Material) -> PaperPart:
    """Accuracy by dimension; the paper draws it and prints no figure."""
    runs = material.of_task("qa")
    if runs:
        columns = tuple(_name(runs))
        rows = tuple(
            PaperRow(
                title,
                tuple(
                    score_cell(find_score(run.figures.scores, f"accuracy[dimension={name}]"), 1)
                    for run in runs
                ),
                "own",
            )
            for name, title in NAMES.items()
        )
    else:
        published = material.rows_of("qa", "Table 2")
        columns = tuple(row.system for row in published)
        asked = tuple(Cell(fill=_ask(material, row)) for row in published)
        rows = tuple(PaperRow(title, asked) for title in NAMES.values())
    return PaperPart(
        "Figure 2",
        "Accuracy of VLMs across dimensions, per cent; the paper draws these values and prints "
        "none of them.",
        columns,
        rows,
        "dimension",
        plotted=bool(runs),
    )


def figure_3(material: Material) -> PaperPart:
    """One toxicity question on which models part, with what each said."""
    shown = _find_case(material.of_task("qa"), "T")
    return _show_cases("Figure 3", "How models reason about the toxicity of one meme.", shown)


def figure_9(material: Material) -> PaperPart:
    """Another dimension of the same meme, with what each model said."""
    shown = _find_case(material.of_task("qa"), "R")
    caption = "How the same models reason about another dimension of a meme."
    return _show_cases("Figure 9", caption, shown)


def _find_case(runs: Sequence[ScoredRun], kind: str) -> tuple[PaperText, ...]:
    """The question of a kind on which most models differ, the first in case of a tie."""
    if not runs:
        return ()
    said = [last_answers(run.folder) for run in runs]
    items = [item for item in read_bare_items(runs[0].folder) if item.tags.get("kind") == kind]
    shared = [item for item in items if all(item.id in group for group in said)]
    if not shared:
        return ()

    def spread(item: Item) -> int:
        return len({str(group[item.id].value) for group in said})

    item = max(shared, key=spread)
    options = list_options(item.form.fields[0].options)
    head = f"{item.form.question}\n\n{options}\n\nright: {item.gold}"
    title = f"Meme {item.group}, {NAMES.get(item.tags['dimension'], item.tags['dimension'])}"
    answers = [
        PaperText(name, group[item.id].text[:_CHARACTERS] or f"({group[item.id].status})")
        for name, group in zip(_name(runs), said, strict=True)
    ]
    return (PaperText(title, head), *answers)


def _show_cases(label: str, caption: str, texts: tuple[PaperText, ...]) -> PaperPart:
    wanted = "Filled by runs whose models explain themselves: memantics paper NAME RUN…"
    return PaperPart(label, caption, texts=texts, notes=() if texts else (wanted,))


def figure_6(material: Material) -> PaperPart:
    """The prompt as it was sent; without a run, the template of ours."""
    texts = []
    for run, name in zip(material.of_task("qa"), _name(material.of_task("qa")), strict=True):
        line = next(read_items(run.folder), None)
        parts = [part for message in line.messages for part in message.parts] if line else []
        shown = "\n".join("[image]" if isinstance(part, Image) else part for part in parts)
        if shown:
            texts.append(PaperText(f"as sent to {name}", shown))
    if not texts:
        path = Path(__file__).with_name("prompts") / "explain_first.md"
        texts.append(PaperText("our template", path.read_text(encoding="utf-8")))
    return PaperPart("Figure 6", "Prompt template for zero-shot evaluation.", texts=tuple(texts))
