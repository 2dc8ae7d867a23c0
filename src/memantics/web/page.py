"""Self-contained HTML pages: templates, embedded thumbnails and the content security policy.

Pages work offline. Their content security policy allows only the script of the page itself. Each
image is embedded once, scaled down and decoded within size limits.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from PIL import Image as Pillow
from pydantic import JsonValue

from memantics import __version__
from memantics.core.errors import ImageError
from memantics.core.fonts import embed_chinese
from memantics.core.images import decode, read_bytes
from memantics.core.marks import keep_mark
from memantics.core.records import format_value, show_metric, show_span
from memantics.core.registry import is_inside
from memantics.web.phrases import ENGLISH, SEPARATORS, Phrases, read_phrases
from memantics.web.punctuation import PageEnvironment

_BATCH = 64
# Pages with more images use smaller ones, so that a page with thousands of images opens quickly.
_SIDES = ((500, 420), (1_500, 300), (4_000, 220))
_SMALLEST = 160


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """An image on a page: a data URI with its size, or the reason why the image is missing."""

    name: str
    uri: str = ""
    width: int = 0
    height: int = 0
    reason: str = ""


def choose_side(count: int) -> int:
    """Return the longest side of a thumbnail, depending on the number of images.

    >>> choose_side(60), choose_side(5_000)
    (420, 160)
    """
    return next((side for most, side in _SIDES if count <= most), _SMALLEST)


def make_thumbnails(
    paths: Sequence[Path], max_bytes: int, places: Sequence[Path] | None = None
) -> Iterator[Thumbnail]:
    """Yield one thumbnail per path, in order, up to ``max_bytes`` in total.

    Only images below the folders ``places`` are shown; None: all images.
    """
    side, used = choose_side(len(paths)), 0
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for start in range(0, len(paths), _BATCH):
            batch = paths[start : start + _BATCH]
            if used >= max_bytes:
                yield from (
                    Thumbnail(path.name, reason="not shown: page size limit") for path in batch
                )
                continue
            for made in pool.map(lambda path: make_thumbnail(path, side, places), batch):
                used += len(made.uri)
                yield made


def make_thumbnail(path: Path, side: int, places: Sequence[Path] | None = None) -> Thumbnail:
    """Scale one image down; for a missing or unsafe image, return its name and a reason."""
    if places is not None and not is_inside(path, places):
        return Thumbnail(path.name, reason="not shown: outside the registered data folders")
    try:
        # If the path is a pipe or device, reading would block or never end.
        if path.exists() and not path.is_file():
            return Thumbnail(path.name, reason="not a file")
        data = read_bytes(path)
        image = decode(data, path.name)
    except ImageError as error:
        return Thumbnail(path.name, reason=error.reason)
    except (OSError, ValueError):
        return Thumbnail(path.name, reason="unreadable")
    image.thumbnail((side, side), Pillow.Resampling.BICUBIC, reducing_gap=2.0)
    out = io.BytesIO()
    image.save(out, "WEBP", quality=74, method=2)
    body = base64.b64encode(keep_mark(data, out.getvalue())).decode("ascii")
    return Thumbnail(path.name, f"data:image/webp;base64,{body}", image.width, image.height)


_TEMPLATES = Path(__file__).with_name("page_templates")
TemplateValues = Mapping[str, Any]  # values for the placeholders of a template, by name


def fill_page(template: str, styles: Sequence[str], script: str = "", **values: object) -> str:
    """Render a page from a template, styles and a script.

    The value ``language`` selects the texts: ``en`` (default) or ``zh``. Every template extends
    ``base.html``, which contains the content security policy. A style may also be given as text.
    """
    code = read_asset(script) if script else ""
    phrases = read_phrases(str(values.get("language", "en")))
    mark = secrets.token_hex(16)  # A mark that cannot occur in the content of a page.
    page = (
        make_environment(phrases)
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
    """Return a template, style sheet or script by its name or path."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def make_policy(style: str, script: str) -> str:
    """Return a content security policy for this style and script (by hash) and embedded images."""
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


def make_environment(phrases: Phrases = ENGLISH) -> Environment:
    """Create a template environment that escapes all values and rejects unknown names.

    Templates call ``t("English text")`` or ``attribute("English text")`` for their texts, and the
    filter ``say`` for sentences of other packages. ``between`` separates the parts of a list.
    """
    made = PageEnvironment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_keep_in_line,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(
        t=phrases.text, attribute=phrases.attribute, say=phrases.say, between=phrases.between
    )
    made.filters.update(
        say=phrases.say,
        decimal=_mark_safe(format_value),
        span=lambda score: Markup(phrases.say(show_span(score))),  # noqa: S704 - numbers
        words=show_metric,
        count=_mark_safe(lambda number: f"{number:,}"),
        fixed=_mark_safe(lambda value, digits, sign="": f"{value:{sign}.{digits}f}"),
        significant=_mark_safe(lambda value, digits: f"{value:.{digits}g}"),
        upper_first=lambda text: text[:1].upper() + text[1:],
        lines=_show_lines,
        moment=_show_moment,
    )
    return made


def _mark_safe(show: Callable[..., str]) -> Callable[..., Markup]:
    """Mark formatted numbers as safe, since texts among the values of a phrase are isolated."""
    return lambda *values: Markup(show(*values))  # noqa: S704 - numbers


def _keep_in_line(value: object) -> object:
    """Replace paragraph separators with spaces, because they would end a bidirectional isolate."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return value.translate(SEPARATORS)
    return value


def _show_lines(values: Mapping[str, JsonValue]) -> list[tuple[str, str]]:
    """Return the entries of a mapping in run.json as names and readable values."""
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in values.items()
    ]


def _show_moment(text: str) -> str:
    """Return a time stamp without fractions; leave other texts unchanged."""
    try:
        return datetime.fromisoformat(text).isoformat(sep=" ", timespec="seconds")
    except ValueError:
        return text
