"""How things look in a terminal: tables that fit 80 columns, JSON that others can read."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memantics.core.result import Table as Shown

Justify = Literal["left", "right"]


def console() -> Console:
    """Standard output; a pipe gets plain text of at most 80 columns."""
    out = Console(highlight=False, soft_wrap=False)
    return out if out.is_terminal else Console(highlight=False, width=80, file=sys.stdout)


def print_json(value: object) -> None:
    """Print a value as JSON, readable and stable."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=_plain) + "\n")


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(type(value).__name__)


def table(columns: Sequence[tuple[str, Justify]], title: str = "") -> Table:
    """An empty table in our style."""
    made = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for name, justify in columns:
        made.add_column(name, justify=justify, overflow="fold")
    return made


def show_table(shown: Shown) -> None:
    """Print the table of a result; text from data cannot steer the terminal."""
    made = table(shown.sides)
    made.title = plain(shown.title, "bold") if shown.title else None
    for row in shown.rows:
        made.add_row(*map(plain, row))
    console().print(made)


def plain(text: str, style: str = "") -> Text:
    """Text from data: never read as markup, never able to steer the terminal."""
    shown = "".join(
        c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
    return Text(shown, style=style)


def show_value(value: object) -> str:
    """A figure as people read it.

    >>> show_value(13142), show_value(0.15614), show_value(None), show_value([1, 2])
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
