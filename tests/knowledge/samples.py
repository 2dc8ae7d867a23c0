"""Small knowledge for tests, ours and in the form of official files."""

from __future__ import annotations

import json
from pathlib import Path

from memantics.understanding.knowledge.records import (
    Individual,
    Knowledge,
    Provenance,
    Relation,
    Statement,
)

MADE = Provenance("recorded/model", "0f" * 8, "2026-01-02T03:04:05.5Z", ("ann",), "notes.jsonl")
REFINED_PASS = Provenance("recorded/model", "aa" * 8, "2026-01-02T03:05:00Z")

DUEL = Knowledge(
    "7",
    (
        Individual("TextualMaterial", "caption", "caption", "Me on Monday", provenance=MADE),
        Individual("VisualMaterial", "knight", "tired knight", "In full armour", provenance=MADE),
        Individual(
            "Scene",
            "duel",
            "a duel",
            relations=(
                Relation("hasParticipant", "VisualMaterial/knight", REFINED_PASS),
                Relation("looks at", "VisualMaterial/knight"),
            ),
            provenance=MADE,
        ),
        Individual(
            "Toxicity",
            "insult",
            "insult",
            relations=(Relation("hasToxicElement", "TextualMaterial/caption"),),
            kind="Abusive",
            provenance=MADE,
        ),
    ),
    "7.png",
    "en",
    "tests",
)
UNTIDY = Knowledge(
    "8",
    (
        Individual("VisualMaterial", "knight", "knight", provenance=MADE),
        Individual("TargetCommunity", "knight", "knights", provenance=MADE),
        Individual(
            "Emotion",
            "fear",
            "fear",
            relations=(
                Relation("hasParticipant", "VisualMaterial/knight", written="Fear has knight"),
                Relation("hasExpressor", "the squire"),
            ),
        ),
    ),
    loose=(Statement("the squire", "hasExpressor", "VisualMaterial/knight", MADE),),
)

TAXONOMY = "http://example.org/multimodal-taxonomy#"
GENERAL = "http://w3c.org/memes-ontology/general#"
_HEAD = """@prefix : <{namespace}> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Scene rdf:type owl:Class ; rdfs:subClassOf :Dimension ; rdfs:label "Scene"@en ; :dimensionIndex 5 .
:holds rdf:type owl:ObjectProperty ;
    rdfs:domain [ rdf:type owl:Class ; owl:unionOf ( :Scene :Emotion ) ] .
"""
_BLOCK = """:{name} rdf:type :{kind} ; rdfs:label "{label}"@en ; rdfs:comment "{comment}"@en ;
    :extractionMethod "by_test" ; :extractedFrom "00042.png" ;
    :extractionTimestamp "2026-01-02T03:04:05.120000" .
"""
BLOCKS = (
    ("caption", "TextualMaterial", "the caption", "Me on Monday"),
    ("knight", "VisualMaterial", "tired knight", "In full armour"),
    ("knight", "TargetCommunity", "knights", "People in armour"),
    ("duel", "Scene", "a duel", "Two knights fight"),
    ("monday", "BackgroundKnowledge", "Monday", "A weekday"),
    ("monday", "BackgroundKnowledge", "Mondays", "Said again in other words"),
    ("fear", "EmotionExpression", "deep fear", "He is afraid"),
    ("tox_1", "ToxicityAssessment", "Mysogynous", "Because"),
)
STATEMENTS = (
    ("monday", "relatedTo", "caption"),
    ("monday", "relatedTo", "weekend"),
    ("knight", "holds", "sword"),
    ("tox_1", "hasToxicElement", "caption_the_caption_Me_on_Monday"),
    ("deep_fear", "hasExpressor", "knight"),
    ("nobody", "hasParticipant", "knight"),
)


def write_refined(
    folder: Path, meme: str, namespace: str, blocks: tuple[tuple[str, ...], ...] = BLOCKS
) -> Path:
    """A refined file as the release has them, in either namespace."""
    text = _HEAD.format(namespace=namespace)
    for name, kind, label, comment in blocks:
        shown = kind.removesuffix("Expression")
        text += _BLOCK.format(name=name, kind=shown, label=label, comment=comment)
    text += "".join(f":{a} :{b} :{c} .\n" for a, b, c in STATEMENTS)
    path = folder / f"{meme}_refined_ontology.ttl"
    path.write_text(text, encoding="utf-8")
    return path


def write_raw(folder: Path, meme: str) -> Path:
    """The raw file to it: it knows only what the first pass said."""
    own = []
    for place, (name, kind, label, comment) in enumerate(BLOCKS):
        entry: dict[str, object] = {
            "class_name": kind,
            "class_uri": TAXONOMY + kind,
            "instance_name": name,
            "label": label,
            "description": comment,
            "extraction_method": "by_test",
            "dimension_index": place,
        }
        if label == "Monday":
            entry["relatedTo"] = [{"entity": "caption", "relation": "relatedTo"}]
        if label == "Mondays":
            entry["relatedTo"] = [{"entity": "weekend", "relation": "relatedTo"}]
        if name == "duel":
            entry["directRelations"] = [{"from": "knight", "relation": "holds", "to": "sword"}]
        own.append(entry)
    metadata = {
        "image_path": "x",
        "image_name": "00042.png",
        "extraction_timestamp": "2026-01-02T03:04:05.120000",
        "llm_provider": "tests",
        "dimensions_processed": [],
        "total_dimensions_found": len(own),
        "pipeline_type": "reversed",
    }
    path = folder / f"{meme}_dimensions_reversed_raw.json"
    path.write_text(json.dumps({"dimensions": own, "metadata": metadata, "success": True}))
    return path
