"""Self-contained HTML pages: they work offline under a policy that runs only our script."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from pydantic import JsonValue

from memantics import __version__
from memantics.core.fonts import embed_chinese
from memantics.core.formatting import show_figure, show_span

_TEMPLATES = Path(__file__).with_name("page_templates")
Shown = Mapping[str, Any]  # what a template shows, by the names that it uses
_SEPARATORS = dict.fromkeys((0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029), " ")


def fill_page(template: str, styles: Sequence[str], script: str = "", **values: object) -> str:
    """A page of ours: the names of its template, styles and script, and what it shows.

    Every template extends ``base.html``, which holds the policy. A style may be given as it is.
    """
    code = read_asset(script) if script else ""
    mark = secrets.token_hex(16)  # nothing that a page shows can hold it
    page = (
        make_environment()
        .from_string(read_asset(template))
        .render(
            **values,
            policy=f"policy-{mark}",
            style=f"style-{mark}",
            script=Markup(code),  # noqa: S704 - our own file
            version=__version__,
        )
    )
    sheets = (read_asset(name) if name.endswith(".css") else name for name in styles)
    style = embed_chinese(page) + "".join(sheets)
    page = page.replace(f"policy-{mark}", escape(make_policy(style, code)))
    return page.replace(f"style-{mark}", style)


def read_asset(name: str) -> str:
    """A template, style sheet or script of a page, by its name or its path."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def make_policy(style: str, script: str) -> str:
    """Only our style and our script, by hash; images and fonts only from the page itself."""
    parts = {
        "default-src": "'none'",
        "img-src": "data:",
        "font-src": "data:",
        "style-src": _hash(style),
        "script-src": _hash(script),
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in parts.items())


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def make_environment() -> Environment:
    """Templates that escape everything from data and refuse names they do not know."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_keep_in_line,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        figure=show_figure,
        span=show_span,
        words=lambda name: name.replace("_", " "),
        count=lambda number: f"{number:,}",
        lines=_show_lines,
        moment=_show_moment,
    )
    return made


def _keep_in_line(value: object) -> object:
    """Make paragraph separators spaces: they would end the isolation of a direction override."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return value.translate(_SEPARATORS)
    return value


def _show_lines(values: Mapping[str, JsonValue]) -> list[tuple[str, str]]:
    """A mapping of run.json as names and readable values."""
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in values.items()
    ]


def _show_moment(text: str) -> str:
    """A time stamp without its fractions; text that is none stays as it is."""
    try:
        return datetime.fromisoformat(text).isoformat(sep=" ", timespec="seconds")
    except ValueError:
        return text
