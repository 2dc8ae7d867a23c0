"""The M-QUEST reader on the part of the official release beside the checkout."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from memantics.benchmarks.mquest.knowledge import EXTRA_DIMENSIONS
from memantics.benchmarks.mquest.load import SHIPPED, MquestRelease, open_release
from memantics.benchmarks.mquest.statistics import findings, narrow, statistics, survey
from memantics.core.data import Source
from memantics.core.meaning import DIMENSIONS
from tests.places import SHARED_DATA, needs_shared_data

pytestmark = needs_shared_data
ROOT = SHARED_DATA / "mquest"


@cache
def release() -> MquestRelease:
    return open_release(Source("release", ROOT))


@cache
def numbers() -> dict[str, JsonValue]:
    return statistics(release())


@cache
def pairs() -> list[dict[str, Any]]:
    return [
        json.loads(path.read_bytes()) | {"stem": path.stem}
        for path in sorted((ROOT / "qa").rglob("*.jsonld"))
    ]


def is_none(text: str) -> bool:
    return re.fullmatch(r"\s*none of the others\s*\.?\s*", text, re.IGNORECASE) is not None


@pytest.mark.slow
def test_survey_has_nothing_to_explain_but_the_known() -> None:
    found = survey(release())
    memes = {path.name for path in (ROOT / "qa").iterdir()}
    assert found.records == len(pairs())
    assert found.counts["memes"] == len(memes) == 200
    assert [skip.row[:21] for skip in found.skips] == ["03186_TextualMaterial"]
    assert found.counts["questions with related individuals"] == sum(
        bool(own["relatedInstances"]) for own in pairs()
    )


@pytest.mark.slow
def test_question_metrics() -> None:
    got = numbers()
    keys = Counter(
        [option["is_correct"] for option in own["answers"]].index(True) for own in pairs()
    )
    assert [got[f"key.position.{place}"] for place in range(4)] == [keys[p] for p in range(4)]
    for place in range(4):
        parts = [got[f"key.position.{name}.{place}"] for name in (*DIMENSIONS, *EXTRA_DIMENSIONS)]
        assert sum(part for part in parts if isinstance(part, int)) == keys[place]
        nones = [own for own in pairs() if is_none(own["answers"][place]["text"])]
        assert got[f"none.position.{place}"] == len(nones)
    real = [o["text"] for own in pairs() for o in own["answers"] if not is_none(o["text"])]
    assert got["options.words.counted"] == len(real)
    assert got["options.words.outside"] == sum(len(t.split()) not in range(2, 9) for t in real)
    alias = {"ToxicityAssessment": "Toxicity"}
    dimensions = Counter(alias.get(own["dimension"], own["dimension"]) for own in pairs())
    assert all(got[f"questions.dimension.{name}"] == n for name, n in dimensions.items())
    assert len(dimensions) == 13
    grounded = sum(bool(own["relatedInstances"]) for own in pairs())
    assert got["grounded.total"] == grounded
    ten = sum(dimensions[name] for name in DIMENSIONS)
    assert got["grounded.ten_percent"] == pytest.approx(100 * grounded / ten, abs=0.05)


def test_an_audit_of_a_split_is_about_that_split() -> None:
    whole = {own.key: own.score for own in findings(release())}
    cut = narrow(release(), "toxmquest350")
    part = {own.key: own.score for own in findings(cut)}
    chosen = [own for own in pairs() if own["stem"] in release().selection]
    bare = sum(not own["relatedInstances"] for own in chosen)
    assert whole["mquest.ungrounded"].n == len(pairs())
    assert part["mquest.ungrounded"].n == len(chosen) == len(cut.files)
    assert part["mquest.ungrounded"].value == pytest.approx(bare / len(chosen))


def test_materialised_triples_and_their_dangling_ends() -> None:
    """Counted by hand in the text of the graphs, which name each relation once per triple."""
    got = numbers()
    total = 0
    for name in ("AnalogicalMapping", "Emotion", "Scene", "Toxicity"):
        triples, dangling = (got[f"materialised.{name}.{k}"] for k in ("triples", "dangling"))
        assert isinstance(triples, int)
        assert isinstance(dangling, int)
        assert 0 <= dangling <= triples
        total += triples
    assert total > 0


def test_longest_key_share() -> None:
    hits = total = 0
    for own in pairs():
        lengths = {o["is_correct"]: 0 for o in own["answers"]}
        for option in own["answers"]:
            if not is_none(option["text"]):
                right = option["is_correct"]
                lengths[right] = max(lengths[right], len(option["text"]))
        hits += lengths[True] > lengths[False]
        total += 1
    assert numbers()["key.longest_percent"] == pytest.approx(100 * hits / total, abs=0.05)


def test_selected_questions_exist_here() -> None:
    lines = SHIPPED.read_text().splitlines()
    listed = {line for line in lines if line and not line.startswith("#")}
    memes = {own["stem"][:5] for own in pairs()}
    here = {stem for stem in listed if stem[:5] in memes}
    found = [q.id for q in release().questions("toxmquest350")]
    assert set(found) == here == {own["stem"] for own in pairs() if own["stem"] in listed}
    assert numbers()["toxmquest350.total"] == len(found) == len(here)


def test_raw_metrics() -> None:
    counts: Counter[str] = Counter()
    labels: Counter[str] = Counter()
    for path in (ROOT / "kb").glob("*.json"):
        for own in json.loads(path.read_bytes())["dimensions"]:
            counts[own["class_name"]] += 1
            labels[own["label"]] += own["class_name"] == "ToxicityAssessment"
    alias = {"ToxicityAssessment": "Toxicity", "EmotionExpression": "Emotion"}
    for name, count in counts.items():
        assert numbers()[f"individuals.raw.{alias.get(name, name)}"] == count
    assert numbers()["individuals.raw.total"] == counts.total()
    assert numbers()["toxicity_labels.Harmful"] == labels["Harmful"]
    assert numbers()["toxicity_labels.distinct"] == sum(count > 0 for count in labels.values())


def test_refined_graphs_agree_with_rdflib() -> None:
    import rdflib

    paths = release().refined
    chosen = paths[:3] + paths[-3:]
    alias = {"ToxicityAssessment": "Toxicity", "EmotionExpression": "Emotion"}
    for path in chosen:
        graph = rdflib.Graph().parse(path, format="turtle")
        want = Counter(
            alias.get(name, name)
            for _, _, kind in graph.triples((None, rdflib.RDF.type, None))
            if (name := str(kind).rpartition("#")[2]) in {*DIMENSIONS, *alias}
        )
        meme = path.name[:5]
        got = Counter(
            i.dimension
            for i in MquestRelease(
                release().source, None, (), (), (path,), None, frozenset(), None
            ).individuals("refined")
        )
        assert got == want, meme
    prefixes = Counter(
        re.search(r"@prefix : <(.*?)>", path.read_text(encoding="utf-8"))[1]  # type: ignore[index]
        for path in paths
    )
    assert {"example.org" in name: count for name, count in prefixes.items()} == {
        True: numbers()["namespaces.example"],
        False: numbers()["namespaces.general"],
    }


def test_refined_counts_are_distinct_names_per_class() -> None:
    names = set()
    for path in (ROOT / "kb").glob("*.json"):
        for own in json.loads(path.read_bytes())["dimensions"]:
            names.add((path.name[:5], own["class_name"], own["instance_name"]))
    assert numbers()["individuals.refined.total"] == len(names)


def test_official_ontology() -> None:
    got = numbers()
    assert [got[f"ontology.{k}"] for k in ("triples", "classes", "object_properties")] == [
        902,
        98,
        56,
    ]


def test_official_output_is_counted_as_its_files_have_it(tmp_path: Path) -> None:
    """The part at hand lacks the files: three triples beside a graph, two of them undeclared."""
    folder = SHARED_DATA / "mquest" / "kb"
    graph = sorted(folder.glob("*_refined_ontology.ttl"))[0]
    meme = graph.name.partition("_")[0]
    for path in folder.glob(f"{meme}_*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    release = open_release(Source("release", tmp_path))
    assert statistics(release)["materialised.Scene.official"] is None
    name = next(one.name for one in release.individuals("refined"))
    triples = [f":{name} :hasParticipant :{name} .", f":{name} :near :nobody .", ":x :near :y ."]
    output = tmp_path / f"{graph.stem}_SceneRelationsMaterialiser_output.json"
    output.write_text(json.dumps({"triples": triples}), encoding="utf-8")
    found = statistics(release)
    assert found["materialised.Scene.official"] == 3
    assert found["materialised.Scene.undeclared"] == 2
    assert found["materialised.Emotion.official"] == 0
