"""HateCLIPper with retrieval-guided contrast, and CLIP-MKE beside it, on tiny CLIP models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memantics.core.errors import InputError
from memantics.moderation.neural.saved import load_neural, predict_neural
from memantics.moderation.neural.seeds import SeedPlan, train_neural
from memantics.moderation.neural.settings import Backbones, NetworkShape, choose_shape
from memantics.moderation.neural.training import VectorBank, find_neighbours
from memantics.moderation.train_networks import plan_network
from tests.moderation.neural.conftest import Make
from tests.moderation.neural.tiny import QUICK, draw_memes


@pytest.mark.slow
def test_neighbours_are_the_nearest_of_the_same_and_of_another_class() -> None:
    torch = pytest.importorskip("torch")
    angles = torch.tensor([0.0, 0.1, 0.3, 0.35, 3.0])
    vectors = torch.stack([angles.cos(), angles.sin()], -1)
    same, other = find_neighbours(vectors, torch.tensor([0, 0, 0, 1, 2]))
    assert same.tolist() == [1, 0, 1, 3, 4], "one that is alone in its class has itself"
    assert other.tolist() == [3, 3, 3, 2, 3]


@pytest.mark.slow
def test_the_loss_is_the_share_of_the_positive_among_all() -> None:
    torch = pytest.importorskip("torch")
    vectors = torch.eye(3)
    bank = VectorBank(vectors, torch.arange(3), torch.tensor([1, 0, 2]), torch.tensor([2, 2, 0]))
    batch = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 3.0]], requires_grad=True)
    losses = bank.compare(batch, torch.tensor([0, 1]), np.array([0, 2]))
    # The first: positive 0, hard negative 0, the other of the batch 0. The second: 1, 0, 0.
    wanted = [np.log(3.0), np.log(np.e + 2.0) - 1.0]
    assert losses.tolist() == pytest.approx(wanted, abs=1e-6)
    losses.sum().backward()
    assert batch.grad is not None


def test_a_contrast_is_trained_in_whole_epochs() -> None:
    assert (NetworkShape().contrast, choose_shape("rgcl", None).contrast) == (0.0, 1.0)
    with pytest.raises(InputError, match="after an epoch"):
        plan_network("rgcl", Backbones(clip=Path("clip")), replace(QUICK, save_every=5))


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["rgcl", "clip-mke"])
def test_a_tiny_clip_is_trained_saved_and_judges_the_same(
    preset: str, encoder: Make, tmp_path: Path
) -> None:
    data = draw_memes(40, tmp_path / "images")
    shape = replace(choose_shape(preset, None), length=24)
    plan = SeedPlan(Backbones(clip=encoder("clip")), shape, replace(QUICK, epochs=2))
    trained = train_neural(data, plan, tmp_path / "out", lambda _: None)
    first = predict_neural(load_neural(tmp_path / "out", "cpu"), data.examples)
    again = predict_neural(load_neural(tmp_path / "out", "cpu"), data.examples)
    assert first.predictions == again.predictions
    losses = [epoch.loss for epoch in trained.seeds[0].history]
    assert len(losses) == 2
    assert all(np.isfinite(losses))
