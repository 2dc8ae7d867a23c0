"""A LoRA adapter as peft writes it: a small folder that names the model it was tuned on."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import orjson

from memantics.core.errors import InputError

CONFIG = "adapter_config.json"


def find_base(folder: Path) -> Path | None:
    """The folder of the model that an adapter was tuned on; None where there is no adapter."""
    path = folder / CONFIG
    if not path.is_file():
        return None
    try:
        return Path(orjson.loads(path.read_bytes())["base_model_name_or_path"])
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(f"{path} cannot be read: {error!r}", hint="tune again") from error


def join_adapter(model: Any, adapter: Path) -> Any:
    """The model with the adapter's matrices added to its weights."""
    peft: Any = importlib.import_module("peft")
    return peft.PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()
