"""Facts about one meme: ontology individuals, relations and provenance, and their IRIs.

Names are unique within a meme *and* a dimension: ``person`` may be visible (VisualMaterial) and
addressed (TargetCommunity), as two individuals. IRIs are made per meme, valid for any name, and
reversible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from urllib.parse import quote, unquote

from pydantic import TypeAdapter, ValidationError

from memantics.core.errors import DataError, first_fault
from memantics.core.files import open_regular
from memantics.core.meaning import DIMENSIONS, Dimension
from memantics.understanding.knowledge.ontology.vocabulary import ToxicityKind

# URNs are used, since no host resolves these names.
ONTOLOGY = "urn:memantics:ontology"
TERM = f"{ONTOLOGY}#"
SAID = "urn:memantics:said#"
OWN = "urn:memantics:own#"
MEME = "urn:memantics:meme:"
MODEL = "urn:memantics:model:"
PERSON = "urn:memantics:person:"
PREFIXES = {
    "mm": TERM,
    "said": SAID,
    "own": OWN,
    "meme": MEME,
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "prov": "http://www.w3.org/ns/prov#",
    "dcterms": "http://purl.org/dc/terms/",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
THING = "thing"
_HALVES = re.compile("[\ud800-\udfff]")
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]+")
_OWN_NAME = re.compile(r"[A-Z][A-Za-z]{1,39}")


@lru_cache(maxsize=4096)
def escape(name: str) -> str:
    """Encode a name as part of an IRI: letters and digits of any script are kept.

    >>> escape("two knights/1"), escape("蒸鱼"), unescape(escape("a%#<b>"))
    ('two%20knights%2F1', '蒸鱼', 'a%#<b>')
    """
    if _PLAIN.fullmatch(name):
        return name
    return "".join(
        char if _PLAIN.match(char) or _is_letter(char) else _encode(char) for char in name
    )


def _is_letter(char: str) -> bool:
    return char.isalnum() and "\u00a0" <= char <= "\uffef" and not "\ufdd0" <= char <= "\ufdef"


def _encode(char: str) -> str:
    return quote(char, safe="", errors="surrogatepass")


def unescape(part: str) -> str:
    """Decode a name encoded by :func:`escape`."""
    return unquote(part, errors="surrogatepass")


def graph_iri(meme: str) -> str:
    """Return the graph IRI of a meme, which is also the IRI of the meme.

    >>> graph_iri("01382")
    'urn:memantics:meme:01382'
    """
    return MEME + escape(meme)


def is_dimension(name: str) -> bool:
    """Tell whether a name is one of the ten dimensions or a valid custom one.

    >>> is_dimension("Scene"), is_dimension("ColorUse"), is_dimension("color use")
    (True, True, False)
    """
    return name in DIMENSIONS or bool(_OWN_NAME.fullmatch(name))


def class_iri(dimension: str) -> str:
    """Return the class of a dimension: the ontology's, or one in the namespace of custom ones.

    >>> class_iri("Scene"), class_iri("ColorUse")
    ('urn:memantics:ontology#Scene', 'urn:memantics:own#ColorUse')
    """
    return (TERM if dimension in DIMENSIONS else OWN) + dimension


def thing_iri(meme: str, key: str) -> str:
    """Return the IRI of the fact ``Dimension/name`` of a meme, or of a thing named in free words.

    >>> thing_iri("7", "Scene/a duel"), thing_iri("7", "a duel")
    ('urn:memantics:meme:7#Scene/a%20duel', 'urn:memantics:meme:7#thing/a%20duel')
    """
    dimension, slash, name = key.partition("/")
    if not slash or not is_dimension(dimension):
        dimension, name = THING, key
    return f"{graph_iri(meme)}#{dimension}/{escape(name)}"


def read_thing(iri: str) -> str:
    """Return the ``Dimension/name`` or the free words encoded by :func:`thing_iri`."""
    place, _, name = iri.partition("#")[2].partition("/")
    return unescape(name) if place == THING else f"{place}/{unescape(name)}"


def meme_of(iri: str) -> str | None:
    """Return the meme of an IRI, None if it belongs to none.

    >>> meme_of("urn:memantics:meme:7#Scene/duel"), meme_of("urn:memantics:model:x")
    ('7', None)
    """
    if not iri.startswith(MEME):
        return None
    return unescape(iri.removeprefix(MEME).partition("#")[0])


def clean(text: str) -> str:
    """Replace unpaired surrogates with the replacement character.

    >>> clean("a" + chr(0xD800))
    'a�'
    """
    return _HALVES.sub("\N{REPLACEMENT CHARACTER}", text)


@dataclass(frozen=True, slots=True)
class Provenance:
    """The provenance of a statement.

    ``model`` generated it with the prompt of this hash at this time (ISO 8601). ``source`` is its
    file or dataset; ``confirmed_by`` are pseudonyms of people who confirmed it.
    """

    model: str = ""
    prompt: str = ""
    when: str = ""
    confirmed_by: tuple[str, ...] = ()
    source: str = ""

    def __bool__(self) -> bool:
        """Tell whether any provenance is known."""
        return bool(self.model or self.prompt or self.when or self.confirmed_by or self.source)


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation to another individual of the same meme.

    ``relation`` is an ontology relation, or a model's own words. ``target`` is ``Dimension/name``;
    a target that does not exist is kept and reported as dangling. ``provenance`` is set if it
    differs from the individual's. ``written`` keeps the original words of a repaired reference.
    """

    relation: str
    target: str
    provenance: Provenance | None = None
    written: str = ""


