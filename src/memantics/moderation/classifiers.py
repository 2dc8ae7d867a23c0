"""Predictions of classifiers, and the detector and classifiers used by default, by topic.

The defaults are small files in the home folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import orjson

from memantics.core.errors import InputError
from memantics.core.files import in_turn, read_regular, replace_file
from memantics.core.labels import SURE, UNKNOWN, ClassifierPrediction, Judge, Judges
from memantics.core.language import understand
from memantics.core.registry import home
from memantics.moderation.examples import Example
from memantics.moderation.fast import LabelPrediction
from memantics.moderation.judges import FastJudge, OpenDetector, open_classifier

DETECTOR = "detector"
_FILES = {DETECTOR: "detector.json"}
_CLASSIFIERS = "classifiers.json"


def set_in_use(topic: str, path: Path) -> None:
    """Make a file the default for a topic; ``detector`` is the topic of harm."""
    if topic in _FILES:
        body = orjson.dumps({"path": str(path)})
        replace_file(home() / _FILES[topic], body, "setting")
    else:
        with in_turn(home()):
            _write({**_read(), topic: str(path)})


def forget_in_use(topic: str) -> bool:
    """Remove the default of a topic; return whether there was one."""
    if topic in _FILES:
        known = (home() / _FILES[topic]).is_file()
        (home() / _FILES[topic]).unlink(missing_ok=True)
        return known
    with in_turn(home()):
        kept = _read()
        found = kept.pop(topic, None) is not None
        if found:
            _write(kept)
    return found


def find_in_use(topic: str) -> Path | None:
    """Return the default file of a topic, or None; raise InputError if the file is missing."""
    if topic in _FILES:
        place = _read_detector()
        remedy = "memantics detector use FILE, or 'memantics detector use sample'"
    else:
        found = _read().get(topic)
        place = Path(found) if found else None
        remedy = f"memantics classifier use FILE, or --forget {topic!r}"
    if place is not None and not place.exists():
        what = "detector" if topic in _FILES else f"classifier for {topic}"
        raise InputError(f"the default {what} does not exist any more: {place}", hint=remedy)
    return place


def list_in_use() -> dict[str, Path]:
    """Return the default classifiers by topic, including those whose file is missing."""
    return {topic: Path(place) for topic, place in sorted(_read().items())}


def _read_detector() -> Path | None:
    place = home() / _FILES[DETECTOR]
    try:
        return Path(orjson.loads(read_regular(place))["path"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"{place} cannot be read", hint="write it again with 'memantics detector use FILE'"
        ) from error


def _read() -> dict[str, str]:
    place = home() / _CLASSIFIERS
    try:
        found = orjson.loads(read_regular(place))
        return {str(topic): str(path) for topic, path in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(
            f"{place} cannot be read", hint="delete it, then run 'memantics classifier use FILE'"
        ) from error


def _write(table: dict[str, str]) -> None:
    replace_file(home() / _CLASSIFIERS, orjson.dumps(table, option=orjson.OPT_INDENT_2), "setting")


def find_accuracy(classifier: OpenDetector) -> float | None:
    """Return the accuracy on held-out training memes with a confident prediction, if known."""
    return _number(classifier.card.get("accuracy"))


def ask(classifier: OpenDetector, text: str, language: str) -> ClassifierPrediction:
    """Classify a text; ``unknown`` if it is empty or in a language outside the training data."""
    prediction = ClassifierPrediction(
        classifier.topic, UNKNOWN, f"classifier {classifier.labels.name}", sample=classifier.sample
    )
    accuracy, baseline = find_accuracy(classifier), _number(classifier.card.get("baseline"))
    learnt, said = classifier.languages, None
    why = ""
    if not text.strip():
        why = "there is no text"
    elif learnt and (foreign := understand(text, learnt, language).foreign):
        why = f"the text is in {foreign}; the classifier was trained on {', '.join(learnt)}"
    elif accuracy is not None and baseline is not None and accuracy <= baseline:
        why = f"its accuracy ({accuracy:.0%}) is not above the majority class ({baseline:.0%})"
    elif isinstance(classifier.machine, FastJudge):
        (said,) = classifier.machine.classify([Example("", text)])
        if said.probability < SURE:
            why = f"no label has a probability above 50 % ({said.label} {said.probability:.0%})"
    if said is None or why:
        return replace(prediction, why=why)
    return replace(
        prediction,
        label=said.label,
        probability=said.probability,
        accuracy=accuracy,
        baseline=baseline,
    )


def measure_sure(
    gold: Sequence[tuple[str, ...]], said: Sequence[LabelPrediction]
) -> dict[str, float | None]:
    """Measure confident predictions (above 50 %) on held-out memes.

    Returns their proportion (``coverage``), their accuracy, and the accuracy of the majority class
    on the same memes (``baseline``).

    >>> chances = (0.6, 0.4)
    >>> said = [LabelPrediction("", "a", chance, ("a",), {}) for chance in chances]
    >>> measure_sure([("a",), ("b",)], said)
    {'coverage': 0.5, 'accuracy': 1.0, 'baseline': 1.0}
    """
    sure = [
        (labels, one) for labels, one in zip(gold, said, strict=True) if one.probability >= SURE
    ]
    if not sure:
        return {"coverage": 0.0, "accuracy": None, "baseline": None}
    right = sum(one.label in labels for labels, one in sure)
    common = Counter(label for labels, _ in sure for label in labels).most_common(1)
    return {
        "coverage": len(sure) / len(said),
        "accuracy": right / len(sure),
        "baseline": common[0][1] / len(sure) if common else 0.0,
    }


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def open_judges(topics: Sequence[str] | None = None) -> Judges:
    """Load the default classifiers, by topic."""
    places = {topic: find_in_use(topic) for topic in (list_in_use() if topics is None else topics)}
    judges = {}
    for topic, place in places.items():
        if place is not None:
            opened = OpenDetector(open_classifier(place), "", place)
            labels, version = opened.labels, opened.checksum[:12]
            judges[topic] = Judge(topic, labels.name, version, labels.classes, partial(ask, opened))
    return judges
