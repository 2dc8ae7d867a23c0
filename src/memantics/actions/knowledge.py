"""Knowledge about memes: a store that is imported into, asked, checked, drawn and exported."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal

from memantics.core.errors import InputError
from memantics.core.journal import replace_file
from memantics.core.result import Result, Table
from memantics.core.retrieved import NearMeme, Passage
from memantics.knowledge.adoption import Account
from memantics.knowledge.drawing import draw, read_style
from memantics.knowledge.figures import StoreFigures, list_dangling, measure
from memantics.knowledge.formats import Format, guess_format, serialize
from memantics.knowledge.ontology.vocabulary import RELATIONS, name_dimension
from memantics.knowledge.querying import MOST_CHARACTERS, PATIENCE, QueryRows, shorten
from memantics.knowledge.records import (
    Dangling,
    Individual,
    Knowledge,
    Provenance,
    Relation,
    tell_apart,
)
from memantics.knowledge.retrieval import Pool, open_pool, pool_knowledge
from memantics.knowledge.sources import import_path
from memantics.knowledge.store import GraphStore
from memantics.knowledge.validation import Breach, validate, validate_slowly
from memantics.registry.benchmarks import find_warning
from memantics.report.pages.knowledge import find_image, write_page

__all__ = [
    "MOST_CHARACTERS",
    "PATIENCE",
    "STARTER",
    "Dangling",
    "Format",
    "Individual",
    "Knowledge",
    "KnowledgeStore",
    "MemeKnowledge",
    "NearMeme",
    "Passage",
    "QueryRows",
    "open_known",
    "retrieve",
    "retrieve_background",
    "tabulate_near",
]
_SHOWN = 15
STARTER, STARTER_SOURCE = "starter", "starter pack"


@dataclass(frozen=True)
class MemeKnowledge(Knowledge, Result):
    """What is known about one meme; a notebook shows it as a drawing."""

    def save(self, page: Path | str, *, images: Path | str | None = None) -> Path:
        """Write a page with the drawing beside the meme; ``images`` is the memes' folder."""
        folder = None if images is None else Path(images)
        image = find_image(self, folder)
        warning = self.warning or find_warning(image, self.collection)
        write_page(replace(self, warning=warning), Path(page), image)
        return Path(page)

    def _repr_html_(self) -> str:
        return f"<style>{read_style()}</style>{draw(self)}"


class KnowledgeStore(GraphStore):
    """What is known about many memes, by id.

    >>> store = KnowledgeStore.in_memory()
    >>> store.add([Knowledge("7", (Individual("Scene", "duel", "two knights"),))])
    1
    >>> store.ids(), store.get("7").of("Scene")[0].label
    (('7',), 'two knights')
    """

    def get(self, meme: str) -> MemeKnowledge:
        """What is known about one meme."""
        known = super().get(meme)
        return MemeKnowledge(**{field.name: getattr(known, field.name) for field in fields(known)})

    def import_path(self, source: Path | str) -> Account:
        """Add what lies at a path, and say what was found; ``starter`` is the pack that ships.

        A path is a folder or file of official knowledge bases, of a build, or of an export.
        """
        if str(source) != STARTER:
            return import_path(self, Path(source))
        account, known = Account(), read_starter_knowledge()
        for knowledge in known:
            account.add(knowledge)
        self.add(known)
        return account

    def validate(
        self,
        shapes: Path | None = None,
        engine: Literal["store", "pyshacl"] = "store",
        timeout: float = PATIENCE,
    ) -> tuple[Breach, ...]:
        """Every breach of the ontology's SHACL shapes, or of those in a file."""
        if engine == "store":
            return validate(self, shapes, timeout)
        return validate_slowly(self, shapes)

    def figures(self, timeout: float = PATIENCE) -> StoreFigures:
        """What the store holds, in figures; an error after ``timeout`` seconds."""
        return measure(self, timeout)

    def dangling(self, timeout: float = PATIENCE) -> tuple[Dangling, ...]:
        """Every statement of which an end is no individual."""
        return tuple(list_dangling(self, timeout))

    def serialize(self, memes: Sequence[str] | None = None, form: Format = "nquads") -> bytes:
        """Statements about some memes, or about all, in a format that can be imported again."""
        return serialize((quad for meme in memes or self.ids() for quad in self.quads(meme)), form)

    def export(
        self, out: Path, memes: Sequence[str] | None = None, form: Format | None = None
    ) -> None:
        """Write statements to a file; its name says the format where none is given."""
        replace_file(out, self.serialize(memes, form or guess_format(out)), "export")


