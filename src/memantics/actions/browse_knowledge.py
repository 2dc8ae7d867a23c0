"""Look into a knowledge store: search it, ask it, and show one meme with its graph."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from markupsafe import Markup

from memantics.actions.knowledge import STARTER, KnowledgeStore
from memantics.core.errors import UnknownName
from memantics.knowledge.cards import Legend, choose_cards, make_legend, tame
from memantics.knowledge.drawing import draw, draw_narrow
from memantics.knowledge.naming import meme_of
from memantics.knowledge.ontology.vocabulary import DIMENSION_TERMS, DIMENSIONS
from memantics.knowledge.querying import QueryRows, shorten
from memantics.knowledge.records import Knowledge
from memantics.knowledge.store import GRAPHS, search
from memantics.registry.benchmarks import find_warning
from memantics.report.pages.knowledge import Entry, find_image, make_entries, tell_intent
from memantics.report.thumbnails import Thumbnail, make_thumbnail

_SMALL, _LARGE = 320, 720
_SUMMARY = 200


@dataclass(frozen=True, slots=True)
class MemeCard:
    """A meme in a list: its picture, and its intent in a line."""

    id: str
    picture: Thumbnail
    blurred: bool
    summary: str


@dataclass(frozen=True, slots=True)
class MemeSheet:
    """All that a page shows about one meme; ``left_out`` individuals are not drawn."""

    known: Knowledge
    picture: Thumbnail
    blurred: bool
    intents: tuple[str, ...]
    wide: Markup
    narrow: Markup
    legend: tuple[Legend, ...]
    entries: tuple[Entry, ...]
    left_out: int


class StoreReader:
    """A store for readers; what others write into its folder is seen at the next look.

    Without a folder it holds the starter pack's knowledge. ``images`` is the memes' folder.
    """

    def __init__(self, folder: Path | None, images: Path | None = None) -> None:
        self.folder, self.images = folder, images
        self._lock = threading.Lock()
        self._stamp: tuple[int, ...] | None = None
        self._store = self._open()

    def _open(self) -> KnowledgeStore:
        if self.folder is not None:
            self._stamp = _stamp(self.folder)
            return KnowledgeStore.open(self.folder)
        made = KnowledgeStore.in_memory()
        made.import_path(STARTER)
        return made

    @property
    def store(self) -> KnowledgeStore:
        """The store as it is now: an open one is a snapshot, opened again after a write."""
        with self._lock:
            if self.folder is not None and _stamp(self.folder) != self._stamp:
                self._store = self._open()
            return self._store

    def search(
        self, text: str, dimension: str, start: int, count: int
    ) -> tuple[int, tuple[MemeCard, ...]]:
        """How many memes fit, and one page of them; no dimension is all of them."""
        store = self.store
        known = next((name for name in DIMENSIONS if name == dimension), None)
        if dimension and known is None:
            raise UnknownName("dimension", dimension, DIMENSIONS)
        hits = search(store, text, known)
        page = hits[start : start + count]
        return len(hits), tuple(self._make_card(store.get(meme)) for meme in page)

    def query(self, sparql: str, seconds: float, limit: int = 500) -> QueryRows:
        """The rows of a query, bounded in number and time."""
        return self.store.query(sparql, limit=limit, timeout=seconds)

    def sheet(self, meme: str) -> MemeSheet:
        """One meme with its graph and everything that is said about it."""
        known = self._warn(self.store.get(meme))
        drawn = sum(len(card.numbers) for card in choose_cards(known))
        return MemeSheet(
            known,
            self._show(known, _LARGE),
            _is_harmful(known),
            tuple(tell_intent(individual) for individual in known.of("OverallIntent"))[:3],
            draw(known),
            draw_narrow(known),
            make_legend(known),
            tuple(make_entries(known)),
            len(known.individuals) - drawn,
        )

    def _make_card(self, known: Knowledge) -> MemeCard:
        known = self._warn(known)
        told = [tell_intent(individual) for individual in known.of("OverallIntent")]
        told += [tame(individual.label) for individual in known.of("Scene")]
        summary = told[0][:_SUMMARY] if told else ""
        return MemeCard(known.meme, self._show(known, _SMALL), _is_harmful(known), summary)

    def _warn(self, known: Knowledge) -> Knowledge:
        """With the warning of the release that its image is of, where it has none itself."""
        image = find_image(known, self.images)
        warning = known.warning or find_warning(image, known.collection)
        return replace(known, warning=warning) if warning else known

    def _show(self, known: Knowledge, side: int) -> Thumbnail:
        path = find_image(known, self.images)
        return show_picture(path, side) if path else Thumbnail(known.image)


def list_dimensions() -> list[tuple[str, str]]:
    """The ten dimensions and how people call them."""
    return [(name, DIMENSION_TERMS[name].label) for name in DIMENSIONS]


def read_cell(value: str | None) -> tuple[str, str]:
    """A value of a query's row as people read it, and the meme that it leads to, if any.

    >>> read_cell("urn:memantics:meme:7#Scene/duel"), read_cell("a cat"), read_cell(None)
    (('7 Scene/duel', '7'), ('a cat', ''), ('', ''))
    """
    return shorten(value or ""), meme_of(value or "") or ""


def _is_harmful(known: Knowledge) -> bool:
    return bool(known.warning or known.of("Toxicity"))


def _stamp(folder: Path) -> tuple[int, ...]:
    """When a store's files changed last, and how many there are."""
    try:
        times = [path.stat().st_mtime_ns for path in (folder / GRAPHS).iterdir()]
    except OSError:
        return ()
    return len(times), max(times, default=0)


def show_picture(path: Path, side: int = _LARGE) -> Thumbnail:
    """A small copy of an image, as a data URL; one that is looked at again is remembered."""
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        changed = 0
    return _shrink(path, side, changed)


@lru_cache(maxsize=256)
def _shrink(path: Path, side: int, changed: int) -> Thumbnail:  # noqa: ARG001 - part of the key
    return make_thumbnail(path, side)
