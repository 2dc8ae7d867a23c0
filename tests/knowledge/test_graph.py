"""Knowledge becomes RDF and comes back, whatever the names are."""

from __future__ import annotations

import dataclasses
from typing import get_args

import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from memantics.core.errors import DataError
from memantics.core.meaning import DIMENSIONS
from memantics.understanding.knowledge.formats import GraphFormat, parse, place_quads, serialize
from memantics.understanding.knowledge.graph import from_quads, order_of, to_quads
from memantics.understanding.knowledge.ontology.vocabulary import RELATIONS, TOXICITY_KINDS
from memantics.understanding.knowledge.records import (
    Individual,
    Knowledge,
    Provenance,
    Relation,
    escape,
    graph_iri,
    meme_of,
    read_thing,
    tell_apart,
    thing_iri,
    unescape,
)
from tests.knowledge.samples import DUEL, UNTIDY

FORMATS: tuple[GraphFormat, ...] = get_args(GraphFormat)
names = st.text(min_size=1, max_size=12)
texts = st.text(st.characters(codec="utf-8"), max_size=30)
origins = st.none() | st.builds(
    Provenance,
    texts,
    texts,
    st.sampled_from(["", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.25", "last week"]),
    st.lists(names, max_size=2, unique=True).map(lambda own: tuple(sorted(own))),
    texts,
).map(lambda each: each or None)
relations = st.builds(
    Relation,
    st.sampled_from(tuple(RELATIONS)) | names,
    st.builds("{}/{}".format, st.sampled_from((*DIMENSIONS, "ColorUse")), names) | names,
    origins,
    texts,
)


def distinct(links: list[Relation]) -> tuple[Relation, ...]:
    """RDF is a set of statements, in one order."""
    found = {(link.relation, link.target): link for link in links}
    return tuple(sorted(found.values(), key=order_of))


individuals = st.builds(
    Individual,
    st.sampled_from((*DIMENSIONS, "ColorUse")),
    names,
    texts,
    texts,
    st.lists(relations, max_size=3).map(distinct),
    st.sampled_from(("", *TOXICITY_KINDS)),
    origins,
)
knowledge = st.builds(
    Knowledge,
    names,
    st.lists(individuals, min_size=1, max_size=4).map(tell_apart),
    texts,
    st.sampled_from(["", "en", "zh-Hans", "not a tag!"]),
    texts,
    texts,
)


@settings(max_examples=150, deadline=None)
@given(knowledge)
def test_any_knowledge_comes_back_from_its_graph(own: Knowledge) -> None:
    assert from_quads(own.meme, to_quads(own)) == own


@settings(max_examples=40, deadline=None)
@given(knowledge, st.sampled_from(FORMATS))
def test_any_knowledge_comes_back_from_any_format(own: Knowledge, form: GraphFormat) -> None:
    quads = list(to_quads(own))
    placed = place_quads(parse(serialize(quads, form), form, "file"))
    assert set(placed) == {own.meme}
    assert set(placed[own.meme]) == set(quads)
    assert from_quads(own.meme, placed[own.meme]) == own


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # rdflib's own
@pytest.mark.parametrize("form", FORMATS)
def test_another_library_reads_the_same_statements(
    form: GraphFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rdflib, "NORMALIZE_LITERALS", False)
    quads = [quad for one in (DUEL, UNTIDY) for quad in to_quads(one)]
    theirs = rdflib.Dataset()
    kind = {"jsonld": "json-ld"}.get(form, form)
    theirs.parse(data=serialize(quads, form), format=kind)
    found = {tuple(map(str, quad[:3])) for quad in theirs.quads()}
    ours = {(q.subject.value, q.predicate.value, q.object.value) for q in quads}  # type: ignore[union-attr]
    assert found == ours
    if form != "turtle":
        graphs = {str(quad[3]) for quad in theirs.quads()}
        assert graphs == {graph_iri("7"), graph_iri("8")}


def test_plain_json_reads_as_people_expect() -> None:
    text = serialize(to_quads(DUEL), "jsonld").decode()
    assert '"hasParticipant": "meme:7#VisualMaterial/knight"' in text
    assert '"toxicityKind": "urn:memantics:ontology#Abusive"' in text
    assert text.index('"Meme"') < text.index('"tired knight"') < text.index('"a duel"')


@given(names, names)
def test_names_never_meet_in_an_iri(one: str, other: str) -> None:
    assert unescape(escape(one)) == one
    assert (escape(one) == escape(other)) == (one == other)
    assert meme_of(thing_iri(one, f"Scene/{other}")) == one
    assert read_thing(thing_iri(one, f"Scene/{other}")) == f"Scene/{other}"
    assert not set('<>"{}|^`\\ \n\t') & set(thing_iri(one, other))


def test_classes_scope_names() -> None:
    again = from_quads("8", to_quads(UNTIDY))
    assert again == UNTIDY
    assert {
        individual.label for individual in again.individuals if individual.name == "knight"
    } == {"knight", "knights"}


def test_half_characters_become_a_mark() -> None:
    own = Knowledge("1", (Individual("Scene", "duel", "cut \ud83d"),))
    assert from_quads("1", to_quads(own)).individuals[0].label == "cut \ufffd"


def test_two_of_one_name_are_refused_until_told_apart() -> None:
    twice = (DUEL.individuals[2], dataclasses.replace(DUEL.individuals[2], label="another"))
    with pytest.raises(DataError, match="have the same name"):
        list(to_quads(Knowledge("1", twice)))
    told = tell_apart(twice)
    assert [one.name for one in told] == ["duel", "duel_2"]
    assert len(from_quads("1", to_quads(Knowledge("1", told))).individuals) == 2


def test_what_dangles_is_listed_with_its_end() -> None:
    found = {(one.source, one.relation, one.target, one.end) for one in UNTIDY.dangling()}
    assert found == {
        ("Emotion/fear", "hasExpressor", "the squire", "target"),
        ("the squire", "hasExpressor", "VisualMaterial/knight", "source"),
    }
    assert not list(DUEL.dangling())


@pytest.mark.parametrize("form", FORMATS)
def test_broken_files_are_told_in_one_line(form: GraphFormat) -> None:
    with pytest.raises(DataError) as caught:
        list(parse(b'{"@context": <urn:x> a ', form, "broken"))
    assert "broken: not valid" in str(caught.value)
    assert "\n" not in str(caught.value)
