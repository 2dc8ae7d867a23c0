"""What is held out, and the settings that the paper names."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from memantics.core.errors import InputError, UnknownName
from memantics.moderation.examples import Example
from memantics.moderation.neural.feeding import hold_out, rate_at, split_rows
from memantics.moderation.neural.settings import (
    Backbones,
    NetworkShape,
    Training,
    check_backbones,
    choose_shape,
)
from tests.moderation.neural.tiny import draw_memes

pytestmark = pytest.mark.slow

MEMES = draw_memes(300).examples


def test_blocks_are_runs_of_neighbouring_ids() -> None:
    """Ids follow the crawl and leak the label: neighbours must not be parted at random."""
    shuffled = [MEMES[row] for row in np.random.default_rng(0).permutation(len(MEMES))]
    parts = hold_out(shuffled, "harmful", "blocks", 0.1)
    held = sorted(int(shuffled[row].id) for row in parts.valid)
    runs = 1 + sum(b - a > 1 for a, b in pairwise(held))
    assert (len(held), runs) == (30, 3), "three whole blocks of thirty"
    assert not set(parts.train) & set(parts.valid)
    assert len(parts.train) + len(parts.valid) == len(MEMES)


def test_random_parts_keep_the_shares_of_the_classes() -> None:
    parts = hold_out(MEMES, "type", "random", 0.2)
    for kind in {meme.type for meme in MEMES}:
        whole = sum(meme.type == kind for meme in MEMES)
        held = sum(MEMES[row].type == kind for row in parts.valid)
        assert held == pytest.approx(0.2 * whole, abs=1)
    assert hold_out(MEMES, "type", "random", 0.2, seed=1) != parts


def test_equal_texts_are_not_parted_at_random() -> None:
    """A text that stands in both parts is remembered, not recognised."""
    doubled = [
        *MEMES[:200],
        *(
            replace(meme, id=f"again{meme.id}", text=f" {meme.text.upper()}")
            for meme in MEMES[:200]
        ),
    ]
    parts = hold_out(doubled, "harmful", "random", 0.2)
    assert parts.shared == 0
    blocks = hold_out(doubled, "harmful", "blocks", 0.2)
    assert blocks.shared > 0, "there they are counted"


def test_what_is_shared_is_counted() -> None:
    memes = [Example("1", "a b"), Example("2", "AB"), Example("3", "c")]
    assert split_rows(memes, [1], [2]).shared == 1


def test_defaults_are_the_paper_s() -> None:
    training, shape = Training(), NetworkShape()
    assert (training.epochs, training.batch, training.rate) == (10, 32, 1e-5)
    assert (shape.length, shape.dropout) == (80, 0.1)
    assert len(training.seeds) == 5
    assert training.weighting == "balanced"
    assert (shape.integration, choose_shape("mke", None).integration) == ("attention",) * 2


def test_the_rate_warms_up_and_fades() -> None:
    rates = [rate_at(step, 100, 1.0, 0.1) for step in range(100)]
    assert rates[:10] == pytest.approx([0.1 * n for n in range(1, 11)])
    assert all(a > b for a, b in pairwise(rates[10:]))
    assert rates[-1] == pytest.approx(1 / 90)


def test_presets_name_what_they_need() -> None:
    with pytest.raises(InputError, match="needs a text backbone"):
        check_backbones("fusion", Backbones())
    with pytest.raises(InputError, match="does not use a clip backbone"):
        check_backbones("text", Backbones(text="x", clip=Path("y")))
    with pytest.raises(InputError, match="uses no text"):
        choose_shape("image", "attention")
    with pytest.raises(UnknownName):
        choose_shape("mkee", None)
    check_backbones("mke", Backbones(text="scratch"))
