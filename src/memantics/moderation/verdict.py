"""Verdicts on texts and images: the record ``Verdict``, and the function ``judge`` that makes it.

``screen``, the service, the studio, ``analyze``, ``detector predict`` and the Python API all use
:func:`judge`, so that thresholds, review ranges and language checks are the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from memantics.core.language import understand
from memantics.core.result import Result
from memantics.core.tables import make_schema
from memantics.core.text import drop_unseen
from memantics.moderation.examples import Example
from memantics.moderation.fast import Prediction
from memantics.moderation.judges import OpenDetector
from memantics.moderation.obfuscation import Unmasked, undecorate, unmask
from memantics.moderation.operating_points import Band, OperatingPoint
from memantics.moderation.review_reasons import IMAGE_MISSING
from memantics.moderation.subjects import (
    MOST_TEXT,
    NO_PICTURE,
    Subject,
    explain_doubts,
    explain_not_scored,
    find_intended_text,
    find_match,
    put_pictures,
    see_example,
    widen,
)
from memantics.moderation.unseen_ngrams import (
    LONG_SENTENCE,
    OUTSIDE_NOTE,
    count_words,
    cut_passages,
    cut_sentences,
)

if TYPE_CHECKING:
    import pyarrow as pa

VerdictStatus = Literal["scored", "not_scored", "failed"]
TextSource = Literal["given", "ocr", "none"]
HARMFUL: Final = "harmful"
HARMLESS: Final = "harmless"
REVIEW: Final = "review"
WHOLE_NOTE = "harmful with the text around its caption"
SENTENCE_IN_BAND: Final = "one sentence is in the review band on its own"
NO_NUMBER: Final = "the detector returned no number as the probability"
PASSAGE_IN_BAND: Final = "one passage is in the review band on its own"
_REASONS = 6  # maximum number of attributions per verdict
_SHOWN = 200  # maximum number of characters of a text that notes show


@dataclass(frozen=True, slots=True)
class TypeProbability:
    """The probability of one harm type."""

    type: str
    probability: float


@dataclass(frozen=True, slots=True)
class Attribution:
    """A feature of a text and its contribution to the score; positive means towards harmful."""

    feature: str
    contribution: float


@dataclass(frozen=True, slots=True)
class TopicLabel:
    """The label of a default classifier for its topic; may be ``unknown``."""

    topic: str
    label: str
    classifier: str
    probability: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(Result):
    """The verdict of a detector on one text or image.

    Args:
        id: Id of the meme.
        sha256: Digest of the image file.
        phash: Perceptual hash of the image.
        status: ``scored``, ``not_scored`` or ``failed``.
        reason: Why the meme is not scored or failed.
        credentials: Marks and content credentials in the image file: digital source type,
            program, signature; empty if there are none.
        text: All text, given or read by OCR.
        caption: The part of the text that belongs to the joke.
        other_text: The rest of the text: signs, watermarks, status bars.
        text_source: ``given``, ``ocr`` or ``none``.
        language: Detected language of the text.
        label: ``harmful`` or ``harmless``; None unless scored.
        probability: Probability of harm; None unless scored.
        type: The most probable harm type, if any.
        types: Probabilities of all harm types.
        attributions: Features with the largest contributions, if requested.
        readings: Homophone readings, if requested.
        template_cluster: The known template that the image is similar to.
        obfuscation: Obfuscations that were undone before scoring.
        matched_id: The match-list entry whose copy the meme is; it decides the label.
        match_reason: How the entry matched, and its stored reason; or the entry on the same
            template with another text, which is not a match.
        labels: Labels of the default classifiers, if requested.
        unseen_ngram_rate: Proportion of n-grams that no training text has; None if unknown.
        out_of_domain: Whether that rate is above the limit of the detector; None if unknown.
        detector: Name and checksum of the detector.
        note: Caveats to show with the verdict.
        review: Why the meme needs human review; empty if it does not.
    """

    id: str = ""
    sha256: str | None = None
    phash: str | None = None
    status: VerdictStatus
    reason: str = ""
    credentials: str = ""
    text: str = ""
    caption: str = ""
    other_text: str = ""
    text_source: TextSource = "none"
    language: str = ""
    label: Literal["harmless", "harmful"] | None = None
    probability: float | None = None
    type: str | None = None
    types: tuple[TypeProbability, ...] = ()
    attributions: tuple[Attribution, ...] = ()
    readings: tuple[str, ...] = ()
    template_cluster: str | None = None
    obfuscation: str = ""
    matched_id: str = ""
    match_reason: str = ""
    labels: tuple[TopicLabel, ...] = ()
    unseen_ngram_rate: float | None = None
    out_of_domain: bool | None = None
    detector: str
    note: str = ""
    review: str = ""

    @property
    def outcome(self) -> str | None:
        """What happens to the meme: ``harmless``, ``harmful``, or ``review`` by a person."""
        return REVIEW if self.review else self.label

    @property
    def flagged(self) -> bool:
        """Whether the meme is harmful or needs human review."""
        return self.outcome in (HARMFUL, REVIEW)

    def to_row(self) -> dict[str, Any]:
        """Return the verdict as a row of the ``screen`` table."""
        row = {name: getattr(self, name) for name in _list_columns()}
        row |= {"label": self.outcome, "language": self.language or None}
        row["reason"] = self.reason or self.review
        row["readings"] = list(self.readings)
        for name in ("types", "attributions", "labels"):
            row[name] = [asdict(value) for value in row[name]]
        return row


@cache
def _list_columns() -> tuple[str, ...]:
    # ``review`` is part of the columns label and reason; ``note`` is in the screening result.
    return tuple(field.name for field in fields(Verdict) if field.name not in ("note", "review"))


def make_verdict_schema() -> pa.Schema:
    """Return the columns of the ``screen`` table."""
    return make_schema(Verdict, _list_columns())


def judge(
    detector: OpenDetector,
    subjects: Sequence[Subject],
    point: OperatingPoint | None = None,
    *,
    explain: bool = False,
    said: Sequence[Prediction] | None = None,
    beside: Collection[str] = (),
) -> list[Verdict]:
    """Make one verdict per subject, in order.

    Args:
        detector: The loaded detector.
        subjects: The texts and images.
        point: Operating point. Default: that of the detector.
        explain: Add attributions to flagged verdicts.
        said: Predictions for the original texts, if already computed.
        beside: Languages that other detectors score.
    """
    if said is None:
        subjects = [widen(detector, subject) for subject in subjects]
    with put_pictures(detector, subjects) as placed:
        return _judge(detector, placed, point or detector.point, explain, said, beside)


def _judge(
    detector: OpenDetector,
    subjects: Sequence[Subject],
    point: OperatingPoint,
    explain: bool,
    said: Sequence[Prediction] | None,
    beside: Collection[str],
) -> list[Verdict]:
    most = MOST_TEXT if detector.machine.reads_texts else 0
    read = [unmask(subject.example.text[:most], detector.words) for subject in subjects]
    found = [_look(detector, *pair, beside) for pair in zip(subjects, read, strict=True)]
    looked = tuple(found)
    ready = [place for place, known in enumerate(found) if known.status == "scored"]
    plain = [subjects[place].example for place in ready]
    masked = [place for place in ready if read[place].obfuscations]
    shown = {place: replace(subjects[place].example, text=read[place].text) for place in masked}
    first = detector.machine.predict(plain) if said is None else [said[place] for place in ready]
    seen = dict(zip(masked, detector.machine.predict([*shown.values()]), strict=True))
    for place, prediction in zip(ready, first, strict=True):
        pair = (prediction, seen.get(place, prediction))
        if not all(math.isfinite(one.probability) for one in pair):
            found[place] = _miss(found[place])
            continue
        worst = max(pair, key=lambda one: one.probability)
        if point.homophones and not point.is_harmful(worst.probability):
            example = replace(subjects[place].example, text=read[place].text)
            worst, found[place] = _score_homophones(detector, worst, found[place], example)
        verdict = _decide(detector, found[place], worst, point, read[place].text)
        if explain and verdict.flagged:
            example = shown.get(place, subjects[place].example)
            verdict = replace(verdict, attributions=_list_attributions(detector, example))
        found[place] = verdict
    found = _judge_whole(detector, subjects, looked, found, point)
    texts = [text.text for text in read]
    found = _look_inside(detector, subjects, found, texts, point)
    pairs = zip(subjects, found, strict=True)
    return [_apply_match(detector, subject, verdict) for subject, verdict in pairs]


def _miss(known: Verdict) -> Verdict:
    """Return the verdict for a value that is not a number, which a network may return."""
    return replace(known, status="not_scored", reason=NO_NUMBER, review=NO_NUMBER)


def _score_homophones(
    detector: OpenDetector, said: Prediction, known: Verdict, example: Example
) -> tuple[Prediction, Verdict]:
    """Score the homophone reading of a Chinese text, and use it if it is more harmful."""
    intended = (
        find_intended_text(example.text)
        if known.language == "zh" and detector.machine.reads_texts
        else ""
    )
    if not intended:
        return said, known
    (other,) = detector.machine.predict([replace(example, text=intended)])
    if other.probability <= said.probability:
        return said, known
    shown = f"homophone reading {intended[:_SHOWN]!r}"
    return other, replace(
        known,
        obfuscation=", ".join(filter(None, (known.obfuscation, "homophones"))),
        note="; ".join(filter(None, (known.note, shown))),
    )


def _judge_whole(
    detector: OpenDetector,
    subjects: Sequence[Subject],
    looked: Sequence[Verdict],
    found: list[Verdict],
    point: OperatingPoint,
) -> list[Verdict]:
    """Return the more severe verdict: on the caption, or on all text of an image.

    ``looked`` are the verdicts before a label was decided.
    """
    more = {
        place: replace(subject.example, text=unmask(subject.text, detector.words).text)
        for place, subject in enumerate(subjects)
        if subject.text and found[place].status == "scored" and detector.machine.reads_texts
    }
    said = detector.machine.predict([*more.values()]) if more else ()
    for (place, example), prediction in zip(more.items(), said, strict=True):
        known = found[place]
        if not math.isfinite(prediction.probability):
            found[place] = replace(known, review=known.review or NO_NUMBER)
        if prediction.probability > (known.probability or 0.0):
            whole = _decide(detector, looked[place], prediction, point, example.text)
            if point.band(prediction.probability) != point.band(known.probability or 0.0):
                found[place] = replace(
                    whole, note="; ".join(filter(None, (known.note, WHOLE_NOTE)))
                )
    return found


def _apply_match(detector: OpenDetector, subject: Subject, verdict: Verdict) -> Verdict:
    """Give a copy of a known meme (match-list entry) its label; other verdicts do not change."""
    if detector.match_list is None or not detector.match_list.exists:
        return verdict
    match = find_match(detector.match_list, subject)
    if match is None:
        return verdict
    if not match.copied:
        return replace(verdict, match_reason=f"{match.how}: {match.entry.id}")
    verdict = replace(verdict, matched_id=match.entry.id, match_reason=match.reason)
    if not match.sure:
        return replace(verdict, review=verdict.review or match.cite())
    harmful = match.entry.label == HARMFUL
    return replace(
        verdict,
        status="scored",
        reason="",
        label=match.entry.label,
        probability=float(harmful),
        type=verdict.type if harmful else None,
        types=verdict.types if harmful else (),
        note="; ".join(filter(None, (verdict.note, match.cite()))),
        review="",
    )


def judge_by_all(detectors: Sequence[OpenDetector], subjects: Sequence[Subject]) -> list[Verdict]:
    """Return the most severe verdict over all detectors, per subject."""
    known = {name for detector in detectors for name in detector.languages}
    said = [judge(detector, subjects, beside=known) for detector in detectors]
    return [choose_gravest(verdicts) for verdicts in zip(*said, strict=True)]


def choose_gravest(verdicts: Sequence[Verdict]) -> Verdict:
    """Choose the most severe verdict: harmful, then review, then harmless, then probability.

    The result is not scored only if no detector scores the text. If a detector failed on the text,
    a harmless verdict of the others needs review.
    """
    judged = [verdict for verdict in verdicts if verdict.probability is not None]
    if not judged:
        reasons = dict.fromkeys(verdict.reason for verdict in verdicts)
        reason = "; ".join(reasons)
        return replace(verdicts[0], reason=reason, review=reason)
    rank = (HARMLESS, REVIEW, HARMFUL)
    gravest = max(judged, key=lambda one: (rank.index(one.outcome or ""), one.probability or 0.0))
    if gravest.outcome == HARMLESS and any(verdict.reason == NO_NUMBER for verdict in verdicts):
        return replace(gravest, review=NO_NUMBER)
    return gravest


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a harmless text that is scored on its own.

    ``what`` is a sentence, a passage of a long sentence, or the whole text without its decoration;
    ``kinds`` are the kinds of decoration that were removed.
    """

    text: str
    what: Literal["sentence", "passage", "text"] = "sentence"
    kinds: tuple[str, ...] = ()

    def explain(self, band: Band) -> str:
        """Return why the meme needs review; empty if the part is allowed."""
        if band == "allow":
            return ""
        if self.kinds:
            what = "the text" if self.what == "text" else f"one {self.what}"
            return f"{what} without decoration is not harmless ({', '.join(self.kinds)})"
        if band == "block":
            return f"one {self.what} is harmful on its own"
        # Short harmless sentences are often in the review band: docs/research/obfuscation.md.
        if self.what == "passage":
            return PASSAGE_IN_BAND
        return SENTENCE_IN_BAND if count_words(self.text) >= LONG_SENTENCE else ""


