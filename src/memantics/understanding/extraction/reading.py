"""Parse a model's reply into validated facts (ontology individuals) and relations."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import Field, JsonValue

from memantics.core.records import Closed
from memantics.core.reply import conform_value, find_values, take_one
from memantics.core.task import Unparsed
from memantics.core.text import clean_line
from memantics.understanding.knowledge.ontology import vocabulary
from memantics.understanding.knowledge.records import Individual, Relation

# Names of individuals are short, safe and visibly different.

LONGEST = 60
# Look-alike letters of other scripts are folded only to compare names, not to change them.
_LOOKALIKES = str.maketrans(
    "авекмнорстухіјѕԁһⅼοανρτυκіԛԝ",
    "abekmhopctyxijsdhloavptukiqw",
)


def make_name(text: str) -> str:
    """Make an identifier from a model's text: letters, digits and marks of any script.

    >>> make_name("  Grumpy Cat (left)! "), make_name("键盘 1"), make_name("../..//")
    ('grumpy_cat_left', '键盘_1', '')
    """
    folded = unicodedata.normalize("NFKC", clean_line(text, 400)).casefold()
    kept = "".join(c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in folded)
    return "_".join(kept.split())[:LONGEST].strip("_")


def fold_lookalikes(name: str) -> str:
    """Replace look-alike letters of other scripts with Latin ones.

    >>> fold_lookalikes("саt") == fold_lookalikes("cat")
    True
    """
    return unicodedata.normalize("NFKC", name).casefold().translate(_LOOKALIKES)


class Names:
    """The names used so far in one dimension; a look-alike name gets a number.

    >>> names = Names()
    >>> [names.give("cat"), names.give("cat"), names.give("саt"), names.give("")]
    ['cat', 'cat_2', 'саt_3', 'unnamed']
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self.renamed = 0

    def give(self, name: str) -> str:
        """Return the name if it is free, else with the first free number."""
        base = name or "unnamed"
        given, number = base, 1
        while fold_lookalikes(given) in self._taken:
            number += 1
            given = f"{base}_{number}"
        self.renamed += given != base
        self._taken.add(fold_lookalikes(given))
        return given


MOST = 200
MOST_RELATIONS = 500


# Fields of a reply whose values are added to the description of a fact.
ROLES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "Emotion": (
        "holder",
        {"figure": "felt by a figure in the meme", "viewer": "felt by the viewer"},
    ),
    "TargetCommunity": ("role", {"addressed": "addressed", "attacked": "attacked"}),
}


# Scenes have spatial relations and free relations for actions.
ARRANGED = "Scene"
# this text of the prompt appears in the reply of a model that copies the prompt
EXAMPLE = "what people call it"


class SaidRelation(Closed):
    """A relation of one entry in a reply."""

    relation: str
    target: str


class SaidLink(Closed):
    """A relation with its source in a reply."""

    source: str
    relation: str
    target: str


