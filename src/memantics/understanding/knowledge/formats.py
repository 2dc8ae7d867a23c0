"""Read and write knowledge graphs as N-Quads, TriG, Turtle and JSON-LD without loss."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import orjson
from pydantic import JsonValue

from memantics.core.errors import DataError, InputError, need_offline
from memantics.core.text import QUOTE, refuse_nesting
from memantics.understanding.knowledge.graph import node
from memantics.understanding.knowledge.ontology.vocabulary import RELATIONS
from memantics.understanding.knowledge.records import (
    MEME,
    ONTOLOGY,
    OWN,
    PREFIXES,
    TERM,
    graph_iri,
    meme_of,
)

if TYPE_CHECKING:
    from pyoxigraph import Literal as Text
    from pyoxigraph import NamedNode, Quad, RdfFormat

GraphFormat = Literal["nquads", "turtle", "trig", "jsonld"]
SUFFIXES: Mapping[str, GraphFormat] = {
    ".nq": "nquads",
    ".ttl": "turtle",
    ".trig": "trig",
    ".jsonld": "jsonld",
    ".json": "jsonld",
}
_RDF, _XSD = PREFIXES["rdf"], PREFIXES["xsd"]
# JSON-LD terms with short names; the relations of a file are added to them.
_CONTEXT: dict[str, JsonValue] = orjson.loads(Path(__file__).with_name("context.json").read_bytes())
_CONTEXT |= {
    name: {"@id": TERM + name, "@type": "@id"}
    for name in ("inMeme", "toxicityKind", "confirmedBy", *RELATIONS)
}
_TERMS: dict[str, tuple[str, str]] = {
    str(entry["@id"]): (name, str(entry["@type"]))
    for name, entry in _CONTEXT.items()
    if isinstance(entry, dict)
} | {
    str(_CONTEXT[name]): (name, "")
    for name in ("label", "description", "source", "Statement", "Activity", "SoftwareAgent")
}


_REPAIR = "repair the file, or export it again"


def guess_format(path: Path) -> GraphFormat:
    """Determine the format from a file's name."""
    found = SUFFIXES.get(path.suffix.lower())
    if found is None:
        raise InputError(
            f"{path.name}: unknown file format",
            hint=f"use a file name that ends in {', '.join(SUFFIXES)}",
        )
    return found


def check_nesting(data: bytes, form: GraphFormat, name: str) -> None:
    """Reject a file whose nesting would crash the parser and this process.

    Brackets of Turtle are harmless, so only quoted statements are counted there.
    """
    if form == "jsonld" or QUOTE in data:
        refuse_nesting(data, name)


def parse(data: bytes, form: GraphFormat, name: str) -> Iterator[Quad]:
    """Parse quads; an error names the file and the line."""
    need_offline("pyoxigraph")
    import pyoxigraph

    check_nesting(data, form, name)
    try:
        yield from pyoxigraph.parse(data, format=_official(form))
    except SyntaxError as error:
        line = f"line {error.lineno}: " if error.lineno else ""
        raise DataError(name, f"not valid {form}: {line}{error.msg}"[:300], hint=_REPAIR) from error
    except (ValueError, OSError) as error:
        raise DataError(name, f"not valid {form}: {error}"[:300], hint=_REPAIR) from error


def _official(form: GraphFormat) -> RdfFormat:
    from pyoxigraph import RdfFormat

    return {
        "nquads": RdfFormat.N_QUADS,
        "turtle": RdfFormat.TURTLE,
        "trig": RdfFormat.TRIG,
        "jsonld": RdfFormat.JSON_LD,
    }[form]


def place_quads(quads: Iterable[Quad]) -> dict[str, list[Quad]]:
    """Group quads by meme; in Turtle, which has no graphs, by IRI.

    Statements that are not about a meme, for example about a model, are added to the graph of every
    meme that refers to them.
    """
    from pyoxigraph import Quad

    placed: dict[str, list[Quad]] = defaultdict(list)
    shared: dict[str, list[Quad]] = defaultdict(list)
    for quad in quads:
        meme = meme_of(str(getattr(quad.graph_name, "value", "")))
        if meme is not None:
            placed[meme].append(quad)
            continue
        subject = str(getattr(quad.subject, "value", ""))
        meme = meme_of(subject)
        if meme is None:
            # Every store already contains the ontology.
            if not subject.startswith(ONTOLOGY):
                shared[str(quad.subject)].append(quad)
            continue
        graph = node(graph_iri(meme))
        placed[meme].append(Quad(quad.subject, quad.predicate, quad.object, graph))
    for meme, meme_quads in placed.items() if shared else ():
        meme_quads.extend(_follow(meme_quads, shared, node(graph_iri(meme))))
    return dict(placed)


