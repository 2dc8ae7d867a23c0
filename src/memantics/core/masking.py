"""Secrets that this process knows, masked in whatever it writes: journals, caches, files, logs.

A model that is opened names its key here, and what its address and its parameters hold under the
name of a secret. Short values ("EMPTY", which local servers take) are no secrets: they are words.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote, quote_plus

MASK = "***"
_SHORTEST = 8
_NAMES = re.compile(r"(?i)(.*[-_])?(api[-_]?key|key|token|secret|password|authorization|sig)")
_ENVIRONMENT = ("_API_KEY", "_TOKEN", "_SECRET")
_known: dict[bytes, None] = {}


def learn_secrets(*values: str) -> None:
    """From now on these are masked, as they are and as JSON or an address spells them."""
    for value in values:
        if len(value) >= _SHORTEST:
            quoted = (quote(value, safe=safe) for safe in ("", "/", "/:?@!$'()*,;"))
            spelled = (value, json.dumps(value)[1:-1], *quoted, quote_plus(value))
            _known.update(dict.fromkeys(one.encode("utf-8", "replace") for one in spelled))


def learn_named(pairs: Iterable[tuple[str, object]]) -> None:
    """Learn the values whose name is that of a secret.

    >>> learn_named([("api_key", "sk-0123456789"), ("max_tokens", 100), ("stop", "a long word")])
    >>> hide("sk-0123456789, a long word")
    '***, a long word'
    """
    for name, value in pairs:
        if isinstance(value, Mapping):
            learn_named(value.items())
        elif isinstance(value, str) and _NAMES.fullmatch(name):
            learn_secrets(value)


def learn_environment(environment: Mapping[str, str] = os.environ) -> None:
    """Learn the keys in the environment."""
    learn_secrets(*(v for name, v in environment.items() if name.endswith(_ENVIRONMENT)))


def hide_bytes(data: bytes) -> bytes:
    """What is written, with a mask where a secret stood."""
    for secret in _known:
        if secret in data:
            data = data.replace(secret, MASK.encode())
    return data


def hide(text: str) -> str:
    """A text likewise."""
    return hide_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
