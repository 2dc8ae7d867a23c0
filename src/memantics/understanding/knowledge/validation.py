"""Validation of knowledge against the ontology's SHACL shapes, and store statistics.

The statistics count facts (individuals), relations, kinds of toxicity, and references to missing
facts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from memantics.core.data import read_file
from memantics.core.errors import DataError, need_offline
from memantics.core.meaning import DIMENSIONS
from memantics.understanding.knowledge.formats import check_nesting
from memantics.understanding.knowledge.ontology.vocabulary import RELATIONS, TOXICITY_KINDS
from memantics.understanding.knowledge.querying import PATIENCE, QueryRow, select, store_errors
from memantics.understanding.knowledge.records import (
    MEME,
    OWN,
    PREFIXES,
    SAID,
    TERM,
    Dangling,
    meme_of,
    read_thing,
    unescape,
)
from memantics.understanding.knowledge.store import GraphStore, read_ontology

if TYPE_CHECKING:
    from pyoxigraph import BlankNode, NamedNode, Triple
    from pyoxigraph import Literal as Text

    Term = NamedNode | BlankNode | Text | Triple

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
_COUNTED_KINDS = f"""
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
class DimensionMetrics:
    """The number of facts (individuals) in a dimension, and of memes that have at least one."""

    individuals: int
    memes: int


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """Statistics of a store.

    ``said`` are relations in models' own words; ``dangling`` counts statements that refer to a
    missing fact.
    """

    memes: int
    statements: int
    individuals: int
    confirmed: int
    dimensions: Mapping[str, DimensionMetrics]
    relations: Mapping[str, int]
    said: Mapping[str, int]
    kinds: Mapping[str, int]
    dangling: int


def measure(store: GraphStore, timeout: float = PATIENCE) -> StoreStatistics:
    """Compute the statistics of a store."""
    with store_errors(store.folder):
        statements = len(store.graphs)  # reads a whole index, so that damage is found early
    individuals, related, kinded, confirmed, lost = select(
        store, _INDIVIDUALS, _RELATIONS, _COUNTED_KINDS, _CONFIRMED, _DANGLING, timeout=timeout
    )
    found = {
        row["class"].removeprefix(TERM).removeprefix(OWN): DimensionMetrics(
            int(row["count"]), int(row["memes"])
        )
        for row in individuals
    }
    other_classes = sorted(found.keys() - set(DIMENSIONS))
    dimensions: dict[str, DimensionMetrics] = {
        name: found.get(name, DimensionMetrics(0, 0)) for name in (*DIMENSIONS, *other_classes)
    }
    links = {row["relation"]: int(row["count"]) for row in related}
    kinds = {row["kind"].removeprefix(TERM): int(row["count"]) for row in kinded}
    said = {
        unescape(iri.removeprefix(SAID)): count
        for iri, count in links.items()
        if iri.startswith(SAID)
    }
    return StoreStatistics(
        memes=len(store.ids()),
        statements=statements,
        individuals=sum(counted.individuals for counted in dimensions.values()),
        confirmed=int(confirmed[0]["count"]),
        dimensions=dimensions,
        relations={name: links.get(TERM + name, 0) for name in RELATIONS},
        said=dict(sorted(said.items(), key=lambda entry: (-entry[1], entry[0]))),
        kinds={name: kinds.get(name, 0) for name in TOXICITY_KINDS},
        dangling=len(lost),
    )


def list_dangling(store: GraphStore, timeout: float = PATIENCE) -> Iterator[Dangling]:
    """List every statement that refers to a missing fact (individual), by meme."""
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


# SHACL shapes in Turtle are compiled to SPARQL queries over the whole store. The shapes file is the
# only source of rules. An unsupported construct is an error; a test compares all results with an
# independent SHACL engine.


Severity = Literal["Violation", "Warning", "Info"]
SH = "http://www.w3.org/ns/shacl#"
_RDF = PREFIXES["rdf"]
_TARGETS: Mapping[str, str] = {
    "targetClass": f"?focus <{_RDF}type> {{}} .",
    "targetSubjectsOf": "?focus {} ?anything .",
    "targetObjectsOf": "?anything {} ?focus .",
}
_KINDS: Mapping[str, str] = {
    "IRI": "isIRI({})",
    "Literal": "isLiteral({})",
    "BlankNode": "isBlank({})",
    "BlankNodeOrIRI": "!isLiteral({})",
    "IRIOrLiteral": "!isBlank({})",
}
_PLAIN = frozenset({"message", "severity", "path", "property", *_TARGETS})
_BESIDE = frozenset({f"{_RDF}type"})


@dataclass(frozen=True, slots=True)
class Check:
    """One constraint as a query for violations; ``component`` is its SHACL name."""

    query: str
    component: str
    path: str
    severity: Severity
    message: str

    @property
    def has_value(self) -> bool:
        """Whether one value violates the constraint, rather than the number of values."""
        return self.component.removesuffix("ConstraintComponent") not in ("MinCount", "MaxCount")


