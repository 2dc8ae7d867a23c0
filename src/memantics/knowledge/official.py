"""Reader of M-QUEST's knowledge bases: raw JSON and refined Turtle of either namespace.

Individuals come from the raw file, or from the refined one where that is all there is;
statements from both. Nothing is dropped: what our ontology has no word for keeps its own, what
leads nowhere is kept and listed, and the copy of the official ontology in every file is counted
and set aside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue

from memantics.core.data import conform, read_json
from memantics.core.errors import DataError
from memantics.knowledge.graph import shorten_time
from memantics.knowledge.ontology.vocabulary import Dimension, find_dimension
from memantics.knowledge.records import (
    Individual,
    Provenance,
)

if TYPE_CHECKING:
    from pyoxigraph import Quad

RAW = "_dimensions_reversed_raw.json"
REFINED = "_refined_ontology.ttl"
FOLDERS = ("output_reversed/hateful-memes-out", "hateful-memes-out", "kb", ".")
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_OWL = "http://www.w3.org/2002/07/owl#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_WORTH = 4_096


class Said(NamedTuple):
    """A statement in the words of its file, by local names."""

    source: str
    relation: str
    target: str


@dataclass(frozen=True, slots=True)
class OfficialFiles:
    """The files of one meme; one of the two may be missing."""

    meme: str
    raw: Path | None = None
    refined: Path | None = None


@dataclass(slots=True)
class Base:
    """One knowledge base as a file has it. ``own`` are statements by the place of their subject.

    ``copied`` counts statements of the ontology's copy, ``unread`` those of no known form.
    """

    individuals: list[Individual] = field(default_factory=list)
    own: dict[int, list[Said]] = field(default_factory=dict)
    said: list[Said] = field(default_factory=list)
    image: str = ""
    copied: int = 0
    unread: Counter[str] = field(default_factory=Counter)


def find_official(root: Path) -> tuple[OfficialFiles, ...]:
    """The knowledge bases below a folder, in any official layout, by meme."""
    for name in FOLDERS:
        found: dict[str, dict[str, Path]] = {}
        folder = root / name
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            for suffix in (RAW, REFINED):
                if path.name.endswith(suffix) and not path.name.startswith("."):
                    found.setdefault(path.name.removesuffix(suffix), {})[suffix] = path
        if found:
            return tuple(
                OfficialFiles(meme, own.get(RAW), own.get(REFINED))
                for meme, own in sorted(found.items())
            )
    return ()


def _as_text(value: object) -> object:
    # A language model wrote these values; what is not text is kept as its JSON.
    return value if isinstance(value, str) else orjson.dumps(value).decode()


_Written = Annotated[str, BeforeValidator(_as_text)]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _RawIndividual(_Closed):
    class_name: str
    class_uri: str
    instance_name: _Written
    label: _Written
    description: _Written
    extraction_method: _Written = ""
    dimension_index: JsonValue = None
    directRelations: JsonValue = None  # noqa: N815 - the release's spelling
    relatedTo: JsonValue = None  # noqa: N815


class _RawMetadata(_Closed):
    image_path: JsonValue = None
    image_name: str = ""
    extraction_timestamp: _Written = ""
    llm_provider: JsonValue = None
    dimensions_processed: JsonValue = None
    total_dimensions_found: JsonValue = None
    pipeline_type: JsonValue = None


class _RawBase(_Closed):
    dimensions: list[_RawIndividual]
    metadata: _RawMetadata
    success: bool


def read_raw(path: Path) -> Base:
    """One raw file. Every individual is read, in its order, same names included."""
    raw = conform(_RawBase, read_json(path), path.name)
    base = Base(image=raw.metadata.image_name)
    for place, own in enumerate(raw.dimensions):
        dimension = find_dimension(own.class_name)
        if dimension is None:
            raise DataError(path.name, f"unknown dimension {own.class_name!r}", row=place + 1)
        origin = Provenance(
            own.extraction_method,
            when=shorten_time(raw.metadata.extraction_timestamp),
            source=path.name,
        )
        base.individuals.append(
            Individual(
                dimension,
                own.instance_name,
                own.label,
                own.description,
                provenance=origin,
            )
        )
        base.own[place] = list(_own_statements(own))
        base.said += _free_statements(own)
    return base


def _own_statements(own: _RawIndividual) -> Iterator[Said]:
    for entry in own.relatedTo if isinstance(own.relatedTo, list) else ():
        if isinstance(entry, dict) and "entity" in entry and "relation" in entry:
            yield _say(own.instance_name, entry["relation"], entry["entity"])


def _free_statements(own: _RawIndividual) -> Iterator[Said]:
    for entry in own.directRelations if isinstance(own.directRelations, list) else ():
        if isinstance(entry, dict) and {"from", "relation", "to"} <= entry.keys():
            yield _say(entry["from"], entry["relation"], entry["to"])


def _say(source: JsonValue, relation: JsonValue, target: JsonValue) -> Said:
    return Said(*(str(_as_text(text)) for text in (source, relation, target)))


def read_refined(path: Path, heads: Heads | None = None) -> Base:
    """One refined file. Its blocks follow one another, so a label belongs to the class before.

    The official code looked in one fixed namespace and found nothing in four files of five; here
    local names count, in whatever namespace. ``heads`` remember what files have in common.
    """
    return _RefinedReader(path, heads or Heads()).read()


@dataclass(frozen=True, slots=True)
class Head:
    """How files begin, read once: its names for prefixes, its terms, how many statements."""

    text: bytes
    prefixes: bytes
    terms: frozenset[str]
    copied: int


@dataclass
class Heads:
    """The beginnings that files share: nine tenths of each are a copy of one ontology.

    A beginning is taken apart from the rest only where it is a whole document by itself and
    says nothing about any individual; then reading it again would bring nothing new.
    """

    known: list[Head] = field(default_factory=list)
    former: bytes = b""

    def find(self, text: bytes) -> Head | None:
        """The beginning that this file shares with one before it."""
        for known in self.known:
            if text.startswith(known.text):
                return known
        former, self.former = self.former, text
        size = _common(former, text)
        cut = text.rfind(b" .\n\n", 0, size) + 3
        if cut < _WORTH:
            return None
        head = _read_head(text[:cut])
        if head is not None:
            self.known.append(head)
        return head


def _common(one: bytes, other: bytes) -> int:
    """How many bytes two texts have in common at their start."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _read_head(text: bytes) -> Head | None:
    import pyoxigraph

    terms, copied = set[str](), 0
    try:
        parser = pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.TURTLE)
        for quad in parser:
            copied += 1
            name = str(getattr(quad.object, "value", ""))
            if quad.predicate.value == _TYPE and isinstance(quad.subject, pyoxigraph.NamedNode):
                if find_dimension(_local(name)) and not name.startswith(_OWL):
                    return None
                terms.add(quad.subject.value)
            elif (
                isinstance(quad.object, pyoxigraph.NamedNode)
                and isinstance(quad.subject, pyoxigraph.NamedNode)
                and not quad.predicate.value.startswith((_RDFS, _OWL))
            ):
                return None
    except SyntaxError:
        return None
    prefixes = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in parser.prefixes.items())
    base = f"@base <{parser.base_iri}> .\n" if parser.base_iri else ""
    return Head(text, (prefixes + base).encode(), frozenset(terms), copied)


