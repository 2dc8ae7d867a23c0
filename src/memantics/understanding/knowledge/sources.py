"""Import sources of a knowledge store: official knowledge bases, builds and exported files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from memantics.core.data import read_file
from memantics.core.errors import DataError
from memantics.core.queue import ANNOTATIONS, CARD, Review, read_review
from memantics.core.releases import RAW, REFINED
from memantics.understanding.knowledge.formats import SUFFIXES, guess_format, parse
from memantics.understanding.knowledge.official import Account, OfficialFiles, adopt, find_official
from memantics.understanding.knowledge.records import (
    KNOWLEDGE,
    Individual,
    Knowledge,
    Provenance,
    Relation,
    read_knowledge,
)
from memantics.understanding.knowledge.store import GraphStore

_AGREED = "yes"


@dataclass(slots=True)
class Confirmations:
    """The people who confirmed each fact (by key) and each link to a toxic element."""

    individuals: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    links: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))


def read_confirmed(build: Path) -> Iterator[Knowledge]:
    """Read the facts of a build, with the people who confirmed them if it was annotated."""
    agreed: dict[str, Confirmations] = defaultdict(Confirmations)
    for queue in sorted(build.glob("queue*")):
        if (queue / CARD).is_file() and (queue / ANNOTATIONS).is_file():
            _gather(read_review(queue, None), agreed)
    for knowledge in read_knowledge(build):
        agreement = agreed.get(knowledge.meme)
        yield confirm(knowledge, agreement) if agreement else knowledge


def _gather(review: Review, agreed: Mapping[str, Confirmations]) -> None:
    """Collect who confirmed the facts behind each annotated question (see ``questions.review``)."""
    for reviewed in review.annotated:
        focus, element = reviewed.item.hidden.get("focus"), reviewed.item.hidden.get("element")
        for vote in reviewed.aggregated.annotations if reviewed.aggregated else ():
            if isinstance(focus, str) and vote.values.get("knowledge") == _AGREED:
                agreed[reviewed.item.group].individuals[focus].add(vote.annotator)
            both = isinstance(focus, str) and isinstance(element, str)
            if both and vote.values.get("element") == _AGREED:
                agreed[reviewed.item.group].links[str(focus), str(element)].add(vote.annotator)


def confirm(knowledge: Knowledge, agreed: Confirmations) -> Knowledge:
    """Add the people who confirmed a fact to its provenance.

    >>> agreed = Confirmations()
    >>> agreed.individuals["Scene/duel"].add("p1")
    >>> known = confirm(Knowledge("7", (Individual("Scene", "duel", "a duel"),)), agreed)
    >>> known.individuals[0].provenance.confirmed_by
    ('p1',)
    """

    def look_at(individual: Individual) -> Individual:
        links = tuple(_confirm_link(individual, link, agreed) for link in individual.relations)
        people = agreed.individuals.get(individual.key, ())
        return replace(individual, relations=links, provenance=_add(individual.provenance, people))

    return replace(knowledge, individuals=tuple(map(look_at, knowledge.individuals)))


def _confirm_link(individual: Individual, link: Relation, agreed: Confirmations) -> Relation:
    people = agreed.links.get((individual.key, link.target), set())
    if link.relation != "hasToxicElement" or not people:
        return link
    return replace(link, provenance=_add(link.provenance or individual.provenance, people))


def _add(origin: Provenance | None, people: Iterable[str]) -> Provenance | None:
    if not people:
        return origin
    known = origin or Provenance()
    return replace(known, confirmed_by=tuple(sorted({*known.confirmed_by, *people})))


_CHUNK = 500


def import_path(store: GraphStore, path: Path) -> Account:
    """Import a path into a store, and return the counts."""
    if not path.exists():
        raise DataError(
            path, "no such file or folder", hint="use a folder or file of knowledge, or 'sample'"
        )
    account = Account()
    if official := _official(path):
        import_all(store, adopt(official, account))
    elif built := _built(path):
        import_all(store, _count(read_confirmed(built), account))
    else:
        for file in _files(path):
            memes = store.add_quads(parse(read_file(file), guess_format(file), file.name))
            if not memes:
                raise DataError(
                    file.name,
                    "contains no statement about a meme",
                    hint="use a file written by 'kb export' or 'build knowledge'",
                )
            for meme in memes:
                account.add(store.get(meme))
    return account


def import_all(store: GraphStore, knowledge: Iterable[Knowledge]) -> None:
    """Import knowledge into a store in batches of some hundred memes."""
    rest = iter(knowledge)
    while chunk := list(islice(rest, _CHUNK)):
        store.add(chunk)


def _count(knowledge: Iterable[Knowledge], account: Account) -> Iterator[Knowledge]:
    for meme_knowledge in knowledge:
        account.add(meme_knowledge)
        yield meme_knowledge


def _official(path: Path) -> tuple[OfficialFiles, ...]:
    if path.is_dir():
        return find_official(path)
    if path.name.endswith(RAW):
        return (OfficialFiles(path.name.removesuffix(RAW), raw=path),)
    if path.name.endswith(REFINED):
        return (OfficialFiles(path.name.removesuffix(REFINED), refined=path),)
    return ()


def _built(path: Path) -> Path | None:
    """Return the build folder if the path is a build folder or the knowledge file in it."""
    if path.name == KNOWLEDGE:
        return path.parent
    return path if (path / KNOWLEDGE).is_file() else None


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(folder for folder in path.iterdir() if folder.suffix.lower() in SUFFIXES)
    if not found:
        raise DataError(
            path,
            "contains no knowledge files",
            hint=f"expected <id>{RAW}, <id>{REFINED}, {KNOWLEDGE} or files that end in "
            f"{', '.join(SUFFIXES)}",
        )
    return found
