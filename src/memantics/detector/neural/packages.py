"""The packages of the extra ``detector``: imported when a network is built, never before."""

from __future__ import annotations

import importlib
import os
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from memantics.core.errors import MissingExtra

_NEEDED = ("torch", "transformers", "safetensors")


def check_packages(what: str = "neural detectors", needed: tuple[str, ...] = _NEEDED) -> None:
    """Refuse to go on without the packages of the extra."""
    if any(find_spec(name) is None for name in needed):
        raise MissingExtra(what, "detector")


def get_torch() -> Any:
    """PyTorch."""
    check_packages()
    return importlib.import_module("torch")


def get_transformers() -> Any:
    """The package transformers, silent: what it has to say is no concern of a user."""
    check_packages()
    found: Any = importlib.import_module("transformers")
    logs: Any = importlib.import_module("transformers.utils.logging")
    logs.set_verbosity_error()
    logs.disable_progress_bar()
    return found


def find_versions() -> dict[str, str]:
    """Versions of what computes a network; an absent package is left out."""
    found = {}
    for name in ("torch", "transformers", "safetensors", "peft", "onnxruntime"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def fix_arithmetic(deterministic: bool, strict: bool = True) -> None:
    """Ask PyTorch for the same sums in the same order.

    Where an operation has no such kernel PyTorch raises, or only warns without ``strict``; see
    :func:`lacks_fixed_kernel`.
    """
    # Read when the first matrix product starts; PyTorch refuses fixed sums without it.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch = get_torch()
    torch.use_deterministic_algorithms(deterministic, warn_only=not strict)
    torch.backends.cudnn.benchmark = False


def lacks_fixed_kernel(error: RuntimeError) -> bool:
    """Whether PyTorch stopped because it cannot repeat an operation exactly.

    >>> lacks_fixed_kernel(RuntimeError("x does not have a deterministic implementation, but"))
    True
    """
    return "does not have a deterministic implementation" in str(error)
