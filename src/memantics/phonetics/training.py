"""Captions to learn from, and what is learnt: the order of readings, confidence, what is a pun."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from memantics.core.data import read_json
from memantics.core.errors import DataError, InputError
from memantics.core.punmemecn import META, find_folder
from memantics.phonetics.caption import simplify
from memantics.phonetics.detector import (
    LEARNT,
    LEARNT_DESCRIBED,
    Matrix,
    PunData,
    fit_choice,
    fit_logistic,
    fit_pun,
)
from memantics.phonetics.evidence import (
    PICTURE_FEATURES,
    clean_description,
    describe_picture,
    find_evidence,
)
from memantics.phonetics.lattice import Lattice
from memantics.phonetics.polysemy import SENSE_FEATURES, cut_words, describe_senses
from memantics.phonetics.ranking import CAPTION_FEATURES, RANK_FEATURES, Linear
from memantics.phonetics.speech import SoundAnalysis, analyze_caption

FOLDS = 5
_RIDGE = 3.0


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    meme_type: str
    caption_1: str
    caption_2: str | None = None
    meme_explanation: str = ""


_META_FILE = TypeAdapter(dict[str, _Row])
PUN_FEATURES = (*CAPTION_FEATURES, *SENSE_FEATURES)
DESCRIBED_FEATURES = (*PUN_FEATURES, *PICTURE_FEATURES)
Embed = Callable[[Sequence[str]], npt.NDArray[np.float32]]
"""One sentence vector per text; without it captions are judged by sound and dictionary alone."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One caption of the release; ``intended`` is None for what is no pun."""

    name: str
    group: str
    caption: str
    intended: str | None
    description: str

    @property
    def homophone(self) -> bool:
        """Whether the caption is meant to be heard as another."""
        return self.intended is not None and self.intended != self.caption


def read_samples(folder: Path) -> list[Sample]:
    """Captions of a PunMemeCN release in any of its layouts; ``_Meta.json`` alone is needed."""
    try:
        rows = _META_FILE.validate_python(read_json(find_folder(folder) / META))
    except ValidationError as error:
        first = error.errors()[0]
        raise DataError(META, first["msg"], row=str(first["loc"][0])) from error
    return [
        Sample(
            name,
            name.partition(".")[0],
            row.caption_1,
            row.caption_2 if row.meme_type == "pun" else None,
            row.meme_explanation.partition("\n")[0],
        )
        for name, row in rows.items()
    ]


def assign_fold(group: str) -> int:
    """The fold of a group, by its name: the three memes of a group stay together.

    >>> assign_fold("CN00001") == assign_fold("CN00001")
    True
    """
    return hashlib.sha256(group.encode()).digest()[0] % FOLDS


START = Linear({"total": 1.0})


def fit_order(samples: Sequence[Sample], analyses: Sequence[SoundAnalysis]) -> Linear:
    """Weights that put the intended caption first."""
    groups: list[tuple[Matrix, int]] = []
    for sample, analysis in zip(samples, analyses, strict=True):
        texts = [c.path.text for c in analysis.candidates]
        if sample.homophone and sample.intended in texts:
            rows = [[c.features[n] for n in RANK_FEATURES] for c in analysis.candidates]
            groups.append((np.array(rows), texts.index(sample.intended)))
    if not groups:
        raise InputError("no homophone pun to learn the order from", hint="give more groups")
    return fit_choice(groups, RANK_FEATURES, _RIDGE)


def fit_confidence(samples: Sequence[Sample], analyses: Sequence[SoundAnalysis]) -> Linear:
    """Weights that tell homophone puns from captions that are none."""
    kept = [
        (a, s.homophone)
        for s, a in zip(samples, analyses, strict=True)
        if s.homophone or s.intended is None
    ]
    labels = np.array([label for _, label in kept], dtype=bool)
    return fit_logistic(matrix_of([a for a, _ in kept]), labels, CAPTION_FEATURES, _RIDGE)


def matrix_of(analyses: Iterable[SoundAnalysis]) -> Matrix:
    """The signals of captions, one row each."""
    return np.array([[a.signals[name] for name in CAPTION_FEATURES] for a in analyses])


def fit_weights(
    samples: Sequence[Sample], lattice: Lattice, embed: Embed | None = None
) -> dict[str, dict[str, object]]:
    """What ``weights.json`` holds for a language model, fitted on all samples."""
    analyses = [analyze_caption(s.caption, lattice, order=START) for s in samples]
    order = fit_order(samples, analyses)
    ordered = [a.reorder(order) for a in analyses]
    known = {
        "pun": (gather(samples, ordered, embed), PUN_FEATURES, LEARNT),
        "described": (
            gather_described(samples, analyses, order, lattice, embed),
            DESCRIBED_FEATURES,
            LEARNT_DESCRIBED,
        ),
    }
    found = {"rank": _dump(order), "confidence": _dump(fit_confidence(samples, ordered))}
    for kind, (data, names, learnt) in known.items():
        linear, meaning, threshold = fit_pun(data, names, learnt)
        found[kind] = _dump(linear) | {
            "threshold": round(threshold, 4),
            "meaning": [round(value, 3) for value in meaning],
        }
    return found


def _dump(linear: Linear) -> dict[str, object]:
    weights = {name: round(weight, 4) for name, weight in linear.weights.items()}
    return {"weights": weights, "bias": round(linear.bias, 4)}


def gather(
    samples: Sequence[Sample], analyses: Sequence[SoundAnalysis], embed: Embed | None
) -> PunData:
    """Signals, sentence vectors and labels of captions, for a detector to learn from."""
    senses = [describe_senses(cut_words("".join(map(simplify, s.caption)))) for s in samples]
    rows = [[figures[name] for name in SENSE_FEATURES] for figures in senses]
    vectors = embed([s.caption for s in samples]) if embed else np.zeros((len(samples), 0))
    return PunData(
        np.hstack([matrix_of(analyses), np.array(rows)]),
        np.asarray(vectors, np.float64),
        np.array([s.intended is not None for s in samples]),
        np.array([s.homophone for s in samples]),
        np.array([assign_fold(s.group) for s in samples]),
    )


def gather_described(
    samples: Sequence[Sample],
    analyses: Sequence[SoundAnalysis],
    order: Linear,
    lattice: Lattice,
    embed: Embed | None,
) -> PunData:
    """The same with what descriptions of the pictures show; ``similar`` is 0 without vectors."""
    named = [find_evidence(s.caption, s.description, lattice) for s in samples]
    ordered = [a.reorder(order, frozenset(names)) for a, names in zip(analyses, named, strict=True)]
    data = gather(samples, ordered, embed)
    shown = [
        describe_picture(s.caption, s.description, a.list_changed(), lattice)
        for s, a in zip(samples, ordered, strict=True)
    ]
    rows = np.array([[figures.get(name, 0.0) for name in PICTURE_FEATURES] for figures in shown])
    if embed is not None:
        seen = embed([clean_description(s.description, s.caption) for s in samples])
        rows[:, PICTURE_FEATURES.index("similar")] = (data.vectors * seen).sum(axis=1)
    return replace(data, signals=np.hstack([data.signals, rows]))
