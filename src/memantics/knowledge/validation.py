"""Does knowledge keep the rules? The shapes of the ontology, asked of every graph at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from functools import lru_cache
from pathlib import Path

from memantics.core.data import read_file
from memantics.core.errors import need_packages
from memantics.knowledge.naming import meme_of
from memantics.knowledge.querying import PATIENCE, Row, select
from memantics.knowledge.shapes import SH, Check, Severity, compile_shapes
from memantics.knowledge.store import GraphStore, read_ontology

_ORDER: dict[Severity, int] = {"Violation": 0, "Warning": 1, "Info": 2}


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that a graph breaks: where, and, if one value is at fault, which."""

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
    """Every breach in a store, by meme, the gravest first; with a file, of its shapes instead."""
    checks = _own_checks() if shapes is None else compile_shapes(read_file(shapes), shapes.name)
    answers = select(store, *(check.query for check in checks), timeout=timeout)
    return _in_order(
        _read_breach(check, row)
        for check, rows in zip(checks, answers, strict=True)
        for row in rows
    )


@lru_cache(maxsize=1)
def _own_checks() -> tuple[Check, ...]:
    return compile_shapes(read_ontology("shapes"), "shapes.ttl")


def _read_breach(check: Check, row: Row) -> Breach:
    return Breach(
        meme_of(row["graph"]) or "",
        row["focus"],
        check.path.removeprefix("^").strip("<>"),
        row["value"] if check.has_value else "",
        check.component,
        check.severity,
        check.message,
    )


def validate_slowly(store: GraphStore, shapes: Path | None = None) -> tuple[Breach, ...]:
    """The same through pyshacl, an independent engine, some hundred times slower."""
    need_packages("checks by pyshacl", "shacl", "pyshacl")
    import pyshacl
    import rdflib

    from memantics.knowledge.formats import serialize

    quads = [quad for meme in store.ids() for quad in store.quads(meme)]
    data = rdflib.Graph().parse(data=serialize(quads, "turtle"), format="turtle")
    rules = read_ontology("shapes") if shapes is None else read_file(shapes)
    _, report, _ = pyshacl.validate(
        data, shacl_graph=rdflib.Graph().parse(data=rules, format="turtle"), inference="none"
    )
    term = rdflib.Namespace(SH)
    found = []
    for result in report.subjects(rdflib.RDF.type, term.ValidationResult):

        def read(name: str, result: rdflib.term.Node = result) -> str:
            value = report.value(result, term[name])
            if isinstance(value, rdflib.BNode):
                value = report.value(value, term.inversePath)
            return "" if value is None else str(value)

        focus = read("focusNode")
        found.append(
            Breach(
                meme_of(focus) or "",
                focus,
                read("resultPath"),
                read("value"),
                read("sourceConstraintComponent").removeprefix(SH),
                _severity(read("resultSeverity")),
                read("resultMessage"),
            )
        )
    return _in_order(found)


def _severity(iri: str) -> Severity:
    name = iri.removeprefix(SH)
    return "Warning" if name == "Warning" else "Info" if name == "Info" else "Violation"


def _in_order(found: Iterable[Breach]) -> tuple[Breach, ...]:
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
