"""Documents and drawings as templates beside the modules that fill them: cards, LaTeX, SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markupsafe import Markup

Filters = Mapping[str, Callable[..., object]]


def fill_template(module: str, name: str, filters: Filters, **values: object) -> str:
    """The document ``name`` beside a module (its ``__file__``), with values in its holes.

    Marks are ``<< >>`` and ``<% %>``: braces are LaTeX's own. Nothing is escaped, since each form
    has its own rules: whoever fills a template hands over the filters that quote.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(  # noqa: S701 - these documents are no HTML
        loader=FileSystemLoader(Path(module).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
    )
    made.filters.update(filters)
    return made.get_template(name).render(**values)


@cache
def _read_drawings(file: Path) -> Any:
    from jinja2 import Environment, StrictUndefined

    from memantics.core.text import mask_unseen

    made = Environment(autoescape=True, undefined=StrictUndefined)
    made.filters["mask"] = mask_unseen
    return made.from_string(file.read_text(encoding="utf-8")).module


def draw(file: Path, name: str, *values: object) -> Markup:
    """A drawing by its name in a file of macros; all values in it are escaped."""
    drawn: Markup = getattr(_read_drawings(file), name)(*values)
    return drawn