def _look_inside(
    detector: OpenDetector,
    subjects: Sequence[Subject],
    found: list[Verdict],
    texts: Sequence[str],
    point: OperatingPoint,
) -> list[Verdict]:
    """Send a harmless meme to human review if a part of its text is not harmless on its own.

    Parts are the sentences of the text, the text without decoration, and its sentences: harmful
    sentences may be hidden in kind ones. A part does not decide the label, since that could double
    the false positive rate. A text of one sentence without decoration needs no more predictions.
    """
    cut = {
        place: parts
        for place, verdict in enumerate(found)
        if verdict.outcome == HARMLESS and (parts := _list_parts(detector, texts[place]))
    }
    asked = [
        # A sentence is scored by its words alone, as if the image did not exist.
        replace(subjects[place].example, text=part.text)
        if part.what == "text"
        else Example("", part.text)
        for place, parts in cut.items()
        for part in parts
    ]
    said = iter(detector.machine.predict(asked) if asked else ())
    for place, parts in cut.items():
        scored = [(part, next(said).probability) for part in parts]
        reasons = [part.explain(point.band(probability)) for part, probability in scored]
        if reason := min(filter(None, reasons), key=_rank_reason, default=""):
            found[place] = replace(found[place], review=reason)
    return found


def _rank_reason(reason: str) -> int:
    """Order reasons: harmful sentences first, then decoration, then doubtful sentences."""
    return 2 if reason in (SENTENCE_IN_BAND, PASSAGE_IN_BAND) else int("decoration" in reason)


