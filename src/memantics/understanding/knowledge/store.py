"""A store of meme graphs: one named graph per meme and the ontology, in memory or in a folder."""

from __future__ import annotations

import difflib
import io
import json
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, Self

from memantics.core.errors import DataError, StoreError, UnknownName, need_offline
from memantics.core.files import read_regular_text, replace_file
from memantics.core.meaning import Dimension
from memantics.understanding.knowledge.graph import from_quads, node, to_quads
from memantics.understanding.knowledge.querying import QueryRows, ask, select, store_errors
from memantics.understanding.knowledge.records import MEME, ONTOLOGY, Knowledge, graph_iri, meme_of

if TYPE_CHECKING:
    from pyoxigraph import NamedNode, Quad, Store

MARKER = "knowledge-store.json"
GRAPHS = "graphs"
FORMAT = 1
_FEW = 40
_TRIES, _PAUSE = 8, 0.1


@lru_cache(maxsize=4)
def read_ontology(part: Literal["meme", "shapes"] = "meme") -> bytes:
    """Return the ontology, or its shapes, as Turtle."""
    return (files("memantics.understanding.knowledge.ontology") / f"{part}.ttl").read_bytes()


class GraphStore:
    """A store of facts about many memes, one RDF graph per meme.

    Create a store with :meth:`in_memory`, :meth:`create` or :meth:`open`.

    >>> store = GraphStore.in_memory()
    >>> from memantics.understanding.knowledge.records import Individual
    >>> store.add([Knowledge("7", (Individual("Scene", "duel", "two knights"),))])
    1
    >>> store.ids(), store.get("7").individuals[0].label
    (('7',), 'two knights')
    """

    def __init__(self, graphs: Store, folder: Path | None = None) -> None:
        self.graphs = graphs
        self.folder = folder

    @classmethod
    def in_memory(cls) -> Self:
        """Create a store in memory."""
        need_offline("pyoxigraph")
        from pyoxigraph import Store

        return cls(_with_ontology(Store()))

    @classmethod
    def from_quads(cls, data: bytes) -> Self:
        """Create a store in memory from the output of :meth:`dump`."""
        need_offline("pyoxigraph")
        from pyoxigraph import RdfFormat, Store

        graphs = Store()
        graphs.bulk_load(data, format=RdfFormat.N_QUADS)
        return cls(graphs)

    @classmethod
    def create(cls, folder: Path | str) -> Self:
        """Open the store in a folder for writing; create it if it does not exist."""
        need_offline("pyoxigraph")
        from pyoxigraph import Store

        folder = Path(folder)
        if (folder / MARKER).is_file():
            _check_marker(folder)
        elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise StoreError(
                f"{folder} is not empty and not a knowledge store",
                hint="choose a new or empty folder with --store",
            )
        with store_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            # This file is written first, so that an incomplete store is recognised and filled
            # again.
            replace_file(
                folder / MARKER, (json.dumps({"format": FORMAT}) + "\n").encode(), flag="--store"
            )
            return cls(_with_ontology(Store(str(folder / GRAPHS))), folder)

    @classmethod
    def open(cls, folder: Path | str) -> Self:
        """Open a store for reading; a missing one is an error."""
        need_offline("pyoxigraph")
        from pyoxigraph import Store

        folder = Path(folder)
        if not (folder / MARKER).is_file():
            raise StoreError(
                f"there is no knowledge store in {folder}",
                hint="create it with 'memantics kb import', or choose another folder with --store",
            )
        _check_marker(folder)
        with store_errors(folder):
            for _ in range(_TRIES):
                try:
                    return cls(Store.read_only(str(folder / GRAPHS)), folder)
                except (OSError, RuntimeError) as error:
                    # A writer may remove files while they are being opened.
                    if "No such file" not in str(error):
                        raise
                    time.sleep(_PAUSE)
            return cls(Store.read_only(str(folder / GRAPHS)), folder)

    def query(self, sparql: str, *, limit: int = 100, timeout: float = 30.0) -> QueryRows:
        """Answer a SPARQL query of any kind; the ontology's prefixes are predefined.

        It runs in a separate process without network access.
        """
        return ask(self.folder or self.dump(), sparql, limit, timeout)

    def dump(self) -> bytes:
        """Return all statements as N-Quads, including the ontology."""
        from pyoxigraph import RdfFormat

        with store_errors(self.folder):
            return self.graphs.dump(format=RdfFormat.N_QUADS) or b""

    def add(self, knowledge: Iterable[Knowledge]) -> int:
        """Add knowledge by meme; existing graphs of these memes are replaced."""
        made = {meme_knowledge.meme: list(to_quads(meme_knowledge)) for meme_knowledge in knowledge}
        # Old graphs are removed only after all new ones were read.
        for meme in made:
            self._forget(meme)
        self._add(quad for quads in made.values() for quad in quads)
        return len(made)

    def add_quads(self, quads: Iterable[Quad]) -> tuple[str, ...]:
        """Add quads to the graphs of their memes; return the memes.

        Existing graphs of these memes are replaced.
        """
        from memantics.understanding.knowledge.formats import place_quads

        placed = place_quads(quads)
        for meme in placed:
            self._forget(meme)
        self._add(quad for meme_quads in placed.values() for quad in meme_quads)
        return tuple(sorted(placed))

    def _forget(self, meme: str) -> None:
        graph = node(graph_iri(meme))
        if self.graphs.contains_named_graph(graph):
            self.graphs.remove_graph(graph)

    def _add(self, quads: Iterable[Quad]) -> None:
        with store_errors(self.folder):
            self.graphs.bulk_extend(quads)
            if self.folder is not None:
                self.graphs.flush()

    def ids(self) -> tuple[str, ...]:
        """Return the ids of all memes in order."""
        with store_errors(self.folder):
            named = [str(getattr(graph, "value", "")) for graph in self.graphs.named_graphs()]
        return tuple(sorted(meme for name in named if (meme := meme_of(name)) is not None))

    def get(self, meme: str) -> Knowledge:
        """Return the knowledge about one meme."""
        return from_quads(meme, self.quads(meme))

    def quads(self, meme: str) -> Iterator[Quad]:
        """Return the graph of one meme as quads."""
        graph = node(graph_iri(meme))
        with store_errors(self.folder):
            found = self.graphs.contains_named_graph(graph)
        if not found:
            known = self.ids()
            if len(known) > _FEW:
                near = difflib.get_close_matches(meme, known, n=1, cutoff=0.5)
                raise DataError(
                    f"meme {meme!r}",
                    f"is not among the {len(known):,} memes of this store",
                    hint=f"did you mean {near[0]}?" if near else f"for example {known[0]}",
                )
            raise UnknownName("meme", meme, known)
        return self._read(graph)

    def _read(self, graph: NamedNode) -> Iterator[Quad]:
        with store_errors(self.folder):
            yield from self.graphs.quads_for_pattern(None, None, None, graph)

    def all(self) -> Iterator[Knowledge]:
        """Yield the knowledge of all memes."""
        return (self.get(meme) for meme in self.ids())


