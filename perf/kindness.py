"""The classifier that rates reappraisals: multilingual sentence vectors and logistic regression.

``python -m perf.kindness`` fits the one that ships on the
groups outside the locked test set (``research.protocol``), and prints its cross-validated metrics.
It is fitted on releases that lie beside the checkout and never sees what the planner's score is
made of (word lists): English on MER-Bench's captions against their rewritings by people, Chinese on
PunMemeCN's captions that annotators called negative or positive. Images of PunMemeCN's groups 1 to
100 are what reappraisal is measured on, so those groups are left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from memantics.core.labels import name_group
from memantics.models.embedded.encoder import SentenceEncoder
from memantics.understanding.reappraisal.kindness import WEIGHTS, clean_caption
from research.protocol import is_in_test_set

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
SEEN_GROUPS = 100  # of PunMemeCN: their images are measured
FOLDS = 5
_ENCODER = SentenceEncoder()


@dataclass(frozen=True, slots=True)
class Sample:
    """A caption: kind (1) or not (0), and the group that no split may divide."""

    text: str
    kind: int
    group: str
    source: str = ""


def read_release(path: Path) -> Any:
    """Return the JSON of a release: rows as their authors wrote them."""
    return json.loads(path.read_text(encoding="utf-8"))


def read_english() -> Iterator[Sample]:
    """Captions of MER-Bench, and what people made of them."""
    for row in read_release(DATA / "mer_bench" / "index_final.json"):
        yield Sample(row["text"], 0, row["id"], row["text"])
        yield Sample(row["pos_txt"], 1, row["id"], row["text"])


def read_chinese(*, seen: bool = False) -> Iterator[Sample]:
    """Captions of PunMemeCN as they are meant; unless ``seen``, of groups that are not measured."""
    for name, row in read_release(DATA / "punmemecn" / "_Meta.json").items():
        group, feeling = name[2:7], row["meme_sentiment"].partition("-")[2]
        if (seen or int(group) > SEEN_GROUPS) and feeling != "neutral":
            text = row.get("caption_2") or row["caption_1"]
            yield Sample(text, int(feeling == "positive"), group)


@lru_cache(maxsize=20000)
def encode(text: str) -> Any:
    return _ENCODER.encode([clean_caption(text)])[0]


def fit_model(samples: Sequence[Sample]) -> Any:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=4.0, max_iter=2000, class_weight="balanced")
    model.fit(
        np.stack([encode(sample.text) for sample in samples]), [sample.kind for sample in samples]
    )
    return model


def fit(samples: Sequence[Sample]) -> Callable[[str], float]:
    """Return a function from a text to the probability that it is kind."""
    model = fit_model(samples)
    return lambda text: float(model.predict_proba([encode(text)])[0, 1])


def fold_of(group: str) -> int:
    return int(hashlib.sha256(group.encode()).hexdigest(), 16) % FOLDS


def cross_validate(samples: Sequence[Sample]) -> float:
    """Area under the ROC curve on groups that were held out."""
    from sklearn.metrics import roc_auc_score

    scores: dict[int, float] = {}
    for fold in range(FOLDS):
        judge = fit([sample for sample in samples if fold_of(sample.group) != fold])
        for number, one in enumerate(samples):
            if fold_of(one.group) == fold:
                scores[number] = judge(one.text)
    order = sorted(scores)
    return float(roc_auc_score([samples[n].kind for n in order], [scores[n] for n in order]))


def main() -> None:
    """Fit what ships on the open part of both releases, and say how well it tells held-out ones."""
    english = [s for s in read_english() if not is_in_test_set("mer_bench", name_group(s.source))]
    chinese = [
        s for s in read_chinese(seen=True) if not is_in_test_set("punmemecn", f"CN{s.group}")
    ]
    shipped = {}
    for name, samples in (("en", english), ("zh", chinese)):
        area = cross_validate(samples)
        print(f"{name}: {len(samples)} captions, AUC on held-out groups {area:.3f}")
        model = fit_model(samples)
        numbers = [*model.coef_[0].tolist(), float(model.intercept_[0])]
        shipped[name] = [round(number, 4) for number in numbers]
    WEIGHTS.write_bytes(orjson.dumps(shipped) + b"\n")


if __name__ == "__main__":
    main()