def read_starter_knowledge() -> tuple[Knowledge, ...]:
    """What we wrote down about our own memes."""
    from memantics.starter import read_starter

    origin = Provenance(source=STARTER_SOURCE)
    return tuple(
        Knowledge(
            meme.id,
            tell_apart(
                Individual(
                    said.dimension,
                    said.name,
                    said.label,
                    said.description,
                    tuple(Relation(link.relation, link.target) for link in said.relations),
                    provenance=origin,
                )
                for said in meme.knowledge
            ),
            image=meme.file,
            language="en",
            collection=STARTER,
        )
        for meme in read_starter()
    )


Outline = list[tuple[str, list[tuple[Individual, list[str]]]]]


def outline(known: Knowledge) -> Outline:
    """What is known about a meme: each dimension that holds something, its individuals, links."""
    return [
        (
            name_dimension(name),
            [(individual, _tell_links(known, individual)) for individual in members],
        )
        for name in known.counts()
        if (members := known.of(name))
    ]


def _tell_links(known: Knowledge, individual: Individual) -> list[str]:
    told = []
    for link in individual.relations:
        term, target = RELATIONS.get(link.relation), known.by_key.get(link.target)
        verb = term.label if term else f"“{link.relation}”"
        end = f"{link.target} (leads nowhere)"
        if target is not None:
            end = f"{target.label} [{name_dimension(target.dimension)}]"
        told.append(f"{verb} → {end}")
    return told


def tabulate_rows(found: QueryRows) -> Table:
    """The rows that a query found, with known prefixes in place of long names."""
    rows = (tuple("" if cell is None else shorten(cell) for cell in row) for row in found.rows)
    return Table(found.variables, tuple(rows))


def tabulate_account(source: str, account: Account) -> Table:
    """What an import found, in counts."""
    counts = {
        "memes": account.memes,
        "individuals": sum(account.individuals.values()),
        "relations of the ontology": sum(account.relations.values()),
        "relations in other words, kept": sum(account.said.values()),
        "references that lead nowhere, kept": len(account.dangling),
        "references mended": len(account.mended),
        "same names told apart": account.renamed,
        "names that fit several individuals": account.ambiguous,
        "statements said twice": account.repeated,
        "individuals that two files tell differently": len(account.differing),
        "statements not understood": sum(account.unread.values()),
        "statements of the copied ontology, set aside": account.copied,
    }
    kept = {n: c for n, c in counts.items() if c or n in ("memes", "individuals")}
    return _count_table(f"from {source}", kept)


def tabulate_figures(found: StoreFigures) -> list[Table]:
    """What a store holds: dimensions, relations, and kinds of toxicity where there are any."""
    dimensions = tuple(
        (name, f"{figures.individuals:,}", f"{figures.memes:,}")
        for name, figures in found.dimensions.items()
    )
    said = list(found.said.items())
    relations = dict(found.relations) | {f"said: {name}": n for name, n in said[:_SHOWN]}
    if len(said) > _SHOWN:
        rest = sum(count for _, count in said[_SHOWN:])
        relations[f"said: {len(said) - _SHOWN:,} others"] = rest
    relations["references that lead nowhere"] = found.dangling
    tables = [Table(("dimension", ">individuals", ">in memes"), dimensions)]
    tables.append(_count_table("relation", relations))
    if any(found.kinds.values()):
        unknown = found.dimensions["Toxicity"].individuals - sum(found.kinds.values())
        tables.append(_count_table("toxicity", dict(found.kinds) | {"no known kind": unknown}))
    return tables


