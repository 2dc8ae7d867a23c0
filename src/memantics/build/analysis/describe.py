"""An analysis in words that every face shows alike."""

from __future__ import annotations

from memantics.build.analysis.records import Analysis
from memantics.build.drafts import name_language
from memantics.core.language import UNKNOWN


def describe_form(own: Analysis) -> str:
    """Language and panels in words."""
    unknown = own.language == UNKNOWN
    language = "no language recognised" if unknown else name_language(own.language)
    return f"{language}, {own.panels} panel{'s' if own.panels != 1 else ''}"