@dataclass(frozen=True, slots=True)
class Individual:
    """One fact about a meme; ``kind`` is used only in the dimension Toxicity."""

    dimension: Dimension
    name: str
    label: str
    description: str = ""
    relations: tuple[Relation, ...] = ()
    kind: ToxicityKind | str = ""
    provenance: Provenance | None = None

    @property
    def key(self) -> str:
        """``Dimension/name``, as used in relations.

        >>> Individual("Scene", "duel", "two knights").key
        'Scene/duel'
        """
        return f"{self.dimension}/{self.name}"


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement whose subject is not a known fact (individual); it is kept and reported."""

    source: str
    relation: str
    target: str
    provenance: Provenance | None = None


@dataclass(frozen=True, slots=True)
class Dangling:
    """A reference to a missing fact; ``end`` tells whether subject or target is missing."""

    meme: str
    source: str
    relation: str
    target: str
    end: str = "target"


@dataclass(frozen=True)
class Knowledge:
    """All facts about one meme, in the original order.

    ``image`` is the name of its image file, ``collection`` its source, ``warning`` the content
    warning, and ``language`` that of the labels. ``loose`` are statements whose subject is not a
    known fact (individual).
    """

    meme: str
    individuals: tuple[Individual, ...]
    image: str = ""
    language: str = ""
    collection: str = ""
    warning: str = ""
    loose: tuple[Statement, ...] = ()

    @cached_property
    def by_key(self) -> Mapping[str, Individual]:
        """Individuals by ``Dimension/name``."""
        return {individual.key: individual for individual in self.individuals}

    def of(self, dimension: Dimension) -> tuple[Individual, ...]:
        """Return the individuals of one dimension."""
        return tuple(
            individual for individual in self.individuals if individual.dimension == dimension
        )

    def dangling(self) -> Iterator[Dangling]:
        """References to facts (individuals) that this meme does not have.

        >>> duel = Individual("Scene", "duel", "a duel", relations=(
        ...     Relation("hasParticipant", "VisualMaterial/knight"),))
        >>> [found.target for found in Knowledge("1", (duel,)).dangling()]
        ['VisualMaterial/knight']
        """
        for individual in self.individuals:
            for link in individual.relations:
                if link.target not in self.by_key:
                    yield Dangling(self.meme, individual.key, link.relation, link.target)
        for said in self.loose:
            end = "source" if said.target in self.by_key else "both"
            yield Dangling(self.meme, said.source, said.relation, said.target, end)

    def counts(self) -> dict[Dimension, int]:
        """The number of individuals per dimension, including 0; then custom dimensions."""
        names = dict.fromkeys(
            (*DIMENSIONS, *(individual.dimension for individual in self.individuals))
        )
        return {name: len(self.of(name)) for name in names}


def tell_apart(individuals: Iterable[Individual]) -> tuple[Individual, ...]:
    """Number later individuals whose name already exists in their dimension.

    >>> twice = [Individual("Scene", "duel", "one"), Individual("Scene", "duel", "other")]
    >>> [found.name for found in tell_apart(twice)]
    ['duel', 'duel_2']
    """
    taken: set[str] = set()
    made = []
    for individual in individuals:
        name, number = individual.name, 1
        while f"{individual.dimension}/{name}" in taken:
            number += 1
            name = f"{individual.name}_{number}"
        taken.add(f"{individual.dimension}/{name}")
        made.append(individual if name == individual.name else replace(individual, name=name))
    return tuple(made)


KNOWLEDGE = "knowledge.jsonl"
_KNOWLEDGE = TypeAdapter(Knowledge)


def dump_knowledge(knowledge: Knowledge) -> bytes:
    """Return one line of ``knowledge.jsonl``.

    >>> dump_knowledge(Knowledge("1", ()))[:23]
    b'{"meme":"1","individual'
    """
    return _KNOWLEDGE.dump_json(knowledge, exclude_defaults=True) + b"\n"


def read_knowledge(folder: Path) -> Iterator[Knowledge]:
    """Read the knowledge of a build by meme; an invalid line is an error that names it."""
    path = folder / KNOWLEDGE
    try:
        file = open_regular(path)
    except OSError as error:
        raise DataError(
            folder, f"contains no {KNOWLEDGE}", hint="run 'memantics build knowledge' first"
        ) from error
    with file:
        for row, line in enumerate(file, 1):
            if line.strip():
                yield _read_line(line, path, row)


def _read_line(line: bytes, path: Path, row: int) -> Knowledge:
    try:
        read = _KNOWLEDGE.validate_json(line)
    except ValidationError as error:
        raise DataError(path, first_fault(error), row=row, hint="repair that line") from error
    for individual in read.individuals:
        if not is_dimension(individual.dimension):
            said = f"{individual.dimension[:60]!r} is not a known dimension"
            raise DataError(path, said, row=row, hint="repair that line")
    return read
