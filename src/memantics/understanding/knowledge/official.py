"""Reader of M-QUEST's knowledge bases: raw JSON and refined Turtle of either namespace.

Facts (individuals) come from the raw file, or from the refined file if there is no raw file;
relations come from both. Names are resolved, and relations are mapped to the ontology. Nothing is
dropped: other terms keep their names, references to missing facts are kept and listed, and the copy
of the official ontology in every file is only counted.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from operator import attrgetter
from pathlib import Path

from memantics.core import releases as mquest
from memantics.core.errors import DataError, need_offline
from memantics.core.meaning import DIMENSIONS, Dimension
from memantics.core.releases import FileStatement
from memantics.core.text import QUOTE, refuse_nesting
from memantics.understanding.knowledge import records
from memantics.understanding.knowledge.graph import order_of, shorten_time
from memantics.understanding.knowledge.ontology.vocabulary import (
    RELATIONS,
    find_dimension,
    find_kind,
)
from memantics.understanding.knowledge.records import Individual, Provenance

_WORTH = 4_096
_TEXTS: Mapping[str, str] = {
    f"{mquest.RDFS}label": "label",
    f"{mquest.RDFS}comment": "description",
}
_NOTES = ("extractionMethod", "extractedFrom", "extractionTimestamp")
COLLECTION = "mquest"
WARNING = "Memes of this collection may attack people; they are shown for research only."
# Terms of the official M-QUEST files that have other names in this package's ontology.
_RENAMED: Mapping[str, str] = {"hasProjectedEntity": "projectedOnto"}


@dataclass(frozen=True, slots=True)
class OfficialFiles:
    """The raw and the refined knowledge file of one meme; one of the two may be missing."""

    meme: str
    raw: Path | None = None
    refined: Path | None = None


@dataclass(slots=True)
class Base:
    """One knowledge base as stored in a file; ``statements`` maps each subject to its statements.

    ``copied`` counts statements that only repeat the ontology, ``unread`` those that no rule reads.
    """

    individuals: list[Individual] = field(default_factory=list)
    statements: dict[int, list[mquest.FileStatement]] = field(default_factory=dict)
    said: list[mquest.FileStatement] = field(default_factory=list)
    image: str = ""
    copied: int = 0
    unread: Counter[str] = field(default_factory=Counter)


def find_official(root: Path) -> tuple[OfficialFiles, ...]:
    """Find the knowledge bases below a folder in any official layout, by meme."""
    for name in mquest.FOLDERS:
        found: dict[str, dict[str, Path]] = {}
        folder = root / name
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            for suffix in (mquest.RAW, mquest.REFINED):
                if path.name.endswith(suffix) and not path.name.startswith("."):
                    found.setdefault(path.name.removesuffix(suffix), {})[suffix] = path
        if found:
            return tuple(
                OfficialFiles(meme, files.get(mquest.RAW), files.get(mquest.REFINED))
                for meme, files in sorted(found.items())
            )
    return ()


def read_raw(path: Path) -> Base:
    """Read one raw file with all individuals in order, including duplicate names."""
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
    """Read one refined Turtle file, in which a label belongs to the class before it.

    The official code accepts one fixed namespace and therefore finds nothing in four of five files.
    This function accepts local names in any namespace. ``heads`` caches the common beginning of
    files.
    """
    return _RefinedReader(path, heads or Heads()).read()


@dataclass(frozen=True, slots=True)
class Head:
    """The common beginning of files, parsed once: prefixes, terms and statement count."""

    text: bytes
    prefixes: bytes
    terms: frozenset[str]
    copied: int


@dataclass
class Heads:
    """The cache of common beginnings: nine tenths of each file are a copy of one ontology.

    The common beginning is cached only if it is a complete document and contains no facts about the
    meme.
    """

    known: list[Head] = field(default_factory=list)
    former: bytes = b""

    def find(self, text: bytes) -> Head | None:
        """Return the beginning that this file shares with an earlier one."""
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
    """Return the number of common bytes at the start of two texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _read_head(text: bytes) -> Head | None:
    need_offline("pyoxigraph")
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


