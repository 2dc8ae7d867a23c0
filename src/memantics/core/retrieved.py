"""What is found near a meme among things that were said before, and who said them."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from memantics.core.result import Result

SAME_PICTURE = 8  # bits: what we call a template family
# How often that is right: docs/research/analysis.md.
BY_MEANING = (
    "nearness of meaning; memes this near share their emotion in 55% of cases (any two: 32%), their"
    " sentiment in 56% (37%), their target of harm in 84% (26%), their verb of intent in 13% (11%)"
)
BY_PICTURE = "hash of the picture, 63 of 65 such pairs of 1,000 memes were one template"
USES = ("OverallIntent", "intents", "intent", "meaning")  # dimensions and notes that say it
SHOWN_FROM = 0.5  # how near a text must be for what was said of its meme to be shown


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

    @property
    def same_picture(self) -> bool:
        """Whether both stand on one picture."""
        return self.bits is not None and self.bits <= SAME_PICTURE

    @property
    def shown(self) -> bool:
        """Whether it is near enough for what was said of it to be told of the other."""
        return self.same_picture or (self.nearness or 0) >= SHOWN_FROM

    @property
    def uses(self) -> tuple[str, ...]:
        """What its author does with it, as far as that was said."""
        return tuple(passage.text for passage in self.statements if passage.dimension in USES)

    @property
    def told(self) -> str:
        """Which meme it is, how near, and what it is used for where that was said.

        >>> NearMeme("7", "so tired", "kb", 0.71, 30).told
        '7 in kb (nearness 0.71)'
        """
        near = "the same picture" if self.same_picture else f"nearness {self.nearness or 0:.2f}"
        family = f", family {self.family}" if self.family else ""
        use = f": {self.uses[0]}" if self.uses else ""
        return f"{self.meme} in {self.source} ({near}{family}){use}"


@dataclass(frozen=True, slots=True)
class FamilyUse(Result):
    """A template family that is known: how many memes on one picture, and what they are used for.

    ``use`` is the statement nearest in meaning to all others, empty where nothing was said.
    """

    family: str
    memes: tuple[str, ...]
    source: str
    use: str = ""

    @property
    def told(self) -> str:
        """Its name, how many memes are known on this picture, and their usual use.

        >>> FamilyUse("cat", ("1", "2"), "mine", "mocks updates").told
        'cat, 2 known memes on this picture in mine; usual use: mocks updates'
        """
        count = f"{len(self.memes)} known meme{'s' if len(self.memes) > 1 else ''}"
        use = f"; usual use: {self.use}" if self.use else ""
        return f"{self.family}, {count} on this picture in {self.source}{use}"


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
