"""How a local model is loaded and how it decodes: the ``--param`` values of ``local/PATH``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from pydantic import JsonValue

from memantics.core.errors import InputError, UnknownName

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
            template[name.removeprefix(_TEMPLATE)] = _json_or_text(value)
        elif name not in _READERS:
            raise UnknownName("parameter of local/… models:", name, [*_READERS, "template.NAME"])
        else:
            named[name] = _READERS[name](name, value)
    return LocalSettings(**named, template=template)


def _json_or_text(value: str) -> JsonValue:
    try:
        parsed: JsonValue = orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
    return parsed


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
