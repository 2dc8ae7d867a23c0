"""What people said about knowledge when they judged questions: who agreed is part of its origin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from memantics.core.queue import CARD, VERDICTS
from memantics.core.review import Review, read_review
from memantics.knowledge.lines import read_knowledge
from memantics.knowledge.records import Individual, Knowledge, Provenance, Relation

_AGREED = "yes"


@dataclass(slots=True)
class Agreement:
    """Who agreed: with individuals, by key, and with links to the element behind a harm."""

    individuals: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    links: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))


def read_confirmed(build: Path) -> Iterator[Knowledge]:
    """The knowledge of a build, with who confirmed what where its questions were judged."""
    agreed: dict[str, Agreement] = defaultdict(Agreement)
    for queue in sorted(build.glob("queue*")):
        if (queue / CARD).is_file() and (queue / VERDICTS).is_file():
            _gather(read_review(queue, None), agreed)
    for knowledge in read_knowledge(build):
        own = agreed.get(knowledge.meme)
        yield confirm(knowledge, own) if own else knowledge


def _gather(review: Review, agreed: Mapping[str, Agreement]) -> None:
    """Which statement an item shows stands among its hidden facts (see ``questions.review``)."""
    for own in review.judged:
        focus, element = own.item.hidden.get("focus"), own.item.hidden.get("element")
        for vote in own.verdict.votes if own.verdict else ():
            if isinstance(focus, str) and vote.values.get("knowledge") == _AGREED:
                agreed[own.item.group].individuals[focus].add(vote.person)
            both = isinstance(focus, str) and isinstance(element, str)
            if both and vote.values.get("element") == _AGREED:
                agreed[own.item.group].links[str(focus), str(element)].add(vote.person)


def confirm(knowledge: Knowledge, agreed: Agreement) -> Knowledge:
    """Knowledge with the people who agreed with it.

    >>> agreed = Agreement()
    >>> agreed.individuals["Scene/duel"].add("p1")
    >>> known = confirm(Knowledge("7", (Individual("Scene", "duel", "a duel"),)), agreed)
    >>> known.individuals[0].provenance.confirmed_by
    ('p1',)
    """

    def look_at(own: Individual) -> Individual:
        links = tuple(_confirm_link(own, link, agreed) for link in own.relations)
        people = agreed.individuals.get(own.key, ())
        return replace(own, relations=links, provenance=_add(own.provenance, people))

    return replace(knowledge, individuals=tuple(map(look_at, knowledge.individuals)))


def _confirm_link(own: Individual, link: Relation, agreed: Agreement) -> Relation:
    people = agreed.links.get((own.key, link.target), set())
    if link.relation != "hasToxicElement" or not people:
        return link
    return replace(link, provenance=_add(link.provenance or own.provenance, people))


def _add(origin: Provenance | None, people: Iterable[str]) -> Provenance | None:
    if not people:
        return origin
    known = origin or Provenance()
    return replace(known, confirmed_by=tuple(sorted({*known.confirmed_by, *people})))
