"""Writes a small made-up M-QUEST release for tests, in the official format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

OLD = "http://example.org/multimodal-taxonomy#"
NEW = "http://w3c.org/memes-ontology/general#"
OPTIONS = ("a cat asleep", "a dog awake", "a fish thinking", "None of the others")


def pair(meme: str, dimension: str, /, **changes: Any) -> dict[str, Any]:
    key = changes.pop("key", 0)
    options = changes.pop("options", OPTIONS)
    return {
        "@context": {},
        "@id": f"{OLD}qa_0",
        "@type": "QuestionAnswerPair",
        "question": f"What about {meme}?",
        "answers": [{"text": text, "is_correct": i == key} for i, text in enumerate(options)],
        "explanation": "because",
        "dimension": dimension,
        "relatedInstances": ["cat"],
        "generationTimestamp": "2025-12-24T06:40:34",
        "generationMethod": "by_hand",
        "sourceImage": {"@id": "x", "@type": "Image", "filename": f"{meme}.png", "path": "x"},
    } | changes


def write_pair(
    folder: Path,
    meme: str,
    dimension: str,
    /,
    *,
    code: str = "0000000a",
    flat: bool = False,
    **changes: Any,
) -> Path:
    place = folder / f"{meme}_qa" / ("." if flat else dimension)
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{meme}_{dimension}_qa_{code}.jsonld"
    path.write_text(json.dumps(pair(meme, dimension, **changes)), encoding="utf-8")
    path.with_suffix(".txt").write_text("for people", encoding="utf-8")
    return path


def individual(dimension: str, name: str, **extra: Any) -> dict[str, Any]:
    return {
        "class_name": dimension,
        "class_uri": dimension,
        "instance_name": name,
        "label": f"the {name}",
        "description": f"a {name} is seen",
        "extraction_method": "by_hand",
        "dimension_index": 1,
    } | extra


def write_raw(folder: Path, meme: str, individuals: list[dict[str, Any]], **changes: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{meme}_dimensions_reversed_raw.json"
    metadata = {
        "image_path": "x",
        "image_name": f"{meme}.png",
        "extraction_timestamp": "2025",
        "llm_provider": "none",
        "dimensions_processed": [],
        "total_dimensions_found": len(individuals),
        "pipeline_type": "reversed",
    }
    value = {"dimensions": individuals, "metadata": metadata, "success": True} | changes
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_refined(folder: Path, meme: str, namespace: str, body: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{meme}_refined_ontology.ttl"
    prefixes = (
        f"@prefix : <{namespace}> .\n"
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
        "@prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
        ':Scene a owl:Class ; rdfs:label "Scene"@en .\n'
    )
    path.write_text(prefixes + body, encoding="utf-8")
    return path


CAT_GRAPH = (
    ':cat a :VisualMaterial ; rdfs:label "cat"@en ; rdfs:comment "a cat"@en .\n'
    ':cat :extractedFrom "x" .\n'
    ':cat a :TargetCommunity ; rdfs:label "cat people"@en .\n'
    ':joy a :EmotionExpression ; rdfs:label "joy"@en .\n'
    ":joy :hasExpressor :cat .\n"
)


def write_release(root: Path, folders: Mapping[str, str] | None = None) -> Path:
    """Two memes, three questions, two knowledge bases in different namespaces."""
    names = {"qa": "qa", "kb": "kb", "images": "images"} | dict(folders or {})
    qa, kb, images = (root / names[part] for part in ("qa", "kb", "images"))
    write_pair(qa, "00001", "ToxicityAssessment", key=1)
    write_pair(qa, "00001", "ColorComposition", relatedInstances=[])
    write_pair(qa, "cat_2-b", "Emotion", key=3)
    for meme, namespace in (("00001", OLD), ("cat_2-b", NEW)):
        relations = [{"from": "cat", "relation": "sleeps on", "to": "sofa"}]
        write_raw(
            kb,
            meme,
            [
                individual("EmotionExpression", "joy"),
                individual("Scene", "living_room", directRelations=relations),
                individual(
                    "BackgroundKnowledge",
                    "naps",
                    relatedTo=[{"entity": "cat", "relation": "relatedTo"}],
                ),
            ],
        )
        write_refined(kb, meme, namespace, CAT_GRAPH)
    images.mkdir(parents=True, exist_ok=True)
    (images / "00001.png").write_bytes(b"not looked at")
    return root
