"""A training that was killed goes on, and ends where it would have ended; with others, too."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memantics.core.errors import StoreError
from memantics.moderation.neural.machine import get_torch
from memantics.moderation.neural.seeds import SeedPlan, train_neural
from memantics.moderation.neural.settings import Backbones, NetworkShape
from memantics.moderation.neural.training import read_latest, read_progress, read_tensors
from tests import forks
from tests.moderation.neural import worker
from tests.moderation.neural.conftest import Make
from tests.moderation.neural.tiny import QUICK, draw_memes
from tests.moderation.neural.worker import train
from tests.places import ROOT

pytestmark = pytest.mark.slow

WORKER = "tests.moderation.neural.worker"


def start(encoder: Path, out: Path, launcher: tuple[str, ...] = (), **more: str) -> Any:
    return subprocess.Popen(
        [sys.executable, *launcher, "-m", WORKER, str(encoder), str(out)],
        cwd=ROOT,
        env=os.environ | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: Any) -> str:
    said, _ = process.communicate(timeout=240)
    assert process.returncode == 0, said
    return str(said)


def read_ends(out: Path, seeds: int = 2) -> list[Any]:
    """What must be the same: weights by checksum, figures, every epoch's loss and score."""
    found = []
    for seed in range(seeds):
        facts = json.loads((out / f"seed-{seed}" / "detector.json").read_text())
        found.append([facts[name] for name in ("checksums", "valid", "history", "best_epoch")])
    return [*found, json.loads((out / "summary.json").read_text())]


def test_a_killed_training_ends_as_an_unhurt_one(encoder: Make, tmp_path: Path) -> None:
    """Each in a fresh process: after other trainings the last digits of a sum may differ."""
    place = forks.Place(ROOT, dict(os.environ))
    whole, hurt = (
        partial(worker.main, str(encoder("text")), str(tmp_path / name))
        for name in ("whole", "hurt")
    )
    assert forks.run(whole, place).code == 0
    process = forks.start(hurt, replace(place, variables=place.variables | {"STOP": "8"}))
    running = tmp_path / "hurt" / "seed-0" / "training"
    while process.is_alive():
        latest = read_latest(running)
        # In the middle of the second epoch, right behind a checkpoint. The trainer may remove this
        # checkpoint at any moment, after it wrote a newer one.
        with suppress(StoreError):
            if latest is not None and read_progress(latest).step >= 8:
                break
        time.sleep(0.01)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    latest = read_latest(running)
    assert latest is not None
    progress = read_progress(latest)
    assert 0 < progress.batch < 5, "the kill fell into an epoch"
    said = forks.run(hurt, place)
    assert said.code == 0, said.err
    assert said.out.splitlines()[0] == f"seed 0: resuming from step {progress.step}"
    assert read_ends(tmp_path / "hurt") == read_ends(tmp_path / "whole")


def test_two_processes_train_the_same_network(encoder: Make, tmp_path: Path) -> None:
    """Through torchrun. Without dropout, two halves of a batch are the batch, up to rounding."""
    text = tmp_path / "text"
    shutil.copytree(encoder("text"), text)
    config = json.loads((text / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (text / "config.json").write_text(json.dumps(config))
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    both = start(text, tmp_path / "both", launcher, DROPOUT="0", SEEDS="1")
    train(text, tmp_path / "alone", lambda _: None, seeds=1, dropout=0.0)
    said = finish(both)
    assert said.count("seed 0: epoch 1/3") == 1, "one process speaks"
    one, other = (read_ends(tmp_path / name, 1)[0] for name in ("alone", "both"))
    assert [epoch["loss"] for epoch in one[2]] == pytest.approx(
        [epoch["loss"] for epoch in other[2]], rel=1e-3
    )
    assert one[1] == other[1], "the same figures"


class Stopped(Exception):
    """A stand-in for whatever ends a process between two epochs."""


def test_a_changed_or_foreign_checkpoint_is_refused(encoder: Make, tmp_path: Path) -> None:
    backbones = Backbones(text=str(encoder("text")))
    plan = SeedPlan(backbones, NetworkShape(length=24), replace(QUICK, epochs=3))
    data = draw_memes(60)

    def stop(line: str) -> None:
        if "epoch 1/3" in line:
            raise Stopped

    with pytest.raises(Stopped):
        train_neural(data, plan, tmp_path, stop)
    running = tmp_path / "seed-0" / "training"
    latest = read_latest(running)
    assert latest is not None
    weights = latest / "weights.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-4] + b"\0\0\0\1")
    with pytest.raises(StoreError, match="was changed"):
        train_neural(data, plan, tmp_path, stop)
    weights.write_bytes(whole)
    other = replace(plan, training=replace(plan.training, decay=0.3))
    with pytest.raises(StoreError, match="other data or settings"):
        train_neural(data, other, tmp_path, stop)
    (running / "latest").write_text("../../../etc")
    with pytest.raises(StoreError, match="latest cannot be read"):
        train_neural(data, plan, tmp_path, stop)
    (running / "latest").write_text(latest.name)
    progress = (latest / "progress.json").read_text()
    (latest / "progress.json").write_text(progress.replace('"format":1', '"format":7'))
    with pytest.raises(StoreError, match="has format 7"):
        train_neural(data, plan, tmp_path, stop)
    (latest / "progress.json").write_text(progress)
    assert train_neural(data, plan, tmp_path, lambda _: None).seeds[0].history


def test_a_checkpoint_holds_both_moments(encoder: Make, tmp_path: Path) -> None:
    plan = SeedPlan(
        Backbones(text=str(encoder("text"))), NetworkShape(length=24), replace(QUICK, epochs=2)
    )

    def stop(line: str) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        train_neural(draw_memes(60), plan, tmp_path, stop)
    latest = read_latest(tmp_path / "seed-0" / "training")
    assert latest is not None
    weights, moments = (read_tensors(latest / f"{n}.safetensors") for n in ("weights", "moments"))
    for name in ("exp_avg", "exp_avg_sq", "step"):
        found = [tensor for key, tensor in moments.items() if key.endswith(f".{name}")]
        # Buffers have no moments.
        assert len(found) == sum("position_ids" not in key for key in weights)
        assert all(bool(get_torch().isfinite(tensor).all()) for tensor in found)


def test_two_trainings_do_not_share_a_folder(encoder: Make, tmp_path: Path) -> None:
    plan = SeedPlan(
        Backbones(text=str(encoder("text"))), NetworkShape(length=24), replace(QUICK, epochs=1)
    )
    data = draw_memes(60)

    def meddle(line: str) -> None:
        with pytest.raises(StoreError, match="is being written by another process"):
            train_neural(data, plan, tmp_path, lambda _: None)

    train_neural(data, plan, tmp_path, meddle)
