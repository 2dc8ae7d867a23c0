"""The figures that the benchmark claims, recomputed from a copy."""

from __future__ import annotations

from pydantic import JsonValue

from .load import Release


def statistics(release: Release) -> dict[str, JsonValue]:
    """Every figure of ``expected/statistics.json`` under its key."""
    longest = sum(len(own.meaning) > max(map(len, own.others)) for own in release.memes)
    words = [len(meme.meaning.split()) for meme in release.memes]
    return {
        "memes": len(release.memes),
        "meaning.words": round(sum(words) / len(words), 1),
        "meaning.longest_percent": round(100 * longest / len(release.memes), 1),
    }