def _with_ontology(graphs: Store) -> Store:
    """Add the ontology once, in its own graph."""
    from pyoxigraph import RdfFormat

    graph = node(ONTOLOGY)
    if not graphs.contains_named_graph(graph):
        stream: IO[bytes] = io.BytesIO(read_ontology())
        graphs.load(stream, format=RdfFormat.TURTLE, to_graph=graph)
    return graphs


def _check_marker(folder: Path) -> None:
    try:
        found = json.loads(read_regular_text(folder / MARKER))
        version = found["format"]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StoreError(
            f"cannot read {folder / MARKER}", hint="import into a new folder"
        ) from error
    if version != FORMAT:
        raise StoreError(
            f"{folder} has store format {version}, not {FORMAT}",
            hint="export it with the version that created it, and import the file here",
        )


# Search of memes in a store by their statements.

_MOST_WORDS = 8
_SECONDS = 15.0  # time limit in seconds; a page request waits for the result


def search(store: GraphStore, text: str = "", dimension: Dimension | None = None) -> list[str]:
    """Find memes with a fact that contains all words, or whose id contains the text.

    >>> from memantics.understanding.knowledge.records import Individual, Knowledge
    >>> store = GraphStore.in_memory()
    >>> store.add([Knowledge("7", (Individual("Scene", "duel", "two knights"),))])
    1
    >>> search(store, "KNIGHTS"), search(store, "knights", "Emotion")
    (['7'], [])
    """
    words = text.casefold().split()[:_MOST_WORDS]
    if not words and dimension is None:
        found = set(store.ids())
    else:
        (rows,) = select(store, _ask_for(words, dimension), timeout=_SECONDS)
        found = {meme for row in rows if (meme := meme_of(row["graph"])) is not None}
        if words and dimension is None:
            found |= {meme for meme in store.ids() if text.strip().casefold() in meme.casefold()}
    return sorted(found)


def _ask_for(words: list[str], dimension: Dimension | None) -> str:
    from pyoxigraph import Literal

    kind = f"a mm:{dimension} ;" if dimension else ""
    # A literal is quoted and escaped, so that a word cannot become part of the query.
    tests = "".join(f"FILTER(CONTAINS(?said, {Literal(word)}))" for word in words)
    return f"""
SELECT DISTINCT ?graph {{
  GRAPH ?graph {{ ?one {kind} mm:inMeme ?meme ; rdfs:label ?label
    OPTIONAL {{ ?one dcterms:description ?told }} }}
  FILTER(STRSTARTS(STR(?graph), "{MEME}"))
  BIND(LCASE(CONCAT(STR(?label), " ", COALESCE(STR(?told), ""))) AS ?said)
  {tests}
}}"""
