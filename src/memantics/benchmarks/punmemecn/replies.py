"""Reading replies. Nothing is evaluated and nothing is guessed; the official rules by name."""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from memantics.core.task import Unparsed
from memantics.tasks.parse import parse_label

_LONGEST = 20_000
_LONGEST_LITERAL = 4096
_OBJECTS = 50


def find_objects(text: str) -> Iterator[Mapping[str, JsonValue]]:
    """Every flat object in a reply, as JSON or as a Python literal, in its order.

    >>> list(find_objects('''So: {'target': 'self'} or {"target": "both"}'''))
    [{'target': 'self'}, {'target': 'both'}]
    """
    for match in list(re.finditer(r"\{[^{}]*\}", text))[:_OBJECTS]:
        found = _read_object(match.group())
        if found is not None:
            yield found


def _read_object(text: str) -> Mapping[str, JsonValue] | None:
    if len(text) > _LONGEST:
        return None
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        value = _read_literal(text)
    return value if isinstance(value, dict) and all(isinstance(k, str) for k in value) else None


def _read_literal(text: str) -> object:
    """A dict of strings in single quotes: many models write one where JSON was asked for."""
    if len(text) > _LONGEST_LITERAL:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def read_choice(
    value: JsonValue,
    aliases: Mapping[str, Sequence[str]],
    name: str,
    opposites: Mapping[str, str] | None = None,
) -> str:
    """The one key that the value names, by any of its aliases.

    >>> read_choice(" Self ", {"self": ("自己", "self")}, "target")
    'self'
    """
    if isinstance(value, str):
        with contextlib.suppress(Unparsed):
            return parse_label(value, aliases, opposites)
    raise Unparsed(f"{name} is not one of {', '.join(names[0] for names in aliases.values())}")


def first_braces(text: str) -> object:
    """What the official scripts evaluate: from the first { to the first }; None if no literal."""
    start, end = text.find("{"), text.find("}")
    body = text[start : end + 1] if 0 <= start < end else ""
    return _read_literal(body.replace("\n", " ").strip()) if body else None
