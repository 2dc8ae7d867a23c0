"""How things look in a terminal: tables that fit 80 columns, JSON that others can read."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, is_dataclass
from pathlib import Path

from rich import box
from rich.table import Table

from memantics.core.result import Table as Shown
from memantics.core.terminal import Guarded, console, plain
from memantics.core.text import escape_unseen, mend_surrogates, neutralise

__all__ = ["console", "plain"]


def print_json(value: object) -> None:
    """Print a value as JSON, readable and stable; unseen characters are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=_plain)
    sys.stdout.write(escape_unseen(text) + "\n")


def print_data(text: str) -> None:
    """Print a file's content: as it is on a pipe, unable to steer where it is a terminal."""
    stream = sys.stdout.stream if isinstance(sys.stdout, Guarded) else sys.stdout
    stream.write(neutralise(text) if stream.isatty() else mend_surrogates(text))


def _plain(value: object) -> object:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(type(value).__name__)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of text from data."""
    for line in lines:
        console().print(plain(line))


def show_table(shown: Shown) -> None:
    """Print the table of a result."""
    title = plain(shown.title, "bold") if shown.title else None
    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name, side in shown.sides:
        made.add_column(name, justify=side, overflow="fold")
    for place, row in enumerate(shown.rows, 1):
        last = shown.total and place == len(shown.rows)
        if last:
            made.add_section()
        made.add_row(*map(plain, row), style="bold" if last else "")
    console().print(made)


def say(text: str) -> None:
    """One plain line on standard output."""
    sys.stdout.write(neutralise(text) + "\n")


def tell(text: str) -> None:
    """One plain line on standard error: progress, warnings, errors."""
    sys.stderr.write(neutralise(text) + "\n")
