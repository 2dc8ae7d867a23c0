"""Questions in SPARQL: answers, limits, and refusals in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.core.errors import InputError
from memantics.understanding.knowledge.querying import shorten
from memantics.understanding.knowledge.store import GraphStore
from memantics.understanding.knowledge.validation import list_dangling, measure
from tests.knowledge.samples import DUEL, UNTIDY

STORE = GraphStore.in_memory()
STORE.add([DUEL, UNTIDY])


def test_three_patterns_over_all_graphs() -> None:
    found = STORE.query(
        "SELECT ?meme ?text { ?one a mm:Toxicity ; mm:inMeme/mm:id ?meme ; "
        "mm:hasToxicElement/dcterms:description ?text }",
    )
    assert found.variables == ("meme", "text")
    assert found.rows == (("7", "Me on Monday"),)
    assert not found.cut


def test_graphs_can_be_named() -> None:
    found = STORE.query("SELECT DISTINCT ?g { GRAPH ?g { ?one a mm:VisualMaterial } } ORDER BY ?g")
    assert [row[0] for row in found.rows] == ["urn:memantics:meme:7", "urn:memantics:meme:8"]


def test_more_rows_than_the_limit_are_cut() -> None:
    found = STORE.query("SELECT ?s { ?s ?p ?o }", limit=3)
    assert len(found.rows) == 3
    assert found.cut


def test_other_kinds_of_queries_are_tables_too() -> None:
    assert STORE.query("ASK { ?s a mm:Toxicity }").rows == (("true",),)
    made = STORE.query("CONSTRUCT { ?s a mm:Thing } WHERE { ?s a mm:Toxicity }")
    assert made.variables == ("subject", "predicate", "object")
    assert len(made.rows) == 1
    unbound = STORE.query("SELECT ?s ?none { ?s a mm:Toxicity OPTIONAL { ?s mm:none ?none } }")
    assert unbound.rows[0][1] is None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?s { ?s ?p",
        "",
        "DELETE WHERE { ?s ?p ?o }",
        "SELECT ?s { ?s nope:p ?o }",
        "DROP ALL",
    ],
)
def test_bad_queries_are_told_in_one_short_line(query: str) -> None:
    with pytest.raises(InputError) as caught:
        STORE.query(query)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 330
    assert len(STORE.ids()) == 2


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }",
        "SELECT * { service silent <http://127.0.0.1:1/> { ?s ?p ?o } }",
        "SELECT * { BIND('it''s' AS ?x) } #\n SELECT * {SERVICE ?x { ?s ?p ?o } }",
        "SELECT * { ?x ?y 'a\\'' . SERVICE<http://127.0.0.1:1/>{ ?s ?p ?o } }",
        "PREFIX x: <urn:x:> SELECT * { ?x x:a\\#b ?y SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }",
        "PREFIX x: <urn:x:> SELECT * { ?x x:a\\'b ?y SERVICE ?y { ?s ?p ?o } ?y x:c 'd' }",
    ],
)
def test_no_query_leaves_the_machine(query: str) -> None:
    with pytest.raises(InputError, match=r"another machine|remote SERVICE"):
        STORE.query(query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?service { ?service rdfs:label 'SERVICE' }",
        "SELECT ?s { ?s <urn:service> ?o } # SERVICE",
        "PREFIX service: <urn:x:> SELECT ?s { ?s service:of ?o }",
        "SELECT ?s { ?s mm:service ?o }",
    ],
)
def test_the_word_service_is_no_crime(query: str) -> None:
    assert STORE.query(query).rows == ()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kb") / "store"
    GraphStore.create(path).add([DUEL, UNTIDY])
    return path


def test_a_folder_answers_like_memory(folder: Path) -> None:
    query = "SELECT ?label { ?one rdfs:label ?label ; mm:inMeme ?meme } ORDER BY ?label"
    assert GraphStore.open(folder).query(query) == STORE.query(query)


def test_errors_cross_the_process_as_one_line(folder: Path) -> None:
    with pytest.raises(InputError, match="not valid SPARQL"):
        GraphStore.open(folder).query("SELECT")


@pytest.mark.slow
def test_a_query_without_end_is_stopped(folder: Path) -> None:
    endless = (
        "SELECT (COUNT(*) AS ?n) { " + " ".join(f"?a{i} ?b{i} ?c{i} ." for i in range(7)) + "}"
    )
    with pytest.raises(InputError, match="more than 2 seconds"):
        GraphStore.open(folder).query(endless, timeout=2)


def test_metrics_are_those_of_the_records() -> None:
    found = measure(STORE)
    assert found.memes == 2
    assert found.individuals == len(DUEL.individuals) + len(UNTIDY.individuals)
    assert found.dimensions["VisualMaterial"].individuals == 2
    assert found.dimensions["Toxicity"].memes == 1
    assert found.relations["hasParticipant"] == 2
    assert found.said == {"looks at": 1}
    assert found.kinds["Abusive"] == 1
    assert found.confirmed == 6
    assert list(list_dangling(STORE)) == sorted(
        UNTIDY.dangling(), key=lambda one: (one.source, one.relation, one.target)
    )


def test_short_forms_are_for_people() -> None:
    assert shorten("urn:memantics:meme:7") == "7"
    assert shorten("urn:memantics:meme:7#thing/the%20squire") == "7 the squire"
    assert shorten("urn:memantics:said#looks%20at") == "said:looks%20at"
    assert shorten("plain words") == "plain words"
