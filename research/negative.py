"""The classifier of negative captions: data, selection, and the fit that ships.

``python -m research.negative`` fits it on the development sets and writes
``understanding/reappraisal/negative.json``. ``research/studies/negative.py`` measures it. Rows are
put into canonical order; the penalty is the strongest within one standard error of the best, over
repeated folds that keep equal captions together.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, stdev
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from memantics.core.labels import name_group
from memantics.models.embedded.encoder import open_encoder
from memantics.understanding.reappraisal.kindness import clean_caption, read_caption
from memantics.understanding.reappraisal.negative import HEADS, rate
from memantics.understanding.reappraisal.situation import understand
from research.data import tag_length
from research.protocol import DATA, Row, take_development_set

DATASETS = {"zh": "punmemecn", "en": "mer_bench"}
PENALTIES = (0.1, 0.3, 1.0, 3.0)  # inverse strength, the strongest first
REPEATS, FOLDS = 5, 5
PRECISION = 0.7  # of the classifier alone, on held-out folds


@dataclass(frozen=True, slots=True)
class Feeling:
    """A caption, the finding of the word lists, and the annotators' label."""

    text: str
    listed: bool
    negative: bool


@dataclass(frozen=True, slots=True)
class Head:
    """A fitted classifier: weights with the intercept last, threshold, and the chosen penalty."""

    weights: tuple[float, ...]
    threshold: float
    penalty: float
    areas: tuple[float, ...]  # AUROC on held-out folds, one per seed


@cache
def read_feelings(language: str) -> list[Row[Feeling]]:
    """Read the captions of one language with their labels."""
    return list(_read_chinese() if language == "zh" else _read_english())


def _read_chinese() -> list[Row[Feeling]]:
    rows = json.loads((DATA / "punmemecn" / "_Meta.json").read_bytes())
    return [
        _make(name, name[:7], row["caption_1"], row["meme_sentiment"].endswith("negative"))
        for name, row in rows.items()
    ]


def _read_english() -> list[Row[Feeling]]:
    rows = json.loads((DATA / "mer_bench" / "index_final.json").read_bytes())
    return [
        _make(
            str(row["id"]),
            name_group(row["text"]) or str(row["id"]),
            row["text"],
            row["sentiment_polarity"] == "Negative",
        )
        for row in rows
        if row["text"].strip()
    ]


def _make(name: str, group: str, text: str, negative: bool) -> Row[Feeling]:
    said = " ".join(text.split())
    tags = {"length": tag_length(said), "label": "negative" if negative else "not negative"}
    return Row(name, group, Feeling(said, understand([said]).negative, negative), tags)


@cache
def encode(text: str) -> NDArray[np.float32]:
    """Encode the intended reading of a caption, as the shipped classifier does."""
    said = clean_caption(read_caption(text)) or " "
    vector: NDArray[np.float32] = open_encoder().encode([said])[0]
    return vector


def fit(rows: Sequence[Row[Feeling]]) -> Head:
    """Choose a penalty by repeated folds, a threshold on held-out scores, and fit on all rows."""
    rows = sorted(rows, key=lambda row: (row.content.text, row.content.negative, row.id))
    table = np.stack([encode(row.content.text) for row in rows])
    truth = np.array([row.content.negative for row in rows])
    held = {penalty: _hold_out(rows, table, truth, penalty) for penalty in PENALTIES}
    areas = {penalty: [_area(truth, scores) for scores in held[penalty]] for penalty in PENALTIES}
    best = max(PENALTIES, key=lambda penalty: fmean(areas[penalty]))
    error = _find_error(rows, truth, held[best])
    chosen = next(p for p in PENALTIES if fmean(areas[p]) >= fmean(areas[best]) - error)
    model = _fit_once(table, truth, chosen)
    scores = np.mean(held[chosen], axis=0)
    threshold = _find_threshold(truth, scores)
    weights = [*model.coef_[0].tolist(), float(model.intercept_[0])]
    return Head(
        tuple(round(value, 4) for value in weights),
        round(1 / (1 + float(np.exp(-threshold))), 4),
        chosen,
        tuple(round(area, 4) for area in areas[chosen]),
    )


def _fit_once(table: Any, truth: Any, penalty: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=penalty, max_iter=1000, class_weight="balanced").fit(table, truth)


def _fold_of(group: str, seed: int) -> int:
    return int(hashlib.sha256(f"{seed}\n{group}".encode()).hexdigest(), 16) % FOLDS


def _hold_out(rows: Sequence[Row[Feeling]], table: Any, truth: Any, penalty: float) -> list[Any]:
    found = []
    for seed in range(REPEATS):
        folds = np.array([_fold_of(row.group, seed) for row in rows])
        scores = np.zeros(len(rows))
        for fold in range(FOLDS):
            out = folds == fold
            scores[out] = _fit_once(table[~out], truth[~out], penalty).decision_function(table[out])
        found.append(scores)
    return found


def _area(truth: Any, scores: Any) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, scores))


def _find_error(rows: Sequence[Row[Feeling]], truth: Any, held: Sequence[Any]) -> float:
    """Return the standard error of the AUROC over the folds of the first seed."""
    folds = np.array([_fold_of(row.group, 0) for row in rows])
    areas = [_area(truth[folds == fold], held[0][folds == fold]) for fold in range(FOLDS)]
    return float(stdev(areas) / FOLDS**0.5)


def _find_threshold(truth: Any, scores: Any) -> float:
    """Return the lowest threshold whose precision is high enough, on held-out scores."""
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(truth[order])
    good = np.flatnonzero(hits / np.arange(1, len(order) + 1) >= PRECISION)
    return float(scores[order[good[-1]]])


def predict(head: Head, text: str) -> float:
    """Return the probability that a caption is negative."""
    return rate(encode(text).tolist(), head.weights)


def main() -> None:
    """Fit the classifiers on the development sets, and write the file that ships."""
    stored = {}
    for language, data in DATASETS.items():
        rows = take_development_set(data, read_feelings(language))
        head = fit(rows)
        print(
            f"{language}: {len(rows)} captions, penalty {head.penalty}, threshold {head.threshold},"
            f" AUROC over {REPEATS} seeds: mean {fmean(head.areas):.3f}, worst {min(head.areas)}"
        )
        stored[language] = {"threshold": head.threshold, "weights": list(head.weights)}
    HEADS.write_bytes(orjson.dumps(stored) + b"\n")


if __name__ == "__main__":
    main()
