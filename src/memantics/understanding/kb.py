"""The store of facts about memes in Python: import, search, query, validate, draw and export.

``StoreReader`` lists and shows the memes of a store, and :func:`retrieve` finds similar memes.
"""

from __future__ import annotations

import threading
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path

from markupsafe import Markup

from memantics.benchmarks.registry import find_warning
from memantics.core.errors import InputError, UnknownName
from memantics.core.files import replace_file
from memantics.core.meaning import DIMENSIONS
from memantics.core.result import Result, Table
from memantics.core.retrieval import NearMeme, Passage
from memantics.understanding.knowledge.drawing import draw, draw_narrow, read_style
from memantics.understanding.knowledge.formats import GraphFormat, guess_format, serialize
from memantics.understanding.knowledge.layout import Legend, choose_cards, make_legend, tame
from memantics.understanding.knowledge.official import Account
from memantics.understanding.knowledge.ontology.vocabulary import (
    DIMENSION_TERMS,
    RELATIONS,
    name_dimension,
)
from memantics.understanding.knowledge.page import (
    Entry,
    find_image,
    make_entries,
    tell_intent,
    write_page,
)
from memantics.understanding.knowledge.querying import MOST_CHARACTERS, PATIENCE, QueryRows, shorten
from memantics.understanding.knowledge.records import (
    Dangling,
    Individual,
    Knowledge,
    Provenance,
    Relation,
    meme_of,
    tell_apart,
)
from memantics.understanding.knowledge.retrieval import Pool, open_pool, pool_knowledge
from memantics.understanding.knowledge.sources import import_path
from memantics.understanding.knowledge.store import GRAPHS, GraphStore, search
from memantics.understanding.knowledge.validation import (
    Breach,
    StoreStatistics,
    list_dangling,
    measure,
    validate,
)
from memantics.web.page import Thumbnail, make_thumbnail
from memantics.web.phrases import PageLanguage

__all__ = [
    "MOST_CHARACTERS",
    "PATIENCE",
    "SAMPLE",
    "Dangling",
    "GraphFormat",
    "Individual",
    "Knowledge",
    "KnowledgeStore",
    "MemeKnowledge",
    "NearMeme",
    "Passage",
    "QueryRows",
    "open_known",
    "retrieve",
    "retrieve_background",
    "tabulate_near",
]
_SHOWN = 15
SAMPLE, SAMPLE_SOURCE = "sample", "sample data"
_SMALL, _LARGE = 320, 720
_SUMMARY = 200


@dataclass(frozen=True)
class MemeKnowledge(Knowledge, Result):
    """All facts about one meme (its knowledge); a notebook shows them as a graph."""

    def save(
        self,
        page: Path | str,
        *,
        images: Path | str | None = None,
        language: PageLanguage = "en",
    ) -> Path:
        """Write a page with the graph and the meme; ``images`` is the folder of the images."""
        folder = None if images is None else Path(images)
        image = find_image(self, folder)
        warning = self.warning or find_warning(image, self.collection)
        write_page(replace(self, warning=warning), Path(page), image, language)
        return Path(page)

    def _repr_html_(self) -> str:
        return f"<style>{read_style()}</style>{draw(self)}"


