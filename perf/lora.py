"""``python -m perf.lora [--device cuda:0] [--small]``: LoRA tuning on a GPU, measured.

A Qwen2-VL of the 2B size with random weights, made here, over images of two colours: what can be
seen is that the loss falls, how long a step takes against a plain loop over the same network, and
that a second start goes on. Nothing here says how well a real checkpoint would do.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from PIL import Image as Pillow

from memantics.models.chat import move
from memantics.moderation.lora.judging import ChatProcessor, TuningCase, Wording, open_model
from memantics.moderation.lora.tuning import Fitting, Tuning, add_adapter, tune
from memantics.moderation.neural.feeding import draw_order
from memantics.moderation.neural.machine import find_versions, get_torch
from perf.local_gpu import Plan, make_model

WORDING = Wording("pun", "caption", "zh")


def draw_cases(folder: Path, groups: int) -> tuple[TuningCase, ...]:
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for group in range(groups):
        for label in (True, False):
            path = folder / f"{group}-{label}.png"
            Pillow.new("RGB", (448, 448), (200, 40, 40) if label else (40, 40, 200)).save(path)
            made.append(TuningCase(path.stem, str(group), label, "天天向上", "", path))
    return tuple(made)


def open_parts(folder: Path, device: Any, tuning: Tuning) -> tuple[Any, ChatProcessor]:
    torch = get_torch()
    kind = "bfloat16" if device.type == "cuda" else "float32"
    model, processor, sees = open_model(folder, device, kind)
    torch.manual_seed(0)
    return add_adapter(model, tuning), ChatProcessor(processor, sees, WORDING)


def measure(folder: Path, cases: Sequence[TuningCase], device: str, rounds: int) -> dict[str, Any]:
    """Memes a second of our step and of a plain loop, in turns."""
    torch = get_torch()
    where = torch.device(device)
    tuning = Tuning(batch=8, portion=8, rate=1e-4, device=device)
    network, talk = open_parts(folder, where, tuning)
    fitting = Fitting(network, talk, cases, tuning, "")
    rows = draw_order(tuple(range(len(cases))), 0, 0)[:8].tolist()
    ours, plain = [], []
    network.train()
    for turn in range(rounds + 1):
        begin = _now(where)
        fitting._step(rows, 0)
        middle = _now(where)
        rendered = [talk.render(cases[row]) for row in rows]
        batch = move(talk.encode_lessons(rendered), network)
        network(**batch).loss.backward()
        fitting._optimiser.step()
        fitting._optimiser.zero_grad(set_to_none=True)
        end = _now(where)
        if turn:
            ours.append(8 / (middle - begin))
            plain.append(8 / (end - middle))
    ratios = sorted(a / b for a, b in zip(ours, plain, strict=True))
    peak = torch.cuda.max_memory_allocated() / 2**30 if where.type == "cuda" else 0.0
    return {
        "ours": round(sorted(ours)[rounds // 2], 2),
        "plain": round(sorted(plain)[rounds // 2], 2),
        "ratio": round(ratios[rounds // 2], 3),
        "trained": sum(p.numel() for p in network.parameters() if p.requires_grad),
        "parameters": sum(p.numel() for p in network.parameters()),
        "peak_gib": round(peak, 2),
    }


def _now(where: Any) -> float:
    if where.type == "cuda":
        get_torch().cuda.synchronize()
    return time.perf_counter()


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--device", default="cuda:0")
    options.add_argument("--small", action="store_true")
    options.add_argument("--groups", type=int, default=39)
    chosen = options.parse_args()
    layers, width, depth = (2, 256, 2) if chosen.small else (28, 1536, 32)
    with tempfile.TemporaryDirectory() as made:
        plan = Plan(chosen.device, layers, width, depth, 1, 1, (1,))
        kind = "bfloat16" if chosen.device != "cpu" else "float32"
        folder = make_model(Path(made) / "model", plan, layers, kind)
        cases = draw_cases(Path(made) / "images", chosen.groups)
        found: dict[str, Any] = {"versions": find_versions()}
        found["throughput"] = measure(folder, cases, chosen.device, 9)
        print(json.dumps(found), flush=True)
        tuning = Tuning(epochs=3, batch=8, portion=8, rate=1e-4, device=chosen.device)
        begin = time.perf_counter()
        tuned = tune(folder, cases, WORDING, tuning, Path(made) / "out")
        found["seconds"] = round(time.perf_counter() - begin, 1)
        found["tuned"] = asdict(replace(tuned, folder=Path()))
    print(json.dumps(found, default=str))


if __name__ == "__main__":
    main()
