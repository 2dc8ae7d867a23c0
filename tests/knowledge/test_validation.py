"""The compiled shapes find every breach that an independent SHACL engine finds, and no other."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from memantics.core.errors import DataError
from memantics.understanding.kb import read_sample_knowledge
from memantics.understanding.knowledge.graph import to_quads
from memantics.understanding.knowledge.official import Account, adopt, find_official
from memantics.understanding.knowledge.records import (
    PREFIXES,
    TERM,
    Individual,
    Knowledge,
    Provenance,
    Relation,
    graph_iri,
    thing_iri,
)
from memantics.understanding.knowledge.store import GraphStore
from memantics.understanding.knowledge.validation import (
    Breach,
    compile_shapes,
    validate,
)
from tests.knowledge.pyshacl_engine import validate_by_pyshacl
from tests.knowledge.samples import DUEL, MADE, UNTIDY
from tests.places import SHARED_DATA

GRAPH = NamedNode(graph_iri("7"))
INSULT = NamedNode(thing_iri("7", "Toxicity/insult"))
DUEL_SCENE = NamedNode(thing_iri("7", "Scene/duel"))
KNIGHT = NamedNode(thing_iri("7", "VisualMaterial/knight"))
CAPTION = NamedNode(thing_iri("7", "TextualMaterial/caption"))
XSD = PREFIXES["xsd"]


def term(name: str) -> NamedNode:
    return NamedNode(TERM + name)


def store_of(*knowledge: Knowledge) -> GraphStore:
    store = GraphStore.in_memory()
    store.add(knowledge)
    return store


def changed(add: Iterable[Quad] = (), drop: str = "") -> GraphStore:
    """The duel with statements added, or those of a predicate left out."""
    kept = (quad for quad in to_quads(DUEL) if not drop or quad.predicate.value != drop)
    store = GraphStore.in_memory()
    store.add_quads([*kept, *add])
    return store


def assert_agreement(store: GraphStore, shapes: Path | None = None) -> tuple[Breach, ...]:
    ours, theirs = validate(store, shapes), validate_by_pyshacl(store, shapes)
    assert ours == theirs
    return ours


def test_good_knowledge_breaks_no_rule() -> None:
    assert [one.message for one in assert_agreement(store_of(DUEL))] == []


@pytest.mark.slow
def test_the_sample_pack_breaks_no_rule() -> None:
    found = assert_agreement(store_of(*read_sample_knowledge()))
    assert {one.severity for one in found} <= {"Info"}


def add(subject: NamedNode, predicate: str, value: NamedNode | Literal) -> Quad:
    return Quad(subject, NamedNode(predicate), value, GRAPH)


LABEL = PREFIXES["rdfs"] + "label"
TYPE = PREFIXES["rdf"] + "type"
ENDED = PREFIXES["prov"] + "endedAtTime"
BREACHES = {
    "no label": (changed(drop=LABEL), "one label", 4),
    "two labels": (changed([add(DUEL_SCENE, LABEL, Literal("x"))]), "one label", 1),
    "empty label": (
        changed([add(KNIGHT, LABEL, Literal(""))]),
        "one label",
        2,
    ),
    "label that is no text": (changed([add(KNIGHT, LABEL, DUEL_SCENE)]), "one label", 2),
    "no name": (changed(drop=f"{TERM}name"), "one name", 4),
    "two classes": (changed([add(KNIGHT, TYPE, term("Scene"))]), "one dimension", 1),
    "no meme": (changed(drop=f"{TERM}inMeme"), "about one meme", 4),
    "meme of nothing": (changed(drop=f"{TERM}inMeme"), "nothing is said", 1),
    "no id": (changed(drop=f"{TERM}id"), "one id", 1),
    "position in words": (
        changed([add(KNIGHT, f"{TERM}position", Literal("first"))]),
        "whole number",
        2,
    ),
    "position that is no number": (
        changed(
            [add(KNIGHT, f"{TERM}position", Literal("x", datatype=NamedNode(f"{XSD}integer")))],
            drop=f"{TERM}position",
        ),
        "whole number",
        1,
    ),
    "no origin": (
        changed(drop=PREFIXES["prov"] + "wasGeneratedBy"),
        "where this comes from",
        4,
    ),
    "time in words": (
        changed(
            [
                add(
                    NamedNode("urn:memantics:meme:7#activity/x"),
                    TYPE,
                    NamedNode(PREFIXES["prov"] + "Activity"),
                ),
                add(NamedNode("urn:memantics:meme:7#activity/x"), ENDED, Literal("noon")),
            ]
        ),
        "ISO 8601",
        1,
    ),
    "seventh kind": (
        changed([add(INSULT, f"{TERM}toxicityKind", term("Silly"))], f"{TERM}toxicityKind"),
        "one of the six",
        1,
    ),
    "no kind": (changed(drop=f"{TERM}toxicityKind"), "no known kind", 1),
    "kind of a scene": (
        changed([add(DUEL_SCENE, f"{TERM}toxicityKind", term("Abusive"))]),
        "only toxicity",
        1,
    ),
    "left and right of the same": (
        changed(
            [
                add(KNIGHT, f"{TERM}isLeftOf", CAPTION),
                add(KNIGHT, f"{TERM}isRightOf", CAPTION),
                add(CAPTION, f"{TERM}isRightOf", KNIGHT),
            ]
        ),
        "contradict each other",
        1,
    ),
    "a scene above a thing": (
        changed([add(DUEL_SCENE, f"{TERM}isAbove", KNIGHT)]),
        "isAbove starts from another dimension",
        1,
    ),
    "relation to nothing": (
        changed(
            [add(DUEL_SCENE, f"{TERM}hasParticipant", NamedNode("urn:memantics:meme:7#thing/x"))]
        ),
        "leads to an unknown individual",
        1,
    ),
    "relation from nothing": (
        changed([add(NamedNode("urn:memantics:meme:7#thing/x"), f"{TERM}about", KNIGHT)]),
        "starts from an unknown individual",
        1,
    ),
    "wrong domain": (
        changed([add(KNIGHT, f"{TERM}hasParticipant", CAPTION)]),
        "hasParticipant starts from another",
        1,
    ),
    "wrong range": (
        changed([add(INSULT, f"{TERM}targets", KNIGHT)]),
        "targets leads to another",
        1,
    ),
    "language in words": (
        changed([add(GRAPH, f"{TERM}language", Literal("no tag!"))], f"{TERM}language"),
        "a language is a tag",
        1,
    ),
    "statement without an object": (
        changed(drop=PREFIXES["rdf"] + "object"),
        "one object",
        1,
    ),
}


@pytest.mark.parametrize("name", BREACHES)
def test_each_breach_is_found_by_both_engines(name: str) -> None:
    store, message, count = BREACHES[name]
    found = [one for one in assert_agreement(store) if message in one.message]
    assert len(found) == count
    assert {each.meme for each in found} == {"7"}


def test_severity_tells_what_must_and_what_should_be() -> None:
    bare = dataclasses.replace(
        DUEL,
        individuals=tuple(
            dataclasses.replace(individual, provenance=None) for individual in DUEL.individuals
        ),
    )
    assert {one.severity for one in validate(store_of(bare))} == {"Warning"}
    assert "Violation" in {each.severity for each in validate(store_of(UNTIDY))}


def test_hostile_names_break_nothing() -> None:
    name = "x> . <urn:a> \"'\\{}"
    own = Individual(
        "Scene", name, name, relations=(Relation("hasParticipant", f"VisualMaterial/{name}"),)
    )
    found = assert_agreement(
        store_of(Knowledge(name, (dataclasses.replace(own, provenance=MADE),)))
    )
    assert [(one.meme, one.message) for one in found] == [
        (name, "a relation leads to an unknown individual")
    ]


def test_engines_agree_on_official_files() -> None:
    bases = SHARED_DATA / "mquest"
    if not bases.is_dir():
        pytest.skip("the official knowledge bases are not beside the checkout")
    # Every tenth file: both namespaces, with and without relations.
    store = store_of(*adopt(find_official(bases)[::10], Account()), UNTIDY)
    found = assert_agreement(store)
    assert len({one.message for one in found}) >= 5


def test_shapes_of_your_own_are_checked_instead(tmp_path: Path) -> None:
    shapes = tmp_path / "own.ttl"
    shapes.write_text(
        """@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix mm: <urn:memantics:ontology#> .
        <urn:s> a sh:NodeShape ; sh:targetClass mm:Scene ;
          sh:property [ sh:path mm:hasParticipant ; sh:minCount 2 ; sh:message "a crowd" ] ."""
    )
    found = assert_agreement(store_of(DUEL), shapes)
    assert [one.message for one in found] == ["a crowd"]


@pytest.mark.parametrize(
    "body",
    [
        "sh:closed true",
        "sh:property [ sh:path mm:name ; sh:uniqueLang true ]",
        "sh:property [ sh:path ( mm:inMeme mm:id ) ; sh:minCount 1 ]",
        "sh:or ( [ sh:nodeKind sh:IRI ] )",
        "sh:sparql [ sh:select 'SELECT $this { }' ]",
    ],
)
def test_a_rule_that_cannot_be_checked_is_refused(body: str) -> None:
    text = (
        "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix mm: <urn:memantics:ontology#> .\n"
        f"<urn:s> a sh:NodeShape ; sh:targetClass mm:Scene ; {body} ."
    )
    with pytest.raises(DataError):
        compile_shapes(text.encode())


def test_files_without_shapes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no shape"):
        compile_shapes(b"<urn:a> <urn:b> <urn:c> .")
    with pytest.raises(DataError, match="not valid Turtle"):
        compile_shapes(b"<urn:a> <urn:b>")
    with pytest.raises(DataError, match="cannot be read"):
        validate(store_of(DUEL), tmp_path / "nowhere.ttl")


def test_provenance_without_a_word_is_none() -> None:
    assert not Provenance()
    assert Provenance(prompt="x")


@pytest.mark.parametrize(("participants", "breaches"), [(0, 1), (1, 1), (2, 0), (3, 0)])
def test_a_least_number_above_one_is_counted(
    tmp_path: Path, participants: int, breaches: int
) -> None:
    shapes = tmp_path / "shapes.ttl"
    shapes.write_text(
        f"@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix mm: <{TERM}> .\n"
        "[] a sh:NodeShape ; sh:targetClass mm:Scene ; sh:property [ "
        'sh:path mm:hasParticipant ; sh:minCount 2 ; sh:message "two at least" ] .'
    )
    people = [Individual("VisualMaterial", f"knight{number}", "a knight") for number in range(3)]
    links = tuple(Relation("hasParticipant", one.key) for one in people[:participants])
    scene = Individual("Scene", "duel", "a duel", relations=links)
    found = assert_agreement(store_of(Knowledge("7", (scene, *people))), shapes)
    assert [each.message for each in found] == ["two at least"] * breaches
