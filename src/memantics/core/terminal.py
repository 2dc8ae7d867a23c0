"""Consoles and streams that text from outside cannot steer."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from memantics.core.text import neutralise

_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")


class SafeConsole(Console):
    """A console whose texts cannot steer the terminal; only rich's own codes pass."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Neutralise every piece of text that is drawn."""
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control or (text.isprintable() and text.isascii()):
                yield segment
            else:
                yield Segment(neutralise(text), segment.style)


def console(*, error: bool = False) -> Console:
    """Standard output (or error); a pipe gets plain text of at most 80 columns."""
    stream = sys.stderr if error else sys.stdout
    raw = stream.stream if isinstance(stream, Guarded) else stream
    out = SafeConsole(highlight=False, soft_wrap=False, file=raw)
    return out if out.is_terminal else SafeConsole(highlight=False, width=80, file=raw)


class Guarded:
    """A stream that neutralises what is written past the console: warnings, logs, usage lines.

    ``colours`` lets pass the codes of Typer's help, which draws its own tables.
    """

    def __init__(self, stream: TextIO, *, colours: bool = False) -> None:
        self.stream = stream
        self._colours = colours

    def write(self, text: str) -> int:
        """Write text that cannot steer the terminal."""
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
    """Guard standard output and error while a command runs."""
    out, err = Guarded(sys.stdout, colours=True), Guarded(sys.stderr)
    with redirect_stdout(cast("TextIO", out)), redirect_stderr(cast("TextIO", err)):
        yield


def plain(text: str, style: str = "") -> Text:
    """Text from data: never read as markup, never able to steer the terminal."""
    return Text(neutralise(text), style=style)
