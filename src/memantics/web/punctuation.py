"""Templates whose pages have no space beside full-width Chinese punctuation.

Templates separate texts with spaces, as English needs. Full-width punctuation has its space inside,
so a space that the template adds beside it makes a gap of two characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from jinja2 import Environment
from markupsafe import Markup

_LEADING = re.compile(r"\A(?:<[^>]*>|\s)+")  # tags and spaces before the first letter
_TRAILING = re.compile(r"(?:<[^>]*>|\s)+\Z")  # those after the last letter
_SPACES = re.compile(r"(<[^>]*>)|\s+")
_ENDS = tuple("：，。；、？！")  # no space after these
_STARTS = tuple("：，。；、？！（）")  # no space before these


def join_parts(parts: Iterable[str]) -> str:
    """Join the parts of a page without the spaces of the template beside full-width punctuation.

    Values are ``Markup`` and stay as they are; texts of the template itself are plain strings.

    >>> join_parts(["<p>", Markup("单元格："), " <b>", Markup("3："), "</b> ", Markup("（全）")])
    '<p>单元格：<b>3：</b>（全）'
    >>> join_parts(["<b>", Markup("建议："), "</b> <i class='x'> ", Markup("重算")])
    "<b>建议：</b><i class='x'>重算"
    >>> join_parts([Markup("Cells:"), " ", Markup("3：  4."), " ", Markup("5")])
    'Cells: 3：  4. 5'
    """
    joined: list[str] = []
    for part in parts:
        before = joined[-1] if joined else ""
        value, after_value = isinstance(part, Markup), isinstance(before, Markup)
        if after_value and not value and before.endswith(_ENDS):
            joined.append(_LEADING.sub(_keep_tags, part))
        else:
            if before and value and not after_value and part.startswith(_STARTS):
                joined[-1] = _TRAILING.sub(_keep_tags, before)
            joined.append(part)
        if not joined[-1]:
            joined.pop()
    return "".join(joined)


def _keep_tags(found: re.Match[str]) -> str:
    return _SPACES.sub(lambda one: one[1] or "", found[0])


class PageEnvironment(Environment):
    """An environment for the templates of pages in English and Chinese."""

    concat = staticmethod(join_parts)
