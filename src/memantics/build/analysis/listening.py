"""Homophone readings of a caption, as parts of an analysis."""

from __future__ import annotations

from memantics.build.analysis.records import (
    Sound,
)


def listen(text: str, language: str) -> list[Sound]:
    """What a caption may be heard as; languages without a sound model are passed over."""
    from memantics.phonetics.reading import Settings, explain
    from memantics.phonetics.speech import read_aloud

    if language not in ("en", "zh"):
        return []
    found = read_aloud(text, settings=Settings(language="zh" if language == "zh" else "en"))
    if not found.meant:
        return []
    return [Sound(text, found.meant.text, found.chance, tuple(explain(found)))]
