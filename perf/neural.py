"""``python -m perf.neural --data FILE [--part …]``: neural detectors on a GPU, measured.

``FILE`` is ToxiCN MM's training file. There are no images in it and nothing is downloaded: the text
encoder is small, has random weights and a vocabulary of the training part's characters. So these
figures say what the trainer does, not what the paper's pretrained encoders would reach. Prints one
JSON object: throughput against a plain loop, resuming after a kill, five seeds by hold-out.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from memantics.metrics.rounding import Ints
from memantics.moderation.examples import TYPE_IDS, Example, Loaded, split_examples
from memantics.moderation.neural.encoding import classes_of, encode
from memantics.moderation.neural.feeding import SplitRows, draw_order, hold_out, split_rows
from memantics.moderation.neural.machine import (
    Ranks,
    find_versions,
    fix_arithmetic,
    get_torch,
    get_transformers,
)
from memantics.moderation.neural.network import build_network, make_scratch, measure, open_encoders
from memantics.moderation.neural.seeds import SeedPlan, train_neural
from memantics.moderation.neural.settings import Backbones, NetworkShape, Training
from memantics.moderation.neural.training import (
    Trainer,
    TrainingMaterial,
    read_latest,
    read_progress,
    resolve_precision,
)

PARTS = ("throughput", "fusion", "resume", "five", "rotation")
BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
# From random weights a small encoder wants a larger rate than a pretrained one.
SCRATCH = Training(epochs=12, batch=128, rate=5e-4, patience=3, share=0.1)


def read_data(path: Path, limit: int = 0) -> Loaded:
    rows = json.loads(path.read_text(encoding="utf-8"))
    examples = tuple(
        Example(
            str(row["new_path"]).removesuffix(".jpg"),
            row["text"],
            row["text_discription"],
            row["meme_discription"],
            label=row["label"],
            type=TYPE_IDS[row["type"]],
        )
        for row in rows
    )
    return Loaded("toxicn_mm, training file, labels of version 1", examples[:limit] or examples)


def measure_throughput(
    data: Loaded, device: str, size: str, rounds: int, steps: int
) -> dict[str, Any]:
    """Examples a second of the trainer's step and of the shortest loop over the same network.

    ``size``: ``small`` and ``base`` read texts; ``fusion`` is ``base`` with a ViT of that size,
    over images of noise.
    """
    torch = get_torch()
    shape = NetworkShape(length=80)
    training = replace(SCRATCH, batch=32, device=device)
    with tempfile.TemporaryDirectory() as made:
        encoders = open_encoders(_make_backbones(data, Path(made), size), shape.length)
    encoded = encode(data.examples, replace(encoders.reader, preparation=None), shape)
    if encoders.reader.preparation is not None:
        chance = np.random.default_rng(0)
        noise = chance.integers(0, 256, (len(data.examples), 224, 224, 3), np.uint8)
        encoded = replace(encoded, pixels=noise)
    parts = hold_out(data.examples, "harmful", "random", 0.1)
    material = TrainingMaterial(encoded, parts, shape, training, "")
    where = torch.device(device)
    network = build_network(encoders, shape)
    trainer = Trainer(network, material, 0, where, Ranks())
    found: dict[str, Any] = {
        "size": size,
        "parameters": sum(p.numel() for p in network.parameters()),
        "batch": training.batch,
        "precision": resolve_precision("auto", where),
    }
    batches = _draw_batches(material, steps)
    memes = sum(map(len, batches))
    for fixed in (True, False):
        fix_arithmetic(fixed)
        ours, plain = [], []
        for turn in range(rounds + 1):
            rates = (
                _time(lambda: _run_ours(trainer, batches), memes, where),
                _time(lambda: _run_plain(trainer, material, batches, where), memes, where),
            )
            if turn:  # the first finds kernels and memory
                ours.append(rates[0])
                plain.append(rates[1])
        ratios = [a / b for a, b in zip(ours, plain, strict=True)]
        found["deterministic" if fixed else "free"] = {
            "ours": round(float(np.median(ours)), 1),
            "plain": round(float(np.median(plain)), 1),
            "ratio": round(float(np.median(ratios)), 4),
            "ratios": [round(ratio, 4) for ratio in ratios],
        }
    return found


def _make_backbones(data: Loaded, folder: Path, size: str) -> Backbones:
    text = make_scratch((e.text + e.text_caption for e in data.examples), folder / "text")
    if size == "small":
        return Backbones(text=str(text), from_scratch=True)
    place = text / "config.json"
    facts = json.loads(place.read_text()) | BASE | {"intermediate_size": 3072}
    place.write_text(json.dumps(facts))
    if size == "base":
        return Backbones(text=str(text), from_scratch=True)
    image = folder / "image"
    get_transformers().ViTConfig().save_pretrained(image)
    prepared = {"size": {"height": 224, "width": 224}, "resample": 2}
    (image / "preprocessor_config.json").write_text(json.dumps(prepared))
    return Backbones(text=str(text), image=image, from_scratch=True)


def _time(run: Callable[[], None], memes: int, where: Any) -> float:
    torch = get_torch()
    if where.type == "cuda":
        torch.cuda.synchronize()
    begin = time.perf_counter()
    run()
    if where.type == "cuda":
        torch.cuda.synchronize()
    return memes / (time.perf_counter() - begin)


def _draw_batches(material: TrainingMaterial, steps: int) -> list[Ints]:
    size = material.training.batch
    order = draw_order(material.parts.train, 0, 0)
    return [order[n * size : (n + 1) * size] for n in range(steps)]


def _run_ours(trainer: Trainer, batches: list[Ints]) -> None:
    trainer.network.train()
    fed = trainer._feeder.feed(p for batch in batches for p in trainer._own_portions(batch))
    for step in range(len(batches)):
        trainer._step(fed, step)


def _run_plain(
    trainer: Trainer, material: TrainingMaterial, batches: list[Ints], where: Any
) -> None:
    """What one would write by hand: no schedule, no clipping, no accumulation, no checkpoint."""
    torch = get_torch()
    network, optimiser = trainer.network, trainer._optimiser
    network.train()
    encoded = material.encoded
    assert encoded.ids is not None
    assert encoded.lengths is not None
    ids = torch.from_numpy(encoded.ids).to(where).long()
    mask = torch.arange(ids.shape[-1], device=where) < torch.from_numpy(encoded.lengths).to(
        where
    ).unsqueeze(-1)
    gold = torch.from_numpy(material.gold).to(where)
    loss_of = torch.nn.CrossEntropyLoss(weight=torch.tensor([0.7, 1.6], device=where))
    kind = getattr(torch, resolve_precision("auto", where))
    for batch in batches:
        longest = -(-int(encoded.lengths[batch].max()) // 8) * 8
        rows = torch.from_numpy(batch).to(where)
        pixels = None
        if encoded.pixels is not None:
            pixels = torch.from_numpy(encoded.pixels[batch]).to(where)
        with torch.autocast(where.type, dtype=kind, enabled=kind != torch.float32):
            logits = network(ids[rows, :, :longest], mask[rows, :, :longest], pixels)
        loss = loss_of(logits.float(), gold[rows])
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)


def check_resume(data: Path, device: str, limit: int, precision: str) -> dict[str, Any]:
    """Kill a training in the middle of an epoch, go on, and compare with an unhurt one."""
    with tempfile.TemporaryDirectory() as made:
        whole, hurt = Path(made) / "whole", Path(made) / "hurt"
        command = [sys.executable, "-m", "perf.neural", "--data", str(data), "--device", device]
        command += ["--limit", str(limit), "--precision", precision]
        command += ["--part", "worker", "--out"]
        subprocess.run([*command, str(whole)], check=True, capture_output=True)
        process = subprocess.Popen([*command, str(hurt)], stdout=subprocess.DEVNULL)
        running = hurt / "seed-0" / "training"
        while process.poll() is None:
            latest = read_latest(running)
            if latest is not None and (latest / "progress.json").is_file():
                progress = read_progress(latest)
                if progress.epoch == 1 and progress.batch > 5:
                    break
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed = process.returncode == -signal.SIGKILL
        again = subprocess.run([*command, str(hurt)], check=True, capture_output=True, text=True)
        facts = [
            json.loads((place / "seed-0" / "detector.json").read_text()) for place in (whole, hurt)
        ]
    gone_on = [line for line in again.stdout.splitlines() if "going on" in line]
    return {
        "precision": precision,
        "killed": killed,
        "said": gone_on,
        "same_metrics": facts[0]["valid"] == facts[1]["valid"],
        "same_history": facts[0]["history"] == facts[1]["history"],
        "same_weights": facts[0]["checksums"] == facts[1]["checksums"],
        "validation_f1": [one["valid"]["f1"] for one in facts],
    }


def run_worker(data: Loaded, training: Training, out: Path) -> None:
    training = replace(training, seeds=(0,), epochs=3, save_every=10)
    plan = SeedPlan(Backbones(text="scratch"), NetworkShape(), training)
    train_neural(data, plan, out, lambda line: print(line, flush=True))


def train_five(data: Loaded, shape: NetworkShape, training: Training, how: Any) -> dict[str, Any]:
    """Five seeds over one split, in one command."""
    with tempfile.TemporaryDirectory() as made:
        begin = time.perf_counter()
        plan = SeedPlan(Backbones(text="scratch"), shape, replace(training, hold_out=how))
        trained = train_neural(data, plan, Path(made), _tell)
        seconds = time.perf_counter() - begin
    scores = [100 * facts.valid.f1 for facts in trained.seeds]
    return {
        "hold_out": how,
        "integration": shape.integration,
        "target": shape.target,
        "validation_f1": _spread(scores),
        "best_epochs": [facts.best_epoch + 1 for facts in trained.seeds],
        "epochs": [len(facts.history) for facts in trained.seeds],
        "counts": trained.seeds[0].counts,
        "seconds": round(seconds, 1),
    }


def rotate(data: Loaded, shape: NetworkShape, training: Training, how: Any) -> dict[str, Any]:
    """Each seed tests on another fifth: every meme is scored by a network that never saw it."""
    count = 10 if how == "blocks" else 5
    folds = split_examples(data.examples, how, count) % 5
    gold, guesses, scores, valid = [], [], [], []
    classes = classes_of(shape.target)
    for seed in range(5):
        test = np.flatnonzero(folds == seed).tolist()
        parts = _inner(data, test, shape, how)
        with tempfile.TemporaryDirectory() as made:
            plan = SeedPlan(Backbones(text="scratch"), shape, replace(training, seeds=(seed,)))
            facts = train_neural(data, plan, Path(made), _tell, parts).seeds[0]
            lines = (Path(made) / f"seed-{seed}" / "predictions.jsonl").read_text().splitlines()
        assert facts.test is not None
        scores.append(100 * facts.test.f1)
        valid.append(100 * facts.valid.f1)
        for line in map(json.loads, lines):
            if line["part"] == "test":
                gold.append(line["gold"])
                guesses.append(int(np.argmax(line["chances"])))
    pooled = measure(np.array(gold), np.array(guesses), classes)
    return {
        "hold_out": how,
        "integration": shape.integration,
        "target": shape.target,
        "pooled": asdict(pooled),
        "test_f1": _spread(scores),
        "validation_f1": _spread(valid),
    }


def _inner(data: Loaded, test: list[int], shape: NetworkShape, how: Any) -> SplitRows:
    """Return the validation part, held out of what the test part leaves, in the same way."""
    left = [row for row in range(len(data.examples)) if row not in set(test)]
    inner = hold_out([data.examples[row] for row in left], shape.target, how, 0.1)
    return split_rows(data.examples, [left[row] for row in inner.valid], test)


def _spread(scores: list[float]) -> dict[str, Any]:
    return {
        "mean": round(float(np.mean(scores)), 2),
        "sd": round(float(np.std(scores, ddof=1)), 2) if len(scores) > 1 else 0.0,
        "each": [round(score, 2) for score in scores],
    }


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--device", default="cuda:0")
    options.add_argument("--part", default="throughput")
    options.add_argument("--hold-out", default="blocks")
    options.add_argument("--integration", default="attention")
    options.add_argument("--target", default="harmful")
    options.add_argument("--limit", type=int, default=0)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--steps", type=int, default=60)
    options.add_argument("--epochs", type=int, default=SCRATCH.epochs)
    options.add_argument("--size", default="small", choices=("small", "base", "fusion"))
    options.add_argument("--precision", default="auto")
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    data = read_data(chosen.data, chosen.limit)
    shape = NetworkShape(target=chosen.target, integration=chosen.integration)
    training = replace(
        SCRATCH, device=chosen.device, epochs=chosen.epochs, precision=chosen.precision
    )
    if chosen.part == "worker":
        run_worker(data, training, chosen.out)
        return
    found: dict[str, Any] = {"part": chosen.part, "versions": find_versions()}
    if chosen.part == "throughput":
        found |= measure_throughput(data, chosen.device, chosen.size, chosen.rounds, chosen.steps)
    elif chosen.part == "resume":
        found |= check_resume(chosen.data, chosen.device, chosen.limit, chosen.precision)
    elif chosen.part == "five":
        found |= train_five(data, shape, training, chosen.hold_out)
    elif chosen.part == "rotation":
        found |= rotate(data, shape, training, chosen.hold_out)
    print(json.dumps(found, ensure_ascii=False))


if __name__ == "__main__":
    main()
