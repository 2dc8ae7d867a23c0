"""Readers of M-QUEST knowledge bases: raw JSON as extracted, and refined Turtle files."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from memantics.core import releases as mquest
from memantics.core.errors import DataError
from memantics.core.meaning import ALIASES, DIMENSIONS

_OWN = re.compile(r"[A-Z][A-Za-z]{1,39}")
EXTRA_DIMENSIONS = ("ColorComposition", "Metadata", "TemplateStructure")
_CANONICAL = {name: str(name) for name in (*DIMENSIONS, *EXTRA_DIMENSIONS)} | dict(ALIASES)


def find_dimension(name: str) -> str | None:
    """Return the canonical name of a dimension, given its name in any file of the release.

    >>> find_dimension("EmotionExpression"), find_dimension("Scene"), find_dimension("Weather")
    ('Emotion', 'Scene', None)
    """
    return _CANONICAL.get(name)


def canonical(name: str, where: object, *, published: bool = False) -> str:
    """Return the canonical name of a dimension; an error for an unknown one names the file.

    Data ``published`` by a user may have other dimensions.
    """
    found = find_dimension(name) or (name if published and _OWN.fullmatch(name) else None)
    if found is None:
        raise DataError(
            where, f"unknown dimension {name!r}", hint=f"known: {', '.join(sorted(_CANONICAL))}"
        )
    return found


@dataclass(frozen=True, slots=True)
class FileRelation:
    """One relation between two individuals of a knowledge base, by name."""

    source: str
    name: str
    target: str


@dataclass(frozen=True, slots=True)
class QaIndividual:
    """One individual of a knowledge base; names are unique per meme *and* class.

    ``declared`` is the class name as spelled in the file. ``namespace`` is the namespace of that
    name (empty in raw JSON).
    """

    meme: str
    dimension: str
    name: str
    label: str
    description: str
    relations: tuple[FileRelation, ...] = ()
    declared: str = ""
    namespace: str = ""


def read_raw(path: Path, *, own_names: bool = False) -> list[QaIndividual]:
    """Yield the individuals of one raw knowledge base file, in file order."""
    base = mquest.read_raw_base(path)
    if not base.dimensions:
        raise DataError(path.name, "contains no individual", hint="download the file again")
    return [
        QaIndividual(
            mquest.meme_of(path),
            canonical(individual.class_name, path.name, published=own_names),
            individual.instance_name,
            individual.label,
            individual.description,
            tuple(FileRelation(*said) for said in (*individual.direct(), *individual.related())),
            individual.class_name,
        )
        for individual in base.dimensions
    ]


@dataclass(slots=True)
class _GraphNode:
    declared: str
    namespace: str
    label: str = ""
    description: str = ""


def read_refined(path: Path) -> list[QaIndividual]:
    """Yield the individuals of one refined knowledge base, found by local name in any namespace.

    The official code searches one fixed namespace and finds nothing in four of five files. A file
    without any individual is therefore an error here.
    """
    import pyoxigraph

    nodes: dict[tuple[str, str], _GraphNode] = {}
    latest: dict[str, _GraphNode] = {}
    relations: dict[str, list[FileRelation]] = {}
    for quad in mquest.parse_turtle(mquest.read_file(path), path.name):
        # Nine of ten triples belong to the ontology, so the fastest tests come first.
        predicate, value = quad.predicate.value, quad.object
        if predicate == mquest.TYPE:
            namespace, name = mquest.split_iri(str(getattr(value, "value", "")))
            if dimension := find_dimension(name):
                subject = str(getattr(quad.subject, "value", ""))
                # One name may belong to two classes; later statements are about the last class.
                latest[subject] = nodes.setdefault(
                    (subject, dimension), _GraphNode(name, namespace)
                )
        elif predicate.startswith(mquest.RDFS):
            node = latest.get(str(getattr(quad.subject, "value", "")))
            if node and isinstance(value, pyoxigraph.Literal):
                if predicate == f"{mquest.RDFS}label":
                    node.label = node.label or value.value
                elif predicate == f"{mquest.RDFS}comment":
                    node.description = node.description or value.value
        elif isinstance(value, pyoxigraph.NamedNode) and isinstance(
            quad.subject, pyoxigraph.NamedNode
        ):
            start = quad.subject.value
            relation = FileRelation(
                mquest.split_iri(start)[1],
                mquest.split_iri(predicate)[1],
                mquest.split_iri(value.value)[1],
            )
            relations.setdefault(start, []).append(relation)
    if not nodes:
        raise DataError(
            path.name,
            "contains no individual of a known dimension, in any namespace",
            hint="download the file again",
        )
    return [
        QaIndividual(
            mquest.meme_of(path),
            dimension,
            mquest.split_iri(subject)[1],
            node.label,
            node.description,
            tuple(relations.get(subject, ())),
            node.declared,
            node.namespace,
        )
        for (subject, dimension), node in nodes.items()
    ]


def count_ontology(path: Path) -> tuple[int, int, int]:
    """Count triples, declared classes and object properties of an ontology file."""
    total = 0
    kinds: Counter[str] = Counter()
    for quad in mquest.parse_turtle(mquest.read_file(path), path.name):
        total += 1
        if quad.predicate.value == mquest.TYPE:
            kinds[str(getattr(quad.object, "value", ""))] += 1
    return total, kinds[f"{mquest.OWL}Class"], kinds[f"{mquest.OWL}ObjectProperty"]
