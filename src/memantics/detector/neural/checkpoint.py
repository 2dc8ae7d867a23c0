"""What a training writes while it runs: everything that the next step depends on, as tensors.

A checkpoint is a folder ``step-N`` with weights, both moments of the optimiser (safetensors, so
nothing is ever unpickled) and ``progress.json`` with their SHA-256. The file ``latest`` names the
last whole one; it is replaced in one step, so a kill at any moment leaves a checkpoint to go on
from. Order, dropout and learning rate are functions of the seed and the number of the step, so
that number is the state of the sampler, the scheduler and every random generator, on each rank.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from memantics.core.errors import StoreError
from memantics.core.journal import lock_folder, refuse_unwritable, whole_file

LATEST, PROGRESS = "latest", "progress.json"
WEIGHTS, MOMENTS = "weights.safetensors", "moments.safetensors"
FORMAT = 1
NO_ROOM = "make room and run it again; it goes on where it stopped"


@dataclass(frozen=True, slots=True)
class Epoch:
    """One pass over the training part: mean loss and the validation part's macro-F1."""

    number: int
    loss: float
    score: float


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """How far a training is. ``fingerprint`` is the hash of all that shapes it.

    ``step`` steps are done, the last of them in ``epoch`` (from 0) after ``batch`` of its
    batches; ``loss`` and ``weight`` are sums over these. ``best`` is the epoch with the best
    validation score, −1 before the first. ``scale`` belongs to float16 alone.
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
    """Be a folder's only writer; it is made where it is not there yet."""
    with refuse_unwritable(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = lock_folder(folder)
    with lock:
        yield


def save_checkpoint(folder: Path, network: Any, optimiser: Any, progress: TrainingProgress) -> None:
    """Write a checkpoint beside the last one, make it the latest, then remove the other."""
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
    """The last whole checkpoint, if there is one."""
    try:
        name = (folder / LATEST).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    if not name.startswith("step-") or not name.removeprefix("step-").isdecimal():
        raise StoreError(f"{folder / LATEST} is damaged", hint="choose another --out")
    return folder / name


def read_progress(place: Path) -> TrainingProgress:
    """How far the checkpoint is; a damaged one is refused."""
    try:
        found = _PROGRESS.validate_json((place / PROGRESS).read_bytes())
    except (OSError, ValidationError) as error:
        raise StoreError(
            f"checkpoint {place} is damaged: no readable {PROGRESS}", hint="choose another --out"
        ) from error
    if found.format != FORMAT:
        raise StoreError(
            f"checkpoint {place} has format {found.format}, this version writes {FORMAT}",
            hint="train again into another --out",
        )
    return found


def load_checkpoint(place: Path, network: Any, optimiser: Any) -> TrainingProgress:
    """Put a checkpoint's tensors back; one that was changed since is refused."""
    progress = read_progress(place)
    for name in (WEIGHTS, MOMENTS):
        check_digest(place / name, progress.checksums.get(name, ""))
    load_weights(network, place / WEIGHTS)
    _restore_moments(optimiser, place / MOMENTS)
    return progress


def load_weights(network: Any, path: Path) -> None:
    """Load weights that must fit the network exactly."""
    tensors = read_tensors(path)
    try:
        network.load_state_dict(tensors, strict=True)
    except RuntimeError as error:
        raise StoreError(
            f"{path} holds the weights of another network", hint="train again into another --out"
        ) from error


def read_tensors(path: Path) -> Any:
    """Tensors by name, on the CPU."""
    safetensors: Any = importlib.import_module("safetensors.torch")
    damage: Any = importlib.import_module("safetensors").SafetensorError
    try:
        return safetensors.load_file(str(path))
    except (OSError, damage) as error:
        raise StoreError(f"{path} is damaged or not there", hint="train again") from error


@contextmanager
def write_folder(target: Path) -> Iterator[Path]:
    """A folder that takes its name, and another's place, only when all of it is written."""
    partial = target.with_name(f"{target.name}.partial")
    damage: Any = importlib.import_module("safetensors").SafetensorError
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        yield partial
        shutil.rmtree(target, ignore_errors=True)
        partial.replace(target)
    except damage as error:  # its word for an error of the file system
        raise StoreError(f"{target} cannot be written: {error}", hint=NO_ROOM) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_tensors(path: Path, tensors: Any) -> None:
    """Write tensors by name, in one step; tied ones are written twice."""
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
    except damage as error:  # its word for an error of the file system
        raise StoreError(f"{path} cannot be written: {error}", hint=NO_ROOM) from error
    finally:
        partial.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file in one step."""
    with refuse_unwritable(path), whole_file(path, masked=False) as file:
        file.write(data)


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_digest(path: Path, expected: str) -> None:
    """Refuse a file that is not the one that was written."""
    try:
        found = digest(path)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read: {error.strerror}", hint="train again, or fetch it again"
        ) from error
    if found != expected:
        raise StoreError(
            f"{path} was changed after it was written", hint="train again, or fetch it again"
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
