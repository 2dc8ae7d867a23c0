"""Find known memes, and what was said of them, near a meme."""

from __future__ import annotations

from collections.abc import Container, Sequence
from pathlib import Path

from memantics.core.errors import InputError
from memantics.core.result import Table
from memantics.core.retrieved import NearMeme, Passage
from memantics.knowledge.retrieval import Pool, open_pool, pool_knowledge

__all__ = ["NearMeme", "Passage", "open_known", "retrieve", "retrieve_background", "tabulate_near"]
STARTER = "starter"
Known = str | Path | Pool | Sequence[str | Path]


def retrieve(
    text: str = "",
    *,
    image: str | Path | None = None,
    known: Known,
    count: int = 5,
    without: Container[str] = (),
) -> tuple[NearMeme, ...]:
    """The memes nearest to a text and a picture, each with what was said of it.

    ``text`` and ``image`` are what is compared (one of them is enough), ``count`` how many are
    given. ``known`` is a knowledge store, a build of knowledge, a collection, ``starter``, or
    several of them; texts are compared by meaning, pictures by hash. ``without`` are ids that do
    not count.
    """
    if not text.strip() and image is None:
        raise InputError("nothing to look for", hint="give a text, an image or both")
    place = None if image is None else Path(image)
    return open_known(known).find_memes(text, place, count, without)


def retrieve_background(
    text: str,
    *,
    known: Known,
    count: int = 5,
    dimension: str = "BackgroundKnowledge",
    without: Container[str] = (),
) -> tuple[Passage, ...]:
    """Statements that may help to understand a text, with their provenance, the nearest first.

    ``known`` is a knowledge store, a build, or a folder of texts and tables; ``dimension`` is the
    one whose statements count, ``count`` how many are given; ids in ``without`` do not count.
    ``text`` is what a meme says.
    """
    return open_known(known).find_passages(text, count, dimension, without)


def open_known(known: Known) -> Pool:
    """What is known, opened; ``starter`` is the pack that ships."""
    if isinstance(known, Pool):
        return known
    places = [known] if isinstance(known, str | Path) else list(known)
    if [str(place) for place in places] == [STARTER]:
        from memantics.actions.knowledge import read_starter_knowledge

        return pool_knowledge(read_starter_knowledge(), STARTER)
    return open_pool(*places)


def tabulate_near(found: Sequence[NearMeme]) -> Table:
    """The nearest memes: how near, how different their pictures, and what they intend."""
    rows = []
    for meme in found:
        told = [said.text for said in meme.statements if said.dimension == "OverallIntent"]
        near = "–" if meme.nearness is None else f"{meme.nearness:.2f}"
        bits = "–" if meme.bits is None else str(meme.bits)
        rows.append((meme.meme, near, bits, meme.text[:60], (told or [""])[0][:60], meme.source))
    columns = ("meme", ">nearness", ">bits", "says", "intends", "source")
    return Table(columns, tuple(rows))
