"""A folder with a model, and the ``--param`` values by which it is loaded and decodes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson
from pydantic import JsonValue

from memantics.core.errors import InputError, MissingExtra, UnknownName
from memantics.models.local.adapters import find_base
from memantics.models.replies import json_or_text

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
    """The folder, if it looks like a checkpoint that transformers can load, or a LoRA adapter."""
    hint = "give the folder with config.json and *.safetensors, such as local/models/Qwen2-VL-2B"
    base = find_base(path)
    if base is not None:
        if find_spec("peft") is None:
            raise MissingExtra("LoRA adapters", "local")
        if not base.is_dir():
            raise InputError(
                f"{path} was tuned on {base}, which is not there",
                hint="put the model there again, or tune with --merge",
            )
        check_folder(base)
        return path
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
    base = find_base(folder)
    total = hashlib.sha256(b"" if base is None else digest(base).encode())
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


DTYPES = ("auto", "float32", "bfloat16", "float16")
MAX_TOKENS = 1024
_TEMPLATE = "template."


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """What a user may choose.

    ``device`` is ``auto`` (a GPU when there is one), ``cpu``, ``cuda``, ``cuda:1``, ``mps`` or
    ``spread`` (over all GPUs). ``dtype`` ``auto`` is the checkpoint's own on a GPU and float32 on
    a CPU. ``batch`` is the most requests answered at once. ``attn`` names an attention
    implementation of transformers. ``max_pixels`` shrinks larger images before the model's own
    processor sees them (0: never). ``max_tokens`` and ``temperature`` replace what tasks ask for.
    ``template`` goes to the chat template (``template.enable_thinking=false``).
    """

    device: str = "auto"
    dtype: str = "auto"
    batch: int = 16
    attn: str = "auto"
    max_tokens: int | None = None
    max_pixels: int = 0
    temperature: float | None = None
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float | None = None
    trust_remote_code: bool = False
    template: Mapping[str, JsonValue] = field(default_factory=dict)


def read_settings(params: Mapping[str, str]) -> LocalSettings:
    """Read ``--param`` values; unknown names and impossible values are refused.

    >>> read_settings({"batch": "16", "template.enable_thinking": "false"}).template
    {'enable_thinking': False}
    >>> read_settings({"attn": "a b"})
    Traceback (most recent call last):
    memantics.core.errors.InputError: --param attn=a b is not possible; give a name such as sdpa
    """
    named: dict[str, Any] = {}
    template: dict[str, JsonValue] = {}
    for name, value in params.items():
        if name.startswith(_TEMPLATE) and name != _TEMPLATE:
            template[name.removeprefix(_TEMPLATE)] = json_or_text(value)
        elif name not in _READERS:
            raise UnknownName("parameter of local/… models:", name, [*_READERS, "template.NAME"])
        else:
            named[name] = _READERS[name](name, value)
    return LocalSettings(**named, template=template)


def _device(name: str, value: str) -> str:
    if not re.fullmatch(r"auto|cpu|mps|spread|cuda(:\d{1,3})?", value):
        raise _wrong(name, value, "auto, cpu, cuda, cuda:1, mps or spread")
    return value


def _dtype(name: str, value: str) -> str:
    if value not in DTYPES:
        raise UnknownName(f"value of --param {name}:", value, DTYPES)
    return value


def _word(name: str, value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_./-]{1,80}", value):
        raise _wrong(name, value, "a name such as sdpa")
    return value


def _flag(name: str, value: str) -> bool:
    if value not in ("true", "false"):
        raise _wrong(name, value, "true or false")
    return value == "true"


def _whole(low: int, high: int) -> Callable[[str, str], int]:
    def read(name: str, value: str) -> int:
        if not (value.isdecimal() and value.isascii() and low <= int(value) <= high):
            raise _wrong(name, value, f"a whole number from {low:,} to {high:,}")
        return int(value)

    return read


def _number(low: float, high: float) -> Callable[[str, str], float]:
    def read(name: str, value: str) -> float:
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not low <= number <= high:
            raise _wrong(name, value, f"a number from {low:g} to {high:g}")
        return number

    return read


def _wrong(name: str, value: str, expected: str) -> InputError:
    return InputError(f"--param {name}={value} is not possible", hint=f"give {expected}")


_READERS: Mapping[str, Callable[[str, str], Any]] = {
    "device": _device,
    "dtype": _dtype,
    "batch": _whole(1, 1024),
    "attn": _word,
    "max_tokens": _whole(1, 1_000_000),
    "max_pixels": _whole(0, 40_000_000),
    "temperature": _number(0.0, 100.0),
    "top_p": _number(1e-6, 1.0),
    "top_k": _whole(0, 1_000_000),
    "repetition_penalty": _number(0.01, 100.0),
    "trust_remote_code": _flag,
}