def _list_parts(detector: OpenDetector, text: str) -> list[_Part]:
    """List the parts of a text to score: sentences, passages, and versions without decoration."""
    measure = detector.unseen_ngram_rate
    own = undecorate(text, detector.words, None if measure is None else measure.measure)
    whole = [_Part(reading, "text", own.kinds) for reading in own.readings]
    # Neural networks are too slow to score each sentence.
    if detector.fast is None:
        return whole
    known = cut_sentences(text)
    bare = [one for reading in own.readings for one in cut_sentences(reading) if one not in known]
    return [
        *map(_Part, known),
        *(_Part(one, "passage") for one in cut_passages(text)),
        *whole,
        *(_Part(one, kinds=own.kinds) for one in dict.fromkeys(bare)),
    ]


def mark_predictions(
    detector: OpenDetector,
    examples: Sequence[Example],
    said: Sequence[Prediction],
    language: str = "",
) -> list[Prediction]:
    """Update predictions with their verdicts; ``not_scored`` is the reason if there is none."""
    subjects = [see_example(example, language) for example in examples]
    marked = []
    for verdict, prediction in zip(judge(detector, subjects, said=said), said, strict=True):
        if verdict.probability is None:
            marked.append(replace(prediction, not_scored=verdict.reason, review=verdict.review))
            continue
        marked.append(
            replace(
                prediction,
                label=int(verdict.label == HARMFUL),
                probability=verdict.probability,
                type=verdict.type or prediction.type,
                out_of_domain=verdict.out_of_domain,
                review=verdict.review,
            )
        )
    return marked


