"""A trained model of labels as one file; ``archive`` says how such files are made and checked.

Harm and any other labels lie in files of one format. Those of earlier versions, in which harm and
other labels had a format each, are read as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from memantics.core.errors import InputError
from memantics.detector import archive
from memantics.detector.examples import Example
from memantics.detector.expert import ClassDecision, FastExpert, LabelSet
from memantics.detector.fast import Decision, FastDetector
from memantics.detector.kernel import add_margin

FORMAT = ("memantics-detector", 2)
_OLD_HARM, _OLD_LABELS = ("memantics-fast-detector", 1), ("memantics-expert", 1)
_EVERY = (FORMAT, _OLD_HARM, _OLD_LABELS)


class _Manifest(archive.Manifest):
    """``label`` names other labels than harm; ``threshold`` and ``hierarchical`` are of harm."""

    threshold: float | None = Field(default=None, ge=0, le=1)
    hierarchical: bool = False
    label: str = Field(default="", max_length=200)
    several: bool = False


def save(
    model: FastDetector | FastExpert, path: Path, card: Mapping[str, object] | None = None
) -> None:
    """Write a model in one step; ``card`` is the model card that travels with it."""
    facts: dict[str, object] = {"format": FORMAT[0], "version": FORMAT[1]}
    if isinstance(model, FastExpert):
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
    if isinstance(found, FastExpert):
        raise InputError(
            f"{path} is an expert for {found.labels.name}, no detector of harm",
            hint="ask it with 'memantics expert predict'",
        )
    return found, card


def load_expert(path: Path) -> tuple[FastExpert, dict[str, Any]]:
    """Read an expert and its card; what is damaged, tampered with or of another kind is refused."""
    found, card = archive.load_archive(path, _Manifest, _EVERY, _rebuild, "expert")
    if not isinstance(found, FastExpert):
        raise InputError(
            f"{path} is a detector of harm, no expert",
            hint="ask it with 'memantics detector predict'",
        )
    return found, card


def _rebuild(manifest: _Manifest, parts: archive.Parts) -> FastDetector | FastExpert:
    if not manifest.label:
        return _rebuild_harm(manifest, parts)
    count = len(manifest.heads) if manifest.several else 1
    softmaxes = tuple(archive.read_softmax(parts, f"class{place}") for place in range(count))
    expert = FastExpert(
        labels=LabelSet(manifest.label, manifest.heads, manifest.several),
        decision=ClassDecision(softmaxes, archive.read_array(parts, "biases"), manifest.several),
        **archive.rebuild_heads(manifest, parts),
    )
    _check_classes(expert)
    return expert


def _rebuild_harm(manifest: _Manifest, parts: archive.Parts) -> FastDetector:
    if manifest.threshold is None:
        raise ValueError("it has neither labels nor a threshold")
    decision = Decision(
        archive.read_softmax(parts, "harm"),
        manifest.threshold,
        archive.read_softmax(parts, "kinds") if "kinds_mean.npy" in parts else None,
        archive.read_array(parts, "biases"),
        manifest.hierarchical,
    )
    detector = FastDetector(decision=decision, **archive.rebuild_heads(manifest, parts))
    _check_numbers(detector)
    _try_out(detector)
    return detector


def _list_arrays(model: FastDetector | FastExpert) -> dict[str, archive.Array]:
    arrays: dict[str, archive.Array] = {"biases": model.decision.biases}
    if isinstance(model, FastExpert):
        named = {f"class{place}": each for place, each in enumerate(model.decision.softmaxes)}
    else:
        kinds = model.decision.kinds
        named = {"harm": model.decision.harm} | ({"kinds": kinds} if kinds else {})
    for name, softmax in named.items():
        arrays |= archive.list_softmax(name, softmax)
    return arrays


def _check_numbers(detector: FastDetector) -> None:
    """Refuse numbers and shapes under which every meme would be judged alike, or by nothing."""
    types, decision = len(detector.types), detector.decision
    archive.check_heads(detector, _list_arrays(detector))
    columns = len(detector.heads) + bool(types)
    archive.check_softmax("harm", decision.harm, columns, 2)
    if decision.kinds is not None:
        archive.check_softmax("kinds", decision.kinds, columns, types)
    if (decision.kinds is None) != (not types) or decision.biases.shape != (types,):
        raise ValueError("types and biases differ in number")


def _check_classes(expert: FastExpert) -> None:
    """The same of labels other than harm."""
    decision, count = expert.decision, len(expert.heads)
    if len(set(expert.heads)) != count or not count:
        raise ValueError("classes are missing, or come twice")
    archive.check_heads(expert, _list_arrays(expert))
    for place, softmax in enumerate(decision.softmaxes):
        archive.check_softmax(f"class{place}", softmax, count, 2 if decision.several else count)
    if decision.biases.shape != (count,):
        raise ValueError("classes and biases differ in number")
    (said,) = expert.name_predictions(
        [Example("", "")], np.asarray(archive.score_blank(expert), float)
    )
    if not np.isfinite(list(said.chances.values())).all():
        raise ValueError("the chances of an empty meme are no numbers")


def _try_out(detector: FastDetector) -> None:
    """Judge an empty meme."""
    scores = add_margin(detector.heads, archive.score_blank(detector))
    if scores.shape[1] != len(detector.decision.harm.mean):
        raise ValueError("scores and decision differ in number")
    (said,) = detector.name_predictions([Example("", "")], scores)
    if not math.isfinite(said.probability):
        raise ValueError("the chance of an empty meme is no number")
