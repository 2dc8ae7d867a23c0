"""Numbers and yes-or-no: a middle value, moved by mood and by how well captions fit."""

from __future__ import annotations

import re

from memantics.core.records import Field
from memantics.models.embedded.choices import is_harmful, is_pun, weigh
from memantics.models.embedded.evidence import Evidence, Senses, overlap
from memantics.models.embedded.topics import emotion_of, find_topic

_SAME_PICTURE = 0.5
_SHIFT = re.compile(r"shift|magnitude|change|intensity|变化|程度", re.IGNORECASE)
_MOOD = re.compile(r"emotion|feeling|sentiment|accuracy|align|情感|情绪", re.IGNORECASE)
_POSITIVE_MOOD = re.compile(r"calm|happy|relaxed|excited|positive|开心|平静|放松", re.IGNORECASE)


def rate(evidence: Evidence, field: Field, senses: Senses) -> int:
    """A number on the field's scale.

    A field about a shift of mood gets the distance between the first image's words and the
    last's; one about the right mood, how far the last one's words go towards the target; any
    other, how much of the wanted caption is there and how like the two pictures are.
    """
    name = field.name.replace("_", " ")
    if _SHIFT.search(name):
        push = 2 * _shift(evidence, senses) - 0.5
    elif _MOOD.search(name):
        push = _towards_target(evidence, senses)
    else:
        push = _quality(evidence, senses)
    middle, half = (field.low + field.high) / 2, (field.high - field.low) / 2
    value = round(middle + half * max(-1.0, min(1.0, push)))
    return max(field.low, min(field.high, value))


def decide(evidence: Evidence, field: Field, senses: Senses) -> bool:
    """True or false, by the topic of the field."""
    topic = find_topic(evidence.form, field)
    if topic == "likeness":
        return evidence.likeness is None or evidence.likeness >= _SAME_PICTURE
    if topic == "pun":
        return is_pun(evidence, senses)
    if topic == "harm":
        return is_harmful(evidence, senses)
    if not evidence.said:
        return False
    rows = senses.encoder.encode([evidence.form.question, evidence.said])
    return bool(rows[0] @ rows[1] > 0.5)


def _last(evidence: Evidence) -> str:
    return evidence.texts[-1] if evidence.texts else evidence.said


def _shift(evidence: Evidence, senses: Senses) -> float:
    before = evidence.texts[0] if len(evidence.texts) > 1 else evidence.find("source", "caption")
    return abs(weigh(_last(evidence), senses) - weigh(before, senses)) / 2


def _towards_target(evidence: Evidence, senses: Senses) -> float:
    target = evidence.find("target_emotion", "target")
    known = emotion_of(target)
    wanted = known if known is not None else float(bool(_POSITIVE_MOOD.search(target)))
    valence = weigh(_last(evidence), senses)
    return valence if wanted >= 0 else -valence


def _quality(evidence: Evidence, senses: Senses) -> float:
    wanted = evidence.find("target_caption", "rewritten", "reference", "caption")
    if wanted and evidence.texts:
        return overlap(wanted, _last(evidence)) - 0.5
    if evidence.likeness is not None:
        return evidence.likeness / 2
    return weigh(evidence.said, senses) / 2
