"""On a part of the official training data, where it lies beside the checkout."""

from __future__ import annotations

import pytest

from memantics.core.registry import Registered, write_registered
from memantics.moderation.data import load_examples
from memantics.moderation.evaluation import evaluate
from memantics.moderation.examples import Example, split_blocks
from memantics.moderation.heads import find_preset
from memantics.moderation.held_out import cross_validate, make_trainer
from tests.places import SHARED_DATA, needs_shared_data

pytestmark = [pytest.mark.slow, needs_shared_data]


@pytest.fixture
def official() -> tuple[Example, ...]:
    write_registered(Registered("toxicn_mm", SHARED_DATA / "toxicn_mm", None, 9600, "x", "now"))
    return load_examples("toxicn_mm", "train", "v1").examples


def test_ids_order_blocks_of_very_different_shares(official: tuple[Example, ...]) -> None:
    folds = split_blocks([e.id for e in official], 10)
    shares = [
        sum(int(e.label or 0) for e, f in zip(official, folds, strict=True) if f == fold)
        / int((folds == fold).sum())
        for fold in range(10)
    ]
    assert min(shares) < 0.1
    assert max(shares) > 0.8


def test_a_part_of_the_data_beats_every_trivial_answer(official: tuple[Example, ...]) -> None:
    part = official[::6]
    study = cross_validate(part, make_trainer(find_preset("ridge")), "blocks", 4)
    found = evaluate(part, study.predictions)
    value = found.find("macro_f1")
    assert value is not None
    assert value > max(first for first, _ in found.baselines.values()) + 0.1
    assert {score.label for score in found.recalls if score.by == "modality"} >= {"text", "fusion"}