@dataclass(slots=True)
class _Block:
    """One individual while its statements come in."""

    dimension: Dimension
    texts: dict[str, str] = field(default_factory=dict)


_TEXTS: Mapping[str, str] = {
    f"{_RDFS}label": "label",
    f"{_RDFS}comment": "description",
}
_NOTES = ("extractionMethod", "extractedFrom", "extractionTimestamp")


@dataclass
class _RefinedReader:
    path: Path
    heads: Heads
    base: Base = field(default_factory=Base)
    blocks: list[tuple[str, _Block]] = field(default_factory=list)
    latest: dict[str, _Block] = field(default_factory=dict)
    terms: set[str] = field(default_factory=set)

    def read(self) -> Base:
        import pyoxigraph

        named = pyoxigraph.NamedNode
        text = _read(self.path)
        head = self.heads.find(text)
        if head is not None:
            text = head.prefixes + text[len(head.text) :]
            self.terms |= head.terms
            self.base.copied += head.copied
        for quad in _triples(text, self.path.name):
            subject, predicate = quad.subject, quad.predicate.value
            if not isinstance(subject, named):
                self.base.copied += 1
            elif predicate == _TYPE:
                self.take_type(subject.value, str(getattr(quad.object, "value", "")))
            elif isinstance(quad.object, named):
                self.take_link(subject.value, predicate, quad.object.value)
            else:
                self.take_text(subject.value, predicate, str(getattr(quad.object, "value", "")))
        for name, block in self.blocks:
            self.base.individuals.append(self.finish(name, block))
        return self.base

    def take_type(self, subject: str, name: str) -> None:
        dimension = find_dimension(_local(name))
        if dimension is None or name.startswith(_OWL):
            self.terms.add(subject)
            self.base.copied += 1
            return
        block = _Block(dimension)
        self.blocks.append((_local(subject), block))
        self.latest[subject] = block

    def take_link(self, subject: str, predicate: str, target: str) -> None:
        if subject in self.terms and predicate.startswith((_RDFS, _OWL)):
            self.base.copied += 1
        else:
            self.base.said.append(Said(_local(subject), _local(predicate), _local(target)))

    def take_text(self, subject: str, predicate: str, text: str) -> None:
        block = self.latest.get(subject)
        name = _TEXTS.get(predicate) or _local(predicate)
        if block is not None and (name in _TEXTS.values() or name in _NOTES):
            block.texts.setdefault(name, text)
        elif subject in self.terms or block is None:
            self.base.copied += 1
        else:
            self.base.unread[name] += 1

    def finish(self, name: str, block: _Block) -> Individual:
        texts = block.texts
        self.base.image = self.base.image or texts.get("extractedFrom", "")
        return Individual(
            block.dimension,
            name,
            texts.get("label", ""),
            texts.get("description", ""),
            provenance=Provenance(
                texts.get("extractionMethod", ""),
                when=shorten_time(texts.get("extractionTimestamp", "")),
                source=self.path.name,
            ),
        )


def _triples(text: bytes, name: str) -> Iterator[Quad]:
    import pyoxigraph

    try:
        yield from pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.TURTLE)
    except SyntaxError as error:
        raise DataError(
            name, f"not valid Turtle: {error.msg}"[:300], hint="download the file again"
        ) from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(path.name, f"cannot be read: {error.strerror}") from error


def _local(iri: str) -> str:
    return iri[max(iri.rfind("#"), iri.rfind("/")) + 1 :]
