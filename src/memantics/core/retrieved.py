"""What is found near a meme among things that were said before, and who said them."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from memantics.core.result import Result


@dataclass(frozen=True, slots=True)
class Passage(Result):
    """A statement that may help with another meme.

    ``meme`` is the one that it was said about ("" for a plain text), ``dimension`` what it speaks
    of, ``source`` the file or store it comes from, ``nearness`` the cosine to what was asked.
    """

    text: str
    source: str
    meme: str = ""
    dimension: str = ""
    nearness: float = 0.0

    @property
    def cited(self) -> str:
        """The statement with its provenance, as prompts and pages show it.

        >>> Passage("Rats carry plague", "kb", "01382").cited
        'Rats carry plague [kb, meme 01382]'
        """
        about = f", meme {self.meme}" if self.meme else ""
        return f"{self.text} [{self.source}{about}]"


@dataclass(frozen=True, slots=True)
class NearMeme(Result):
    """A known meme near another one, with what was said of it.

    ``nearness`` compares what both say, from -1 to 1 (None: one of them says nothing); ``bits``
    counts how many of the 64 bits of their pictures' hashes differ (None: a picture is missing).
    """

    meme: str
    text: str
    source: str
    nearness: float | None = None
    bits: int | None = None
    family: str = ""
    statements: tuple[Passage, ...] = ()


class Retriever(Protocol):
    """Finds what is near a text or a picture."""

    def find_memes(
        self, text: str, image: Path | None = None, count: int = 5, without: Container[str] = ()
    ) -> tuple[NearMeme, ...]:
        """The nearest memes, the nearest first; ``without`` are ids that do not count."""
        ...

    def find_passages(
        self,
        text: str,
        count: int = 5,
        dimension: str = "BackgroundKnowledge",
        without: Container[str] = (),
    ) -> tuple[Passage, ...]:
        """The statements nearest to a text, the nearest first."""
        ...