def fail(detector: str, reason: str, note: str = "", **known: Any) -> Verdict:
    """Make the verdict for a meme that cannot be read."""
    return Verdict(
        status="failed", reason=reason, review=reason, detector=detector, note=note, **known
    )


def _look(
    detector: OpenDetector, subject: Subject, unmasked: Unmasked, beside: Collection[str]
) -> Verdict:
    """Make the verdict before scoring; its status is ``scored`` if the text can be scored."""
    example, image = subject.example, subject.image
    text, learnt = example.text.strip(), detector.languages
    if detector.machine.reads_texts and not drop_unseen(unmasked.text).strip():
        text = ""  # of invisible characters alone
    read = understand(unmasked.text.strip(), learnt, subject.language)
    obfuscation = ", ".join(unmasked.obfuscations)
    plain = (
        f"obfuscated with {obfuscation}; scored as {unmasked.text[:_SHOWN]!r}"
        if obfuscation
        else ""
    )
    # A meme without text is scored by its image or its captions.
    looks = not detector.machine.reads_texts
    seen = looks or (not text and example.image is not None and detector.reads(example))
    lost = subject.image_fault.replace("; ", ", ")  # "; " separates reasons
    why = NO_PICTURE if detector.needs_image and example.image is None else ""
    why = f"{why}: {lost}" if why and lost else why
    if not why and not seen:
        why = explain_not_scored(text, read, learnt, image=image)
    doubts = "" if looks else explain_doubts(text, read, learnt, beside, subject.unread)
    unseen = f"{IMAGE_MISSING}: {lost}" if lost else ""
    source: TextSource = "given" if subject.given else "ocr"
    return Verdict(
        id=example.id,
        sha256=subject.sha256,
        phash=subject.phash,
        credentials=subject.credentials,
        status="not_scored" if why else "scored",
        reason=why,
        text=subject.text or example.text[:MOST_TEXT],
        caption=example.text[:MOST_TEXT],
        other_text=subject.other_text,
        text_source=source if text else "none",
        language=read.language if text else "",
        template_cluster=subject.template_cluster,
        detector=detector.version,
        obfuscation=obfuscation,
        note="; ".join(filter(None, (detector.note, plain, "" if why else unseen))),
        review=why or "; ".join(filter(None, (unseen, doubts))),
    )


