"""Opinions of experts on texts, and why there is none; the experts in use, opened by topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from memantics.core.opinion import UNKNOWN, Judges, Opinion
from memantics.detector.examples import Example
from memantics.detector.expert import FastExpert
from memantics.detector.expert_file import load_expert
from memantics.detector.features import Embedder
from memantics.detector.in_use import find_in_use, list_in_use
from memantics.detector.judges import open_embedder


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
    languages = [str(own) for own in card.get("languages") or ()]
    why = ""
    if not text.strip():
        why = "there is no text"
    elif languages and language not in languages:
        why = f"the text is in {language or 'no known language'}; it learnt {', '.join(languages)}"
    if why:
        return Opinion(topic, UNKNOWN, by, why=why, sample=sample)
    (said,) = expert.predict([Example("", text)], embedder)
    return Opinion(
        topic,
        said.label,
        by,
        said.probability,
        _number(card.get("accuracy")),
        _number(card.get("baseline")),
        sample=sample,
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def open_judges(topics: Sequence[str] | None = None) -> tuple[Judges, str]:
    """The experts in use by topic, and one line that tells which they are and their versions."""
    places = {topic: find_in_use(topic) for topic in (list_in_use() if topics is None else topics)}
    judges, names = {}, []
    for topic, place in places.items():
        if place is not None:
            expert, card = load_expert(place)
            judges[topic] = partial(_judge, expert, card, open_embedder(expert.settings))
            names.append(f"{topic}: {expert.labels.name} ({_digest(place)})")
    return judges, "; ".join(sorted(names))


def _judge(
    expert: FastExpert,
    card: Mapping[str, Any],
    embedder: Embedder | None,
    text: str,
    language: str,
) -> Opinion:
    return judge_text(expert, card, text, language, embedder)


def _digest(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
