"""Scores of named attributes, such as TOXICITY: each is a label of a detector or a classifier."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memantics.core.errors import InputError, UnknownName, require_known
from memantics.core.language import read_language, understand
from memantics.core.result import Result
from memantics.moderation.classifier import Classifier
from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.explanation import Reasons
from memantics.moderation.judges import open_classifier, open_judge
from memantics.moderation.lora.judging import LoraJudge
from memantics.moderation.subjects import MOST_TEXT, Subject, explain_not_scored
from memantics.moderation.verdict import HARMFUL, Verdict, judge

SAMPLE = "sample"
_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_SENTENCE = re.compile(r"[^.!?。！？\n]*[^.!?。！？\s][^.!?。！？\n]*[.!?。！？]*")


@dataclass(frozen=True, slots=True)
class AttributeSource:
    """What scores an attribute: ``harmful`` or a harm type of a detector; a classifier's label."""

    name: str
    scorer: Detector | Classifier
    label: str

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages of the training texts."""
        return self.scorer.languages


@dataclass(frozen=True, slots=True)
class SpanScore:
    """The probability of an attribute for one sentence; offsets count Unicode characters."""

    start: int
    end: int
    probability: float


@dataclass(frozen=True, slots=True)
class AttributeScore(Result):
    """The score of one attribute.

    Args:
        name: Name of the attribute.
        probability: Probability of its label; None if the text is not scored.
        reason: Why the text is not scored; empty if it is.
        language: Detected language of the text.
        spans: Scores of the sentences, if requested; empty for language models.
        verdict: The verdict of the detector; None for a classifier.
        foreign: Whether the text is in a script without training texts.
    """

    name: str
    probability: float | None
    reason: str = ""
    language: str = ""
    spans: tuple[SpanScore, ...] = ()
    verdict: Verdict | None = None
    foreign: bool = False


def open_attributes(given: Sequence[str]) -> dict[str, AttributeSource]:
    """Open the detectors and classifiers of attributes, given as NAME=FILE or NAME=FILE:LABEL.

    Args:
        given: The attributes. FILE is a detector or a classifier, or ``sample`` for the sample
            detector. LABEL is a label of a classifier, or a harm type of a detector. Default:
            ``harmful``; a classifier needs a label.

    Returns:
        The sources by attribute name. A file that is named twice is loaded once.

    Raises:
        InputError: If a name or a file is invalid, or the file has no such label.

    >>> list(open_attributes(["TOXICITY=sample"]))
    ['TOXICITY']
    """
    loaded: dict[str, Detector | Classifier] = {}
    found: dict[str, AttributeSource] = {}
    for text in given:
        name, _, place = text.partition("=")
        if not _NAME.fullmatch(name) or not place:
            raise InputError(
                f"{text[:100]!r} is not a valid attribute",
                hint="use NAME=FILE or NAME=FILE:LABEL, such as TOXICITY=detector.zip",
            )
        if name in found:
            raise InputError(f"the attribute {name} is given twice", hint="give it once")
        file, label = _cut_label(place)
        scorer = loaded.get(file) or loaded.setdefault(file, _open(file))
        found[name] = AttributeSource(name, scorer, _find_label(scorer, label, name))
    return found


def _cut_label(place: str) -> tuple[str, str]:
    if place == SAMPLE or Path(place).exists():
        return place, ""
    file, _, label = place.rpartition(":")
    return (file, label) if file else (place, "")


def _open(file: str) -> Detector | Classifier:
    if file == SAMPLE:
        return Detector.load_sample()
    path = Path(file)
    try:
        return Detector(open_judge(path), path.name, path)
    except InputError as error:
        try:
            return Classifier(open_classifier(path), path)
        except InputError:
            raise error from None


def _find_label(scorer: Detector | Classifier, label: str, name: str) -> str:
    if isinstance(scorer, Classifier):
        if not label:
            hint = f"use {name}=FILE:LABEL; labels: {', '.join(scorer.classes)}"
            raise InputError(f"the classifier of {name} needs a label", hint=hint)
        require_known("label", label, scorer.classes)
        return label
    (said,) = scorer.predict([Example("start", "start")])
    known = (HARMFUL, *(kind for kind in said.types if kind != "none"))
    if label and label not in known:
        raise UnknownName("harm type", label, known)
    return label or HARMFUL


def score_attributes(
    sources: Mapping[str, AttributeSource],
    text: str,
    *,
    languages: Sequence[str] = (),
    spans: Collection[str] = (),
) -> list[AttributeScore]:
    """Score a text for named attributes, each with its own detector or classifier.

    Args:
        sources: The attributes to score, from ``open_attributes``.
        text: The text.
        languages: Language codes of the text. Default: detected.
        spans: Names of the attributes whose sentences are scored too.

    Returns:
        One score per attribute, in order. A score of a detector has the same verdict as ``screen``.

    Raises:
        InputError: If a language code is invalid.

    Example:
        >>> (score,) = score_attributes(open_attributes(["TOXICITY=sample"]), "今天天气真好")
        >>> score.name, 0 < (score.probability or 0) < 1
        ('TOXICITY', True)
    """
    given = [read_language(language) for language in languages]
    verdicts: dict[int, Verdict] = {}
    found = []
    for name, source in sources.items():
        language = next((code for code in given if code in source.languages), *given[:1] or ("",))
        if isinstance(source.scorer, Classifier):
            score = _classify(source, text, language)
        else:
            key = id(source.scorer)
            if key not in verdicts:
                subject = Subject(Example("", text), language)
                (verdicts[key],) = judge(source.scorer, [subject])
            score = _read_verdict(source, verdicts[key])
        if name in spans and score.probability is not None:
            parts = tuple(_score_spans(source, text[:MOST_TEXT]))
            score = replace(score, spans=parts)
        elif score.probability is None:
            read = understand(text[:MOST_TEXT].strip(), source.languages, language)
            score = replace(score, foreign=not read.legible)
        found.append(score)
    return found


def _read_verdict(source: AttributeSource, verdict: Verdict) -> AttributeScore:
    probability = verdict.probability
    if source.label != HARMFUL and probability is not None:
        types = {one.type: one.probability for one in verdict.types}
        # a copy of a harmless meme in the match list has no types
        known = 0.0 if verdict.matched_id and verdict.label != HARMFUL else None
        probability = types.get(source.label, known)
    reason = "" if probability is not None else verdict.reason or "the verdict has no harm types"
    return AttributeScore(source.name, probability, reason, verdict.language, verdict=verdict)


def _classify(source: AttributeSource, text: str, language: str) -> AttributeScore:
    shown = text[:MOST_TEXT].strip()
    read = understand(shown, source.languages, language)
    reason = explain_not_scored(shown, read, source.languages, image=False)
    if reason:
        return AttributeScore(source.name, None, reason, read.language if shown else "")
    assert isinstance(source.scorer, Classifier)
    (said,) = source.scorer.predict([Example("", shown)])
    return AttributeScore(source.name, said.chances[source.label], language=read.language)


def _score_spans(source: AttributeSource, text: str) -> list[SpanScore]:
    """Score sentences by the explanation: the base score plus the contributions in each sentence.

    A harm type has no explanation of its own, so it has no spans.
    """
    reasons = _explain(source, text)
    if reasons is None:
        return []
    field = next((field for field in reasons.fields if field.field == "text"), None)
    characters = field.characters if field is not None else (0.0,) * len(text)
    return [
        SpanScore(start, end, _make_chance(reasons.base + math.fsum(characters[start:end])))
        for start, end in _find_sentences(text)
    ]


def _explain(source: AttributeSource, text: str) -> Reasons | None:
    example = Example("", text)
    if isinstance(source.scorer, Classifier):
        return source.scorer.explain(example, source.label)
    if source.label != HARMFUL or isinstance(source.scorer.machine, LoraJudge):
        return None
    return source.scorer.find_reasons(example)


def _find_sentences(text: str) -> list[tuple[int, int]]:
    """Find the sentences of a text, without the white space around them.

    >>> _find_sentences("One. Two!  三。四")
    [(0, 4), (5, 9), (11, 13), (13, 14)]
    """
    found = []
    for match in _SENTENCE.finditer(text):
        shown = match.group()
        start = match.start() + len(shown) - len(shown.lstrip())
        found.append((start, start + len(shown.strip())))
    return found


def _make_chance(odds: float) -> float:
    return 1 / (1 + math.exp(-min(max(odds, -700.0), 700.0)))