def tabulate_dangling(found: Sequence[Dangling]) -> Table:
    """Every reference that leads nowhere; the end that is missing is marked."""
    rows = (
        (
            dangling.meme,
            dangling.source + ("" if dangling.end == "target" else " (missing)"),
            dangling.relation,
            dangling.target + ("" if dangling.end == "source" else " (missing)"),
        )
        for dangling in found
    )
    return Table(("meme", "from", "relation", "to"), tuple(rows))


def _count_table(name: str, counts: Mapping[str, int]) -> Table:
    return Table((name, ">count"), tuple((text, f"{count:,}") for text, count in counts.items()))


def tabulate_breaches(found: Sequence[Breach], *, every: bool = False) -> Table:
    """Breaches of the shapes: each, or their kinds with an example, the gravest first."""
    if every:
        rows = tuple((breach.severity, shorten(breach.focus), breach.message) for breach in found)
        return Table(("severity", "where", "what"), rows)
    kinds: dict[tuple[str, str], list[Breach]] = {}
    for breach in found:
        kinds.setdefault((breach.severity, breach.message), []).append(breach)
    ordered = sorted(kinds.items(), key=lambda kind: ("VWI".index(kind[0][0][0]), -len(kind[1])))
    return Table(
        ("severity", "what", ">count", "such as"),
        tuple(
            (*kind, f"{len(breaches):,}", shorten(breaches[0].focus)) for kind, breaches in ordered
        ),
    )


# Find known memes, and what was said of them, near a meme.

Known = str | Path | Pool | Sequence[str | Path]


def retrieve(
    text: str = "",
    *,
    image: str | Path | None = None,
    known: Known,
    count: int = 5,
    without: Container[str] = (),
) -> tuple[NearMeme, ...]:
    """The memes nearest to a text and a picture, each with what was said of it.

    ``text`` and ``image`` are what is compared (one of them is enough), ``count`` how many are
    given. ``known`` is a knowledge store, a build of knowledge, a collection, ``starter``, or
    several of them; texts are compared by meaning, pictures by hash. ``without`` are ids that do
    not count.
    """
    if not text.strip() and image is None:
        raise InputError("nothing to look for", hint="give a text, an image or both")
    place = None if image is None else Path(image)
    return open_known(known).find_memes(text, place, count, without)


def retrieve_background(
    text: str,
    *,
    known: Known,
    count: int = 5,
    dimension: str = "BackgroundKnowledge",
    without: Container[str] = (),
) -> tuple[Passage, ...]:
    """Statements that may help to understand a text, with their provenance, the nearest first.

    ``known`` is a knowledge store, a build, or a folder of texts and tables; ``dimension`` is the
    one whose statements count, ``count`` how many are given; ids in ``without`` do not count.
    ``text`` is what a meme says.
    """
    return open_known(known).find_passages(text, count, dimension, without)


def open_known(known: Known) -> Pool:
    """What is known, opened; ``starter`` is the pack that ships."""
    if isinstance(known, Pool):
        return known
    places = [known] if isinstance(known, str | Path) else list(known)
    if [str(place) for place in places] == [STARTER]:
        return pool_knowledge(read_starter_knowledge(), STARTER)
    return open_pool(*places)


def tabulate_near(found: Sequence[NearMeme]) -> Table:
    """The nearest memes: how near, how different their pictures, and what they intend."""
    rows = []
    for meme in found:
        told = [said.text for said in meme.statements if said.dimension == "OverallIntent"]
        near = "–" if meme.nearness is None else f"{meme.nearness:.2f}"
        bits = "–" if meme.bits is None else str(meme.bits)
        rows.append((meme.meme, near, bits, meme.text[:60], (told or [""])[0][:60], meme.source))
    columns = ("meme", ">nearness", ">bits", "says", "intends", "source")
    return Table(columns, tuple(rows))
