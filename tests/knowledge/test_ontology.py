"""The ontology in Turtle, its shapes and the vocabulary in Python say the same."""

from __future__ import annotations

import rdflib
from rdflib.collection import Collection
from rdflib.namespace import OWL, RDF, RDFS, SKOS

from memantics.core.meaning import DIMENSIONS
from memantics.understanding.knowledge.ontology.vocabulary import (
    DIMENSION_TERMS,
    KIND_TERMS,
    RELATIONS,
    SPATIAL,
    TOXICITY_KINDS,
    find_dimension,
)
from memantics.understanding.knowledge.records import TERM
from memantics.understanding.knowledge.store import read_ontology
from tests.knowledge.samples import GENERAL, TAXONOMY
from tests.places import ROOT

MM = rdflib.Namespace(TERM)
SH = rdflib.Namespace("http://www.w3.org/ns/shacl#")
ONTOLOGY = rdflib.Graph().parse(data=read_ontology(), format="turtle")
SHAPES = rdflib.Graph().parse(data=read_ontology("shapes"), format="turtle")


def classes(graph: rdflib.Graph, place: rdflib.term.Node | None) -> set[str]:
    """The classes that a domain or range names, alone or as a union."""
    assert place is not None
    union = graph.value(place, OWL.unionOf)
    members = Collection(graph, union) if union else [place]
    return {str(member).removeprefix(TERM) for member in members}


def test_dimensions_are_those_of_the_vocabulary() -> None:
    found = {
        str(subject).removeprefix(TERM)
        for subject in ONTOLOGY.subjects(RDFS.subClassOf, MM.Individual)
    }
    assert found == set(DIMENSIONS)
    assert tuple(DIMENSION_TERMS) == DIMENSIONS
    for name, term in DIMENSION_TERMS.items():
        assert str(ONTOLOGY.value(MM[name], RDFS.label)) == term.label
        assert str(ONTOLOGY.value(MM[name], SKOS.definition)) == term.definition


def test_relations_have_the_ends_of_the_vocabulary() -> None:
    found = {
        str(subject).removeprefix(TERM)
        for subject in ONTOLOGY.subjects(RDFS.subPropertyOf, MM.relatesTo)
    }
    assert found == set(RELATIONS)
    for name, term in RELATIONS.items():
        assert classes(ONTOLOGY, ONTOLOGY.value(MM[name], RDFS.domain)) == set(term.domain)
        assert classes(ONTOLOGY, ONTOLOGY.value(MM[name], RDFS.range)) == set(term.range)
        assert str(ONTOLOGY.value(MM[name], RDFS.label)) == term.label


def test_opposites_in_space_are_inverse_and_exclude_each_other() -> None:
    pairs = {("isLeftOf", "isRightOf"), ("isAbove", "isBelow"), ("isInFrontOf", "isBehind")}
    inverse = {
        (str(one).removeprefix(TERM), str(other).removeprefix(TERM))
        for one, other in ONTOLOGY.subject_objects(OWL.inverseOf)
    }
    assert inverse == pairs | {(two, one) for one, two in pairs}
    excluded = {
        (str(SHAPES.value(place, SH.path)), str(other))
        for place, other in SHAPES.subject_objects(SH.disjoint)
    }
    assert excluded == {(str(MM[one]), str(MM[other])) for one, other in pairs}
    words = [word for term in SPATIAL.values() for word in term.spellings]
    assert len(set(words)) == len(words)
    assert {name for pair in pairs for name in pair} | {"isInside", "isNextTo"} == set(SPATIAL)


def test_kinds_of_toxicity_are_the_six() -> None:
    found = {
        str(subject).removeprefix(TERM) for subject in ONTOLOGY.subjects(RDF.type, MM.ToxicityKind)
    }
    assert found == set(TOXICITY_KINDS)
    assert len(found) == 6
    for name, term in KIND_TERMS.items():
        assert str(ONTOLOGY.value(MM[name], SKOS.definition)) == term.definition
    places = SHAPES.subjects(SH.path, MM.toxicityKind)
    allowed = next(own for place in places if (own := SHAPES.value(place, SH["in"])))
    assert {str(one).removeprefix(TERM) for one in Collection(SHAPES, allowed)} == found


def test_every_dimension_is_matched_to_both_official_namespaces() -> None:
    for name in DIMENSIONS:
        matched = {str(one) for one in ONTOLOGY.objects(MM[name], SKOS.exactMatch)}
        for namespace in (GENERAL, TAXONOMY):
            names = {each.removeprefix(namespace) for each in matched if each.startswith(namespace)}
            assert names
            assert {find_dimension(own) for own in names} == {name}


def test_shapes_hold_the_ends_of_every_relation() -> None:
    for name, term in RELATIONS.items():
        for target, wanted in (
            (SH.targetSubjectsOf, term.domain),
            (SH.targetObjectsOf, term.range),
        ):
            allowed = [
                Collection(SHAPES, choice)
                for shape in SHAPES.subjects(target, MM[name])
                if (choice := SHAPES.value(shape, SH["or"]))
            ]
            found = {
                str(own).removeprefix(TERM)
                for choices in allowed
                for place in choices
                if (own := SHAPES.value(place, SH["class"]))
            }
            assert found == (set(wanted) if len(wanted) < 10 else set())


def test_nothing_in_the_ontology_is_left_without_a_definition() -> None:
    for kind in (OWL.Class, OWL.ObjectProperty, OWL.DatatypeProperty):
        for subject in ONTOLOGY.subjects(RDF.type, kind):
            if isinstance(subject, rdflib.URIRef) and subject != MM.ToxicityKind:
                assert ONTOLOGY.value(subject, SKOS.definition), subject


def test_the_page_tells_the_vocabulary() -> None:
    page = (ROOT / "docs" / "reference" / "ontology.md").read_text(encoding="utf-8")
    for name, term in DIMENSION_TERMS.items():
        assert f"| `mm:{name}` | {term.definition} |" in page
    for name in RELATIONS:
        assert f"| `mm:{name}` |" in page
    for kind in TOXICITY_KINDS:
        assert f"`mm:{kind}`" in page
