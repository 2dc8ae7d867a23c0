"""Files of official releases that several packages read: PunMemeCN groups, M-QUEST knowledge bases.

For PunMemeCN, it finds the metadata folder in each official layout and selects groups of memes. For
M-QUEST, it reads raw JSON and refined Turtle files, one file per meme. The benchmark readers and
the knowledge graph code use these functions.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue, StringConstraints

from memantics.core.data import conform, read_json
from memantics.core.errors import DataError, InputError, need_offline
from memantics.core.files import read_regular
from memantics.core.records import Closed
from memantics.core.text import QUOTE, refuse_nesting

if TYPE_CHECKING:
    from pyoxigraph import Quad

RAW = "_dimensions_reversed_raw.json"
REFINED = "_refined_ontology.ttl"
FOLDERS = ("output_reversed/hateful-memes-out", "hateful-memes-out", "kb", ".")
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
OWL = "http://www.w3.org/2002/07/owl#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
META = "_Meta.json"
# Possible layouts: a clone, the folder named in the README, the data folder, or the files alone.
PLACES = ("", "cn", "pun_meme/cn", "data/pun_meme/cn", "PunMemeCN/data/pun_meme/cn")
_RANGE = re.compile(r"(?:CN)?(\d{1,5})(?:-(?:CN)?(\d{1,5}))?", re.IGNORECASE)
ReleaseText = Annotated[str, StringConstraints(min_length=1, max_length=20_000)]


class FileStatement(NamedTuple):
    """A statement of a knowledge base, with the local names used in its file."""

    source: str
    relation: str
    target: str


def _as_text(value: object) -> object:
    # A language model wrote these values. A value that is not text is kept as JSON.
    return value if isinstance(value, str) else orjson.dumps(value).decode()


_Written = Annotated[str, BeforeValidator(_as_text)]


class ReleaseRow(BaseModel):
    """A row of a released data table; unknown fields and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class RawIndividual(Closed):
    """One individual (entity) of a raw M-QUEST knowledge base file."""

    class_name: str
    class_uri: str
    instance_name: _Written
    label: _Written
    description: _Written
    extraction_method: _Written = ""
    dimension_index: JsonValue = None
    directRelations: JsonValue = None  # noqa: N815 - the release's spelling
    relatedTo: JsonValue = None  # noqa: N815

    def direct(self) -> Iterator[FileStatement]:
        """Yield the statements between any two individuals of the knowledge base."""
        for entry in self.directRelations if isinstance(self.directRelations, list) else ():
            if isinstance(entry, dict) and {"relation", "to"} <= entry.keys():
                yield _say(entry.get("from", self.instance_name), entry["relation"], entry["to"])

    def related(self) -> Iterator[FileStatement]:
        """Yield the statements whose subject is this individual."""
        for entry in self.relatedTo if isinstance(self.relatedTo, list) else ():
            if isinstance(entry, dict) and {"relation", "entity"} <= entry.keys():
                yield _say(self.instance_name, entry["relation"], entry["entity"])


def _say(source: JsonValue, relation: JsonValue, target: JsonValue) -> FileStatement:
    return FileStatement(*(str(_as_text(text)) for text in (source, relation, target)))


class RawMetadata(Closed):
    """The provenance fields of a raw M-QUEST knowledge base file."""

    image_path: JsonValue = None
    image_name: str = ""
    extraction_timestamp: _Written = ""
    llm_provider: JsonValue = None
    dimensions_processed: JsonValue = None
    total_dimensions_found: JsonValue = None
    pipeline_type: JsonValue = None


class RawBase(Closed):
    """The content of a raw M-QUEST knowledge base file."""

    dimensions: list[RawIndividual]
    metadata: RawMetadata
    success: bool


def read_raw_base(path: Path) -> RawBase:
    """Read one raw M-QUEST knowledge base file; an error names the file."""
    return conform(RawBase, read_json(path), path.name)


def meme_of(path: Path) -> str:
    """Return the id of the meme that a knowledge base file belongs to.

    >>> meme_of(Path("kb/01382_refined_ontology.ttl"))
    '01382'
    """
    return path.name.removesuffix(RAW).removesuffix(REFINED)


def read_file(path: Path) -> bytes:
    """Return the bytes of a file; an error names the file."""
    try:
        return read_regular(path)
    except OSError as error:
        raise DataError(path.name, f"cannot be read: {error.strerror or error}") from error


def parse_turtle(text: bytes, name: str) -> Iterator[Quad]:
    """Yield the statements of a Turtle file in order."""
    need_offline("pyoxigraph")
    import pyoxigraph

    if QUOTE in text:
        refuse_nesting(text, name)
    try:
        yield from pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.TURTLE)
    except SyntaxError as error:
        raise DataError(
            name, f"not valid Turtle: {error.msg}"[:300], hint="download the file again"
        ) from error


def split_iri(iri: str) -> tuple[str, str]:
    """Split an IRI into namespace and local name, at the last ``#`` or ``/``.

    >>> split_iri("http://x.org/memes#cat")
    ('http://x.org/memes#', 'cat')
    """
    cut = max(iri.rfind("#"), iri.rfind("/")) + 1
    return iri[:cut], iri[cut:]


def find_folder(root: Path) -> Path:
    """Return the folder with the PunMemeCN metadata, in any official layout."""
    for place in PLACES:
        if (root / place / META).is_file():
            return root / place
    looked = ", ".join(f"{place}/{META}" if place else META for place in PLACES)
    raise DataError(
        root,
        f"not a PunMemeCN release: none of these was found: {looked}",
        hint="give the cloned official repository, or the folder with its files",
    )


def is_test(group: str) -> bool:
    """Return whether a group of memes is in the test part.

    The PunMemeCN paper trains on 500 of 653 groups and does not list them. Here a hash of the group
    decides, so that a group is in the same part in every copy of the data.

    >>> [group for group in map(str, range(1, 11)) if is_test(group)]
    ['2', '5', '6']
    """
    digest = hashlib.sha256(f"punmemecn:{group}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % 653 < 153


def choose_groups(wanted: str, known: Iterable[str]) -> frozenset[str]:
    """Return the groups a user selected: ``train``, ``test``, or numbers and ranges.

    >>> sorted(choose_groups("1-2,CN00005", ["CN00001", "CN00003", "CN00005"]))
    ['CN00001', 'CN00005']
    """
    groups = frozenset(known)
    if wanted in ("train", "test"):
        return frozenset(group for group in groups if is_test(group) == (wanted == "test"))
    named: set[str] = set()
    for part in wanted.split(","):
        found = _RANGE.fullmatch(part.strip())
        if found is None:
            raise InputError(
                f"{part.strip()[:40]!r} is not a valid selection of groups",
                hint="use train, test, or numbers such as 1-100,205",
            )
        first = int(found[1])
        named.update(f"CN{number:05d}" for number in range(first, int(found[2] or first) + 1))
    if not named & groups:
        raise InputError(
            f"none of the groups {wanted[:40]} is in the data", hint="select other groups"
        )
    return groups & named
