"""A folder with a model: is it one, and which one."""

from __future__ import annotations

import hashlib
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import orjson
from pydantic import JsonValue

from memantics.core.errors import InputError, MissingExtra

PACKAGES = ("torch", "transformers", "accelerate", "torchvision")
_NEEDED = ("torch", "transformers", "accelerate")
_SUFFIXES = frozenset({".json", ".jinja", ".txt", ".model", ".tiktoken", ".safetensors", ".py"})
_SLICE = 1 << 20


def check_packages() -> None:
    """Refuse to go on without the packages of the extra."""
    if any(find_spec(name) is None for name in _NEEDED):
        raise MissingExtra("local/… models", "local")


def find_versions() -> dict[str, JsonValue]:
    """Versions of what computes the answers; None for what is not there.

    torchvision is optional, but where it is present transformers resizes images with it, and
    the pixels differ a little.
    """
    found: dict[str, JsonValue] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def check_folder(path: Path) -> Path:
    """The folder, if it looks like a checkpoint that transformers can load."""
    hint = "give the folder with config.json and *.safetensors, such as local/models/Qwen2-VL-2B"
    if not path.is_dir():
        raise InputError(f"no such folder: {path}", hint=hint)
    try:
        config = orjson.loads((path / "config.json").read_bytes())
    except FileNotFoundError:
        raise InputError(f"{path} is not a model's folder: no config.json", hint=hint) from None
    except (OSError, orjson.JSONDecodeError) as error:
        raise InputError(f"{path / 'config.json'} cannot be read: {error}", hint=hint) from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise InputError(f"{path / 'config.json'} names no model_type", hint=hint)
    if not any(path.glob("*.safetensors")):
        raise InputError(
            f"{path} holds no *.safetensors", hint="pickled weights (*.bin) are not loaded"
        )
    return path


def digest(folder: Path) -> str:
    """Which model lies in a folder: a hash of its small files and of samples of its weights.

    Hashing tens of gigabytes would take minutes at every start. Weights count by size and three
    slices of a mebibyte: training moves every tensor, so another model differs in them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as made:
    ...     _ = (Path(made) / "config.json").write_text("{}")
    ...     first = digest(Path(made))
    ...     _ = (Path(made) / "config.json").write_text("{ }")
    ...     first == digest(Path(made))
    False
    """
    total = hashlib.sha256()
    files = (p for p in folder.iterdir() if p.suffix in _SUFFIXES and p.is_file())
    for path in sorted(files, key=lambda p: p.name):
        size = path.stat().st_size
        total.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as file:
            for start in _slices(size):
                file.seek(start)
                total.update(file.read(_SLICE))
    return total.hexdigest()[:16]


def _slices(size: int) -> list[int]:
    if size <= 3 * _SLICE:
        return list(range(0, size, _SLICE))
    return [0, (size - _SLICE) // 2, size - _SLICE]
