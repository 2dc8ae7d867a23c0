"""Rows of named values as JSON lines, CSV or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from pydantic import JsonValue

from memantics.annotate.errors import NoSuchForm

Row = Mapping[str, JsonValue]
TYPES: Mapping[str, str] = {
    "jsonl": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "json": "application/json",
    "zip": "application/zip",
}
FORMS = ("jsonl", "json", "csv", "parquet")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_rows(rows: Sequence[Row], columns: Sequence[str], form: str) -> bytes:
    r"""All rows in one of the forms; every row has every column.

    >>> write_rows([{"a": "x", "b": [1]}], ["a", "b"], "csv")
    b'a,b\r\nx,[1]\r\n'
    """
    match form:
        case "jsonl":
            return b"".join(orjson.dumps(row) + b"\n" for row in rows)
        case "json":
            return orjson.dumps(rows, option=orjson.OPT_INDENT_2)
        case "csv":
            return _write_csv(rows, columns)
        case "parquet":
            return _write_parquet(rows, columns)
        case _:
            raise NoSuchForm("a table", form, FORMS)


def _write_csv(rows: Sequence[Row], columns: Sequence[str]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in columns])
    return text.getvalue().encode()


def _cell(value: JsonValue) -> str:
    """A cell that no spreadsheet takes for a formula: such a text gets an apostrophe in front.

    >>> _cell("=1+1"), _cell("ok"), _cell(None), _cell(["a"])
    ("'=1+1", 'ok', '', '["a"]')
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    return orjson.dumps(value).decode()


def _write_parquet(rows: Sequence[Row], columns: Sequence[str]) -> bytes:
    import pyarrow as arrow
    from pyarrow import parquet

    arrays = {name: _column([row.get(name) for row in rows]) for name in columns}
    sink = arrow.BufferOutputStream()
    parquet.write_table(arrow.table(arrays), sink)
    return bytes(sink.getvalue().to_pybytes())


def _column(values: list[JsonValue]) -> Any:
    """Plain types where a column has one, lists of texts, else JSON."""
    import pyarrow as arrow

    given = [value for value in values if value is not None]
    for kind, to in ((bool, arrow.bool_()), (int, arrow.int64()), (str, arrow.string())):
        if given and all(type(value) is kind for value in given):
            return arrow.array(values, type=to)
    if given and all(type(value) in (int, float) for value in given):
        return arrow.array(values, type=arrow.float64())
    if given and all(_is_texts(value) for value in given):
        return arrow.array(values, type=arrow.list_(arrow.string()))
    texts = [None if value is None else orjson.dumps(value).decode() for value in values]
    return arrow.array(texts, type=arrow.string())


def _is_texts(value: JsonValue) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
