"""The dimensions of a meme's meaning, and the names the release gives them."""

from __future__ import annotations

from memantics.core.errors import DataError
from memantics.core.meaning import ALIASES, DIMENSIONS

__all__ = ["ALIASES", "DIMENSIONS", "EXTRA_DIMENSIONS", "canonical", "find_dimension"]

EXTRA_DIMENSIONS = ("ColorComposition", "Metadata", "TemplateStructure")
_CANONICAL = {name: str(name) for name in (*DIMENSIONS, *EXTRA_DIMENSIONS)} | dict(ALIASES)


def find_dimension(name: str) -> str | None:
    """The canonical name of a dimension, whatever part of the release it comes from.

    >>> find_dimension("EmotionExpression"), find_dimension("Scene"), find_dimension("Weather")
    ('Emotion', 'Scene', None)
    """
    return _CANONICAL.get(name)


def canonical(name: str, where: object) -> str:
    """The canonical name of a dimension; an unknown one is refused with the file it stands in."""
    found = find_dimension(name)
    if found is None:
        raise DataError(
            where, f"unknown dimension {name!r}", hint=f"known: {', '.join(sorted(_CANONICAL))}"
        )
    return found