@dataclass
class _RefinedReader:
    path: Path
    heads: Heads
    base: Base = field(default_factory=Base)
    # Facts (individuals) during parsing: name, dimension, texts; texts by subject.
    blocks: list[tuple[str, Dimension, dict[str, str]]] = field(default_factory=list)
    latest: dict[str, dict[str, str]] = field(default_factory=dict)
    terms: set[str] = field(default_factory=set)

    def read(self) -> Base:
        need_offline("pyoxigraph")
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


@dataclass(frozen=True, slots=True)
class Repair:
    """A reference that does not use the exact name of a fact, and the fact that it means."""

    meme: str
    written: str
    read_as: str


@dataclass(slots=True)
class Account:
    """The counts of an import; ``differing`` are facts that differ between raw and refined file.

    ``copied`` are statements of the official ontology in every refined file; ``repeated`` are
    duplicate statements.
    """

    memes: int = 0
    individuals: Counter[str] = field(default_factory=Counter)
    relations: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    dangling: list[records.Dangling] = field(default_factory=list)
    repaired: list[Repair] = field(default_factory=list)
    ambiguous: int = 0
    renamed: int = 0
    copied: int = 0
    repeated: int = 0
    differing: list[str] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)

    def add(self, made: records.Knowledge) -> None:
        """Count the knowledge of one more meme."""
        self.memes += 1
        self.individuals.update(individual.dimension for individual in made.individuals)
        names = [link.relation for individual in made.individuals for link in individual.relations]
        for name in (*names, *(said.relation for said in made.loose)):
            (self.relations if name in RELATIONS else self.said)[name] += 1
        self.dangling += made.dangling()


def adopt(files: Iterable[OfficialFiles], account: Account) -> Iterator[records.Knowledge]:
    """Read knowledge bases one by one, and count the results."""
    heads = Heads()
    for file in files:
        made = _Adoption(file, account, heads).make()
        account.add(made)
        yield made


