"""``python -m tests.detector.neural.worker ENCODER OUT``: a training in a process of its own.

Slowed down where ``SLOW`` is set, so that there is a middle in which it can be killed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from memantics.detector.neural import Backbones, Plan, Shape, train_neural
from memantics.detector.neural.training import Trainer
from tests.detector.neural.tiny import QUICK, draw_memes


def main(encoder: str, out: str) -> None:
    pause = float(os.environ.get("SLOW", "0"))
    step: Any = Trainer._step

    def slow_step(self: Trainer, fed: Iterator[Any], number: int) -> None:
        time.sleep(pause)
        step(self, fed, number)

    setattr(Trainer, "_step", slow_step)  # noqa: B010 - mypy forbids the plain way
    seeds = tuple(range(int(os.environ.get("SEEDS", "2"))))
    training = replace(QUICK, seeds=seeds, epochs=3, save_every=2, accumulate=2)
    shape = Shape(length=24, dropout=float(os.environ.get("DROPOUT", "0.1")))
    plan = Plan(Backbones(text=encoder), shape, training)
    train_neural(draw_memes(90), plan, Path(out), lambda line: print(line, flush=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
