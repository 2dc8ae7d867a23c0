"""Five labels of three official releases, learnt and measured on groups that were held out.

Bounds are the best trivial answers; figures on memes that nobody looked at are in
``docs/research/protocol.md``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.evaluation.datasets import add_release
from memantics.moderation.classifier import Classifier, ClassifierOptions, find_labelled
from memantics.moderation.detector import validate_labels
from memantics.moderation.labels import LabelEvaluation
from tests.places import SHARED_DATA, needs_shared_data

pytestmark = [pytest.mark.slow, needs_shared_data]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(
    ("name", "memes", "accuracy", "macro_f1"),
    [
        ("mer_bench/emotion", 1497, 0.50, 0.45),
        ("mer_bench/polarity", 1497, 0.60, 0.38),
        ("punmemecn/sentiment_type", 1500, 0.50, 0.45),
        ("punmemecn/sentiment_target", 1500, 0.57, 0.45),
        ("toxicn_mm/target", 777, 0.50, 0.25),
    ],
)
def test_labels_are_told_better_than_by_any_trivial_answer(
    name: str, memes: int, accuracy: float, macro_f1: float
) -> None:
    add_release(name.partition("/")[0], SHARED_DATA / name.partition("/")[0])
    data = find_labelled(name)
    assert not data.sample
    assert abs(len(data.examples) - memes) <= 15
    found = validate_labels(data, ClassifierOptions(), folds=3).metrics
    assert isinstance(found, LabelEvaluation)
    assert (found.find("accuracy") or 0) > max(right for right, _ in found.baselines.values())
    assert (found.find("accuracy") or 0) > accuracy
    assert (found.find("macro_f1") or 0) > macro_f1


def test_an_classifier_of_a_release_knows_what_it_has_seen() -> None:
    add_release("mer_bench", SHARED_DATA / "mer_bench")
    made = Classifier.train("mer_bench/emotion")
    assert made.topic == "emotion"
    assert made.languages == ("en",)
    assert not made.sample
    assert made.has_seen(find_labelled("mer_bench/emotion", classes=made.classes))
    sample = find_labelled("mer_bench/emotion", data="sample", classes=made.classes)
    assert not made.has_seen(sample)
