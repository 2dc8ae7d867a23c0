"""Test texts that the training part holds: one definition for statistics, audit and page."""

from __future__ import annotations

from dataclasses import dataclass

from memantics.benchmarks.toxicn_mm.load import HarmRelease
from memantics.benchmarks.toxicn_mm.rows import HarmMeme
from memantics.metrics.duplicates import find_near_duplicates

NEAR = 0.8


@dataclass(frozen=True, slots=True)
class TextLeakage:
    """For each test meme: whether its text is a training text, nearly one, and that one's label.

    Texts are taken as they were released. Nearly the same: the Jaccard index of their sets of
    characters is at least 0.8.
    """

    test: tuple[HarmMeme, ...]
    identical: tuple[bool, ...]
    twins: tuple[HarmMeme | None, ...]

    @property
    def near(self) -> tuple[bool, ...]:
        """Whether each test text has a near-duplicate in train."""
        return tuple(twin is not None for twin in self.twins)


def find_leakage(release: HarmRelease) -> TextLeakage | None:
    """Compare the parts of one label version, whichever is there: texts are the same in both."""
    for version in release.versions:
        train, test = (release.parts.get((version, part)) for part in ("train", "test"))
        if train and test:
            first = {meme.text: meme for meme in reversed(train)}
            texts = sorted(first)
            places = find_near_duplicates([meme.text for meme in test], texts, NEAR)
            return TextLeakage(
                test,
                tuple(meme.text in first for meme in test),
                tuple(None if place is None else first[texts[place]] for place in places),
            )
    return None
