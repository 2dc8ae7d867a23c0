"""Knowledge bases: raw JSON as it was extracted, and refined Turtle in either namespace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue

from memantics.benchmarks.mquest.dimension import canonical, find_dimension
from memantics.core.data import conform, read_json
from memantics.core.errors import DataError

if TYPE_CHECKING:
    from pyoxigraph import Quad

RAW = "_dimensions_reversed_raw.json"
REFINED = "_refined_ontology.ttl"
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_OWL = "http://www.w3.org/2002/07/owl#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"


@dataclass(frozen=True, slots=True)
class Relation:
    """One statement between two individuals, by their names."""

    source: str
    name: str
    target: str


@dataclass(frozen=True, slots=True)
class Individual:
    """One thing that a knowledge base says about a meme. Names are unique per meme *and* class.

    ``declared`` is the class name as this file spells it, ``namespace`` where that name lives
    (empty in raw JSON, which has none).
    """

    meme: str
    dimension: str
    name: str
    label: str
    description: str
    relations: tuple[Relation, ...] = ()
    declared: str = ""
    namespace: str = ""


def _as_text(value: object) -> object:
    # A language model wrote these values; what is not text is kept as its JSON.
    return value if isinstance(value, str) else orjson.dumps(value).decode()


Written = Annotated[str, BeforeValidator(_as_text)]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _RawIndividual(_Closed):
    class_name: str
    class_uri: str
    instance_name: Written
    label: Written
    description: Written
    extraction_method: JsonValue
    dimension_index: JsonValue
    directRelations: JsonValue = None  # noqa: N815 - the release's spelling
    relatedTo: JsonValue = None  # noqa: N815


class _RawMetadata(_Closed):
    image_path: JsonValue
    image_name: str
    extraction_timestamp: JsonValue
    llm_provider: JsonValue
    dimensions_processed: JsonValue
    total_dimensions_found: JsonValue
    pipeline_type: JsonValue


class _RawBase(_Closed):
    dimensions: list[_RawIndividual]
    metadata: _RawMetadata
    success: bool


def meme_of(path: Path) -> str:
    """The meme that a file of a knowledge base belongs to.

    >>> meme_of(Path("kb/01382_refined_ontology.ttl"))
    '01382'
    """
    return path.name.removesuffix(RAW).removesuffix(REFINED)


def read_raw(path: Path) -> list[Individual]:
    """The individuals of one raw file, in its order."""
    meme = meme_of(path)
    base = conform(_RawBase, read_json(path), path.name)
    if not base.dimensions:
        raise DataError(path.name, "holds no individual", hint="download the file again")
    return [
        Individual(
            meme,
            canonical(own.class_name, path.name),
            own.instance_name,
            own.label,
            own.description,
            tuple(_relations(own)),
            own.class_name,
        )
        for own in base.dimensions
    ]


def _relations(own: _RawIndividual) -> Iterator[Relation]:
    for entries, ends in (
        (own.directRelations, ("from", "to")),
        (own.relatedTo, ("", "entity")),
    ):
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and ends[1] in entry and "relation" in entry:
                start = entry.get(ends[0], own.instance_name)
                texts = (start, entry["relation"], entry[ends[1]])
                yield Relation(*(str(_as_text(text)) for text in texts))


@dataclass(slots=True)
class _Node:
    declared: str
    namespace: str
    label: str = ""
    description: str = ""


def read_refined(path: Path) -> list[Individual]:
    """The individuals of one refined file, found by local name in whatever namespace it uses.

    The official code looked in one fixed namespace and found nothing in four files of five, so
    a file without any individual is an error here.
    """
    import pyoxigraph

    nodes: dict[tuple[str, str], _Node] = {}
    latest: dict[str, _Node] = {}
    relations: dict[str, list[Relation]] = {}
    for quad in _triples(path):
        # Nine triples of ten are the ontology's own: the cheapest tests come first.
        predicate, value = quad.predicate.value, quad.object
        if predicate == _TYPE:
            namespace, name = _split(str(getattr(value, "value", "")))
            if dimension := find_dimension(name):
                subject = str(getattr(quad.subject, "value", ""))
                # One name may stand for two classes; what follows is about the last.
                latest[subject] = nodes.setdefault((subject, dimension), _Node(name, namespace))
        elif predicate.startswith(_RDFS):
            node = latest.get(str(getattr(quad.subject, "value", "")))
            if node and isinstance(value, pyoxigraph.Literal):
                if predicate == f"{_RDFS}label":
                    node.label = node.label or value.value
                elif predicate == f"{_RDFS}comment":
                    node.description = node.description or value.value
        elif isinstance(value, pyoxigraph.NamedNode) and isinstance(
            quad.subject, pyoxigraph.NamedNode
        ):
            start = quad.subject.value
            relation = Relation(_split(start)[1], _split(predicate)[1], _split(value.value)[1])
            relations.setdefault(start, []).append(relation)
    if not nodes:
        raise DataError(
            path.name,
            "holds no individual of a known dimension, in any namespace",
            hint="download the file again",
        )
    return [
        Individual(
            meme_of(path),
            dimension,
            _split(subject)[1],
            node.label,
            node.description,
            tuple(relations.get(subject, ())),
            node.declared,
            node.namespace,
        )
        for (subject, dimension), node in nodes.items()
    ]


def _triples(path: Path) -> Iterator[Quad]:
    import pyoxigraph

    try:
        yield from pyoxigraph.parse(path=path, format=pyoxigraph.RdfFormat.TURTLE)
    except SyntaxError as error:
        raise DataError(
            path.name, f"not valid Turtle: {error.msg}", hint="download the file again"
        ) from error
    except OSError as error:
        raise DataError(path.name, f"cannot be read: {error.strerror or error}") from error


def _split(iri: str) -> tuple[str, str]:
    """Namespace and local name, at the last ``#`` or ``/``."""
    cut = max(iri.rfind("#"), iri.rfind("/")) + 1
    return iri[:cut], iri[cut:]


def count_ontology(path: Path) -> tuple[int, int, int]:
    """Triples, declared classes and object properties of an ontology file."""
    total = 0
    kinds: Counter[str] = Counter()
    for quad in _triples(path):
        total += 1
        if quad.predicate.value == _TYPE:
            kinds[str(getattr(quad.object, "value", ""))] += 1
    return total, kinds[f"{_OWL}Class"], kinds[f"{_OWL}ObjectProperty"]
