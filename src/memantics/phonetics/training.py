"""Captions to learn from, and what ``pun --evaluate`` learns from them without those it measures.

The weights that ship are fitted in ``research/pun_weights.py``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter, ValidationError

from memantics.core.closed import Lenient
from memantics.core.data import read_json
from memantics.core.errors import DataError, InputError
from memantics.phonetics.caption import simplify
from memantics.phonetics.detector import (
    Matrix,
    PunData,
    fit_choice,
    fit_logistic,
)
from memantics.phonetics.polysemy import SENSE_FEATURES, cut_words, describe_senses
from memantics.phonetics.ranking import CAPTION_FEATURES, RANK_FEATURES, Linear
from memantics.phonetics.speech import SoundAnalysis
from memantics.releases.punmemecn import META, find_folder

FOLDS = 5
_RIDGE = 3.0


class _Row(Lenient):
    meme_type: str
    caption_1: str
    caption_2: str | None = None
    meme_explanation: str = ""


_META_FILE = TypeAdapter(dict[str, _Row])
PUN_FEATURES = (*CAPTION_FEATURES, *SENSE_FEATURES)
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


def fit_first_right(samples: Sequence[Sample], analyses: Sequence[SoundAnalysis]) -> Linear:
    """Weights of the chance that the first reading of a caption is the one that is meant."""
    right = [is_first_right(s, a) for s, a in zip(samples, analyses, strict=True)]
    return fit_logistic(matrix_of(analyses), np.array(right, bool), CAPTION_FEATURES, _RIDGE)


def is_first_right(sample: Sample, analysis: SoundAnalysis) -> bool:
    """Whether the first reading is what the caption of a homophone pun means."""
    first = analysis.candidates[0].path.text if analysis.candidates else None
    return sample.homophone and first == sample.intended


def matrix_of(analyses: Iterable[SoundAnalysis]) -> Matrix:
    """The signals of captions, one row each."""
    return np.array([[a.signals[name] for name in CAPTION_FEATURES] for a in analyses])


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
