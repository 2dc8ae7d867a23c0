"""How ToxiCN MM's paper trained and asked: encoders, hyperparameters, instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from memantics.benchmarks.toxicn_mm.paper_models import (
    MODELS,
    VARIANTS,
    Material,
    run_command,
    study_command,
)
from memantics.core.paper import Cell, PaperPart, PaperRow, PaperText
from memantics.core.prompt import read_prompts

_ENCODERS = {
    "roberta": ("text", "chinese-roberta-wwm-ext-base"),
    "resnet": ("image", "resnet-101"),
    "vit": ("image", "vit-base-patch16-224"),
    "clip": ("clip", "chinese-clip-vit-base-patch16"),
}
_HYPER = {
    "epochs": (20, 10),
    "batch": (32, 32),
    "rate": (5e-5, 1e-5),
    "length": (None, 80),
    "dropout": (0.1, 0.1),
}
_TITLES = {
    "epochs": "epochs",
    "batch": "batch size",
    "rate": "learning rate",
    "length": "padding size",
    "dropout": "dropout rate",
}


def table_b8(material: Material) -> PaperPart:
    """Which encoders and models stood behind the rows of Table 5."""
    known = {detector.name: detector.facts.get("settings") for detector in material.detectors}
    rows = []
    for variant, (kind, printed) in _ENCODERS.items():
        settings = known.get(variant)
        value = settings.get(kind) if isinstance(settings, dict) else None
        cell = Cell(printed, value, compared=False, fill=study_command(material))
        rows.append(PaperRow(variant, (cell,)))
    for row in material.rows_of("detection", "Table 5"):
        if row.system in MODELS and row.options.get("input") == "text":
            model = MODELS[row.system]
            run = material.find_run(row, model)
            value = run.model.partition("/")[2] if run else None
            cell = Cell(model, value, compared=False, fill=run_command(material, row))
            rows.append(PaperRow(row.system.partition(" ")[0], (cell,)))
    caption = "Specific version of each baseline."
    return PaperPart("Table B8", caption, ("Version",), tuple(rows), "Model")


def table_b9(material: Material) -> PaperPart:
    """With what the trained rows were trained."""
    names = ("resnet", "vit")
    pictures = _settings(material, names)
    others = _settings(material, tuple(text for text in VARIANTS.values() if text not in names))
    rows = []
    for name, printed in _HYPER.items():
        cells = [
            Cell(paper, groups.get(name), compared=False, fill=study_command(material))
            if paper is not None
            else Cell()
            for paper, groups in zip(printed, (pictures, others), strict=True)
        ]
        rows.append(PaperRow(_TITLES[name], tuple(cells)))
    caption = "Hyperparameters for experiments."
    return PaperPart("Table B9", caption, ("ResNet/ViT", "Others"), tuple(rows), "Hyperparameter")


def _settings(material: Material, variants: Sequence[str]) -> Mapping[str, JsonValue]:
    for detector in material.detectors:
        settings = detector.facts.get("settings")
        if detector.name in variants and isinstance(settings, dict) and settings:
            return settings
    return {}


def _templates(label: str, caption: str, stem: str) -> PaperPart:
    prompts = read_prompts(Path(__file__).parent / "prompts")
    names = (f"{stem}_full.zh", f"{stem}_full.en", "reasons_last.zh", "reasons_first.zh")
    texts = tuple(PaperText(name, prompts[name].text) for name in names)
    notes = ("Asked with --set wording=full; the reasons with --set reasons=last or first.",)
    return PaperPart(label, caption, texts=texts, notes=notes)


def table_b10(_: Material) -> PaperPart:
    """The instruction of harmful meme detection."""
    caption = "Instruction templates for the task of harmful meme detection."
    return _templates("Table B10", caption, "detection")


def table_b11(_: Material) -> PaperPart:
    """The instruction of harmful type identification."""
    caption = "Instruction templates for the task of harmful type identification."
    return _templates("Table B11", caption, "type")
