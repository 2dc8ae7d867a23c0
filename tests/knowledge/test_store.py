"""The store: the same in memory and in a folder, one graph per meme, the ontology once."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from memantics.core.errors import DataError, StoreError, UnknownName
from memantics.understanding.knowledge.formats import GraphFormat, parse, serialize
from memantics.understanding.knowledge.graph import node, to_quads
from memantics.understanding.knowledge.records import ONTOLOGY
from memantics.understanding.knowledge.sources import import_path
from memantics.understanding.knowledge.store import GRAPHS, MARKER, GraphStore, read_ontology
from tests.knowledge.samples import DUEL, UNTIDY


def fill(folder: Path) -> Path:
    GraphStore.create(folder).add([DUEL, UNTIDY])
    return folder


def test_what_was_put_in_is_there_after_reopening(tmp_path: Path) -> None:
    store = GraphStore.open(fill(tmp_path / "kb"))
    assert store.ids() == ("7", "8")
    assert list(store.all()) == [DUEL, UNTIDY]
    memory = GraphStore.in_memory()
    memory.add([UNTIDY, DUEL])
    assert {q for q in memory.graphs if q.graph_name != node(ONTOLOGY)} == {
        q for q in store.graphs if q.graph_name != node(ONTOLOGY)
    }


def test_the_ontology_lies_in_the_store_once(tmp_path: Path) -> None:
    folder = fill(tmp_path / "kb")
    before = len(GraphStore.open(folder).graphs)
    GraphStore.create(folder)
    store = GraphStore.open(folder)
    assert len(store.graphs) == before
    graphs = [graph for graph in store.graphs.named_graphs() if graph == node(ONTOLOGY)]
    assert len(graphs) == 1


def test_new_knowledge_about_a_meme_replaces_the_old() -> None:
    store = GraphStore.in_memory()
    store.add([DUEL, UNTIDY])
    less = dataclasses.replace(DUEL, individuals=DUEL.individuals[:2])
    store.add([less])
    assert store.get("7") == less
    assert store.get("8") == UNTIDY
    store.add_quads(to_quads(DUEL))
    assert store.get("7") == DUEL


def test_a_bad_record_leaves_the_store_as_it_was() -> None:
    store = GraphStore.in_memory()
    store.add([DUEL])
    double = dataclasses.replace(DUEL, individuals=DUEL.individuals * 2)
    with pytest.raises(DataError):
        store.add([double])
    assert store.get("7") == DUEL


def test_an_unknown_meme_is_named_with_the_nearest() -> None:
    store = GraphStore.in_memory()
    store.add([dataclasses.replace(DUEL, meme="duel-1"), UNTIDY])
    with pytest.raises(UnknownName, match="did you mean duel-1"):
        store.get("duel_1")


def test_many_memes_are_counted_not_listed() -> None:
    store = GraphStore.in_memory()
    store.add([dataclasses.replace(DUEL, meme=f"m{number:03}") for number in range(60)])
    with pytest.raises(DataError, match="not among the 60 memes") as caught:
        store.get("x")
    assert len(str(caught.value)) < 200


def test_a_missing_store_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no knowledge store"):
        GraphStore.open(tmp_path)


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    with pytest.raises(StoreError, match="not a knowledge store"):
        GraphStore.create(folder)
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]


def test_a_store_that_is_being_written_refuses_a_second_writer(tmp_path: Path) -> None:
    folder = fill(tmp_path / "kb")
    writer = GraphStore.create(folder)
    with pytest.raises(StoreError, match="in use"):
        GraphStore.create(folder)
    assert GraphStore.open(folder).ids() == writer.ids()


@pytest.mark.parametrize("marker", ["{", "[]", '{"format": 99}', "{}"])
def test_a_marker_of_another_kind_is_refused(tmp_path: Path, marker: str) -> None:
    folder = fill(tmp_path / "kb")
    (folder / MARKER).write_text(marker)
    with pytest.raises(StoreError):
        GraphStore.open(folder)


def test_a_broken_store_is_told_in_one_line(tmp_path: Path) -> None:
    folder = fill(tmp_path / "kb")
    for path in (folder / GRAPHS).iterdir():
        if path.name.startswith(("CURRENT", "MANIFEST")):
            path.write_bytes(b"\0" * 10)
    with pytest.raises(StoreError) as caught:
        GraphStore.open(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["all.nq", "all.trig", "all.ttl", "all.jsonld"])
def test_exported_files_import_again(tmp_path: Path, name: str) -> None:
    form = {"nq": "nquads", "trig": "trig", "ttl": "turtle", "jsonld": "jsonld"}
    quads = [quad for one in (DUEL, UNTIDY) for quad in to_quads(one)]
    (tmp_path / name).write_bytes(serialize(quads, form[name.partition(".")[2]]))  # type: ignore[arg-type]
    store = GraphStore.in_memory()
    account = import_path(store, tmp_path)
    assert list(store.all()) == [DUEL, UNTIDY]
    assert account.memes == 2
    assert account.individuals.total() == 7
    assert len(account.dangling) == 2


@pytest.mark.parametrize("form", ["nquads", "trig", "turtle", "jsonld"])
def test_nodes_without_a_name_go_along(form: GraphFormat) -> None:
    """Ours has none; what other tools add to a meme's graph may."""
    meme = "urn:memantics:meme:7"
    chain = f"<{meme}> <urn:a> _:b0 <{meme}> .\n_:b0 <urn:b> _:b1 <{meme}> .\n"
    chain += f'_:b1 <urn:c> "end" <{meme}> .\n'
    store = GraphStore.in_memory()
    store.add_quads([*to_quads(DUEL), *parse(chain.encode(), "nquads", "x")])
    again = GraphStore.in_memory()
    again.add_quads(parse(serialize(store.quads("7"), form), form, "x"))
    assert len(list(again.quads("7"))) == len(list(store.quads("7")))
    end = again.query(f"SELECT ?end {{ <{meme}> <urn:a>/<urn:b>/<urn:c> ?end }}")
    assert end.rows == (("end",),)


def test_the_last_word_on_a_meme_counts() -> None:
    store = GraphStore.in_memory()
    later = dataclasses.replace(UNTIDY, meme="7")
    assert store.add([DUEL, later]) == 1
    assert store.get("7") == later


def test_files_about_no_meme_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.ttl").write_text("<urn:a> <urn:b> <urn:c> .")
    with pytest.raises(DataError, match="contains no statement about a meme"):
        import_path(GraphStore.in_memory(), tmp_path)
    with pytest.raises(DataError, match="no such file"):
        import_path(GraphStore.in_memory(), tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="contains no knowledge files"):
        import_path(GraphStore.in_memory(), tmp_path / "empty")


def test_a_copy_of_the_ontology_in_a_file_stays_out_of_the_memes(tmp_path: Path) -> None:
    text = read_ontology() + serialize(to_quads(DUEL), "turtle")
    (tmp_path / "both.ttl").write_bytes(text)
    store, alone = GraphStore.in_memory(), GraphStore.in_memory()
    import_path(store, tmp_path / "both.ttl")
    alone.add([DUEL])
    assert set(store.quads("7")) == set(alone.quads("7"))


def test_no_context_is_fetched(tmp_path: Path) -> None:
    (tmp_path / "far.jsonld").write_text('{"@context": "http://127.0.0.1:1/x", "@id": "urn:a"}')
    with pytest.raises(DataError, match="not valid jsonld"):
        import_path(GraphStore.in_memory(), tmp_path / "far.jsonld")
