"""The shipped sample detector is what training on the sample data gives, with a whole card."""

from __future__ import annotations

import pytest

from memantics.moderation.detect import Detector
from memantics.moderation.identity import EVERY_GROUP

TEXTS = ["今天天气真好", "you idiot", "你这个笨蛋滚开", "早上好"]


def test_training_on_the_sample_data_gives_the_shipped_detector() -> None:
    shipped, fresh = Detector.load_sample(), Detector.train("sample", "ridge")
    said = [[one.probability for one in each.predict(TEXTS)] for each in (shipped, fresh)]
    assert said[0] == pytest.approx(said[1], abs=1e-6)
    assert shipped.card["checksum"] == fresh.card["checksum"]
    assert shipped.held_out_scores == fresh.held_out_scores


def test_its_card_has_the_false_positive_rates_of_groups() -> None:
    card = Detector.load_sample().show_card()
    assert "## Identity terms" in card
    assert card.count(EVERY_GROUP) == 2  # English and Chinese
