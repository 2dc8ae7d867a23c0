"""A trained model of labels as one file; ``archive`` says how such files are made and checked.

Harm and any other labels lie in files of one format. Those of earlier versions, in which harm and
other labels had a format each, are read as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from memantics.core.errors import InputError
from memantics.detector import archive
from memantics.detector.calibration import Softmax
from memantics.detector.examples import HARM, Example, LabelSet
from memantics.detector.fast import Decision, FastDetector

FORMAT = ("memantics-detector", 2)
_OLD_HARM, _OLD_LABELS = ("memantics-fast-detector", 1), ("memantics-expert", 1)
_EVERY = (FORMAT, _OLD_HARM, _OLD_LABELS)


class _Manifest(archive.Manifest):
    """``label`` names other labels than harm; ``threshold`` and ``hierarchical`` are of harm."""

    threshold: float | None = Field(default=None, ge=0, le=1)
    hierarchical: bool = False
    label: str = Field(default="", max_length=200)
    several: bool = False


def save(model: FastDetector, path: Path, card: Mapping[str, object] | None = None) -> None:
    """Write a model in one step; ``card`` is the model card that travels with it."""
    facts: dict[str, object] = {"format": FORMAT[0], "version": FORMAT[1]}
    if model.labels.name:
        facts |= {"label": model.labels.name, "several": model.labels.several}
    else:
        decision = model.decision
        facts |= {"threshold": decision.threshold, "hierarchical": decision.hierarchical}
    archive.write_archive(path, model, _list_arrays(model), _Manifest, facts, card)


def load(path: Path) -> FastDetector:
    """Read a detector; a file that is damaged, tampered with or of another kind is refused."""
    return load_with_card(path)[0]


def load_with_card(path: Path) -> tuple[FastDetector, dict[str, Any]]:
    """Read a detector of harm, and the model card that travels with it."""
    found, card = archive.load_archive(path, _Manifest, _EVERY, _rebuild)
    if found.labels.name:
        raise InputError(
            f"{path} is an expert for {found.labels.name}, no detector of harm",
            hint="ask it with 'memantics expert predict'",
        )
    return found, card


def load_expert(path: Path) -> tuple[FastDetector, dict[str, Any]]:
    """Read an expert and its card; what is damaged, tampered with or of another kind is refused."""
    found, card = archive.load_archive(path, _Manifest, _EVERY, _rebuild, "expert")
    if not found.labels.name:
        raise InputError(
            f"{path} is a detector of harm, no expert",
            hint="ask it with 'memantics detector predict'",
        )
    return found, card


def _rebuild(manifest: _Manifest, parts: archive.Parts) -> FastDetector:
    harm = not manifest.label
    if harm and manifest.threshold is None:
        raise ValueError("it has neither labels nor a threshold")
    if harm:
        names = ["harm", *(["kinds"] if "kinds_mean.npy" in parts else [])]
    else:
        names = [f"class{place}" for place in range(len(manifest.heads) if manifest.several else 1)]
    decision = Decision(
        tuple(archive.read_softmax(parts, name) for name in names),
        archive.read_array(parts, "biases"),
        manifest.threshold if harm else None,
        manifest.hierarchical,
        manifest.several,
    )
    labels = HARM if harm else LabelSet(manifest.label, manifest.heads, manifest.several)
    fields = archive.rebuild_heads(manifest, parts)
    detector = FastDetector(labels=labels, decision=decision, **fields)
    _check(detector)
    return detector


def _name_softmaxes(model: FastDetector) -> dict[str, Softmax]:
    found = model.decision.softmaxes
    if model.labels.name:
        return {f"class{place}": softmax for place, softmax in enumerate(found)}
    return dict(zip(("harm", "kinds"), found, strict=False))


def _list_arrays(model: FastDetector) -> dict[str, archive.Array]:
    arrays: dict[str, archive.Array] = {"biases": model.decision.biases}
    for name, softmax in _name_softmaxes(model).items():
        arrays |= archive.list_softmax(name, softmax)
    return arrays


def _check(model: FastDetector) -> None:
    """Refuse numbers and shapes under which every meme would be judged alike, or by nothing."""
    types, heads = len(model.types), len(model.heads)
    archive.check_heads(model, _list_arrays(model))
    if model.labels.name:
        if len(set(model.heads)) != heads or not heads:
            raise ValueError("classes are missing, or come twice")
        columns, biases, wrong = heads, heads, False
        sizes = dict.fromkeys(_name_softmaxes(model), 2 if model.labels.several else heads)
    else:
        sizes = {"harm": 2, "kinds": types}
        wrong = (len(model.decision.softmaxes) == 1) != (not types)
        columns, biases = heads + bool(types), types
    for name, softmax in _name_softmaxes(model).items():
        archive.check_softmax(name, softmax, columns, sizes[name])
    if wrong or model.decision.biases.shape != (biases,):
        raise ValueError("labels and biases differ in number")
    _try_out(model)


def _try_out(model: FastDetector) -> None:
    """Judge an empty meme."""
    scores, blank = model.widen(archive.score_blank(model)), [Example("", "")]
    if scores.shape[1] != len(model.decision.softmaxes[0].mean):
        raise ValueError("scores and decision differ in number")
    if model.labels.name:
        (said,) = model.name_labels(blank, *model.decision.decide(scores))
        chances = list(said.chances.values())
    else:
        chances = [model.name_predictions(blank, scores)[0].probability]
    if not np.isfinite(chances).all():
        raise ValueError("the chance of an empty meme is no number")
