"""Documents as templates beside the modules that fill them: model cards, data cards, LaTeX.

Marks are ``<< >>`` and ``<% %>``: braces are LaTeX's own. Nothing is escaped, since each form has
its own rules: whoever fills a template hands over the filters that quote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

Filters = Mapping[str, Callable[..., object]]


def fill_template(module: str, name: str, filters: Filters, **values: object) -> str:
    """The document ``name`` beside a module (its ``__file__``), with values in its holes."""
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