def compile_shapes(data: bytes, name: str = "shapes") -> tuple[Check, ...]:
    """Compile a shapes file to queries.

    Queries select ``?graph``, ``?focus`` and, if one value violates the constraint, ``?value``.
    """
    return _Compiler(data, name).compile()


@dataclass
class _Compiler:
    data: bytes
    name: str
    said: dict[Term, dict[str, list[Term]]] = field(default_factory=dict)

    def compile(self) -> tuple[Check, ...]:
        need_offline("pyoxigraph")
        import pyoxigraph

        check_nesting(self.data, "turtle", self.name)
        said: dict[Term, dict[str, list[Term]]] = defaultdict(lambda: defaultdict(list))
        try:
            for quad in pyoxigraph.parse(self.data, format=pyoxigraph.RdfFormat.TURTLE):
                said[quad.subject][quad.predicate.value].append(quad.object)
        except SyntaxError as error:
            raise DataError(self.name, f"not valid Turtle: {error.msg}"[:300]) from error
        self.said = {subject: dict(entries) for subject, entries in said.items()}
        checks = [
            check
            for shape in self.said
            for target in self.targets(shape)
            for check in self.shape(shape, target)
        ]
        if not checks:
            raise DataError(
                self.name,
                "contains no shape with a target",
                hint="add sh:targetClass or another target to a shape",
            )
        return tuple(checks)

    def targets(self, shape: Term) -> Iterator[str]:
        """Return one pattern per target of a shape."""
        for kind, pattern in _TARGETS.items():
            for target in self.all(shape, kind):
                yield pattern.format(target)

    def shape(self, shape: Term, target: str) -> Iterator[Check]:
        """Compile the constraints of a node shape and of its properties."""
        yield from self.constraints(shape, target, "")
        for place in self.all(shape, "property"):
            yield from self.constraints(place, target, self.path(place))

    def constraints(self, shape: Term, target: str, path: str) -> Iterator[Check]:
        severity = read_severity(self.one(shape, "severity"))
        message = _text(self.one(shape, "message"))
        for parameter, values in self.said.get(shape, {}).items():
            known = parameter.removeprefix(SH)
            if parameter in _BESIDE or (parameter != known and known in _PLAIN):
                continue
            for value in values:
                wanted = self.condition(known, value) if path or known not in _COUNTS else None
                if wanted is None:
                    raise DataError(
                        self.name,
                        f"{_text(parameter)} is not a supported SHACL constraint",
                        hint="use counts, class, datatype, nodeKind, in, or, pattern, disjoint",
                    )
                query = _query(target, path, wanted)
                component = f"{known[0].upper()}{known[1:]}ConstraintComponent"
                yield Check(query, component, path, severity, message)

    def condition(self, parameter: str, value: Term) -> _Condition | None:
        """Compile a constraint to a filter over a value or a limit on the count of values."""
        if parameter in _COUNTS:
            return _Condition(count=(parameter, int(_text(value))))
        if parameter == "in":
            allowed = ", ".join(str(term) for term in self.members(value))
            return _Condition(f"?value NOT IN ({allowed})")
        if parameter == "or":
            broken = [self.alternative(term) for term in self.members(value)]
            return _Condition(" && ".join(f"({clause})" for clause in broken))
        broken_if = _BROKEN.get(parameter)
        return _Condition(broken_if(value)) if broken_if else None

    def alternative(self, shape: Term) -> str:
        """Compile the condition under which one ``sh:or`` alternative fails.

        An alternative is a class, or the absence of a property.
        """
        parameters = self.said.get(shape, {}).keys() - _BESIDE
        if parameters == {f"{SH}class"}:
            return f"NOT {_has(f'<{_RDF}type>', self.one(shape, 'class'))}"
        inner = self.one(shape, "property")
        if parameters == {f"{SH}property"} and inner is not None:
            path = self.path(inner)
            if _text(self.one(inner, "maxCount")) == "0" and len(self.said[inner]) == 2:
                return _has(path, "?other")
        raise DataError(
            self.name,
            "an sh:or alternative is not a plain class or an absent property",
            hint="write it with sh:class, or with sh:path and sh:maxCount 0",
        )

    def path(self, place: Term) -> str:
        path = self.one(place, "path")
        if path is None:
            raise DataError(self.name, "a property shape has no sh:path")
        back = self.one(path, "inversePath")
        if back is not None:
            return f"^{back}"
        if path in self.said and not str(path).startswith("<"):
            raise DataError(self.name, "an sh:path is not a property or an inverse property")
        return str(path)

    def members(self, start: Term) -> Sequence[Term]:
        """Return the members of an RDF list."""
        found: list[Term] = []
        place: Term | None = start
        while place is not None and _text(place) != f"{_RDF}nil":
            entry = self.said.get(place, {})
            found += entry.get(f"{_RDF}first", [])
            following = entry.get(f"{_RDF}rest", [])
            place = following[0] if following else None
        return found

    def all(self, subject: Term, name: str) -> Sequence[Term]:
        return self.said.get(subject, {}).get(SH + name, [])

    def one(self, subject: Term, name: str) -> Term | None:
        found = self.all(subject, name)
        return found[0] if found else None


