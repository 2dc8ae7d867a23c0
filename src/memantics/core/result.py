"""Result records of the public functions, convertible to plain data and notebook tables."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal

from memantics.core.errors import MissingExtra

if TYPE_CHECKING:  # the command line imports this module at every start
    from _typeshed import DataclassInstance
    from pydantic import JsonValue

Justify = Literal["left", "right"]


def to_plain(value: object) -> JsonValue:
    """Convert a record and its content to JSON values.

    >>> from pathlib import Path
    >>> to_plain({"folder": Path("runs"), "counts": (1, 2)})
    {'folder': 'runs', 'counts': [1, 2]}
    """
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "model_dump"):  # The value is a pydantic record.
        return to_plain(value.model_dump())
    if isinstance(value, Mapping):
        return {str(key): to_plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_plain(inner) for inner in value]
    # numpy scalars and arrays are converted; any other value, such as a path, is converted to text.
    return to_plain(value.tolist()) if hasattr(value, "tolist") else str(value)


def make_frame(rows: Iterable[Mapping[str, object]]) -> Any:
    """Build a pandas data frame from flat rows."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtra("data frames", "frames") from None
    return pd.DataFrame(list(rows))


class Result:
    """The base of the records that public functions return."""

    __slots__ = ()

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the record as plain data, as printed by ``--json`` and sent over HTTP."""
        plain = to_plain(self)
        assert isinstance(plain, dict)
        return plain

    def _repr_html_(self) -> str:
        return html_table(self.to_dict())


@dataclass(frozen=True, slots=True)
class Table:
    """A formatted table for terminals and notebooks; a column named ``>name`` is right-aligned."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    total: bool = False  # whether the last row contains the totals

    @property
    def sides(self) -> tuple[tuple[str, Justify], ...]:
        """The name and the alignment of each column."""
        return tuple(
            (c.removeprefix(">"), "right" if c[:1] == ">" else "left") for c in self.columns
        )

    def _repr_html_(self) -> str:
        names, sides = zip(*self.sides, strict=True)
        lines = [("th", names), *(("td", row) for row in self.rows)]
        body = "".join(
            "<tr>"
            + "".join(
                f'<{tag} style="text-align:{side}">{html.escape(cell)}</{tag}>'
                for cell, side in zip(cells, sides, strict=True)
            )
            + "</tr>"
            for tag, cells in lines
        )
        return f"<table><caption>{html.escape(self.title)}</caption>{body}</table>"


def tabulate(records: Sequence[DataclassInstance]) -> Table:
    """Build a table of records: one column per field, lists joined with commas.

    >>> @dataclass
    ... class Pet:
    ...     name: str
    ...     eats: tuple[str, ...]
    >>> tabulate([Pet("Rex", ("bones", "shoes"))]).rows
    (('Rex', 'bones, shoes'),)
    """
    names = [field.name for field in fields(records[0])] if records else []
    rows = ([getattr(record, name) for name in names] for record in records)
    return Table(
        tuple(name.replace("_", " ") for name in names),
        tuple(tuple(map(_show_words, row)) for row in rows),
    )


def _show_words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else show_cell(value)


def show_cell(value: object) -> str:
    """Format a value for a table.

    >>> show_cell(13142), show_cell(0.15614), show_cell(None), show_cell([1, 2])
    ('13,142', '0.1561', '–', '[1, 2]')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.1f}"
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def html_table(values: Mapping[str, JsonValue]) -> str:
    """Format names and values as an HTML table; all text is escaped.

    >>> html_table({"n": 3})
    '<table><tr><th style="text-align:left">n</th><td>3</td></tr></table>'
    """
    rows = "".join(
        f'<tr><th style="text-align:left">{html.escape(name)}</th><td>{_cell(value)}</td></tr>'
        for name, value in values.items()
    )
    return f"<table>{rows}</table>"


def _cell(value: JsonValue) -> str:
    if isinstance(value, dict):
        return html_table(value)
    if isinstance(value, list):
        shown = ", ".join(_cell(inner) for inner in value[:20])
        return f"{shown}, … {len(value) - 20} more" if len(value) > 20 else shown
    if isinstance(value, float):
        return f"{value:.4g}"
    return "–" if value is None else html.escape(str(value))
