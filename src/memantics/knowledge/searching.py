"""Find memes in a store by what is said about them."""

from __future__ import annotations

from memantics.knowledge.naming import MEME, meme_of
from memantics.knowledge.ontology.vocabulary import Dimension
from memantics.knowledge.querying import select
from memantics.knowledge.store import GraphStore

_MOST_WORDS = 8
_SECONDS = 15.0  # somebody waits for the page


def search(store: GraphStore, text: str = "", dimension: Dimension | None = None) -> list[str]:
    """Memes of which one individual (of a dimension) holds all words, or whose id holds the text.

    >>> from memantics.knowledge.records import Individual, Knowledge
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
    # A literal prints itself quoted and escaped, so that a word cannot become part of the query.
    tests = "".join(f"FILTER(CONTAINS(?said, {Literal(word)}))" for word in words)
    return f"""
SELECT DISTINCT ?graph {{
  GRAPH ?graph {{ ?one {kind} mm:inMeme ?meme ; rdfs:label ?label
    OPTIONAL {{ ?one dcterms:description ?told }} }}
  FILTER(STRSTARTS(STR(?graph), "{MEME}"))
  BIND(LCASE(CONCAT(STR(?label), " ", COALESCE(STR(?told), ""))) AS ?said)
  {tests}
}}"""
