"""Official knowledge bases come in without loss; the counts here are made without our reader."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from memantics.core.errors import DataError
from memantics.core.meaning import DIMENSIONS
from memantics.understanding.knowledge.official import Account, OfficialFiles, adopt, find_official
from memantics.understanding.knowledge.records import Knowledge
from memantics.understanding.knowledge.store import GraphStore
from memantics.understanding.knowledge.validation import list_dangling, measure
from tests.knowledge.samples import (
    BLOCKS,
    GENERAL,
    TAXONOMY,
    write_raw,
    write_refined,
)
from tests.places import SHARED_DATA

KB = SHARED_DATA / "mquest" / "kb"
needs_bases = pytest.mark.skipif(
    not KB.is_dir(), reason="the official knowledge bases are not beside the checkout"
)
SAME = {"EmotionExpression": "Emotion", "ToxicityAssessment": "Toxicity"}


def read_one(files: OfficialFiles) -> tuple[Knowledge, Account]:
    account = Account()
    return next(adopt([files], account)), account


@pytest.mark.parametrize("namespace", [TAXONOMY, GENERAL])
def test_both_namespaces_give_the_same_knowledge(tmp_path: Path, namespace: str) -> None:
    refined = write_refined(tmp_path, "00042", namespace)
    own, account = read_one(OfficialFiles("00042", refined=refined))
    kinds = Counter(SAME.get(kind, kind) for _, kind, _, _ in BLOCKS)
    assert account.individuals == kinds
    assert {(one.label, one.description) for one in own.individuals} == {
        (label, comment) for _, _, label, comment in BLOCKS
    }
    assert own.image == "00042.png"
    assert own.warning


def test_one_name_in_two_classes_stays_two_individuals(tmp_path: Path) -> None:
    own, _ = read_one(OfficialFiles("1", refined=write_refined(tmp_path, "1", GENERAL)))
    assert own.by_key["VisualMaterial/knight"].label == "tired knight"
    assert own.by_key["TargetCommunity/knight"].label == "knights"
    assert own.by_key["BackgroundKnowledge/monday_2"].description == "Said again in other words"


def test_statements_find_their_ends_or_are_listed(tmp_path: Path) -> None:
    files = OfficialFiles("1", write_raw(tmp_path, "1"), write_refined(tmp_path, "1", TAXONOMY))
    own, account = read_one(files)
    said = {
        (one.name, link.relation, link.target) for one in own.individuals for link in one.relations
    }
    assert said == {
        ("monday", "about", "TextualMaterial/caption"),
        ("monday_2", "about", "weekend"),
        ("knight", "holds", "sword"),
        ("tox_1", "hasToxicElement", "TextualMaterial/caption"),
        ("fear", "hasExpressor", "VisualMaterial/knight"),
    }
    assert [(one.source, one.target) for one in own.loose] == [("nobody", "VisualMaterial/knight")]
    assert {(one.source, one.target, one.end) for one in account.dangling} == {
        ("BackgroundKnowledge/monday_2", "weekend", "target"),
        ("VisualMaterial/knight", "sword", "target"),
        ("nobody", "VisualMaterial/knight", "source"),
    }
    assert {repair.written for repair in account.repaired} == {
        "tox_1 hasToxicElement caption_the_caption_Me_on_Monday",
        "deep_fear hasExpressor knight",
    }
    assert own.by_key["Toxicity/tox_1"].kind == "Misogynous"
    assert not account.differing
    assert account.renamed == 1
    refined_link = own.by_key["Emotion/fear"].relations[0]
    assert refined_link.provenance is not None
    assert refined_link.provenance.source == "1_refined_ontology.ttl"


def test_files_that_differ_are_told(tmp_path: Path) -> None:
    raw = write_raw(tmp_path, "1")
    blocks = (*BLOCKS[:-1], ("tox_1", "ToxicityAssessment", "Hateful", "Because"))
    _, account = read_one(OfficialFiles("1", raw, write_refined(tmp_path, "1", GENERAL, blocks)))
    assert len(account.differing) == 2
    assert "raw" in account.differing[0]
    assert "refined" in account.differing[1]


def test_a_file_without_individuals_is_an_error(tmp_path: Path) -> None:
    refined = write_refined(tmp_path, "1", GENERAL, ())
    with pytest.raises(DataError, match="no individual"):
        read_one(OfficialFiles("1", refined=refined))


def test_unknown_classes_and_broken_files_are_errors(tmp_path: Path) -> None:
    raw = write_raw(tmp_path, "1")
    raw.write_text(raw.read_text().replace('"Scene"', '"Weather"'))
    with pytest.raises(DataError, match="row 4: unknown dimension 'Weather'"):
        read_one(OfficialFiles("1", raw))
    refined = write_refined(tmp_path, "1", GENERAL)
    refined.write_text(refined.read_text() + "\n:x a [ .")
    with pytest.raises(DataError, match="not valid Turtle") as caught:
        read_one(OfficialFiles("1", refined=refined))
    assert "\n" not in str(caught.value)


def long_ontology(tail: str) -> str:
    classes = "".join(f":C{number} rdf:type owl:Class .\n\n" for number in range(300))
    return f"@prefix : <{GENERAL}> .\n{PREFIXES}\n{classes}{tail}"


PREFIXES = """@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."""
TAILS = (
    ':a rdf:type :Scene ; rdfs:label "one"@en .\n\n:a :holds :b .\n',
    ':a rdf:type :Scene ; rdfs:label "one"@en .\n\n:a :holds :c .\n\n:C1 :holds :a .\n',
    ':a rdf:type :Emotion ; rdfs:label """o\n .\n\nne"""@en .\n',
    ':a rdf:type :Emotion ; rdfs:label """o\n .\n\nother"""@en .\n',
    ":C1 rdf:type :Scene .\n",
)


def test_a_shared_beginning_is_read_once_with_the_same_result(tmp_path: Path) -> None:
    files = []
    for number, tail in enumerate(TAILS):
        path = tmp_path / f"{number}_refined_ontology.ttl"
        path.write_text(long_ontology(tail), encoding="utf-8")
        files.append(OfficialFiles(str(number), refined=path))
    together, apart = Account(), [read_one(file) for file in files]
    assert list(adopt(files, together)) == [one for one, _ in apart]
    assert together.copied == sum(account.copied for _, account in apart)
    assert together.said.total() == 3


@needs_bases
def test_official_files_read_the_same_together_and_apart() -> None:
    files = find_official(KB)[::17]
    together, apart = Account(), [read_one(file) for file in files]
    assert list(adopt(files, together)) == [one for one, _ in apart]
    assert together.copied == sum(account.copied for _, account in apart)


@pytest.fixture(scope="module")
def imported() -> tuple[GraphStore, Account, dict[str, Knowledge]]:
    if not KB.is_dir():
        pytest.skip("the official knowledge bases are not beside the checkout")
    store, account = GraphStore.in_memory(), Account()
    made = {one.meme: one for one in adopt(find_official(KB.parent), account)}
    store.add(made.values())
    return store, account, made


Imported = tuple[GraphStore, Account, dict[str, Knowledge]]


def raw_files() -> list[tuple[str, list[dict[str, str]]]]:
    return [
        (path.name.partition("_")[0], json.loads(path.read_bytes())["dimensions"])
        for path in sorted(KB.glob("*_raw.json"))
    ]


@pytest.mark.slow
@needs_bases
def test_individuals_per_class_are_those_of_the_raw_files(imported: Imported) -> None:
    store, _, made = imported
    total: Counter[str] = Counter()
    for meme, entries in raw_files():
        classes = Counter(SAME.get(one["class_name"], one["class_name"]) for one in entries)
        assert Counter(individual.dimension for individual in made[meme].individuals) == classes
        total += classes
    found = measure(store)
    assert {name: each.individuals for name, each in found.dimensions.items()} == {
        name: total[name] for name in DIMENSIONS
    }
    assert found.memes == len(raw_files()) == 200


@needs_bases
def test_every_text_of_the_raw_files_is_in_the_store(imported: Imported) -> None:
    store, account, _ = imported
    assert not account.differing
    for meme, entries in raw_files():
        ours = Counter(
            (individual.label, individual.description) for individual in store.get(meme).individuals
        )
        assert ours == Counter((one["label"], one["description"]) for one in entries)


@needs_bases
def test_records_come_back_from_the_store_unchanged(imported: Imported) -> None:
    store, _, made = imported
    assert all(store.get(meme) == one for meme, one in made.items())


@needs_bases
def test_every_statement_of_the_refined_files_is_kept() -> None:
    # Statements between things stand alone on a line, subject, predicate and object.
    line = re.compile(r"^:(\S+) :(\S+) :(\S+) \.$", re.MULTILINE)
    written = 0
    for path in KB.glob("*_refined_ontology.ttl"):
        written += len(line.findall(path.read_text(encoding="utf-8")))
    account = Account()
    files = [OfficialFiles(one.meme, refined=one.refined) for one in find_official(KB)]
    for _ in adopt(files, account):
        pass
    kept = account.relations.total() + account.said.total()
    assert kept + account.repeated == written
    assert account.repeated < written / 50
    assert not account.unread


@needs_bases
def test_the_list_of_dangling_references_is_the_store_s(imported: Imported) -> None:
    store, account, _ = imported
    assert set(list_dangling(store)) == set(account.dangling)
    assert len(account.dangling) == measure(store).dangling > 0


@needs_bases
def test_both_official_namespaces_are_among_the_files() -> None:
    found = Counter(
        match.group(1)
        for path in KB.glob("*.ttl")
        if (match := re.search(r"@prefix : <([^>]*)>", path.read_text(encoding="utf-8")))
    )
    assert set(found) == {TAXONOMY, GENERAL}