class KnowledgeStore(GraphStore):
    """A store of facts about many memes, by meme id.

    >>> store = KnowledgeStore.in_memory()
    >>> store.add([Knowledge("7", (Individual("Scene", "duel", "two knights"),))])
    1
    >>> store.ids(), store.get("7").of("Scene")[0].label
    (('7',), 'two knights')
    """

    def get(self, meme: str) -> MemeKnowledge:
        """Return the knowledge about one meme."""
        known = super().get(meme)
        return MemeKnowledge(**{field.name: getattr(known, field.name) for field in fields(known)})

    def import_path(self, source: Path | str) -> Account:
        """Import a path, and return the counts; ``sample`` is the sample data.

        A path is a folder or file of official knowledge bases, of a build, or of an export.
        """
        if str(source) != SAMPLE:
            return import_path(self, Path(source))
        account, known = Account(), read_sample_knowledge()
        for knowledge in known:
            account.add(knowledge)
        self.add(known)
        return account

    def validate(
        self,
        shapes: Path | None = None,
        timeout: float = PATIENCE,
    ) -> tuple[Breach, ...]:
        """Return all violations of the ontology's SHACL shapes, or of those in a file."""
        return validate(self, shapes, timeout)

    def statistics(self, timeout: float = PATIENCE) -> StoreStatistics:
        """Return statistics of the store; an error after ``timeout`` seconds."""
        return measure(self, timeout)

    def dangling(self, timeout: float = PATIENCE) -> tuple[Dangling, ...]:
        """Return every statement that refers to a missing fact (individual)."""
        return tuple(list_dangling(self, timeout))

    def serialize(self, memes: Sequence[str] | None = None, form: GraphFormat = "nquads") -> bytes:
        """Return statements about some or all memes in a format that can be imported."""
        return serialize((quad for meme in memes or self.ids() for quad in self.quads(meme)), form)

    def export(
        self, out: Path, memes: Sequence[str] | None = None, form: GraphFormat | None = None
    ) -> None:
        """Write statements to a file; the file name determines the default format."""
        replace_file(out, self.serialize(memes, form or guess_format(out)), "export")


def read_sample_knowledge() -> tuple[Knowledge, ...]:
    """Return the annotated knowledge of the sample data."""
    from memantics.core.samples import read_samples

    origin = Provenance(source=SAMPLE_SOURCE)
    return tuple(
        Knowledge(
            meme.id,
            tell_apart(
                Individual(
                    said.dimension,
                    said.name,
                    said.label,
                    said.description,
                    tuple(Relation(link.relation, link.target) for link in said.relations),
                    provenance=origin,
                )
                for said in meme.knowledge
            ),
            image=meme.file,
            language="en",
            collection=SAMPLE,
        )
        for meme in read_samples()
    )


Outline = list[tuple[str, list[tuple[Individual, list[str]]]]]


def outline(known: Knowledge) -> Outline:
    """List the non-empty dimensions of a meme with their facts and links."""
    return [
        (
            name_dimension(name),
            [(individual, _tell_links(known, individual)) for individual in members],
        )
        for name in known.counts()
        if (members := known.of(name))
    ]


def _tell_links(known: Knowledge, individual: Individual) -> list[str]:
    told = []
    for link in individual.relations:
        term, target = RELATIONS.get(link.relation), known.by_key.get(link.target)
        verb = term.label if term else f"“{link.relation}”"
        end = f"{link.target} (missing individual)"
        if target is not None:
            end = f"{target.label} [{name_dimension(target.dimension)}]"
        told.append(f"{verb} → {end}")
    return told


def tabulate_rows(found: QueryRows) -> Table:
    """Tabulate the rows of a query, with prefixed names."""
    rows = (tuple("" if cell is None else shorten(cell) for cell in row) for row in found.rows)
    return Table(found.variables, tuple(rows))


def tabulate_account(source: str, account: Account) -> Table:
    """Tabulate the counts of an import."""
    counts = {
        "memes": account.memes,
        "individuals": sum(account.individuals.values()),
        "relations of the ontology": sum(account.relations.values()),
        "other relations, kept": sum(account.said.values()),
        "references to missing individuals, kept": len(account.dangling),
        "references repaired": len(account.repaired),
        "duplicate names, numbered": account.renamed,
        "ambiguous names": account.ambiguous,
        "duplicate statements": account.repeated,
        "individuals that differ between two files": len(account.differing),
        "statements of unknown form": sum(account.unread.values()),
        "statements of the copied ontology, not imported": account.copied,
    }
    kept = {n: c for n, c in counts.items() if c or n in ("memes", "individuals")}
    return _count_table(f"from {source}", kept)


def tabulate_store(found: StoreStatistics) -> list[Table]:
    """Tabulate a store: dimensions, relations, and kinds of toxicity if any."""
    dimensions = tuple(
        (name, f"{counted.individuals:,}", f"{counted.memes:,}")
        for name, counted in found.dimensions.items()
    )
    said = list(found.said.items())
    relations = dict(found.relations) | {f"said: {name}": n for name, n in said[:_SHOWN]}
    if len(said) > _SHOWN:
        rest = sum(count for _, count in said[_SHOWN:])
        relations[f"said: {len(said) - _SHOWN:,} others"] = rest
    relations["references to missing individuals"] = found.dangling
    tables = [Table(("dimension", ">individuals", ">in memes"), dimensions)]
    tables.append(_count_table("relation", relations))
    if any(found.kinds.values()):
        unknown = found.dimensions["Toxicity"].individuals - sum(found.kinds.values())
        tables.append(_count_table("toxicity", dict(found.kinds) | {"no known kind": unknown}))
    return tables


