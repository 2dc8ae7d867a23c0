"""Terminal output: tables of 80 columns, JSON, and text without control codes."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, TextIO, cast

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from memantics.core.errors import InputError
from memantics.core.result import Table as Shown
from memantics.core.text import escape_unseen, neutralise, repair_surrogates

__all__ = ["console", "plain"]

_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
MOST_INPUT = 10_000_000
# Maximum number of characters of a cell in a table; wrapping a cell of 8 million would take
# minutes.
_LONGEST_CELL = 2_000
_LONGEST_NAME = 32


class SafeConsole(Console):
    """A console that removes control codes from text, except those that rich itself writes."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Render text with control codes replaced."""
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control or (text.isprintable() and text.isascii()):
                yield segment
            else:
                yield Segment(neutralise(text), segment.style)


def console(*, error: bool = False) -> Console:
    """Return the console for standard output or error; a pipe gets plain text of 80 columns."""
    stream = sys.stderr if error else sys.stdout
    raw = stream.stream if isinstance(stream, Guarded) else stream
    out = SafeConsole(highlight=False, soft_wrap=False, file=raw)
    return out if out.is_terminal else SafeConsole(highlight=False, width=80, file=raw)


class Guarded:
    """A stream that removes control codes from text that bypasses the console (warnings, logs).

    ``colours`` allows the colour codes of Typer's help.
    """

    def __init__(self, stream: TextIO, *, colours: bool = False) -> None:
        self.stream = stream
        self._colours = colours

    def write(self, text: str) -> int:
        """Write text without control codes."""
        if self._colours:
            parts = _COLOUR.split(text)
            shown = "".join(p if n % 2 else neutralise(p) for n, p in enumerate(parts))
        else:
            shown = neutralise(text)
        return self.stream.write(shown)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def guard_streams() -> Iterator[None]:
    """Replace standard output and error by guarded streams while a command runs."""
    out, err = Guarded(sys.stdout, colours=True), Guarded(sys.stderr)
    with redirect_stdout(cast("TextIO", out)), redirect_stderr(cast("TextIO", err)):
        yield


def plain(text: str, style: str = "") -> Text:
    """Return text from data for printing: not parsed as markup, without control codes."""
    return Text(neutralise(text), style=style)


def read_input() -> str:
    """Read standard input, which must be UTF-8 and of limited length."""
    data = sys.stdin.buffer.read(MOST_INPUT + 1)
    if len(data) > MOST_INPUT:
        raise InputError(
            f"standard input has more than {MOST_INPUT:,} bytes", hint="split the input"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"standard input: {error}", hint="use UTF-8") from error


def print_json(value: object) -> None:
    """Print a value as indented JSON; invisible characters are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=_plain)
    sys.stdout.write(escape_unseen(text) + "\n")


def print_data(text: str) -> None:
    """Print the content of a file: unchanged on a pipe, without control codes in a terminal."""
    stream = sys.stdout.stream if isinstance(sys.stdout, Guarded) else sys.stdout
    stream.write(neutralise(text) if stream.isatty() else repair_surrogates(text))


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
    for place, (name, side) in enumerate(shown.sides):
        width = 0 if place else _measure_names([row[0] for row in shown.rows])
        made.add_column(name, justify=side, overflow="fold", min_width=width or None)
    for place, row in enumerate(shown.rows, 1):
        last = shown.total and place == len(shown.rows)
        if last:
            made.add_section()
        made.add_row(*map(_cell, row), style="bold" if last else "")
    console().print(made)


def _measure_names(cells: Sequence[str]) -> int:
    """Return the width of a column of names, which one copies whole; 0 for other texts."""
    longest = max(map(len, cells), default=0)
    whole = longest <= _LONGEST_NAME and not any(" " in cell for cell in cells)
    return longest if whole else 0


def _cell(text: str) -> Text:
    whole = len(text) <= _LONGEST_CELL
    return plain(text if whole else f"{text[:_LONGEST_CELL]}… ({len(text):,} characters)")


def say(text: str) -> None:
    """Print one line to standard output."""
    sys.stdout.write(neutralise(text) + "\n")


def tell(text: str) -> None:
    """Print one line to standard error: progress, warnings, errors."""
    sys.stderr.write(neutralise(text) + "\n")