class SaidIndividual(Closed):
    """One entry of a model reply; ``arrangement`` (how things are placed) is used for scenes."""

    name: str = ""
    label: str = Field(min_length=1)
    description: str = ""
    kind: str = ""
    holder: str = ""
    role: str = ""
    relations: list[SaidRelation] = Field(default_factory=list)
    arrangement: list[SaidLink] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ReadReply:
    """The facts (individuals) parsed from a model's reply.

    ``merged`` counts exact duplicates; ``renamed`` counts entries whose name was already used.
    ``links`` are relations between facts that were known before.
    """

    individuals: tuple[Individual, ...]
    merged: int = 0
    renamed: int = 0
    links: tuple[ReadRelation, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadRelation:
    """A relation and its individual, ``Dimension/name``."""

    source: str
    relation: Relation


class Directory:
    """Resolve references to listed facts (ontology individuals) by name or label.

    >>> cat = Individual("VisualMaterial", "grumpy_cat", "the cat")
    >>> names = Directory([cat])
    >>> [names.find(said) for said in ("VisualMaterial/grumpy_cat", "Grumpy Cat", "dog")]
    ['VisualMaterial/grumpy_cat', 'VisualMaterial/grumpy_cat', None]
    """

    def __init__(
        self, individuals: Iterable[Individual], relations: Iterable[str] = vocabulary.RELATIONS
    ) -> None:
        self.relations = tuple(relations)
        self._exact: dict[str, str] = {}
        self._loose: dict[str, set[str]] = {}
        for individual in individuals:
            self._exact[individual.key] = individual.key
            for word in {individual.name, make_name(individual.label)}:
                for spelling in (word, f"{individual.dimension}/{word}"):
                    self._loose.setdefault(fold_lookalikes(spelling), set()).add(individual.key)

    def find(self, said: str) -> str | None:
        """Return the referenced ``Dimension/name``; None if unknown or ambiguous."""
        said = clean_line(said, 400)
        if said in self._exact:
            return said
        head, slash, rest = said.replace(":", "/", 1).partition("/")
        dimension = vocabulary.find_dimension(head.strip()) if slash else None
        loose = f"{dimension}/{make_name(rest)}" if dimension else make_name(said)
        found = self._loose.get(fold_lookalikes(loose), set())
        return next(iter(found)) if len(found) == 1 else None

    def resolve(self, said: str) -> str:
        """Return the resolved reference, or the original text if it is unknown."""
        return self.find(said) or clean_line(said, 200)


def read_individuals(
    text: str,
    dimension: vocabulary.Dimension,
    known: Iterable[Individual] = (),
    relations: Iterable[str] = vocabulary.RELATIONS,
) -> ReadReply:
    """Parse the reply of a step; ``known`` and ``relations`` are the allowed references.

    >>> read_individuals('[{"name": "Cat", "label": "a cat"}]', "VisualMaterial").individuals[0].key
    'VisualMaterial/cat'
    """
    entries = _list_entries(find_values(text))
    different = {json.dumps(entry, sort_keys=True): entry for entry in entries}
    if len(different) > MOST:
        raise Unparsed(
            f"{len(different):,} entries are too many: give the {MOST} that matter most at most"
        )
    said = [conform_value(SaidIndividual, entry) for entry in different.values()]
    names, directory = Names(), Directory(known, relations)
    made = tuple(_make(individual, dimension, names, directory) for individual in said)
    arranged = [
        one for individual in said if dimension == ARRANGED for one in individual.arrangement
    ]
    links = tuple(dict.fromkeys(_arrange(one, directory) for one in arranged))
    return ReadReply(made, len(entries) - len(different), names.renamed, links)


def _arrange(said: SaidLink, directory: Directory) -> ReadRelation:
    """Parse a spatial or free relation between two known individuals.

    >>> things = [Individual("VisualMaterial", name, name) for name in ("cat", "mat")]
    >>> _arrange(SaidLink(source="cat", relation="Sits on", target="mat"), Directory(things))
    ReadRelation(source='VisualMaterial/cat', relation=Relation(relation='sits_on',\
 target='VisualMaterial/mat', provenance=None, written=''))
    >>> said = SaidLink(source="cat", relation="left of", target="mat")
    >>> _arrange(said, Directory(things)).relation.relation
    'isLeftOf'
    """
    name = make_name(said.relation)
    if not name:
        raise Unparsed("a relation of the arrangement is empty")
    ends = []
    for named in (said.source, said.target):
        found = directory.find(named)
        if found is None:
            raise Unparsed(
                f"{clean_line(named, 60)!r} in the arrangement is not one of those listed"
            )
        ends.append(found)
    return ReadRelation(ends[0], Relation(vocabulary.find_spatial(name) or name, ends[1]))


def _list_entries(values: list[JsonValue]) -> list[JsonValue]:
    """List the entries of a reply: wrapped, as a bare or nested list, or single."""
    if len(values) > 1 and all(isinstance(value, dict) and "label" in value for value in values):
        return values
    value = take_one(values)
    if isinstance(value, dict) and "individuals" in value:
        value = value["individuals"]
        if not isinstance(value, list):
            raise Unparsed("'individuals' must be a list")
    elif isinstance(value, dict) and "label" not in value:
        raise Unparsed("the field 'individuals' is missing")
    return flatten(value if isinstance(value, list) else [value])


def flatten(values: list[JsonValue]) -> list[JsonValue]:
    """Flatten nested lists in order.

    >>> flatten([[1, [2]], 3])
    [1, 2, 3]
    """
    flat: list[JsonValue] = []
    left: list[JsonValue] = list(reversed(values))
    while left:
        value = left.pop()
        if isinstance(value, list):
            left.extend(reversed(value))
        else:
            flat.append(value)
    return flat


def _make(
    said: SaidIndividual, dimension: vocabulary.Dimension, names: Names, directory: Directory
) -> Individual:
    label = clean_line(said.label, 300)
    if not label or label == EXAMPLE:
        raise Unparsed("a label is empty, or the example of the prompt: say what the meme holds")
    kind = _read_kind(said.kind) if dimension == "Toxicity" else ""
    # An ontology relation that was not offered here is ignored, like an unknown key.
    links = (
        _make_relation(one.relation, one.target, directory)
        for one in said.relations
        if one.relation in directory.relations or one.relation not in vocabulary.RELATIONS
    )
    return Individual(
        dimension,
        names.give(make_name(said.name) or make_name(said.label)),
        label,
        _tell_role(clean_line(said.description), said, dimension),
        tuple(dict.fromkeys(links)),
        kind,
    )


def _tell_role(description: str, said: SaidIndividual, dimension: vocabulary.Dimension) -> str:
    if dimension not in ROLES:
        return description
    name, words = ROLES[dimension]
    answer = clean_line(getattr(said, name), 40).casefold()
    role = next((words[word] for word in words if word in answer), "")  # also for "the viewer"
    return f"{description} ({role})".strip() if role else description


def _read_kind(said: str) -> str:
    found = vocabulary.find_kind(said)
    if found is None:
        raise Unparsed(
            f"kind {clean_line(said, 40)!r} is not one of {', '.join(vocabulary.TOXICITY_KINDS)}"
        )
    return found


def _make_relation(name: str, target: str, directory: Directory) -> Relation:
    if name not in vocabulary.RELATIONS and name not in directory.relations:
        allowed = ", ".join(directory.relations) or "none: leave the list empty"
        raise Unparsed(f"relation {clean_line(name, 40)!r} is not allowed here: {allowed}")
    return Relation(name, directory.resolve(target))


def read_links(
    text: str,
    sources: Iterable[Individual],
    known: Iterable[Individual],
    relations: Iterable[str] = vocabulary.RELATIONS,
    *,
    free: bool = False,
) -> tuple[ReadRelation, ...]:
    """Parse a reply of the second pass; sources must be listed individuals.

    ``free`` allows spatial and free relations between known individuals.
    """
    value = take_one(find_values(text))
    if isinstance(value, Mapping):
        if not isinstance(value.get("relations"), list):
            raise Unparsed("give one object with the list 'relations'")
        value = value["relations"]
    links = flatten(value if isinstance(value, list) else [value])
    if len(links) > MOST_RELATIONS:
        raise Unparsed(f"{len(links):,} relations are too many: {MOST_RELATIONS} at most")
    owners, directory = Directory(sources), Directory(known, relations)
    made = []
    for entry in links:
        said = conform_value(SaidLink, entry)
        if free and (
            said.relation not in vocabulary.RELATIONS or said.relation in vocabulary.SPATIAL
        ):
            made.append(_arrange(said, directory))
            continue
        source = owners.find(said.source)
        if source is None:
            raise Unparsed(f"source {clean_line(said.source, 60)!r} is not one of those listed")
        made.append(ReadRelation(source, _make_relation(said.relation, said.target, directory)))
    return tuple(dict.fromkeys(made))
