"""A detector of harm as one file; ``archive`` says how such files are made and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from memantics.detector import archive
from memantics.detector.examples import Example
from memantics.detector.fast import Decision, FastDetector
from memantics.detector.kernel import add_margin

FORMAT = "memantics-fast-detector"
VERSION = 1


class _DetectorManifest(archive.Manifest):
    threshold: float = Field(ge=0, le=1)
    hierarchical: bool


def save(detector: FastDetector, path: Path, card: Mapping[str, object] | None = None) -> None:
    """Write a detector in one step; ``card`` is the model card that travels with it."""
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "threshold": detector.decision.threshold,
        "hierarchical": detector.decision.hierarchical,
    }
    archive.write_archive(path, detector, _list_arrays(detector), _DetectorManifest, facts, card)


def load(path: Path) -> FastDetector:
    """Read a detector; a file that is damaged, tampered with or of another kind is refused."""
    return load_with_card(path)[0]


def load_with_card(path: Path) -> tuple[FastDetector, dict[str, Any]]:
    """Read a detector, and the model card that travels with it."""
    return archive.load_archive(path, _DetectorManifest, (FORMAT, VERSION), _rebuild)


def _rebuild(manifest: _DetectorManifest, parts: archive.Parts) -> FastDetector:
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


def _list_arrays(detector: FastDetector) -> dict[str, archive.Array]:
    decision = detector.decision
    arrays: dict[str, archive.Array] = {
        "biases": decision.biases,
        **archive.list_softmax("harm", decision.harm),
    }
    return arrays | (archive.list_softmax("kinds", decision.kinds) if decision.kinds else {})


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


def _try_out(detector: FastDetector) -> None:
    """Judge an empty meme."""
    scores = add_margin(detector.heads, archive.score_blank(detector))
    if scores.shape[1] != len(detector.decision.harm.mean):
        raise ValueError("scores and decision differ in number")
    (said,) = detector.name_predictions([Example("", "")], scores)
    if not math.isfinite(said.probability):
        raise ValueError("the chance of an empty meme is no number")
