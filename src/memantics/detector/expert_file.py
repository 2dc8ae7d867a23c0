"""An expert as one file; ``archive`` says how such files are made and checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from memantics.detector import archive
from memantics.detector.examples import Example
from memantics.detector.expert import ClassDecision, FastExpert, LabelSet

FORMAT = "memantics-expert"
VERSION = 1


class _ExpertManifest(archive.Manifest):
    label: str = Field(max_length=200)
    several: bool


def save_expert(expert: FastExpert, path: Path, card: Mapping[str, object] | None = None) -> None:
    """Write an expert in one step; ``card`` is the model card that travels with it."""
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "label": expert.labels.name,
        "several": expert.labels.several,
    }
    archive.write_archive(path, expert, _list_arrays(expert), _ExpertManifest, facts, card)


def is_expert(path: Path) -> bool:
    """Whether a file says that it is an expert."""
    return archive.find_format(path) == FORMAT


def load_expert(path: Path) -> tuple[FastExpert, dict[str, Any]]:
    """Read an expert and its card; what is damaged, tampered with or of another kind is refused."""
    return archive.load_archive(path, _ExpertManifest, (FORMAT, VERSION), _rebuild, "expert")


def _rebuild(manifest: _ExpertManifest, parts: archive.Parts) -> FastExpert:
    count = len(manifest.heads) if manifest.several else 1
    softmaxes = tuple(archive.read_softmax(parts, f"class{place}") for place in range(count))
    expert = FastExpert(
        labels=LabelSet(manifest.label, manifest.heads, manifest.several),
        decision=ClassDecision(softmaxes, archive.read_array(parts, "biases"), manifest.several),
        **archive.rebuild_heads(manifest, parts),
    )
    _check(expert)
    return expert


def _list_arrays(expert: FastExpert) -> dict[str, archive.Array]:
    arrays: dict[str, archive.Array] = {"biases": expert.decision.biases}
    for place, softmax in enumerate(expert.decision.softmaxes):
        arrays |= archive.list_softmax(f"class{place}", softmax)
    return arrays


def _check(expert: FastExpert) -> None:
    """Refuse numbers and shapes under which every meme would be judged alike, or by nothing."""
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
