"""Bands of an operating point: every probability is allowed, reviewed or blocked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.fast import Prediction
from memantics.moderation.operating_points import OperatingPoint
from memantics.moderation.subjects import Subject
from memantics.moderation.verdict import NO_NUMBER, judge, judge_by_all

RANK = ("allow", "review", "block")
OUTCOMES = {"harmless": "allow", "review": "review", "harmful": "block"}
TEXTS = ("今天天气真好", "kill all jews", "wir haben schon wieder Montag", "1450", "привет", "")


@dataclass
class FixedScore:
    """A machine that gives every text the same probability."""

    probability: float
    reads_texts: bool = True
    sees_images: bool = False

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        label = int(self.probability >= 0.5)
        return [Prediction(e.id, label, self.probability, None, {}) for e in examples]


def make_point(threshold: float, ends: tuple[float, float] | None) -> OperatingPoint:
    span = None if ends is None or ends[0] == ends[1] else (min(ends), max(ends))
    return OperatingPoint(threshold, span)


points = st.builds(
    make_point, st.floats(0, 1), st.none() | st.tuples(st.floats(0, 1), st.floats(0, 1))
)


@given(point=points, probability=st.floats(0, 1), other=st.floats(0, 1))
def test_the_bands_cover_all_probabilities_and_rise_with_them(
    point: OperatingPoint, probability: float, other: float
) -> None:
    band, above = point.band(probability), point.band(max(probability, other))
    assert RANK.index(band) <= RANK.index(above)
    assert bool(point.explain_review(probability)) == (band == "review")
    assert (band != "block") or point.is_harmful(probability)
    assert not point.is_harmful(probability) or band != "allow"
    span = point.review_range
    assert bool(point.gap) == (span is not None and not span[0] <= point.threshold <= span[1])


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector.load_sample()


@given(point=points, probability=st.floats(0, 1), text=st.sampled_from(TEXTS))
def test_no_verdict_is_below_the_band_of_its_probability(
    detector: Detector, point: OperatingPoint, probability: float, text: str
) -> None:
    machine: Any = FixedScore(probability)
    scorer: Any = SimpleNamespace(
        machine=machine, words=(), languages=("en", "zh"), point=point, version="fixed@0",
        note="", needs_image=False, unseen_ngram_rate=detector.unseen_ngram_rate,
        match_list=None, fast=None, reads=lambda example: bool(example.text),
    )  # fmt: skip
    (verdict,) = judge(scorer, [Subject(Example("m", text))])
    assert verdict.outcome in OUTCOMES
    if verdict.probability is None:
        assert (verdict.outcome, verdict.flagged) == ("review", True)
        assert verdict.reason
    else:
        reached = RANK.index(OUTCOMES[verdict.outcome or ""])
        assert reached >= RANK.index(point.band(verdict.probability))


@pytest.mark.parametrize(
    ("span", "threshold", "gap", "bands"),
    [
        (None, 0.5, "", ["allow", "block", "block"]),
        ((0.3, 0.7), 0.5, "", ["allow", "review", "block"]),
        ((0.1, 0.2), 0.8, "from 0.2 to 0.8", ["review", "review", "block"]),
        ((0.85, 0.95), 0.45, "from 0.45 to 0.85", ["allow", "review", "review"]),
    ],
)
def test_a_gap_is_closed_towards_review(
    span: tuple[float, float] | None, threshold: float, gap: str, bands: list[str]
) -> None:
    point = OperatingPoint(threshold, span)
    assert [point.band(value) for value in (0.15, 0.55, 0.9)] == bands
    assert gap in point.gap
    assert bool(gap) == bool(point.gap)


def test_a_short_english_threat_is_scored_whatever_its_language_seems_to_be(
    detector: Detector,
) -> None:
    (verdict,) = detector.verdicts(["kill all jews"])
    assert verdict.status == "scored"
    assert verdict.probability is not None
    assert verdict.language == "en" or "may be in" in verdict.review


def open_fixed(value: float) -> Any:
    """A detector of English and Chinese that gives every text one probability."""
    return SimpleNamespace(
        machine=FixedScore(value), words=(), languages=("en", "zh"), point=OperatingPoint(0.5),
        version="fixed@0", note="", needs_image=False, unseen_ngram_rate=None,
        match_list=None, fast=None, reads=lambda example: bool(example.text),
    )  # fmt: skip


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("text", ["今天天气真好", "\x00\u200b", "kill\u200b all jews"])
def test_a_value_that_is_no_number_goes_to_people(value: float, text: str) -> None:
    scorer = open_fixed(value)
    whole = Subject(Example("m", text), image=True, text=f"{text} and more")
    for subject in (Subject(Example("m", text)), whole):
        (verdict,) = judge(scorer, [subject])
        assert (verdict.status, verdict.outcome) == ("not_scored", "review")
        assert verdict.probability is None
        reason = NO_NUMBER if text != "\x00\u200b" else verdict.review
        assert verdict.review == verdict.reason == reason != ""


@pytest.mark.parametrize(("other", "outcome"), [(0.1, "review"), (0.9, "harmful")])
def test_a_detector_that_fails_on_a_text_is_not_outvoted_by_a_harmless_verdict(
    other: float, outcome: str
) -> None:
    both = [open_fixed(math.nan), open_fixed(other)]
    for detectors in (both, both[::-1]):
        (verdict,) = judge_by_all(detectors, [Subject(Example("m", "a kind text"))])
        assert (verdict.status, verdict.outcome) == ("scored", outcome)
        assert verdict.review == (NO_NUMBER if outcome == "review" else "")
