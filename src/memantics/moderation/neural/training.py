"""The training loop of one seed, and its checkpoints.

A checkpoint is a folder ``step-N`` with weights, both moments of the optimiser (safetensors, so
nothing is unpickled) and ``progress.json`` with their SHA-256. The file ``latest`` names the last
complete one and is replaced atomically, so that training can always be resumed. Order, dropout and
learning rate are functions of the seed and the step number. The step number therefore is the state
of the sampler, the scheduler and every random generator, on each rank.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from pydantic import TypeAdapter, ValidationError

from memantics.core.errors import InputError, StoreError
from memantics.core.files import (
    lock_folder,
    open_regular,
    read_regular,
    read_regular_text,
    refuse_unwritable,
    whole_file,
)
from memantics.metrics.rounding import Ints
from memantics.moderation.neural import feeding
from memantics.moderation.neural.encoding import Encoded, classes_of, gold_places
from memantics.moderation.neural.machine import Ranks, get_torch, share_text, wait_for_all
from memantics.moderation.neural.network import ask_network, measure, to_tensors
from memantics.moderation.neural.settings import NetworkShape, Precision, ProgressLog, Training

LATEST, PROGRESS = "latest", "progress.json"
WEIGHTS, MOMENTS = "weights.safetensors", "moments.safetensors"
FORMAT = 1
NO_ROOM = "free disk space and run the command again to resume"


@dataclass(frozen=True, slots=True)
class Epoch:
    """Result of one epoch: mean training loss and validation macro-F1."""

    number: int
    loss: float
    score: float


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """Progress of a training. ``fingerprint`` is the hash of all settings and data.

    ``step`` is the number of finished steps; the last one is batch ``batch`` of ``epoch`` (from 0).
    ``loss`` and ``weight`` are sums over the batches of the epoch. ``best`` is the epoch with the
    best validation score, -1 before the first. ``scale`` is the loss scale, only for float16.
    """

    fingerprint: str
    epoch: int = 0
    batch: int = 0
    step: int = 0
    loss: float = 0.0
    weight: float = 0.0
    best: int = -1
    best_score: float = -1.0
    finished: bool = False
    history: tuple[Epoch, ...] = ()
    scale: dict[str, float] = field(default_factory=dict)
    checksums: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT


_PROGRESS = TypeAdapter(TrainingProgress)


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Lock a folder for writing; create it if it does not exist."""
    with refuse_unwritable(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = lock_folder(folder)
    with lock:
        yield


def save_checkpoint(folder: Path, network: Any, optimiser: Any, progress: TrainingProgress) -> None:
    """Write a checkpoint, make it the latest, then remove the previous one."""
    target = folder / f"step-{progress.step}"
    with write_folder(target) as partial:
        write_tensors(partial / WEIGHTS, network.state_dict())
        write_tensors(partial / MOMENTS, _moments(optimiser))
        sums = {name: digest(partial / name) for name in (WEIGHTS, MOMENTS)}
        whole = replace(progress, checksums=sums)
        (partial / PROGRESS).write_bytes(orjson.dumps(asdict(whole)))
    before = read_latest(folder)
    write_whole(folder / LATEST, target.name.encode())
    if before is not None and before != target:
        shutil.rmtree(before, ignore_errors=True)


def read_latest(folder: Path) -> Path | None:
    """Return the latest complete checkpoint, or None."""
    try:
        name = read_regular_text(folder / LATEST).strip()
    except FileNotFoundError:
        return None
    if not name.startswith("step-") or not name.removeprefix("step-").isdecimal():
        raise StoreError(f"{folder / LATEST} cannot be read", hint="choose another --out")
    return folder / name


def read_progress(place: Path) -> TrainingProgress:
    """Read the progress of a checkpoint; raise StoreError if it is damaged."""
    try:
        found = _PROGRESS.validate_json(read_regular(place / PROGRESS))
    except (OSError, ValidationError) as error:
        raise StoreError(
            f"the checkpoint {place} is damaged: {PROGRESS} cannot be read",
            hint="choose another --out",
        ) from error
    if found.format != FORMAT:
        raise StoreError(
            f"checkpoint {place} has format {found.format}, this version writes {FORMAT}",
            hint="train again into another --out",
        )
    return found


def load_checkpoint(place: Path, network: Any, optimiser: Any) -> TrainingProgress:
    """Load a checkpoint into the network and optimizer; raise StoreError if it was changed."""
    progress = read_progress(place)
    for name in (WEIGHTS, MOMENTS):
        check_digest(place / name, progress.checksums.get(name, ""))
    load_weights(network, place / WEIGHTS)
    _restore_moments(optimiser, place / MOMENTS)
    return progress


def load_weights(network: Any, path: Path) -> None:
    """Load weights; raise StoreError if they do not match the network."""
    tensors = read_tensors(path)
    try:
        network.load_state_dict(tensors, strict=True)
    except RuntimeError as error:
        raise StoreError(
            f"{path} has the weights of another network", hint="train again with another --out"
        ) from error


def read_tensors(path: Path) -> Any:
    """Read tensors by name, on the CPU."""
    safetensors: Any = importlib.import_module("safetensors.torch")
    damage: Any = importlib.import_module("safetensors").SafetensorError
    try:
        return safetensors.load_file(str(path))
    except (OSError, damage) as error:
        raise StoreError(f"{path} is damaged or missing", hint="train again") from error


@contextmanager
def write_folder(target: Path) -> Iterator[Path]:
    """Write a folder under a temporary name; rename it when it is complete."""
    partial = target.with_name(f"{target.name}.partial")
    damage: Any = importlib.import_module("safetensors").SafetensorError
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        yield partial
        shutil.rmtree(target, ignore_errors=True)
        partial.replace(target)
    except damage as error:  # safetensors reports file system errors this way
        raise StoreError(f"{target} cannot be written: {error}", hint=NO_ROOM) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_tensors(path: Path, tensors: Any) -> None:
    """Write tensors by name, atomically; shared tensors are written twice."""
    safetensors: Any = importlib.import_module("safetensors.torch")
    damage: Any = importlib.import_module("safetensors").SafetensorError
    plain = {
        name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()
    }
    partial = path.with_name(path.name + ".partial")
    try:
        safetensors.save_file(plain, str(partial), metadata={"format": "pt"})
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    except damage as error:  # safetensors reports file system errors this way
        raise StoreError(f"{path} cannot be written: {error}", hint=NO_ROOM) from error
    finally:
        partial.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    with refuse_unwritable(path), whole_file(path, masked=False) as file:
        file.write(data)


def digest(path: Path) -> str:
    """Compute the SHA-256 of a file."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_digest(path: Path, expected: str) -> None:
    """Raise StoreError if a file does not match its digest."""
    try:
        found = digest(path)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read: {error.strerror}", hint="train again, or copy it again"
        ) from error
    if found != expected:
        raise StoreError(
            f"{path} was changed after it was written", hint="train again, or copy it again"
        )


def _moments(optimiser: Any) -> dict[str, Any]:
    state = optimiser.state_dict()["state"]
    found = {
        f"{place}.{name}": tensor
        for place, values in state.items()
        for name, tensor in values.items()
    }
    if not found:  # before the first step; a file without tensors cannot be written
        torch: Any = importlib.import_module("torch")
        found["none"] = torch.zeros(1)
    return found


def _restore_moments(optimiser: Any, path: Path) -> None:
    tensors = read_tensors(path)
    state: dict[int, dict[str, Any]] = {}
    for key, tensor in tensors.items():
        place, _, name = key.partition(".")
        if name:
            state.setdefault(int(place), {})[name] = tensor
    whole = optimiser.state_dict()
    whole["state"] = state
    optimiser.load_state_dict(whole)


# Retrieval-guided contrastive learning (Mei et al. 2024).  At the start of an epoch, the vectors of
# all training memes are computed. The loss moves each meme towards its nearest meme of the same
# class, and away from the nearest meme of another class and from the other memes of the batch.

_BATCH = 128
_DIGITS = 5  # decimals of similarities that are equal on all processors


@dataclass(frozen=True, slots=True)
class VectorBank:
    """Vectors of the training memes at the start of an epoch, and each meme's two neighbours.

    ``places`` maps rows of the examples to rows of ``vectors``; the other fields are indices into
    ``vectors``.
    """

    vectors: Any
    places: Any
    positive: Any
    negative: Any

    def compare(self, vectors: Any, gold: Any, rows: Ints) -> Any:
        """Compute the contrastive loss of each meme against its positive and negatives.

        Gradients flow through vectors of the batch, not through the stored vectors of all training
        memes.
        """
        torch = get_torch()
        near = self.places[torch.from_numpy(rows).to(self.places.device)]
        anchors = torch.nn.functional.normalize(vectors.float(), dim=-1)
        others = torch.stack([self.vectors[self.positive[near]], self.vectors[self.negative[near]]])
        drawn, pushed = (anchors * others).sum(-1)
        within = (anchors @ anchors.T).masked_fill(gold[:, None] == gold[None], float("-inf"))
        against = torch.cat([drawn[:, None], pushed[:, None], within], -1)
        return torch.logsumexp(against, -1) - drawn


def make_bank(
    network: Any, encoded: Encoded, rows: Sequence[int], gold: Ints, device: Any
) -> VectorBank:
    """Compute the vectors of the training rows, and find the neighbours of each."""
    torch = get_torch()
    order = np.array(rows, np.int64)
    was_training = network.training
    network.eval()
    found = []
    with torch.no_grad():
        for start in range(0, len(order), _BATCH):
            network(*to_tensors(encoded, order[start : start + _BATCH], device))
            found.append(torch.nn.functional.normalize(network.vectors.float(), dim=-1))
    network.train(was_training)
    vectors = torch.cat(found)
    classes = torch.from_numpy(gold[order]).to(device)
    places = torch.full((len(gold),), -1, dtype=torch.long, device=device)
    places[torch.from_numpy(order).to(device)] = torch.arange(len(order), device=device)
    return VectorBank(vectors, places, *find_neighbours(vectors, classes))


def find_neighbours(vectors: Any, classes: Any) -> tuple[Any, Any]:
    """Find the nearest other meme of the same class, and the nearest of another class.

    The only meme of a class is its own neighbour.
    """
    torch = get_torch()
    same, other = [], []
    for start in range(0, len(vectors), 1024):
        part = slice(start, start + 1024)
        similarity = torch.round(vectors[part] @ vectors.T, decimals=_DIGITS)
        alike = classes[part, None] == classes[None]
        itself = torch.arange(start, start + len(similarity), device=vectors.device)
        # The similarity of a meme to itself is set below that to its class and above that to other
        # classes.
        held = similarity.masked_fill(~alike, -9.0)
        held[torch.arange(len(held)), itself] = -5.0
        same.append(held.argmax(-1))
        other.append(similarity.masked_fill(alike, -9.0).argmax(-1))
    return torch.cat(same), torch.cat(other)


@dataclass(frozen=True, slots=True)
class TrainingMaterial:
    """The encoded training data; ``gold`` has a class per row, ``fingerprint`` is its hash."""

    encoded: Encoded
    parts: feeding.SplitRows
    shape: NetworkShape
    training: Training
    fingerprint: str

    @property
    def gold(self) -> Ints:
        """Class index of each row."""
        return gold_places(self.encoded.examples, self.shape.target)


class Trainer:
    """Trains a network, with early stopping on the validation set."""

    def __init__(
        self, network: Any, material: TrainingMaterial, seed: int, device: Any, ranks: Ranks
    ) -> None:
        self._torch = get_torch()
        self.network = network.to(device)
        self._seed, self._device, self._ranks = seed, device, ranks
        self._material, self._training = material, material.training
        self._gold = material.gold
        rows = np.array(material.parts.train, np.int64)
        classes = len(classes_of(material.shape.target))
        by_class = feeding.weigh_classes(self._gold[rows], classes, self._training.weighting)
        self._weights = by_class[self._gold]
        self._feeder = feeding.Feeder(material.encoded, self._gold, self._weights, device)
        self._optimiser = make_optimiser(self.network, self._training, device)
        self._precision = resolve_precision(self._training.precision, device)
        self._scaler = self._torch.amp.GradScaler(device.type, enabled=self._precision == "float16")
        self._steps = -(-len(rows) // self._training.batch)
        self._running = self._torch.zeros((), device=device)
        self._bank: VectorBank | None = None
        self._wrapped = self.network
        if ranks.size > 1:
            self._wrapped = self._torch.nn.parallel.DistributedDataParallel(
                self.network, device_ids=[device.index] if device.type == "cuda" else None
            )

    def run(self, folder: Path, say: ProgressLog) -> TrainingProgress:
        """Train until the end; the network then has the weights of the best epoch."""
        progress = self._resume(folder, say)
        while not progress.finished:
            progress = self._run_epoch(progress, folder)
            progress = self._judge_epoch(progress, folder)
            last = progress.history[-1]
            say(
                f"seed {self._seed}: epoch {last.number + 1}/{self._training.epochs}"
                f"  loss {last.loss:.4f}  validation macro-F1 {100 * last.score:.2f}"
            )
        load_weights(self.network, _best(folder, progress.best))
        wait_for_all(self._ranks)
        return progress

    def _resume(self, folder: Path, say: ProgressLog) -> TrainingProgress:
        start = TrainingProgress(self._material.fingerprint)
        latest = read_latest(folder)
        if latest is None:
            return start
        if read_progress(latest).fingerprint != start.fingerprint:
            raise StoreError(
                f"{folder} has a training with other data or settings",
                hint="choose another --out, or use the same data and settings",
            )
        found = load_checkpoint(latest, self.network, self._optimiser)
        if found.scale:
            self._scaler.load_state_dict(
                self._scaler.state_dict()
                | {"scale": found.scale["scale"], "_growth_tracker": int(found.scale["growth"])}
            )
        if self._ranks.first:
            self._running.fill_(found.loss)
        say(f"seed {self._seed}: resuming from step {found.step}")
        return found

    def _run_epoch(self, progress: TrainingProgress, folder: Path) -> TrainingProgress:
        """Run the rest of an epoch, from the batch of the checkpoint."""
        material = self._material
        if material.shape.contrast:
            rows = material.parts.train
            self._bank = make_bank(self.network, material.encoded, rows, self._gold, self._device)
        self._wrapped.train()
        order = feeding.draw_order(self._material.parts.train, self._seed, progress.epoch)
        size, step = self._training.batch, progress.step
        batches = [order[n * size : (n + 1) * size] for n in range(progress.batch, self._steps)]
        fed = self._feeder.feed(
            portion for batch in batches for portion in self._own_portions(batch)
        )
        weight = progress.weight
        for number in range(progress.batch + 1, self._steps + 1):
            self._step(fed, step)
            step += 1
            weight += 1.0
            progress = replace(progress, batch=number, step=step, weight=weight)
            every = self._training.save_every
            if every and step % every == 0 and number < self._steps:
                self._save(folder, replace(progress, loss=self._total_loss()))
        return progress

    def _own_portions(self, batch: Ints) -> list[feeding.Portion]:
        """Return the rows of a training step that this process computes, per accumulation step."""
        count = self._training.accumulate
        portions = feeding.cut_portions(batch, self._weights, count * self._ranks.size)
        return portions[self._ranks.rank * count : (self._ranks.rank + 1) * count]

    def _step(self, fed: Iterator[Any], step: int) -> None:
        torch, training = self._torch, self._training
        torch.manual_seed(feeding.mix_seed(self._seed, step, self._ranks.rank))
        for turn in range(training.accumulate):
            portion = next(fed)
            with self._quiet(turn < training.accumulate - 1), self._cast():
                logits = self._wrapped(*portion.inputs)
                losses = torch.nn.functional.cross_entropy(
                    logits.float(), portion.gold, reduction="none"
                )
                if self._bank is not None:
                    vectors = self.network.vectors
                    compared = self._bank.compare(vectors, portion.gold, portion.rows)
                    losses = losses + self._material.shape.contrast * compared
                loss = (losses * portion.weights).sum()
            # Distributed training averages gradients over processes, but the losses here are parts
            # of one sum.
            self._scaler.scale(loss * self._ranks.size).backward()
            self._running += loss.detach()
        steps = self._steps * training.epochs
        rate = feeding.rate_at(step, steps, training.rate, training.warmup)
        for group in self._optimiser.param_groups:
            group["lr"] = rate
        self._scaler.unscale_(self._optimiser)
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), training.clip)
        self._scaler.step(self._optimiser)
        self._scaler.update()
        self._optimiser.zero_grad(set_to_none=True)

    def _judge_epoch(self, progress: TrainingProgress, folder: Path) -> TrainingProgress:
        """Score the validation set, keep the best weights, and decide whether to stop."""
        loss = self._total_loss() / max(1.0, progress.weight)
        if not np.isfinite(loss):
            raise InputError(
                f"the loss of epoch {progress.epoch + 1} is not a number",
                hint="use a smaller rate, or precision float32",
            )
        score = float(share_text(self._ranks, repr(self._score() if self._ranks.first else 0.0)))
        best, best_score = progress.best, progress.best_score
        if score > best_score:
            best, best_score = progress.epoch, score
            if self._ranks.first:
                folder.mkdir(parents=True, exist_ok=True)
                write_tensors(_best(folder, best), self.network.state_dict())
        done = progress.epoch + 1
        idle = progress.epoch - best >= self._training.patience
        self._running.zero_()
        progress = replace(
            progress,
            epoch=done,
            batch=0,
            loss=0.0,
            weight=0.0,
            best=best,
            best_score=best_score,
            finished=idle or done >= self._training.epochs,
            history=(*progress.history, Epoch(progress.epoch, loss, score)),
        )
        self._save(folder, progress)
        return progress

    def _score(self) -> float:
        rows = self._material.parts.valid
        chances = ask_network(self.network, self._material.encoded, rows, self._device)
        classes = classes_of(self._material.shape.target)
        return measure(self._gold[list(rows)], chances.argmax(-1), classes).f1

    def _save(self, folder: Path, progress: TrainingProgress) -> None:
        if self._scaler.is_enabled():
            state = self._scaler.state_dict()
            scale = {"scale": state["scale"], "growth": float(state["_growth_tracker"])}
            progress = replace(progress, scale=scale)
        if self._ranks.first:
            save_checkpoint(folder, self.network, self._optimiser, progress)
            for other in folder.glob("best-*.safetensors"):
                if other != _best(folder, progress.best):
                    other.unlink()
        wait_for_all(self._ranks)

    def _total_loss(self) -> float:
        if self._ranks.size > 1:
            total = self._running.clone()
            self._torch.distributed.all_reduce(total)
            return float(total)
        return float(self._running)

    def _cast(self) -> Any:
        if self._precision == "float32":
            return contextlib.nullcontext()
        kind = getattr(self._torch, self._precision)
        return self._torch.autocast(self._device.type, dtype=kind)

    def _quiet(self, quiet: bool) -> Any:
        """Synchronize gradients between processes once per step, at its last forward pass."""
        if self._ranks.size > 1 and quiet:
            return self._wrapped.no_sync()
        return contextlib.nullcontext()


def make_optimiser(network: Any, training: Training, device: Any) -> Any:
    """Make AdamW without weight decay on biases and norms (one-dimensional tensors)."""
    torch = get_torch()
    parameters = [p for p in network.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": training.decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=training.rate, fused=device.type == "cuda")


def resolve_precision(wanted: Precision, device: Any) -> str:
    """Choose the number format of forward passes; ``auto`` is half precision on a GPU."""
    if wanted != "auto":
        if wanted == "float16" and device.type == "cpu":
            raise InputError("float16 needs a GPU", hint="use --precision bfloat16 or float32")
        return wanted
    if device.type != "cuda":
        return "float32"
    return "bfloat16" if get_torch().cuda.is_bf16_supported() else "float16"


def _best(folder: Path, epoch: int) -> Path:
    return folder / f"best-{epoch}.safetensors"
