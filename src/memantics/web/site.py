"""Pages of a web app: templates, static files and messages, with shared defaults.

A part of an app is a folder with ``templates/``, ``static/`` and ``messages.toml``, all optional.
Earlier parts override later ones; the shared defaults are last.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import get_args

from fastapi import FastAPI
from jinja2 import FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from memantics.core.fonts import CHINESE
from memantics.web.phrases import PageLanguage
from memantics.web.punctuation import PageEnvironment

LANGUAGES: tuple[PageLanguage, ...] = get_args(PageLanguage)
NAMES: Mapping[PageLanguage, str] = {"en": "English", "zh": "中文"}
HERE = Path(__file__).parent
MEDIA_TYPES: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".otf": "font/otf",
}


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The messages of one language; a call returns one message with its placeholders filled."""

    language: PageLanguage
    messages: Mapping[str, str]

    def __call__(self, key: str, **values: object) -> str:
        """Return a message with its named placeholders filled."""
        return self.messages[key].format_map(values) if values else self.messages[key]


class Site:
    """Templates, static files and messages of one web app."""

    def __init__(self, *parts: Path, filters: Mapping[str, Callable[..., object]] | None = None):
        self.parts = (*parts, HERE)
        self.environment = PageEnvironment(
            # The shared defaults of self-contained pages and web apps come last.
            loader=FileSystemLoader(
                [*(part / "templates" for part in self.parts), HERE / "page_templates"]
            ),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self.environment.globals["asset"] = self.asset
        self.environment.filters |= {
            "percent": show_percent,
            "decimal": format_value,
            "moment": show_moment,
            **(filters or {}),
        }
        self._static = self._find_static()
        self._words = {language: self._read_words(language) for language in LANGUAGES}

    def words(self, language: PageLanguage) -> Catalogue:
        """Return all messages of a language."""
        return self._words[language]

    def asset(self, name: str) -> str:
        """Return the URL of a static file; it changes with the content, for caching."""
        digest = hashlib.sha256(self._static[name].read_bytes()).hexdigest()
        return f"/static/{name}?v={digest[:12]}"

    def render(self, template: str, context: Mapping[str, object], status: int = 200) -> Response:
        """Render a page as a response."""
        return HTMLResponse(self.environment.get_template(template).render(context), status)

    def add_static(self, app: FastAPI) -> None:
        """Serve the static files of all parts under ``/static/``."""

        @app.get("/static/{name}", include_in_schema=False)
        def static(name: str) -> Response:
            """Return a style sheet or script."""
            if name not in self._static:
                return PlainTextResponse("not found", 404)
            return Response(
                read_once(self._static[name]),
                media_type=MEDIA_TYPES[self._static[name].suffix],
                headers={"cache-control": "public, max-age=31536000, immutable"},
            )

    def _find_static(self) -> dict[str, Path]:
        files = [path for part in reversed(self.parts) for path in (part / "static").glob("*")]
        return {path.name: path for path in (*files, CHINESE) if path.suffix in MEDIA_TYPES}

    def _read_words(self, language: PageLanguage) -> Catalogue:
        messages: dict[str, str] = {}
        for part in reversed(self.parts):
            file = part / "messages.toml"
            if file.is_file():
                sections = tomllib.loads(file.read_text(encoding="utf-8"))
                messages |= {
                    f"{section}.{key}": texts[language]
                    for section, entries in sections.items()
                    for key, texts in entries.items()
                }
        return Catalogue(language, messages)


@lru_cache(maxsize=64)
def read_once(path: Path) -> bytes:
    """Return the content of a packaged file, cached in memory."""
    return path.read_bytes()


def choose_language(chosen: str, accepted: str) -> PageLanguage:
    """Return the language a user chose, else the browser's first supported one, else English.

    >>> choose_language("", "fr;q=1, zh-CN;q=0.9"), choose_language("en", "zh")
    ('zh', 'en')
    """
    for wanted in (chosen, *(part.partition(";")[0].strip() for part in accepted.split(","))):
        for language in LANGUAGES:
            if wanted.lower().split("-")[0] == language:
                return language
    return "en"


def show_percent(value: float | None) -> str:
    """Format a proportion as a percentage.

    >>> show_percent(0.7422), show_percent(None)
    ('74 %', '–')
    """
    return "–" if value is None else f"{value * 100:.0f} %"


def format_value(value: float | None, digits: int = 2) -> str:
    """Format a coefficient (such as kappa) with two decimals.

    >>> format_value(0.61803), format_value(-0.004), format_value(None)
    ('0.62', '0.00', '–')
    """
    return "–" if value is None else f"{value:z.{digits}f}"


def show_moment(seconds: float) -> str:
    """Return a machine-readable time; a script in the page formats it for the reader.

    >>> show_moment(0.0)
    '1970-01-01T00:00:00+00:00'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
