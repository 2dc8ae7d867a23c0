"""Official knowledge bases become knowledge of ours: names resolve, relations get our names."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from operator import attrgetter

from memantics.core.errors import DataError
from memantics.knowledge import official, records
from memantics.knowledge.graph import order_of
from memantics.knowledge.ontology.vocabulary import DIMENSIONS, RELATIONS, Dimension, find_kind
from memantics.releases.mquest import FileStatement

COLLECTION = "mquest"
WARNING = "Memes of this collection may attack people; they are shown for research only."
# Other words of the official files for what our ontology calls differently.
_RENAMED: Mapping[str, str] = {"hasProjectedEntity": "projectedOnto"}


@dataclass(frozen=True, slots=True)
class Mend:
    """A reference in other words than the individual's name, and what it was read as."""

    meme: str
    written: str
    read_as: str


@dataclass(slots=True)
class Account:
    """What an import found. ``differing`` are individuals of which the two files say other things.

    ``copied`` are statements of the official ontology, which every refined file holds;
    ``repeated`` those that say again what was said.
    """

    memes: int = 0
    individuals: Counter[str] = field(default_factory=Counter)
    relations: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    dangling: list[records.Dangling] = field(default_factory=list)
    mended: list[Mend] = field(default_factory=list)
    ambiguous: int = 0
    renamed: int = 0
    copied: int = 0
    repeated: int = 0
    differing: list[str] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)

    def add(self, made: records.Knowledge) -> None:
        """Count what is known about one more meme."""
        self.memes += 1
        self.individuals.update(individual.dimension for individual in made.individuals)
        names = [link.relation for value in made.individuals for link in value.relations]
        for name in (*names, *(said.relation for said in made.loose)):
            (self.relations if name in RELATIONS else self.said)[name] += 1
        self.dangling += made.dangling()


def adopt(files: Iterable[official.OfficialFiles], account: Account) -> Iterator[records.Knowledge]:
    """Read knowledge bases one by one, and keep account of what was found."""
    heads = official.Heads()
    for file in files:
        made = _Adoption(file, account, heads).make()
        account.add(made)
        yield made


@dataclass
class _Adoption:
    files: official.OfficialFiles
    account: Account
    heads: official.Heads
    links: dict[str, list[records.Relation]] = field(default_factory=lambda: defaultdict(list))
    loose: list[records.Statement] = field(default_factory=list)
    done: set[tuple[str, str, str]] = field(default_factory=set)

    def make(self) -> records.Knowledge:
        files = self.files
        raw = official.read_raw(files.raw) if files.raw else None
        refined = official.read_refined(files.refined, self.heads) if files.refined else None
        self.base = raw or refined or official.Base()
        if not self.base.individuals:
            where = files.raw or files.refined or files.meme
            raise DataError(
                getattr(where, "name", where),
                "holds no individual of a known dimension, in any namespace",
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
        """Individuals by the name that official files write for them."""
        found: dict[str, list[records.Individual]] = defaultdict(list)
        for individual, former in zip(self.individuals, self.base.individuals, strict=True):
            found[_slug(former.name)].append(individual)
        return found

    @cached_property
    def other_names(self) -> Mapping[str, Sequence[records.Individual]]:
        """Individuals by what models wrote instead of the name: the label, or name and label."""
        found: dict[str, list[records.Individual]] = defaultdict(list)
        for individual, former in zip(self.individuals, self.base.individuals, strict=True):
            name, label = _slug(former.name), _slug(former.label)
            told = f"{name}_{label}_{_slug(former.description)}".strip("_")
            for words in {label, f"{name}_{label}", told, name} - {""}:
                found[words.casefold()].append(individual)
        return found

    def settle(self, raw: official.Base | None, refined: official.Base | None) -> None:
        """Statements of the raw file know their subject; the refined file adds its own."""
        for place, said in (raw.statements if raw else {}).items():
            for statement in said:
                self.link(statement, self.individuals[place])
        for statement in raw.said if raw else ():
            self.link(statement)
        known = {FileStatement(*map(_slug, names)) for names in self.statements(raw)}
        origin = None
        if raw and refined and self.files.refined:
            origin = records.Provenance(source=self.files.refined.name)
        for statement in refined.said if refined else ():
            if FileStatement(*map(_slug, statement)) not in known:
                self.link(statement, origin=origin)

    @staticmethod
    def statements(raw: official.Base | None) -> Iterator[FileStatement]:
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
        """Find both ends of a statement, and keep it where its subject is."""
        relation = _RENAMED.get(said.relation, said.relation)
        term = RELATIONS.get("about" if relation == "relatedTo" else relation)
        mended = False
        start = source
        if start is None:
            start, mended = self.find(said.source, term.domain if term else ())
        end, mended_too = self.find(said.target, term.range if term else ())
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
        written = " ".join(said) if mended or mended_too else ""
        if written:
            read_as = f"{start.key} {relation} {target}"
            self.account.mended.append(Mend(self.files.meme, written, read_as))
        self.links[start.key].append(records.Relation(relation, target, origin, written))

    def find(
        self, name: str, fitting: Sequence[Dimension]
    ) -> tuple[records.Individual | None, bool]:
        """The individual that a name means, and whether finding it took other words than its name.

        Where several have the name, the relation says which dimension fits.
        """
        words = _slug(name)
        found, mended = self.names.get(words, ()), False
        if not found:
            found, mended = self.other_names.get(words.casefold(), ()), True
            if len(found) > 1:
                return None, False
        if not found:
            return None, False
        if len(found) > 1:
            self.account.ambiguous += 1
        order = [*fitting, *DIMENSIONS]
        return min(found, key=lambda individual: order.index(individual.dimension)), mended


def _compare(meme: str, raw: official.Base, refined: official.Base) -> Iterator[str]:
    """Individuals that only one of the two files has, or that read differently there."""
    if _count(raw, str) == _count(refined, str):
        return
    first, second = _count(raw, _fold), _count(refined, _fold)
    for where, extra in (("raw", first - second), ("refined", second - first)):
        for dimension, name, _, _ in extra.elements():
            yield f"{meme}: {dimension}/{name} reads so in the {where} file only"


def _count(base: official.Base, read: Callable[[str], str]) -> Counter[tuple[str, str, str, str]]:
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
    """What escaping and unescaping may have changed does not count."""
    return re.sub(r"[\s\\]+", " ", text).strip()


@lru_cache(maxsize=8192)
def _slug(name: str) -> str:
    """A name as official Turtle writes it.

    >>> _slug("the two (old) knights!")
    'the_two_old_knights'
    """
    return re.sub(r"_+", "_", re.sub(r"\W", "_", name)).strip("_") or "unnamed"