_COUNTS = frozenset({"minCount", "maxCount"})


@dataclass(frozen=True, slots=True)
class _Condition:
    """A SHACL constraint as SPARQL: a filter for invalid values, or a limit on their number."""

    broken: str = ""
    count: tuple[str, int] | None = None


def _query(target: str, path: str, wanted: _Condition) -> str:
    scope = f'FILTER(STRSTARTS(STR(?graph), "{MEME}"))'
    # Targets are selected in a subquery, so that each focus node counts once.
    focus = f"{{ SELECT DISTINCT ?graph ?focus {{ GRAPH ?graph {{ {target} }} {scope} }} }}"
    if wanted.count is None:
        found = f"GRAPH ?graph {{ ?focus {path} ?value }}" if path else "BIND(?focus AS ?value)"
        return f"SELECT DISTINCT ?graph ?focus ?value {{ {focus} {found} FILTER({wanted.broken}) }}"
    kind, limit = wanted.count
    values = f"GRAPH ?graph {{ ?focus {path} ?value }}"
    if kind == "minCount" and limit == 1:
        return f"SELECT ?graph ?focus {{ {focus} FILTER NOT EXISTS {{ {values} }} }}"
    sign = "<" if kind == "minCount" else ">"
    return (
        f"SELECT ?graph ?focus {{ {focus} OPTIONAL {{ {values} }} }} "
        f"GROUP BY ?graph ?focus HAVING (COUNT(DISTINCT ?value) {sign} {limit})"
    )


def _not_of(datatype: Term) -> str:
    """Return a filter for values that are not valid literals of a datatype."""
    proper = ""
    if _text(datatype) in (PREFIXES["xsd"] + "integer", PREFIXES["xsd"] + "dateTime"):
        proper = f" || !BOUND(?value) || !COALESCE({datatype}(STR(?value)) = ?value, false)"
    return f"!isLiteral(?value) || DATATYPE(?value) != {datatype}{proper}"


def _has(path: str, target: object) -> str:
    return f"EXISTS {{ GRAPH ?graph {{ ?value {path} {target} }} }}"


def _not_of_kind(kind: Term) -> str:
    test = _KINDS.get(_text(kind).removeprefix(SH))
    if test is None:
        raise DataError("shapes", f"{_text(kind)} is not a valid node kind")
    return f"!({test.format('?value')})"


_BROKEN: Mapping[str, Callable[[Term], str]] = {
    "class": lambda node: f"NOT {_has(f'<{_RDF}type>', node)}",
    "datatype": _not_of,
    "nodeKind": _not_of_kind,
    "disjoint": lambda node: f"EXISTS {{ GRAPH ?graph {{ ?focus {node} ?value }} }}",
    "minLength": lambda node: f"isBlank(?value) || STRLEN(STR(?value)) < {int(_text(node))}",
    "pattern": lambda node: f"isBlank(?value) || !REGEX(STR(?value), {node})",
}


def _text(term: object) -> str:
    return "" if term is None else str(getattr(term, "value", term))


def read_severity(term: object) -> Severity:
    """Return the severity of a SHACL term; ``Violation`` by default."""
    name = _text(term).removeprefix(SH)
    return "Warning" if name == "Warning" else "Info" if name == "Info" else "Violation"


_ORDER: dict[Severity, int] = {"Violation": 0, "Warning": 1, "Info": 2}


@dataclass(frozen=True, slots=True)
class Breach:
    """A violation of a SHACL rule: its place, and the invalid value if there is one."""

    meme: str
    focus: str
    path: str
    value: str
    component: str
    severity: Severity
    message: str


def validate(
    store: GraphStore, shapes: Path | None = None, timeout: float = PATIENCE
) -> tuple[Breach, ...]:
    """Return all violations in a store by meme, the most severe first.

    ``shapes`` replaces the ontology's shapes.
    """
    checks = _own_checks() if shapes is None else compile_shapes(read_file(shapes), shapes.name)
    answers = select(store, *(check.query for check in checks), timeout=timeout)
    return sort_breaches(
        _read_breach(check, row)
        for check, rows in zip(checks, answers, strict=True)
        for row in rows
    )


@lru_cache(maxsize=1)
def _own_checks() -> tuple[Check, ...]:
    return compile_shapes(read_ontology("shapes"), "shapes.ttl")


def _read_breach(check: Check, row: QueryRow) -> Breach:
    return Breach(
        meme_of(row["graph"]) or "",
        row["focus"],
        check.path.removeprefix("^").strip("<>"),
        row["value"] if check.has_value else "",
        check.component,
        check.severity,
        check.message,
    )


def sort_breaches(found: Iterable[Breach]) -> tuple[Breach, ...]:
    """Remove duplicate violations and sort them by meme and severity."""
    return tuple(
        sorted(
            set(found),
            key=lambda breach: (
                breach.meme,
                _ORDER[breach.severity],
                breach.focus,
                breach.path,
                astuple(breach),
            ),
        )
    )
