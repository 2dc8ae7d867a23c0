"""What a store holds, in figures: individuals, relations, kinds, and what leads nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter

from memantics.knowledge.naming import MEME, OWN, SAID, TERM, meme_of, read_thing, unescape
from memantics.knowledge.ontology.vocabulary import DIMENSIONS, RELATIONS, TOXICITY_KINDS
from memantics.knowledge.querying import PATIENCE, select, store_errors
from memantics.knowledge.records import Dangling
from memantics.knowledge.store import GraphStore

_MEMES = f'FILTER(STRSTARTS(STR(?graph), "{MEME}"))'
_INDIVIDUALS = f"""
SELECT ?class (COUNT(*) AS ?count) (COUNT(DISTINCT ?graph) AS ?memes) {{
  GRAPH ?graph {{ ?one a ?class ; mm:inMeme ?meme }} {_MEMES}
}} GROUP BY ?class"""
_RELATIONS = f"""
SELECT ?relation (COUNT(*) AS ?count) {{
  GRAPH ?graph {{ ?one ?relation ?other }} {_MEMES}
  FILTER(STRSTARTS(STR(?relation), "{SAID}")
    || ?relation IN ({", ".join(f"mm:{name}" for name in RELATIONS)}))
}} GROUP BY ?relation"""
_KINDS = f"""
SELECT ?kind (COUNT(*) AS ?count) {{
  GRAPH ?graph {{ ?one mm:toxicityKind ?kind }} {_MEMES}
}} GROUP BY ?kind"""
_DANGLING = f"""
SELECT ?graph ?one ?relation ?other ?start ?end {{
  GRAPH ?graph {{ ?one ?relation ?other }} {_MEMES}
  FILTER(STRSTARTS(STR(?relation), "{SAID}")
    || ?relation IN ({", ".join(f"mm:{name}" for name in RELATIONS)}))
  BIND(EXISTS {{ GRAPH ?graph {{ ?one mm:inMeme ?some }} }} AS ?start)
  BIND(EXISTS {{ GRAPH ?graph {{ ?other mm:inMeme ?any }} }} AS ?end)
  FILTER(!(?start && ?end))
}}"""
_CONFIRMED = f"""
SELECT (COUNT(DISTINCT ?one) AS ?count) {{
  GRAPH ?graph {{ ?one mm:confirmedBy ?person ; mm:inMeme ?meme }} {_MEMES}
}}"""


@dataclass(frozen=True, slots=True)
class DimensionFigures:
    """How many individuals a dimension has, and in how many memes."""

    individuals: int
    memes: int


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """A store in figures.

    ``said`` are relations in models' own words; ``dangling`` counts statements of which an end
    is no individual.
    """

    memes: int
    statements: int
    individuals: int
    confirmed: int
    dimensions: Mapping[str, DimensionFigures]
    relations: Mapping[str, int]
    said: Mapping[str, int]
    kinds: Mapping[str, int]
    dangling: int


def measure(store: GraphStore, timeout: float = PATIENCE) -> StoreFigures:
    """Count what a store holds."""
    with store_errors(store.folder):
        statements = len(store.graphs)  # reads an index to its end: damage is told soon
    individuals, related, kinded, confirmed, lost = select(
        store, _INDIVIDUALS, _RELATIONS, _KINDS, _CONFIRMED, _DANGLING, timeout=timeout
    )
    found = {
        row["class"].removeprefix(TERM).removeprefix(OWN): DimensionFigures(
            int(row["count"]), int(row["memes"])
        )
        for row in individuals
    }
    group = sorted(found.keys() - set(DIMENSIONS))
    dimensions: dict[str, DimensionFigures] = {
        name: found.get(name, DimensionFigures(0, 0)) for name in (*DIMENSIONS, *group)
    }
    links = {row["relation"]: int(row["count"]) for row in related}
    kinds = {row["kind"].removeprefix(TERM): int(row["count"]) for row in kinded}
    said = {
        unescape(iri.removeprefix(SAID)): count
        for iri, count in links.items()
        if iri.startswith(SAID)
    }
    return StoreFigures(
        memes=len(store.ids()),
        statements=statements,
        individuals=sum(figures.individuals for figures in dimensions.values()),
        confirmed=int(confirmed[0]["count"]),
        dimensions=dimensions,
        relations={name: links.get(TERM + name, 0) for name in RELATIONS},
        said=dict(sorted(said.items(), key=lambda entry: (-entry[1], entry[0]))),
        kinds={name: kinds.get(name, 0) for name in TOXICITY_KINDS},
        dangling=len(lost),
    )


def list_dangling(store: GraphStore, timeout: float = PATIENCE) -> Iterator[Dangling]:
    """Every statement of which an end is no individual, by meme."""
    found = []
    (rows,) = select(store, _DANGLING, timeout=timeout)
    for row in rows:
        start, end = row["start"] == "true", row["end"] == "true"
        relation = row["relation"]
        name = relation.removeprefix(TERM) if relation.startswith(TERM) else ""
        found.append(
            Dangling(
                meme_of(row["graph"]) or "",
                read_thing(row["one"]),
                name or unescape(relation.removeprefix(SAID)),
                read_thing(row["other"]),
                "both" if not start and not end else "target" if start else "source",
            )
        )
    return iter(sorted(found, key=attrgetter("meme", "source", "relation", "target")))
