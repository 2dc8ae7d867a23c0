"""The packages of the extra ``detector``: imported when a network is built, never before."""

from __future__ import annotations

import importlib
import warnings
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


def fix_arithmetic(deterministic: bool) -> None:
    """Ask PyTorch for the same sums in the same order, wherever it has such a kernel.

    Operations that have none only warn, and a warning in the middle of training helps nobody:
    what the checkpoints promise is measured in docs/research/neural-detector.md.
    """
    torch = get_torch()
    torch.use_deterministic_algorithms(deterministic, warn_only=True)
    warnings.filterwarnings("ignore", message=".*does not have a deterministic implementation.*")
    torch.backends.cudnn.benchmark = False
