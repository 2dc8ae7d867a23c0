"""The classifier that judges reappraisals: multilingual sentence vectors and logistic regression.

It is fitted on releases that lie beside the checkout and never sees what the planner's score is
made of (word lists): English on MER-Bench's captions against their rewritings by people, Chinese on
PunMemeCN's captions that annotators called negative or positive. Images of PunMemeCN's groups 1 to
100 are what reappraisal is measured on, so those groups are left out.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from memantics.models.embedded.encoder import SentenceEncoder

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
SEEN_GROUPS = 100  # of PunMemeCN: their images are measured
FOLDS = 5
_SITES = re.compile(r"\S*\.(?:com|net|org|me|cn)\S*|@\w+|imgflip|mematic|memegenerator|quickmeme")
_MARKS = re.compile(r"[^\w\s']")
_ENCODER = SentenceEncoder()


@dataclass(frozen=True, slots=True)
class Sample:
    """A caption: kind (1) or not (0), and the group that no split may divide."""

    text: str
    kind: int
    group: str


def read_release(path: Path) -> Any:
    """The JSON of a release: rows as their authors wrote them."""
    return json.loads(path.read_text(encoding="utf-8"))


def clean(text: str) -> str:
    """Letters only: sites, marks and capitals tell rewritings from sources, not moods."""
    plain = re.sub(r"\\+n|\\", " ", text).casefold()
    return " ".join(_MARKS.sub(" ", _SITES.sub(" ", plain)).split())


def read_english() -> Iterator[Sample]:
    """Captions of MER-Bench, and what people made of them."""
    for row in read_release(DATA / "mer_bench" / "index_final.json"):
        yield Sample(row["text"], 0, row["id"])
        yield Sample(row["pos_txt"], 1, row["id"])


def read_chinese() -> Iterator[Sample]:
    """Captions of PunMemeCN as they are meant, of groups whose images are not measured."""
    for name, row in read_release(DATA / "punmemecn" / "_Meta.json").items():
        group, feeling = name[2:7], row["meme_sentiment"].partition("-")[2]
        if int(group) > SEEN_GROUPS and feeling != "neutral":
            text = row.get("caption_2") or row["caption_1"]
            yield Sample(text, int(feeling == "positive"), group)


@lru_cache(maxsize=20000)
def encode(text: str) -> Any:
    return _ENCODER.encode([clean(text)])[0]


def fit(samples: Sequence[Sample]) -> Callable[[str], float]:
    """A function from a text to the probability that it is kind."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=4.0, max_iter=2000, class_weight="balanced")
    model.fit(np.stack([encode(own.text) for own in samples]), [own.kind for own in samples])
    return lambda text: float(model.predict_proba([encode(text)])[0, 1])


def fold_of(group: str) -> int:
    return int(hashlib.sha256(group.encode()).hexdigest(), 16) % FOLDS


def cross_validate(samples: Sequence[Sample]) -> float:
    """Area under the ROC curve on groups that were held out."""
    from sklearn.metrics import roc_auc_score

    scores: dict[int, float] = {}
    for fold in range(FOLDS):
        judge = fit([own for own in samples if fold_of(own.group) != fold])
        for number, own in enumerate(samples):
            if fold_of(own.group) == fold:
                scores[number] = judge(own.text)
    order = sorted(scores)
    return float(roc_auc_score([samples[n].kind for n in order], [scores[n] for n in order]))