def tabulate_dangling(found: Sequence[Dangling]) -> Table:
    """Tabulate every reference to a missing fact (individual); the missing end is marked."""
    rows = (
        (
            dangling.meme,
            dangling.source + ("" if dangling.end == "target" else " (missing)"),
            dangling.relation,
            dangling.target + ("" if dangling.end == "source" else " (missing)"),
        )
        for dangling in found
    )
    return Table(("meme", "from", "relation", "to"), tuple(rows))


def _count_table(name: str, counts: Mapping[str, int]) -> Table:
    return Table((name, ">count"), tuple((term, f"{count:,}") for term, count in counts.items()))


def tabulate_breaches(found: Sequence[Breach], *, every: bool = False) -> Table:
    """Tabulate violations of the ontology, most severe first: each, or one example per kind."""
    if every:
        rows = tuple((breach.severity, shorten(breach.focus), breach.message) for breach in found)
        return Table(("severity", "where", "what"), rows)
    kinds: dict[tuple[str, str], list[Breach]] = {}
    for breach in found:
        kinds.setdefault((breach.severity, breach.message), []).append(breach)
    ordered = sorted(kinds.items(), key=lambda kind: ("VWI".index(kind[0][0][0]), -len(kind[1])))
    return Table(
        ("severity", "violation", ">count", "example"),
        tuple(
            (*kind, f"{len(breaches):,}", shorten(breaches[0].focus)) for kind, breaches in ordered
        ),
    )


# Retrieval of similar known memes with their statements.

KnownMemes = str | Path | Pool | Sequence[str | Path]


def retrieve(
    text: str = "",
    *,
    image: str | Path | None = None,
    known: KnownMemes,
    count: int = 5,
    without: Container[str] = (),
) -> tuple[NearMeme, ...]:
    """Find the known memes nearest to a text or an image, each with what is known about it.

    Texts are compared by meaning, images by perceptual hash.

    Args:
        text: A text; empty where only an image is compared.
        image: An image file.
        known: A knowledge store, a build of knowledge, a collection, ``sample``, or several of
            them.
        count: How many memes to return.
        without: Ids that do not count.

    Returns:
        The nearest memes, the nearest first.

    Raises:
        InputError: Neither text nor image is given, or nothing is known there.

    Example:
        >>> near = mm.retrieve("my code at work", known="sample", count=3)
        >>> near[0].meme, round(near[0].nearness, 2)
        ('CN90004', 0.27)
    """
    if not text.strip() and image is None:
        raise InputError("no text and no image to search for", hint="pass a text, an image or both")
    place = None if image is None else Path(image)
    return open_known(known).find_memes(text, place, count, without)


def retrieve_background(
    text: str,
    *,
    known: KnownMemes,
    count: int = 5,
    dimension: str = "BackgroundKnowledge",
    without: Container[str] = (),
) -> tuple[Passage, ...]:
    """Find statements that may help to understand a text, with their provenance.

    Args:
        text: What a meme says.
        known: A knowledge store, a build, or a folder of texts and tables.
        count: How many statements to return.
        dimension: The dimension whose statements count.
        without: Ids of memes that do not count.

    Returns:
        The statements, the nearest first.

    Raises:
        InputError: Nothing is known there.

    Example:
        >>> mm.retrieve_background("work", known="sample")[0].meme
        'en-022'
    """
    return open_known(known).find_passages(text, count, dimension, without)


def open_known(known: KnownMemes) -> Pool:
    """Open the sources of known memes; ``sample`` is the sample data."""
    if isinstance(known, Pool):
        return known
    places = [known] if isinstance(known, str | Path) else list(known)
    if [str(place) for place in places] == [SAMPLE]:
        return pool_knowledge(read_sample_knowledge(), SAMPLE)
    return open_pool(*places)


