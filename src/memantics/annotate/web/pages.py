"""Templates: everything is escaped, and a name that is not given is an error, not a blank."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from string import ascii_uppercase

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

HERE = Path(__file__).parent
STATIC: Mapping[str, str] = {
    "annotate.css": "text/css; charset=utf-8",
    "annotate.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


@lru_cache(maxsize=1)
def make_environment() -> Environment:
    """The environment of all pages."""
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals["asset"] = asset
    environment.filters["unlettered"] = drop_letters
    environment.filters["percent"] = show_percent
    environment.filters["figure"] = show_figure
    environment.filters["moment"] = show_moment
    return environment


@lru_cache(maxsize=8)
def read_static(name: str) -> bytes:
    """A file of ours by its known name."""
    return (HERE / "static" / name).read_bytes()


@lru_cache(maxsize=8)
def asset(name: str) -> str:
    """The address of a static file; it changes with its content, so that it can be kept."""
    return f"/static/{name}?v={hashlib.sha256(read_static(name)).hexdigest()[:12]}"


def render(template: str, context: Mapping[str, object], status: int = 200) -> Response:
    """A page as a response."""
    text = make_environment().get_template(template).render(context)
    return HTMLResponse(text, status)


def drop_letters(options: Sequence[str]) -> list[str]:
    """Options without letters of their own: the list that shows them gives each its letter.

    >>> drop_letters(["A. a cat", "B. a dog"]), drop_letters(["A. Milne", "a dog"])
    (['a cat', 'a dog'], ['A. Milne', 'a dog'])
    """
    letters = ascii_uppercase[: len(options)]
    lettered = len(letters) == len(options) and all(
        text.startswith((f"{letter}. ", f"{letter}) "))
        for letter, text in zip(letters, options, strict=True)
    )
    return [text[3:] if lettered else text for text in options]


def show_percent(value: float | None) -> str:
    """A share as people read it.

    >>> show_percent(0.7422), show_percent(None)
    ('74 %', '–')
    """
    return "–" if value is None else f"{value * 100:.0f} %"


def show_figure(value: float | None, digits: int = 2) -> str:
    """A coefficient as people read it.

    >>> show_figure(0.61803), show_figure(None)
    ('0.62', '–')
    """
    return "–" if value is None else f"{value:.{digits}f}"


def show_moment(seconds: float) -> str:
    """A time for machines; the script shows it as people of the reader's language do.

    >>> show_moment(0.0)
    '1970-01-01T00:00:00+00:00'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
