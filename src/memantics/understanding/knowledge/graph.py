"""Convert knowledge to RDF and back without loss: one graph per meme, without blank nodes.

A fact about a meme is an individual of the ontology with a class, a label and relations; a PROV-O
activity describes its provenance. A relation with its own provenance or wording has a separate
statement node.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING

from memantics.core.errors import DataError
from memantics.core.meaning import DIMENSIONS, Dimension
from memantics.understanding.knowledge import records
from memantics.understanding.knowledge.ontology.vocabulary import RELATIONS, TOXICITY_KINDS
from memantics.understanding.knowledge.records import (
    MODEL,
    OWN,
    PERSON,
    PREFIXES,
    SAID,
    TERM,
    class_iri,
    clean,
    escape,
    graph_iri,
    meme_of,
    read_thing,
    thing_iri,
    unescape,
)

if TYPE_CHECKING:
    from pyoxigraph import Literal, NamedNode, Quad, Triple

_RDF, _RDFS, _PROV = PREFIXES["rdf"], PREFIXES["rdfs"], PREFIXES["prov"]
_DCTERMS, _XSD = PREFIXES["dcterms"], PREFIXES["xsd"]
TYPE, LABEL = f"{_RDF}type", f"{_RDFS}label"
DESCRIPTION, SOURCE = f"{_DCTERMS}description", f"{_DCTERMS}source"
GENERATED, AGENT, ENDED = (
    f"{_PROV}wasGeneratedBy",
    f"{_PROV}wasAssociatedWith",
    f"{_PROV}endedAtTime",
)
_SUBJECT, _PREDICATE, _OBJECT = f"{_RDF}subject", f"{_RDF}predicate", f"{_RDF}object"
_CLASSES = {TERM + name: name for name in DIMENSIONS}
_KINDS = {TERM + name: name for name in TOXICITY_KINDS}
_TIME = re.compile(
    r"-?\d{4,}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?"
    r"(Z|[+-](0\d|1[0-4]):[0-5]\d)?"
)
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
_MEME_FIELDS = ("image", "language", "collection", "warning")


@lru_cache(maxsize=4096)
def node(iri: str) -> NamedNode:
    """Return a cached node, since predicates and classes repeat."""
    from pyoxigraph import NamedNode

    return NamedNode(iri)


def predicate_iri(relation: str) -> str:
    """Return the IRI of an ontology relation, or of a free relation in its own namespace."""
    return TERM + relation if relation in RELATIONS else SAID + escape(relation)


def to_quads(knowledge: records.Knowledge) -> Iterator[Quad]:
    """Convert all knowledge about a meme to quads of its graph."""
    return _Writer(knowledge).write()


@dataclass
class _Writer:
    knowledge: records.Knowledge
    seen: set[str] = field(default_factory=set)

    def write(self) -> Iterator[Quad]:
        knowledge = self.knowledge
        if len(knowledge.by_key) != len(knowledge.individuals):
            raise DataError(
                f"meme {knowledge.meme}",
                "two individuals of one dimension have the same name",
                hint="rename one",
            )
        meme = graph_iri(knowledge.meme)
        yield self.link(meme, TYPE, f"{TERM}Meme")
        yield self.say(meme, f"{TERM}id", knowledge.meme)
        for name in _MEME_FIELDS:
            if value := getattr(knowledge, name):
                yield self.say(meme, TERM + name, value)
        for position, individual in enumerate(knowledge.individuals, 1):
            yield from self.individual(individual, position)
        for said in knowledge.loose:
            yield from self.relation(
                said.source, records.Relation(said.relation, said.target, said.provenance)
            )

    def individual(self, individual: records.Individual, position: int) -> Iterator[Quad]:
        subject = thing_iri(self.knowledge.meme, individual.key)
        yield self.link(subject, TYPE, class_iri(individual.dimension))
        yield self.link(subject, f"{TERM}inMeme", graph_iri(self.knowledge.meme))
        yield self.say(subject, f"{TERM}name", individual.name)
        yield self.say(subject, f"{TERM}position", str(position), f"{_XSD}integer")
        yield self.text(subject, LABEL, individual.label)
        if individual.description:
            yield self.text(subject, DESCRIPTION, individual.description)
        if individual.kind in TOXICITY_KINDS:
            yield self.link(subject, f"{TERM}toxicityKind", TERM + individual.kind)
        elif individual.kind:
            yield self.say(subject, f"{TERM}toxicityKind", individual.kind)
        yield from self.origin(subject, individual.provenance)
        for relation in individual.relations:
            yield from self.relation(individual.key, relation)

    def relation(self, source: str, relation: records.Relation) -> Iterator[Quad]:
        meme = self.knowledge.meme
        # An ontology relation between dimensions that it is not defined for is stored as a free
        # relation.
        known = self.knowledge.by_key
        theirs = [
            known[key].dimension in DIMENSIONS for key in (source, relation.target) if key in known
        ]
        predicate = (
            predicate_iri(relation.relation) if all(theirs) else SAID + escape(relation.relation)
        )
        ends = (thing_iri(meme, source), predicate, thing_iri(meme, relation.target))
        yield self.link(*ends)
        if relation.provenance or relation.written:
            place = f"{graph_iri(meme)}#statement/{_digest(*ends)}"
            yield self.link(place, TYPE, f"{_RDF}Statement")
            for predicate, end in zip((_SUBJECT, _PREDICATE, _OBJECT), ends, strict=True):
                yield self.link(place, predicate, end)
            if relation.written:
                yield self.say(place, f"{TERM}written", relation.written)
            yield from self.origin(place, relation.provenance)

    def origin(self, subject: str, provenance: records.Provenance | None) -> Iterator[Quad]:
        if not provenance:
            return
        for person in provenance.confirmed_by:
            yield self.link(subject, f"{TERM}confirmedBy", PERSON + escape(person))
        facts = (
            provenance.model,
            provenance.prompt,
            shorten_time(provenance.when),
            provenance.source,
        )
        if not any(facts):
            return
        activity = f"{graph_iri(self.knowledge.meme)}#activity/{_digest(*facts)}"
        yield self.link(subject, GENERATED, activity)
        if activity in self.seen:
            return
        self.seen.add(activity)
        yield self.link(activity, TYPE, f"{_PROV}Activity")
        if provenance.model:
            yield self.link(activity, AGENT, MODEL + escape(provenance.model))
            yield self.link(MODEL + escape(provenance.model), TYPE, f"{_PROV}SoftwareAgent")
        if provenance.prompt:
            yield self.say(activity, f"{TERM}prompt", provenance.prompt)
        if provenance.when:
            kind = f"{_XSD}dateTime" if _TIME.fullmatch(provenance.when) else f"{_XSD}string"
            yield self.say(activity, ENDED, shorten_time(provenance.when), kind)
        if provenance.source:
            yield self.say(activity, SOURCE, provenance.source)

    def link(self, subject: str, predicate: str, target: str) -> Quad:
        from pyoxigraph import NamedNode, Quad

        graph = node(graph_iri(self.knowledge.meme))
        return Quad(NamedNode(subject), node(predicate), NamedNode(target), graph)

    def say(self, subject: str, predicate: str, text: str, kind: str = f"{_XSD}string") -> Quad:
        from pyoxigraph import Literal

        return self.literal(subject, predicate, Literal(clean(text), datatype=node(kind)))

    def text(self, subject: str, predicate: str, text: str) -> Quad:
        from pyoxigraph import Literal

        language = self.knowledge.language
        if _LANGUAGE.fullmatch(language):
            return self.literal(subject, predicate, Literal(clean(text), language=language))
        return self.say(subject, predicate, text)

    def literal(self, subject: str, predicate: str, value: Literal) -> Quad:
        from pyoxigraph import NamedNode, Quad

        graph = node(graph_iri(self.knowledge.meme))
        return Quad(NamedNode(subject), node(predicate), value, graph)


def shorten_time(when: str) -> str:
    """Write a time in canonical form: without empty digits, Z for offset zero.

    >>> shorten_time("2026-01-02T03:04:05.120+00:00"), shorten_time("yesterday")
    ('2026-01-02T03:04:05.12Z', 'yesterday')
    """
    if not _TIME.fullmatch(when):
        return when
    whole, dot, rest = when.partition(".")
    if dot:
        digits = re.match(r"\d*", rest)
        length = digits.end() if digits else 0
        fraction = rest[:length].rstrip("0")
        when = whole + (f".{fraction}" if fraction else "") + rest[length:]
    return re.sub(r"[+-]00:00$", "Z", when)


def _digest(*parts: str) -> str:
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:16]


@dataclass
class _Subject:
    """The statements about one subject by predicate, in graph order."""

    said: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def one(self, predicate: str) -> str:
        found = self.said.get(predicate)
        return found[0] if found else ""


def from_quads(meme: str, quads: Iterable[Quad | Triple]) -> records.Knowledge:
    """Read the facts about a meme from its RDF graph; unknown statements stay in the graph."""
    subjects: dict[str, _Subject] = defaultdict(_Subject)
    for quad in quads:
        # The predicate determines whether a value is a node or a literal.
        subject, value = getattr(quad.subject, "value", ""), getattr(quad.object, "value", "")
        subjects[subject].said[quad.predicate.value].append(value)
    return _Reader(meme, subjects).read()


@dataclass
class _Reader:
    meme: str
    subjects: dict[str, _Subject]
    notes: dict[tuple[str, str, str], _Subject] = field(default_factory=dict)

    def read(self) -> records.Knowledge:
        for subject in self.subjects.values():
            if f"{_RDF}Statement" in subject.said.get(TYPE, ()):
                ends = (subject.one(_SUBJECT), subject.one(_PREDICATE), subject.one(_OBJECT))
                self.notes[ends] = subject
        things = f"{graph_iri(self.meme)}#"
        placed: list[tuple[int, str, records.Individual]] = []
        loose: list[records.Statement] = []
        for iri, subject in self.subjects.items():
            if not iri.startswith(things):
                continue
            found = list(filter(None, map(_read_class, subject.said.get(TYPE, ()))))
            if found:
                made = self.individual(iri, found[0], subject)
                placed.append((_whole(subject.one(f"{TERM}position")), made.key, made))
            else:
                key = read_thing(iri)
                loose += (
                    records.Statement(key, relation.relation, relation.target, relation.provenance)
                    for relation in self.relations(iri, subject)
                )
        about = self.subjects.get(graph_iri(self.meme), _Subject())
        return records.Knowledge(
            self.meme,
            tuple(individual for _, _, individual in sorted(placed, key=lambda entry: entry[:2])),
            **{name: about.one(TERM + name) for name in _MEME_FIELDS},
            loose=tuple(sorted(loose, key=attrgetter("source", "relation", "target"))),
        )

    def individual(self, iri: str, dimension: Dimension, subject: _Subject) -> records.Individual:
        kind = subject.one(f"{TERM}toxicityKind")
        return records.Individual(
            dimension,
            read_thing(iri).partition("/")[2],
            subject.one(LABEL),
            subject.one(DESCRIPTION),
            self.relations(iri, subject),
            _KINDS.get(kind, kind),
            self.origin(subject),
        )

    def relations(self, iri: str, subject: _Subject) -> tuple[records.Relation, ...]:
        found = []
        for predicate, targets in subject.said.items():
            name = _relation_name(predicate)
            if name is None:
                continue
            for target in filter(meme_of, targets):
                note = self.notes.get((iri, predicate, target), _Subject())
                found.append(
                    records.Relation(
                        name, read_thing(target), self.origin(note), note.one(f"{TERM}written")
                    )
                )
        return tuple(sorted(found, key=order_of))

    def origin(self, subject: _Subject) -> records.Provenance | None:
        people = tuple(
            sorted(
                unescape(p.removeprefix(PERSON)) for p in subject.said.get(f"{TERM}confirmedBy", ())
            )
        )
        activity = self.subjects.get(subject.one(GENERATED), _Subject())
        made = records.Provenance(
            unescape(activity.one(AGENT).removeprefix(MODEL)),
            activity.one(f"{TERM}prompt"),
            activity.one(ENDED),
            people,
            activity.one(SOURCE),
        )
        return made or None


def _read_class(iri: str) -> Dimension | None:
    """Return the dimension of a class."""
    return iri.removeprefix(OWN) if iri.startswith(OWN) else _CLASSES.get(iri)


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _relation_name(predicate: str) -> str | None:
    if predicate.startswith(SAID):
        return unescape(predicate.removeprefix(SAID))
    name = predicate.removeprefix(TERM)
    return name if name != predicate and name in RELATIONS else None


_ORDER = {name: place for place, name in enumerate(RELATIONS)}


def order_of(relation: records.Relation) -> tuple[int, str, str]:
    """Return the sort key of a relation: ontology relations first, then by name and target."""
    return _ORDER.get(relation.relation, len(_ORDER)), relation.relation, relation.target
