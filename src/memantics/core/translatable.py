"""English sentences that remember their parts, so that a page can show them in Chinese."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Translatable(str):
    """An English text with the template and the values that it was made from.

    It is a normal text for every other use. A page finds the translation by the template, or takes
    ``chinese``, a template with the same placeholders. Values that are texts are translated, too.

    >>> text = Translatable("{n} of {m} memes", n=3, m=10)
    >>> str(text), text.template
    ('3 of 10 memes', '{n} of {m} memes')
    """

    __slots__ = ("chinese", "template", "values")
    template: str
    chinese: str
    values: Mapping[str, Any]

    def __new__(cls, template: str, chinese: str = "", /, **values: Any) -> Translatable:
        """Fill the English template; without values it is taken as it is."""
        made = super().__new__(cls, template.format_map(values) if values else template)
        made.template, made.chinese, made.values = template, chinese, values
        return made
