"""Lazy import of PyTorch and transformers (extra ``detector``), devices and process groups."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from memantics.core.errors import InputError, MissingExtra

_NEEDED = ("torch", "transformers", "safetensors")


def check_packages(what: str = "neural detectors", needed: tuple[str, ...] = _NEEDED) -> None:
    """Raise an error if packages of the extra are missing."""
    if any(find_spec(name) is None for name in needed):
        raise MissingExtra(what, "detector")


def get_torch() -> Any:
    """Import and return PyTorch."""
    check_packages()
    return importlib.import_module("torch")


def get_transformers() -> Any:
    """Import and return transformers, with its log messages turned off."""
    check_packages()
    found: Any = importlib.import_module("transformers")
    logs: Any = importlib.import_module("transformers.utils.logging")
    logs.set_verbosity_error()
    logs.disable_progress_bar()
    return found


def find_versions() -> dict[str, str]:
    """Return the versions of installed packages that compute a network."""
    found = {}
    for name in ("torch", "transformers", "safetensors", "peft", "onnxruntime"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def fix_arithmetic(deterministic: bool, strict: bool = True) -> None:
    """Turn on deterministic algorithms in PyTorch.

    For an operation without a deterministic kernel, PyTorch raises an error, or only warns without
    ``strict``; see :func:`lacks_fixed_kernel`.
    """
    # cuBLAS reads this at the first matrix product; deterministic mode needs it.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch = get_torch()
    torch.use_deterministic_algorithms(deterministic, warn_only=not strict)
    torch.backends.cudnn.benchmark = False


def lacks_fixed_kernel(error: RuntimeError) -> bool:
    """Check whether an error is about a missing deterministic kernel.

    >>> lacks_fixed_kernel(RuntimeError("x does not have a deterministic implementation, but"))
    True
    """
    return "does not have a deterministic implementation" in str(error)


@dataclass(frozen=True, slots=True)
class Ranks:
    """Rank and number of the processes of a distributed training."""

    rank: int = 0
    size: int = 1
    local: int = 0

    @property
    def first(self) -> bool:
        """Whether this is rank 0: the process that writes files and reports."""
        return self.rank == 0


def join_ranks(device: str) -> Ranks:
    """Join the process group of the launcher; without a launcher, train alone."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return Ranks()
    ranks = Ranks(int(os.environ["RANK"]), size, int(os.environ.get("LOCAL_RANK", "0")))
    torch = get_torch()
    if not torch.distributed.is_initialized():
        backend = "nccl" if resolve_device(device, ranks).type == "cuda" else "gloo"
        torch.distributed.init_process_group(backend, timeout=timedelta(minutes=30))
    return ranks


def leave_ranks(ranks: Ranks) -> None:
    """Leave the process group."""
    if ranks.size > 1:
        get_torch().distributed.destroy_process_group()


def wait_for_all(ranks: Ranks) -> None:
    """Wait until all processes have reached this point."""
    if ranks.size > 1:
        get_torch().distributed.barrier()


def share_text(ranks: Ranks, text: str) -> str:
    """Broadcast a text from rank 0 as bytes; broadcasting objects would use pickle."""
    if ranks.size == 1:
        return text
    torch = get_torch()
    device = torch.device("cpu")
    if torch.distributed.get_backend() == "nccl":
        device = torch.device("cuda", ranks.local)
    data = torch.tensor(list(text.encode()), dtype=torch.uint8, device=device)
    size = torch.tensor([len(data)], device=device)
    torch.distributed.broadcast(size, 0)
    if not ranks.first:
        data = torch.zeros(int(size), dtype=torch.uint8, device=device)
    torch.distributed.broadcast(data, 0)
    return bytes(data.tolist()).decode()


def resolve_device(name: str, ranks: Ranks) -> Any:
    """Choose the device of this process; ``auto`` is a GPU if available, one per process."""
    torch = get_torch()
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda":
        name = f"cuda:{ranks.local}"
    if name.startswith("cuda"):
        place = int(name.partition(":")[2] or 0)
        if not torch.cuda.is_available() or place >= torch.cuda.device_count():
            raise InputError(f"the device {name} is not available", hint="use --device cpu")
        torch.cuda.set_device(place)
    elif name != "cpu":
        raise InputError(
            f"the device {name} is not available", hint="use auto, cpu, cuda or cuda:1"
        )
    return torch.device(name)
