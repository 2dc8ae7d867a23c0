"""Cells of data sets: JSON and Python lists in a cell, fields of records, and lists of values."""

from __future__ import annotations

import ast

import orjson
from pydantic import JsonValue

from memantics.core.members import BYTES
from memantics.core.tables import TableRow, write_cell


def look_up(row: TableRow, name: str) -> str | None:
    """Return a cell, also one inside of JSON records (``a.b``); None if there is none.

    >>> look_up({"a": '{"b": {"c": 1}}'}, "a.b.c"), look_up({"a": "x"}, "b")
    ('1', None)
    """
    if name in row:
        return row[name]
    if name + BYTES in row:
        return ""
    head, dot, rest = name.partition(".")
    while dot:
        if head in row and row[head].startswith("{"):
            return write_cell(dig(parse_cell(row[head]), rest))
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"
    return None


def parse_cell(cell: str) -> JsonValue:
    """Parse a cell with JSON, or with a list or dictionary as Python prints it."""
    try:
        value: JsonValue = orjson.loads(cell)
        return value
    except orjson.JSONDecodeError:
        pass
    try:
        literal: JsonValue = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return literal if isinstance(literal, list | dict) else None


def list_parts(value: JsonValue) -> list[JsonValue]:
    """Return a list, or an empty one for other values."""
    return value if isinstance(value, list) else []


def list_values(value: JsonValue) -> list[str]:
    """Return the values of a list, or one value, as text."""
    return [write_cell(one) for one in (value if isinstance(value, list) else [value])]


def dig(value: JsonValue, path: str) -> JsonValue:
    """Return a field inside of records (``a.b``); None if there is none."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def cut_cell(cell: str, separator: str = "") -> list[str]:
    """Return the values of a cell: a list, or parts between separators.

    >>> cut_cell('["a", 1]'), cut_cell("['a', 'b']"), cut_cell("a; b", ";"), cut_cell("")
    (['a', '1'], ['a', 'b'], ['a', 'b'], [])
    """
    if cell.startswith("["):
        value = parse_cell(cell)
        if isinstance(value, list):
            return [write_cell(one) for one in value]
    if separator:
        return [part.strip() for part in cell.split(separator) if part.strip()]
    return [cell] if cell else []