def _decide(
    detector: OpenDetector, known: Verdict, said: Prediction, point: OperatingPoint, text: str
) -> Verdict:
    """Decide label, type and human review from a prediction and the operating point."""
    share = outside = None
    if detector.unseen_ngram_rate is not None and text.strip():
        share = detector.unseen_ngram_rate.measure_worst(text)
        outside = detector.unseen_ngram_rate.is_outside(share)
    harmful, band = point.is_harmful(said.probability), point.band(said.probability)
    doubts = (OUTSIDE_NOTE if outside else "", known.review, point.explain_review(said.probability))
    # A doubt never makes a verdict less severe: a meme to block is still blocked.
    doubt = "" if band == "block" else "; ".join(dict.fromkeys(filter(None, doubts)))
    flagged = harmful or bool(doubt)
    return replace(
        known,
        label=HARMFUL if harmful else HARMLESS,
        probability=said.probability,
        type=said.type if flagged and said.type != "none" else None,
        types=tuple(TypeProbability(*pair) for pair in sorted((said.types or {}).items())),
        unseen_ngram_rate=share,
        out_of_domain=outside,
        note="; ".join(filter(None, (known.note, OUTSIDE_NOTE if outside else ""))),
        review=doubt,
    )


def _list_attributions(detector: OpenDetector, example: Example) -> tuple[Attribution, ...]:
    found = detector.find_reasons(example)  # None for language models, which have no attributions
    parts = found.strongest(_REASONS) if found else ()
    return tuple(Attribution(part.text, part.contribution) for part in parts)