@dataclass
class _Adoption:
    files: OfficialFiles
    account: Account
    heads: Heads
    links: dict[str, list[records.Relation]] = field(default_factory=lambda: defaultdict(list))
    loose: list[records.Statement] = field(default_factory=list)
    done: set[tuple[str, str, str]] = field(default_factory=set)

    def make(self) -> records.Knowledge:
        files = self.files
        raw = read_raw(files.raw) if files.raw else None
        refined = read_refined(files.refined, self.heads) if files.refined else None
        self.base = raw or refined or Base()
        if not self.base.individuals:
            where = files.raw or files.refined or files.meme
            raise DataError(
                getattr(where, "name", where),
                "contains no individual of a known dimension in any namespace",
                hint="download the file again",
            )
        if refined is not None:
            self.account.copied += refined.copied
            self.account.unread.update(refined.unread)
            if raw is not None:
                self.account.differing += _compare(files.meme, raw, refined)
        self.settle(raw, refined)
        individuals = tuple(
            replace(
                individual,
                relations=tuple(sorted(self.links.get(individual.key, ()), key=order_of)),
                kind=(find_kind(individual.label) or "")
                if individual.dimension == "Toxicity"
                else "",
            )
            for individual in self.individuals
        )
        return records.Knowledge(
            files.meme,
            individuals,
            self.base.image,
            "en",
            COLLECTION,
            WARNING,
            tuple(sorted(self.loose, key=attrgetter("source", "relation", "target"))),
        )

    @cached_property
    def individuals(self) -> tuple[records.Individual, ...]:
        made = records.tell_apart(self.base.individuals)
        self.account.renamed += sum(
            individual.name != former.name
            for individual, former in zip(made, self.base.individuals, strict=True)
        )
        return made

    @cached_property
    def names(self) -> Mapping[str, Sequence[records.Individual]]:
        """Facts (individuals) by their names in the official file."""
        found: dict[str, list[records.Individual]] = defaultdict(list)
        for individual, former in zip(self.individuals, self.base.individuals, strict=True):
            found[_slug(former.name)].append(individual)
        return found

    @cached_property
    def other_names(self) -> Mapping[str, Sequence[records.Individual]]:
        """Facts by other references that models use: the label, or name and label."""
        found: dict[str, list[records.Individual]] = defaultdict(list)
        for individual, former in zip(self.individuals, self.base.individuals, strict=True):
            name, label = _slug(former.name), _slug(former.label)
            told = f"{name}_{label}_{_slug(former.description)}".strip("_")
            for words in {label, f"{name}_{label}", told, name} - {""}:
                found[words.casefold()].append(individual)
        return found

    def settle(self, raw: Base | None, refined: Base | None) -> None:
        """Resolve the statements of the raw file, and add those of the refined file."""
        for place, said in (raw.statements if raw else {}).items():
            for statement in said:
                self.link(statement, self.individuals[place])
        for statement in raw.said if raw else ():
            self.link(statement)
        known = {FileStatement(*map(_slug, statement)) for statement in self.statements(raw)}
        origin = None
        if raw and refined and self.files.refined:
            origin = records.Provenance(source=self.files.refined.name)
        for statement in refined.said if refined else ():
            if FileStatement(*map(_slug, statement)) not in known:
                self.link(statement, origin=origin)

    @staticmethod
    def statements(raw: Base | None) -> Iterator[FileStatement]:
        if raw is not None:
            yield from raw.said
            for said in raw.statements.values():
                yield from said

    def link(
        self,
        said: FileStatement,
        source: records.Individual | None = None,
        origin: records.Provenance | None = None,
    ) -> None:
        """Resolve both ends of a statement, and store it with its subject."""
        relation = _RENAMED.get(said.relation, said.relation)
        term = RELATIONS.get("about" if relation == "relatedTo" else relation)
        repaired = False
        start = source
        if start is None:
            start, repaired = self.find(said.source, term.domain if term else ())
        end, repaired_too = self.find(said.target, term.range if term else ())
        if relation == "relatedTo" and start and start.dimension == "BackgroundKnowledge":
            relation = "about"
        target = end.key if end else said.target
        ends = (start.key if start else said.source, relation, target)
        if ends in self.done:
            self.account.repeated += 1
            return
        self.done.add(ends)
        if start is None:
            self.loose.append(records.Statement(said.source, relation, target, origin))
            return
        written = " ".join(said) if repaired or repaired_too else ""
        if written:
            read_as = f"{start.key} {relation} {target}"
            self.account.repaired.append(Repair(self.files.meme, written, read_as))
        self.links[start.key].append(records.Relation(relation, target, origin, written))

    def find(
        self, name: str, fitting: Sequence[Dimension]
    ) -> tuple[records.Individual | None, bool]:
        """Return the fact that a name refers to, and whether the reference is inexact.

        If several facts have the name, the relation determines the dimension.
        """
        words = _slug(name)
        found, repaired = self.names.get(words, ()), False
        if not found:
            found, repaired = self.other_names.get(words.casefold(), ()), True
            if len(found) > 1:
                return None, False
        if not found:
            return None, False
        if len(found) > 1:
            self.account.ambiguous += 1
        order = [*fitting, *DIMENSIONS]
        return min(found, key=lambda individual: order.index(individual.dimension)), repaired


def _compare(meme: str, raw: Base, refined: Base) -> Iterator[str]:
    """List facts that only one of the two files contains, or that differ."""
    if _count(raw, str) == _count(refined, str):
        return
    first, second = _count(raw, _fold), _count(refined, _fold)
    for where, extra in (("raw", first - second), ("refined", second - first)):
        for dimension, name, _, _ in extra.elements():
            yield f"{meme}: {dimension}/{name} differs or exists only in the {where} file"


def _count(base: Base, read: Callable[[str], str]) -> Counter[tuple[str, str, str, str]]:
    return Counter(
        (
            individual.dimension,
            _slug(individual.name),
            read(individual.label),
            read(individual.description),
        )
        for individual in base.individuals
    )


def _fold(text: str) -> str:
    """Normalise text so that escaping does not count as a difference."""
    return re.sub(r"[\s\\]+", " ", text).strip()


@lru_cache(maxsize=8192)
def _slug(name: str) -> str:
    """Return a name as official Turtle writes it.

    >>> _slug("the two (old) knights!")
    'the_two_old_knights'
    """
    return re.sub(r"_+", "_", re.sub(r"\W", "_", name)).strip("_") or "unnamed"
