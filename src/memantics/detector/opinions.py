"""Opinions of experts on texts, and why there is none; the experts in use, opened by topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from memantics.core.language import understand
from memantics.core.opinion import SURE, UNKNOWN, Judge, Judges, Opinion
from memantics.detector.examples import Example
from memantics.detector.fast import LabelPrediction
from memantics.detector.in_use import find_in_use, list_in_use
from memantics.detector.judges import FastJudge, OpenDetector, open_expert


def find_accuracy(expert: OpenDetector) -> float | None:
    """Its accuracy on memes held out inside training of which it was sure."""
    return _number(expert.card.get("accuracy"))


def ask(expert: OpenDetector, text: str, language: str) -> Opinion:
    """What an expert says of a text; ``unknown`` for none, and for languages it never saw."""
    opinion = Opinion(expert.topic, UNKNOWN, f"expert {expert.labels.name}", sample=expert.sample)
    accuracy, baseline = find_accuracy(expert), _number(expert.card.get("baseline"))
    learnt, said = expert.languages, None
    why = ""
    if not text.strip():
        why = "there is no text"
    elif learnt and (foreign := understand(text, learnt, language).foreign):
        why = f"the text is in {foreign}; it learnt {', '.join(learnt)}"
    elif accuracy is not None and baseline is not None and accuracy <= baseline:
        why = f"it is right no more often ({accuracy:.0%}) than a trivial answer ({baseline:.0%})"
    elif isinstance(expert.machine, FastJudge):
        (said,) = expert.machine.classify([Example("", text)])
        if said.probability < SURE:
            why = f"no label is likelier than not ({said.label} {said.probability:.0%})"
    if said is None or why:
        return replace(opinion, why=why)
    return replace(
        opinion,
        label=said.label,
        probability=said.probability,
        accuracy=accuracy,
        baseline=baseline,
    )


def measure_sure(
    gold: Sequence[tuple[str, ...]], said: Sequence[LabelPrediction]
) -> dict[str, float | None]:
    """Of held-out memes of which it was sure: their share, how often it and a constant are right.

    >>> chances = (0.6, 0.4)
    >>> said = [LabelPrediction("", "a", chance, ("a",), {}) for chance in chances]
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
            opened = OpenDetector(open_expert(place), "", place)
            labels, version = opened.labels, opened.checksum[:12]
            judges[topic] = Judge(topic, labels.name, version, labels.classes, partial(ask, opened))
    return judges
