"""Croissant: what the data set's files hold, as JSON-LD that search engines and loaders read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from memantics.build.publish.bundle import CardFacts
from memantics.build.publish.tables import TableFile
from memantics.core.data import read_json

_TYPES = {
    "text": "sc:Text",
    "integer": "sc:Integer",
    "number": "sc:Float",
    "boolean": "sc:Boolean",
    "image": "sc:ImageObject",
}
CONTEXT = Path(__file__).with_name("croissant_context.json")


def describe_dataset(
    facts: CardFacts, files: Sequence[TableFile], root: Path, published: str
) -> dict[str, JsonValue]:
    """The Croissant description of a bundle; ``published`` is an ISO date."""
    return {
        "@context": read_json(CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": facts.name,
        "description": f"{facts.summary} {facts.warning}".strip(),
        "license": facts.licence,
        "url": f"https://example.org/{facts.name}",
        "version": facts.version,
        "datePublished": published,
        "inLanguage": list(facts.languages),
        "citeAs": facts.citation or f"{facts.title}, version {facts.version}",
        "distribution": [_file(file, root) for file in files],
        "recordSet": [_records(file) for file in files],
    }


def _file(file: TableFile, root: Path) -> JsonValue:
    return {
        "@type": "cr:FileObject",
        "@id": f"{file.name}-file",
        "name": f"{file.name}-file",
        "contentUrl": file.path.relative_to(root).as_posix(),
        "contentSize": f"{file.size} B",
        "encodingFormat": "application/x-parquet",
        "sha256": file.sha256,
    }


def _records(file: TableFile) -> JsonValue:
    return {
        "@type": "cr:RecordSet",
        "@id": file.name,
        "name": file.name,
        # Nested columns stand in the Parquet files; Croissant 1.0 readers take flat ones.
        "field": [_field(file, *column) for column in file.columns if column[1] != "struct"],
    }


def _field(file: TableFile, name: str, kind: str) -> JsonValue:
    extract: dict[str, JsonValue] = {"column": name}
    source: dict[str, JsonValue] = {"fileObject": {"@id": f"{file.name}-file"}, "extract": extract}
    if kind == "image":
        source["transform"] = {"jsonPath": "bytes"}
    field: dict[str, JsonValue] = {
        "@type": "cr:Field",
        "@id": f"{file.name}/{name}",
        "name": f"{file.name}/{name}",
        "dataType": _TYPES.get(kind, "sc:Text"),
        "source": source,
    }
    if kind == "list":
        field["repeated"] = True
    return field
