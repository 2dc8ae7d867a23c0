"""The independent SHACL engine that our compiled shapes are compared with."""

from __future__ import annotations

from pathlib import Path

import pyshacl
import rdflib

from memantics.core.data import read_file
from memantics.understanding.knowledge.formats import serialize
from memantics.understanding.knowledge.records import meme_of
from memantics.understanding.knowledge.store import GraphStore, read_ontology
from memantics.understanding.knowledge.validation import (
    SH,
    Breach,
    read_severity,
    sort_breaches,
)


def validate_by_pyshacl(store: GraphStore, shapes: Path | None = None) -> tuple[Breach, ...]:
    """Every breach that pyshacl finds in a store, in the order of ``validate``."""
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
                read_severity(read("resultSeverity")),
                read("resultMessage"),
            )
        )
    return sort_breaches(found)
