"""Negative captions: word lists and a logistic regression compared with annotators.

``python -m perf.negative`` compares decisions on the open part of PunMemeCN, cross-validated by
caption, the strength of the penalty selected inside the folds. ``--locked`` fits the chosen one on
all of it and looks at the locked test set, at the threshold that the folds gave.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memantics.understanding.reappraisal.kindness import feel
from memantics.understanding.reappraisal.situation import lexicon_of, understand
from perf import kindness
from research.protocol import is_in_test_set

WANTED = 0.8  # precision
PENALTIES = (0.05, 0.3, 1.5)
VIEWS = ("lists", "lists, vectors", "lists, vectors, characters")


@dataclass(frozen=True, slots=True)
class Told:
    """A caption as it is heard, and what our lists and its annotators say of it."""

    intended: str
    listed: bool
    measurements: tuple[float, ...]
    negative: bool


def read_told(*, locked: bool) -> list[Told]:
    made = []
    for name, row in kindness.read_release(kindness.DATA / "punmemecn" / "_Meta.json").items():
        if is_in_test_set("punmemecn", name[:7]) == locked:
            text = " ".join(row["caption_1"].split())
            found = understand([text])
            intended = found.lines[0].intended
            measurements = tuple(
                float(number) for said in (text, intended) for number in weigh(said)
            )
            negative = row["meme_sentiment"].endswith("negative")
            made.append(Told(intended, found.negative, measurements, negative))
    return made


def weigh(text: str) -> tuple[float, ...]:
    mood, lexicon = feel(text), lexicon_of(text)
    causes, turns = sum(lexicon.weigh(text).values()), len(lexicon.find_turns(text))
    return mood.valence, len(mood.rude), len(mood.gloomy), causes, turns


def fold_of(text: str, count: int = 5) -> int:
    return int(hashlib.sha256(re.sub(r"\W", "", text).encode()).hexdigest(), 16) % count


def fit(view: str, rows: Sequence[Told], penalty: float) -> Any:
    """Return a function from rows to scores, fitted on some."""
    from scipy.sparse import csr_matrix, hstack
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    measurements = np.array([row.measurements for row in rows])
    middle, spread = measurements.mean(0), measurements.std(0) + 1e-6
    pieces = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), sublinear_tf=True)
    pieces.fit([row.intended for row in rows])

    def show(some: Sequence[Told]) -> Any:
        parts = [csr_matrix((np.array([row.measurements for row in some]) - middle) / spread)]
        if "vectors" in view:
            parts.append(csr_matrix(3 * np.stack([kindness.encode(row.intended) for row in some])))
        if "characters" in view:
            parts.append(pieces.transform([row.intended for row in some]))
        return hstack(parts).tocsr()

    model = LogisticRegression(C=penalty, max_iter=300, class_weight="balanced")
    model.fit(show(rows), [row.negative for row in rows])
    return lambda some: model.decision_function(show(some))


def score_held_out(view: str, rows: Sequence[Told], penalty: float | None, count: int = 5) -> Any:
    """Scores of rows by what was fitted on the other folds; None selects a penalty inside."""
    scores = np.zeros(len(rows))
    for fold in range(count):
        others = [row for row in rows if fold_of(row.intended, count) != fold]
        places = [n for n, row in enumerate(rows) if fold_of(row.intended, count) == fold]
        chosen = select(view, others) if penalty is None else penalty
        scores[places] = fit(view, others, chosen)([rows[n] for n in places])
    return scores


def select(view: str, rows: Sequence[Told]) -> float:
    from sklearn.metrics import roc_auc_score

    truth = [row.negative for row in rows]
    areas = [roc_auc_score(truth, score_held_out(view, rows, p, 3)) for p in PENALTIES]
    return PENALTIES[int(np.argmax(areas))]


def find_threshold(truth: Sequence[bool], scores: Any) -> tuple[float, float]:
    """Return the threshold with the most recall at the wanted precision, and that recall."""
    from sklearn.metrics import precision_recall_curve

    precision, recall, thresholds = precision_recall_curve(truth, scores)
    good = [n for n in range(len(thresholds)) if precision[n] >= WANTED]
    best = max(good, key=lambda n: recall[n])
    return float(thresholds[best]), float(recall[best])


def tell(name: str, truth: Sequence[bool], said: Any) -> None:
    """Print recall and precision of a decision, with 95 % intervals by 1,000 draws."""
    pairs, chance = np.array(list(zip(truth, said, strict=True)), bool), np.random.default_rng(38)
    draws = [pairs] + [pairs[chance.integers(0, len(pairs), len(pairs))] for _ in range(1000)]
    recalls = [own[own[:, 0], 1].mean() for own in draws]
    precisions = [own[own[:, 1], 0].mean() for own in draws]
    shown = [
        f"{own[0]:.2f} [{np.quantile(own, 0.025):.2f}, {np.quantile(own, 0.975):.2f}]"
        for own in (recalls, precisions)
    ]
    print(f"{name:<40} recall {shown[0]}, precision {shown[1]}, n {len(pairs)}", flush=True)


def main() -> None:
    from sklearn.metrics import roc_auc_score

    parser = argparse.ArgumentParser(description="Negative or not, against annotators.")
    parser.add_argument(
        "--locked", action="store_true", help="also evaluate on the locked test set"
    )
    locked = parser.parse_args().locked
    rows = read_told(locked=False)
    truth = [row.negative for row in rows]
    tell("lists alone, open part", truth, [row.listed for row in rows])
    found = []
    for view in VIEWS:
        scores = score_held_out(view, rows, None)
        threshold, recall = find_threshold(truth, scores)
        found.append((recall, threshold, view))
        area = roc_auc_score(truth, scores)
        print(f"{view:<40} AUC {area:.3f}, recall {recall:.2f} at {WANTED}", flush=True)
    if locked:
        unseen, (_, threshold, view) = read_told(locked=True), max(found)
        gold = [row.negative for row in unseen]
        tell("lists alone, locked test set", gold, [row.listed for row in unseen])
        scores = fit(view, rows, select(view, rows))(unseen)
        tell(f"{view}, locked test set", gold, scores >= threshold)


if __name__ == "__main__":
    main()
