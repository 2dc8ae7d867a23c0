"""An expert as one file; ``archive`` says how such files are made and checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from memantics.detector.archive import (
    MISFITS,
    Array,
    Manifest,
    check_heads,
    check_softmax,
    find_format,
    list_softmax,
    read_archive,
    read_array,
    read_card_of,
    read_softmax,
    rebuild_heads,
    refuse,
    score_blank,
    write_archive,
)
from memantics.detector.examples import Example
from memantics.detector.expert import ClassDecision, FastExpert, LabelSet

FORMAT = "memantics-expert"
VERSION = 1
_WHAT = "expert"


class _ExpertManifest(Manifest):
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
    write_archive(path, expert, _list_arrays(expert), _ExpertManifest, facts, card)


def is_expert(path: Path) -> bool:
    """Whether a file says that it is an expert."""
    return find_format(path) == FORMAT


def load_expert(path: Path) -> tuple[FastExpert, dict[str, Any]]:
    """Read an expert and its card; what is damaged, tampered with or of another kind is refused."""
    manifest, parts = read_archive(path, _ExpertManifest, (FORMAT, VERSION), _WHAT)
    try:
        count = len(manifest.heads) if manifest.several else 1
        softmaxes = tuple(read_softmax(parts, f"class{place}") for place in range(count))
        expert = FastExpert(
            labels=LabelSet(manifest.label, manifest.heads, manifest.several),
            decision=ClassDecision(softmaxes, read_array(parts, "biases"), manifest.several),
            **rebuild_heads(manifest, parts),
        )
        _check(expert)
        card = read_card_of(parts)
    except MISFITS as error:
        raise refuse(path, f"its parts do not fit together: {error}", _WHAT) from error
    return expert, card


def _list_arrays(expert: FastExpert) -> dict[str, Array]:
    arrays: dict[str, Array] = {"biases": expert.decision.biases}
    for place, softmax in enumerate(expert.decision.softmaxes):
        arrays |= list_softmax(f"class{place}", softmax)
    return arrays


def _check(expert: FastExpert) -> None:
    """Refuse numbers and shapes under which every meme would be judged alike, or by nothing."""
    decision, count = expert.decision, len(expert.heads)
    if len(set(expert.heads)) != count or not count:
        raise ValueError("classes are missing, or come twice")
    check_heads(expert, _list_arrays(expert))
    for place, softmax in enumerate(decision.softmaxes):
        check_softmax(f"class{place}", softmax, count, 2 if decision.several else count)
    if decision.biases.shape != (count,):
        raise ValueError("classes and biases differ in number")
    (said,) = expert.name_predictions([Example("", "")], np.asarray(score_blank(expert), float))
    if not np.isfinite(list(said.chances.values())).all():
        raise ValueError("the chances of an empty meme are no numbers")