def tabulate_near(found: Sequence[NearMeme]) -> Table:
    """Tabulate similar memes: text similarity, image distance and intents."""
    rows = []
    for meme in found:
        told = [said.text for said in meme.statements if said.dimension == "OverallIntent"]
        near = "–" if meme.nearness is None else f"{meme.nearness:.2f}"
        bits = "–" if meme.bits is None else str(meme.bits)
        rows.append((meme.meme, near, bits, meme.text[:60], (told or [""])[0][:60], meme.source))
    columns = ("meme", ">nearness", ">bits", "says", "intends", "source")
    return Table(columns, tuple(rows))


@dataclass(frozen=True, slots=True)
class MemeCard:
    """A meme in a list: its image and its intent in one line."""

    id: str
    picture: Thumbnail
    blurred: bool
    summary: str


@dataclass(frozen=True, slots=True)
class MemeSheet:
    """Page content of one meme; ``skipped`` counts the facts that the graph does not show."""

    known: Knowledge
    picture: Thumbnail
    blurred: bool
    intents: tuple[str, ...]
    wide: Markup
    narrow: Markup
    legend: tuple[Legend, ...]
    entries: tuple[Entry, ...]
    skipped: int


class StoreReader:
    """A read-only store of facts about memes; changes on disk are visible at the next access.

    Without a folder it contains the knowledge of the sample data. ``images`` is the folder of the
    images.
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
        made.import_path(SAMPLE)
        return made

    @property
    def store(self) -> KnowledgeStore:
        """The current store. An open store is a snapshot, so it is opened again after a change."""
        with self._lock:
            if self.folder is not None and _stamp(self.folder) != self._stamp:
                self._store = self._open()
            return self._store

    def search(
        self, text: str, dimension: str, start: int, count: int
    ) -> tuple[int, tuple[MemeCard, ...]]:
        """Count matching memes and return one page; without a dimension, search all of them."""
        store = self.store
        known = next((name for name in DIMENSIONS if name == dimension), None)
        if dimension and known is None:
            raise UnknownName("dimension", dimension, DIMENSIONS)
        hits = search(store, text, known)
        page = hits[start : start + count]
        return len(hits), tuple(self._make_card(store.get(meme)) for meme in page)

    def query(self, sparql: str, seconds: float, limit: int = 500) -> QueryRows:
        """Return the rows of a query with limits on number and time."""
        return self.store.query(sparql, limit=limit, timeout=seconds)

    def sheet(self, meme: str) -> MemeSheet:
        """Return one meme with its graph and all statements."""
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
        """Add the content warning of the image's release if the meme has none."""
        image = find_image(known, self.images)
        warning = known.warning or find_warning(image, known.collection)
        return replace(known, warning=warning) if warning else known

    def _show(self, known: Knowledge, side: int) -> Thumbnail:
        path = find_image(known, self.images)
        return show_picture(path, side) if path else Thumbnail(known.image)


def list_dimensions() -> list[tuple[str, str]]:
    """List the ten dimensions with their labels."""
    return [(name, DIMENSION_TERMS[name].label) for name in DIMENSIONS]


def read_cell(value: str | None) -> tuple[str, str]:
    """Format a value of a query row for people, with the meme that it belongs to, if any.

    >>> read_cell("urn:memantics:meme:7#Scene/duel"), read_cell("a cat"), read_cell(None)
    (('7 Scene/duel', '7'), ('a cat', ''), ('', ''))
    """
    return shorten(value or ""), meme_of(value or "") or ""


def _is_harmful(known: Knowledge) -> bool:
    return bool(known.warning or known.of("Toxicity"))


def _stamp(folder: Path) -> tuple[int, ...]:
    """Return the last change time and the number of a store's files."""
    try:
        times = [path.stat().st_mtime_ns for path in (folder / GRAPHS).iterdir()]
    except OSError:
        return ()
    return len(times), max(times, default=0)


def show_picture(path: Path, side: int = _LARGE) -> Thumbnail:
    """Return a small copy of an image as a data URL; results are cached."""
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        changed = 0
    return _shrink(path, side, changed)


@lru_cache(maxsize=256)
def _shrink(path: Path, side: int, changed: int) -> Thumbnail:  # noqa: ARG001 - part of the key
    return make_thumbnail(path, side)
