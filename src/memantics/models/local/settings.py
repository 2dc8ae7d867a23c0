"""Checks of a local model folder, and the ``--param`` values for loading and decoding."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import BeforeValidator, Field, JsonValue

from memantics.core.errors import InputError, UnknownName, need_packages
from memantics.core.files import open_regular, read_regular
from memantics.core.records import Closed
from memantics.models.kinds import json_or_text, read_params

# A LoRA adapter in the format of peft is a small folder that names its base model.

CONFIG = "adapter_config.json"


def find_base(folder: Path) -> Path | None:
    """Return the folder of an adapter's base model; None if the folder is not an adapter."""
    path = folder / CONFIG
    if not path.is_file():
        return None
    try:
        return Path(orjson.loads(read_regular(path))["base_model_name_or_path"])
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(f"{path} cannot be read: {error!r}", hint="fine-tune it again") from error


def join_adapter(model: Any, adapter: Path) -> Any:
    """Merge the matrices of a LoRA adapter into the model's weights."""
    peft: Any = importlib.import_module("peft")
    return peft.PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()


PACKAGES = ("torch", "transformers", "accelerate", "torchvision")
_SUFFIXES = frozenset({".json", ".jinja", ".txt", ".model", ".tiktoken", ".safetensors", ".py"})
_SLICE = 1 << 20


def check_packages() -> None:
    """Raise ``MissingExtra`` without the packages of the extra ``local``."""
    need_packages("local/… models", "local", "torch", "transformers", "accelerate")


def find_versions() -> dict[str, JsonValue]:
    """Return the versions of the packages that compute answers; None for missing ones.

    torchvision is optional. If it is installed, transformers resizes images with it, and pixels
    differ slightly.
    """
    found: dict[str, JsonValue] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def check_folder(path: Path) -> Path:
    """Return the folder if it contains a loadable checkpoint or a LoRA adapter."""
    hint = "give the folder with config.json and *.safetensors, such as local/models/Qwen2-VL-2B"
    base = find_base(path)
    if base is not None:
        need_packages("LoRA adapters", "local", "peft")
        if not base.is_dir():
            raise InputError(
                f"{path} was fine-tuned from {base}, which is missing",
                hint="restore that model, or fine-tune with --merge",
            )
        check_folder(base)
        return path
    if not path.is_dir():
        raise InputError(f"no such folder: {path}", hint=hint)
    try:
        config = orjson.loads(read_regular(path / "config.json"))
    except FileNotFoundError:
        raise InputError(
            f"{path} is not a model folder: config.json is missing", hint=hint
        ) from None
    except (OSError, orjson.JSONDecodeError) as error:
        raise InputError(f"{path / 'config.json'} cannot be read: {error}", hint=hint) from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise InputError(f"{path / 'config.json'} has no model_type", hint=hint)
    if not any(path.glob("*.safetensors")):
        raise InputError(
            f"{path} contains no *.safetensors", hint="pickled weights (*.bin) are not loaded"
        )
    return path


def digest(folder: Path) -> str:
    """Hash a model folder: its small files and samples of its weights.

    Hashing tens of gigabytes would take minutes. Weight files are hashed by their size and three
    slices of 1 MiB. Training changes every tensor, so another model differs in these slices.

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
        with open_regular(path) as file:
            for start in _slices(size):
                file.seek(start)
                total.update(file.read(_SLICE))
    return total.hexdigest()[:16]


def _slices(size: int) -> list[int]:
    if size <= 3 * _SLICE:
        return list(range(0, size, _SLICE))
    return [0, (size - _SLICE) // 2, size - _SLICE]


MAX_TOKENS = 1024
_TEMPLATE = "template."


def _read_flag(value: object) -> object:
    """Parse a boolean strictly, because running third-party code needs an unambiguous yes."""
    return {"true": True, "false": False}.get(value, "") if isinstance(value, str) else value


class LocalSettings(Closed):
    """Settings of a local model.

    ``device`` is ``auto`` (a GPU if there is one), ``cpu``, ``cuda``, ``cuda:1``, ``mps`` or
    ``spread`` (over all GPUs). ``dtype`` is by default ``auto``: that of the checkpoint on a GPU,
    and float32 on a CPU. ``batch`` is the maximum batch size. ``attn`` names an attention
    implementation of transformers. Images of more than ``max_pixels`` pixels are scaled down (0:
    never). ``max_tokens`` and ``temperature`` override the task's values. ``template`` is passed to
    the chat template (``template.enable_thinking=false``).
    """

    device: str = Field(
        default="auto",
        pattern=r"^(auto|cpu|mps|spread|cuda(:\d{1,3})?)$",
        description="auto, cpu, cuda, cuda:1, mps or spread",
    )
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    batch: int = Field(default=16, ge=1, le=1024)
    attn: str = Field(
        default="auto", pattern=r"^[A-Za-z0-9_./-]{1,80}$", description="a name such as sdpa"
    )
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    max_pixels: int = Field(default=0, ge=0, le=40_000_000)
    temperature: float | None = Field(default=None, ge=0.0, le=100.0)
    top_p: float = Field(default=1.0, ge=1e-6, le=1.0)
    top_k: int = Field(default=0, ge=0, le=1_000_000)
    repetition_penalty: float | None = Field(default=None, ge=0.01, le=100.0)
    trust_remote_code: Annotated[bool, BeforeValidator(_read_flag)] = Field(
        default=False, description="true or false"
    )
    template: Mapping[str, JsonValue] = Field(default_factory=dict)


def read_settings(params: Mapping[str, str]) -> LocalSettings:
    """Parse ``--param`` values; reject unknown names and invalid values.

    >>> read_settings({"batch": "16", "template.enable_thinking": "false"}).template
    {'enable_thinking': False}
    >>> read_settings({"attn": "a b"})
    Traceback (most recent call last):
    memantics.core.errors.InputError: --param attn=a b is not a valid value; use a name such as sdpa
    """
    named: dict[str, object] = {}
    template: dict[str, JsonValue] = {}
    for name, value in params.items():
        inner = name.removeprefix(_TEMPLATE)
        if inner and inner != name:
            template[inner] = json_or_text(value)
        else:
            named[name] = value
    if "template" in named:
        raise UnknownName("--param of local/… models:", "template", ["template.NAME"])
    return read_params(LocalSettings, named | {"template": template}, "local/… models")
