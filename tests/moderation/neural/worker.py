"""``python -m tests.moderation.neural.worker ENCODER OUT``: a training in a process of its own.

Where ``STOP`` is set it waits before that step: a middle in which it can be killed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from memantics.moderation.neural.seeds import SeedPlan, train_neural
from memantics.moderation.neural.settings import Backbones, NetworkShape
from memantics.moderation.neural.training import Trainer
from tests.moderation.neural.tiny import QUICK, draw_memes


def train(
    encoder: Path, out: Path, say: Callable[[str], None], seeds: int = 2, dropout: float = 0.1
) -> None:
    """The training that tests compare, in whatever process."""
    training = replace(QUICK, seeds=tuple(range(seeds)), epochs=3, save_every=2, accumulate=2)
    plan = SeedPlan(
        Backbones(text=str(encoder)), NetworkShape(length=24, dropout=dropout), training
    )
    train_neural(draw_memes(90), plan, out, say)


def main(encoder: str, out: str) -> None:
    stop, taken = int(os.environ.get("STOP", "-1")), 0
    step: Any = Trainer._step

    def held_step(self: Trainer, fed: Iterator[Any], number: int) -> None:
        nonlocal taken
        if taken == stop:
            signal.pause()
        taken += 1
        step(self, fed, number)

    setattr(Trainer, "_step", held_step)  # noqa: B010 - mypy forbids the plain way
    seeds, dropout = int(os.environ.get("SEEDS", "2")), float(os.environ.get("DROPOUT", "0.1"))
    train(Path(encoder), Path(out), lambda line: print(line, flush=True), seeds, dropout)


if __name__ == "__main__":
    main(*sys.argv[1:])
