"""Opinions of experts on texts, and why there is none; the experts in use, opened by topic."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from memantics.core.opinion import SURE, UNKNOWN, Judge, Judges, Opinion
from memantics.detector.examples import Example
from memantics.detector.expert import ExpertPrediction, FastExpert
from memantics.detector.features import Embedder
from memantics.detector.in_use import find_in_use, list_in_use
from memantics.detector.judges import open_embedder
from memantics.detector.storage import load_expert


def judge_text(
    expert: FastExpert,
    card: Mapping[str, Any],
    text: str,
    language: str,
    embedder: Embedder | None = None,
) -> Opinion:
    """What an expert says of a text; ``unknown`` for none, and for languages it never saw."""
    topic = str(card.get("topic") or expert.labels.name.rpartition("/")[2])
    by, sample = f"expert {expert.labels.name}", bool(card.get("sample"))
    languages = [str(value) for value in card.get("languages") or ()]
    accuracy, baseline = _number(card.get("accuracy")), _number(card.get("baseline"))
    why = ""
    if not text.strip():
        why = "there is no text"
    elif languages and language not in languages:
        why = f"the text is in {language or 'no known language'}; it learnt {', '.join(languages)}"
    elif accuracy is not None and baseline is not None and accuracy <= baseline:
        why = f"it is right no more often ({accuracy:.0%}) than a trivial answer ({baseline:.0%})"
    if why:
        return Opinion(topic, UNKNOWN, by, why=why, sample=sample)
    (said,) = expert.predict([Example("", text)], embedder)
    if said.probability < SURE:
        why = f"no label is likelier than not ({said.label} {said.probability:.0%})"
        return Opinion(topic, UNKNOWN, by, why=why, sample=sample)
    return Opinion(topic, said.label, by, said.probability, accuracy, baseline, sample=sample)


def measure_sure(
    gold: Sequence[tuple[str, ...]], said: Sequence[ExpertPrediction]
) -> dict[str, float | None]:
    """Of held-out memes of which it was sure: their share, how often it and a constant are right.

    >>> chances = (0.6, 0.4)
    >>> said = [ExpertPrediction("", "a", chance, ("a",), {}) for chance in chances]
    >>> measure_sure([("a",), ("b",)], said)
    {'coverage': 0.5, 'accuracy': 1.0, 'baseline': 1.0}
    """
    sure = [(names, one) for names, one in zip(gold, said, strict=True) if one.probability >= SURE]
    if not sure:
        return {"coverage": 0.0, "accuracy": None, "baseline": None}
    right = sum(one.label in names for names, one in sure)
    common = Counter(label for names, _ in sure for label in names).most_common(1)
    return {
        "coverage": len(sure) / len(said),
        "accuracy": right / len(sure),
        "baseline": common[0][1] / len(sure) if common else 0.0,
    }


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def open_judges(topics: Sequence[str] | None = None) -> Judges:
    """The experts in use, ready to be asked, by topic."""
    places = {topic: find_in_use(topic) for topic in (list_in_use() if topics is None else topics)}
    judges = {}
    for topic, place in places.items():
        if place is not None:
            expert, card = load_expert(place)
            ask = partial(_judge, expert, card, open_embedder(expert.settings))
            version = hashlib.sha256(place.read_bytes()).hexdigest()[:12]
            judges[topic] = Judge(topic, expert.labels.name, version, expert.labels.classes, ask)
    return judges


def _judge(
    expert: FastExpert,
    card: Mapping[str, Any],
    embedder: Embedder | None,
    text: str,
    language: str,
) -> Opinion:
    return judge_text(expert, card, text, language, embedder)