def _follow(
    quads: Iterable[Quad], shared: Mapping[str, Sequence[Quad]], graph: NamedNode
) -> list[Quad]:
    """Collect statements about the subjects that quads refer to, recursively."""
    from pyoxigraph import Quad

    left, seen, found = [str(quad.object) for quad in quads], set[str](), list[Quad]()
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        for quad in shared.get(name, ()):
            found.append(Quad(quad.subject, quad.predicate, quad.object, graph))
            left.append(str(quad.object))
    return found


def serialize(quads: Iterable[Quad], form: GraphFormat) -> bytes:
    """Write quads in a deterministic order."""
    need_offline("pyoxigraph")
    import pyoxigraph

    ordered = sorted(quads, key=str)
    if form == "jsonld":
        return _write_jsonld(ordered)
    # Unused prefixes are omitted; most stores have no custom dimension.
    owned = any(str(getattr(quad.object, "value", "")).startswith(OWN) for quad in ordered)
    known = {name: start for name, start in PREFIXES.items() if owned or start != OWN}
    prefixes = None if form == "nquads" else known
    if form == "turtle":
        triples = list(dict.fromkeys(quad.triple for quad in ordered))
        return _bytes(pyoxigraph.serialize(triples, format=_official(form), prefixes=prefixes))
    return _bytes(pyoxigraph.serialize(ordered, format=_official(form), prefixes=prefixes))


def _bytes(data: bytes | None) -> bytes:
    return data or b""


def _write_jsonld(quads: Sequence[Quad]) -> bytes:
    """Write one object per meme, with short names for readability."""
    graphs: dict[str, dict[str, dict[str, JsonValue]]] = {}
    for quad in quads:
        graph = str(getattr(quad.graph_name, "value", ""))
        subject = _refer(quad.subject)
        entry = graphs.setdefault(graph, {}).setdefault(subject, {"@id": subject})
        name, value = _entry(quad)
        former = entry.get(name)
        if former is None:
            entry[name] = value
        elif isinstance(former, list):
            former.append(value)
        else:
            entry[name] = [former, value]
    documents: list[JsonValue] = [
        {
            "@context": _CONTEXT,
            "@id": _short(graph),
            "@graph": [_tidy(entry) for entry in sorted(entries.values(), key=_reading_order)],
        }
        for graph, entries in graphs.items()
    ]
    return orjson.dumps(
        documents[0] if len(documents) == 1 else documents,
        option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
    )


def _reading_order(entry: dict[str, JsonValue]) -> tuple[int, int, str]:
    """Sort JSON-LD entries: the meme, its facts in order, then the provenance."""
    if entry.get("@type") == "Meme":
        return 0, 0, ""
    position = entry.get("position")
    if isinstance(position, int):
        return 1, position, ""
    return 2, 0, str(entry["@id"])


_FIRST = ("@id", "@type", "id", "name", "label", "description", "toxicityKind", *RELATIONS)


def _tidy(entry: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Sort the keys of a JSON-LD object, the most important ones first."""
    names = [name for name in _FIRST if name in entry]
    return {name: entry[name] for name in (*names, *sorted(entry.keys() - set(names)))}


def _short(iri: str) -> str:
    """Shorten an IRI with a prefix.

    No base IRI is used, because libraries resolve a URN as base in different ways.
    """
    return f"meme:{iri.removeprefix(MEME)}" if iri.startswith(MEME) else iri


def _refer(term: object) -> str:
    from pyoxigraph import BlankNode

    name = str(getattr(term, "value", ""))
    return f"_:{name}" if isinstance(term, BlankNode) else _short(name)


def _entry(quad: Quad) -> tuple[str, JsonValue]:
    from pyoxigraph import Literal as Text

    predicate = quad.predicate.value
    if predicate == f"{_RDF}type":
        return "@type", _name_term(str(getattr(quad.object, "value", "")))
    name, kind = _TERMS.get(predicate, (_name_term(predicate), ""))
    if isinstance(quad.object, Text):
        return name, _literal(quad.object, kind)
    target = _refer(quad.object)
    return name, target if kind == "@id" else {"@id": target}


def _literal(value: Text, kind: str) -> JsonValue:
    datatype = value.datatype.value
    if value.language:
        return {"@value": value.value, "@language": value.language}
    if kind == datatype:
        plain = (
            datatype == f"{_XSD}integer"
            and value.value.isdigit()
            and value.value == str(int(value.value))
        )
        return int(value.value) if plain and len(value.value) < 10 else value.value
    if datatype == f"{_XSD}string" and not kind:
        return value.value
    return {"@value": value.value, "@type": datatype}


def _name_term(iri: str) -> str:
    if iri in _TERMS:
        return _TERMS[iri][0]
    name = iri.removeprefix(TERM)
    if name != iri and name.isalnum() and name not in _CONTEXT:
        return name
    for prefix in ("said", "own", "prov"):
        start = PREFIXES[prefix]
        if iri.startswith(start):
            return f"{prefix}:{iri.removeprefix(start)}"
    return iri
