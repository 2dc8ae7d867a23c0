"""Reader of M-QUEST's knowledge bases: raw JSON and refined Turtle of either namespace.

Individuals come from the raw file, or from the refined one where that is all there is;
statements from both. Nothing is dropped: what our ontology has no word for keeps its own, what
leads nowhere is kept and listed, and the copy of the official ontology in every file is counted
and set aside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memantics.core.errors import DataError
from memantics.core.text import QUOTE, refuse_nesting
from memantics.knowledge.graph import shorten_time
from memantics.knowledge.ontology.vocabulary import Dimension, find_dimension
from memantics.knowledge.records import (
    Individual,
    Provenance,
)
from memantics.releases import mquest

_WORTH = 4_096


@dataclass(frozen=True, slots=True)
class OfficialFiles:
    """The files of one meme; one of the two may be missing."""

    meme: str
    raw: Path | None = None
    refined: Path | None = None


@dataclass(slots=True)
class Base:
    """One knowledge base as a file has it. ``statements`` are listed by the place of their subject.

    ``copied`` counts statements of the ontology's copy, ``unread`` those of no known form.
    """

    individuals: list[Individual] = field(default_factory=list)
    statements: dict[int, list[mquest.FileStatement]] = field(default_factory=dict)
    said: list[mquest.FileStatement] = field(default_factory=list)
    image: str = ""
    copied: int = 0
    unread: Counter[str] = field(default_factory=Counter)


def find_official(root: Path) -> tuple[OfficialFiles, ...]:
    """The knowledge bases below a folder, in any official layout, by meme."""
    for name in mquest.FOLDERS:
        found: dict[str, dict[str, Path]] = {}
        folder = root / name
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            for suffix in (mquest.RAW, mquest.REFINED):
                if path.name.endswith(suffix) and not path.name.startswith("."):
                    found.setdefault(path.name.removesuffix(suffix), {})[suffix] = path
        if found:
            return tuple(
                OfficialFiles(meme, fields.get(mquest.RAW), fields.get(mquest.REFINED))
                for meme, fields in sorted(found.items())
            )
    return ()


def read_raw(path: Path) -> Base:
    """One raw file. Every individual is read, in its order, same names included."""
    raw = mquest.read_raw_base(path)
    base = Base(image=raw.metadata.image_name)
    for place, individual in enumerate(raw.dimensions):
        dimension = find_dimension(individual.class_name)
        if dimension is None:
            raise DataError(
                path.name, f"unknown dimension {individual.class_name!r}", row=place + 1
            )
        origin = Provenance(
            individual.extraction_method,
            when=shorten_time(raw.metadata.extraction_timestamp),
            source=path.name,
        )
        base.individuals.append(
            Individual(
                dimension,
                individual.instance_name,
                individual.label,
                individual.description,
                provenance=origin,
            )
        )
        base.statements[place] = list(individual.related())
        base.said += individual.direct()
    return base


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
        if QUOTE in text:
            refuse_nesting(text, "the part that files share")
        parser = pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.TURTLE)
        for quad in parser:
            copied += 1
            name = str(getattr(quad.object, "value", ""))
            if quad.predicate.value == mquest.TYPE and isinstance(
                quad.subject, pyoxigraph.NamedNode
            ):
                if find_dimension(_local(name)) and not name.startswith(mquest.OWL):
                    return None
                terms.add(quad.subject.value)
            elif (
                isinstance(quad.object, pyoxigraph.NamedNode)
                and isinstance(quad.subject, pyoxigraph.NamedNode)
                and not quad.predicate.value.startswith((mquest.RDFS, mquest.OWL))
            ):
                return None
    except SyntaxError:
        return None
    prefixes = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in parser.prefixes.items())
    base = f"@base <{parser.base_iri}> .\n" if parser.base_iri else ""
    return Head(text, (prefixes + base).encode(), frozenset(terms), copied)


_TEXTS: Mapping[str, str] = {
    f"{mquest.RDFS}label": "label",
    f"{mquest.RDFS}comment": "description",
}
_NOTES = ("extractionMethod", "extractedFrom", "extractionTimestamp")


@dataclass
class _RefinedReader:
    path: Path
    heads: Heads
    base: Base = field(default_factory=Base)
    # Individuals while their statements come in: name, dimension, texts; texts by subject.
    blocks: list[tuple[str, Dimension, dict[str, str]]] = field(default_factory=list)
    latest: dict[str, dict[str, str]] = field(default_factory=dict)
    terms: set[str] = field(default_factory=set)

    def read(self) -> Base:
        import pyoxigraph

        named = pyoxigraph.NamedNode
        text = mquest.read_file(self.path)
        head = self.heads.find(text)
        if head is not None:
            text = head.prefixes + text[len(head.text) :]
            self.terms |= head.terms
            self.base.copied += head.copied
        for quad in mquest.parse_turtle(text, self.path.name):
            subject, predicate = quad.subject, quad.predicate.value
            if not isinstance(subject, named):
                self.base.copied += 1
            elif predicate == mquest.TYPE:
                self.take_type(subject.value, str(getattr(quad.object, "value", "")))
            elif isinstance(quad.object, named):
                self.take_link(subject.value, predicate, quad.object.value)
            else:
                self.take_text(subject.value, predicate, str(getattr(quad.object, "value", "")))
        for block in self.blocks:
            self.base.individuals.append(self.finish(*block))
        return self.base

    def take_type(self, subject: str, name: str) -> None:
        dimension = find_dimension(_local(name))
        if dimension is None or name.startswith(mquest.OWL):
            self.terms.add(subject)
            self.base.copied += 1
            return
        self.latest[subject] = {}
        self.blocks.append((_local(subject), dimension, self.latest[subject]))

    def take_link(self, subject: str, predicate: str, target: str) -> None:
        if subject in self.terms and predicate.startswith((mquest.RDFS, mquest.OWL)):
            self.base.copied += 1
        else:
            self.base.said.append(
                mquest.FileStatement(_local(subject), _local(predicate), _local(target))
            )

    def take_text(self, subject: str, predicate: str, text: str) -> None:
        block = self.latest.get(subject)
        name = _TEXTS.get(predicate) or _local(predicate)
        if block is not None and (name in _TEXTS.values() or name in _NOTES):
            block.setdefault(name, text)
        elif subject in self.terms or block is None:
            self.base.copied += 1
        else:
            self.base.unread[name] += 1

    def finish(self, name: str, dimension: Dimension, texts: Mapping[str, str]) -> Individual:
        self.base.image = self.base.image or texts.get("extractedFrom", "")
        return Individual(
            dimension,
            name,
            texts.get("label", ""),
            texts.get("description", ""),
            provenance=Provenance(
                texts.get("extractionMethod", ""),
                when=shorten_time(texts.get("extractionTimestamp", "")),
                source=self.path.name,
            ),
        )


def _local(iri: str) -> str:
    return mquest.split_iri(iri)[1]
