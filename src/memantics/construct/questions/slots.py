"""Which questions to write: so many for each dimension, each about an individual that is there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from memantics.construct.knowledge.records import Individual, Knowledge
from memantics.construct.ontology.vocabulary import DIMENSIONS
from memantics.construct.questions.records import QuestionSettings, Slot, Written

_SHOWN: tuple[Written, ...] = ("correct", "plausible", "implausible")


def draw(below: int, *parts: object) -> int:
    """A number below a bound that depends on the parts alone.

    >>> draw(3, 0, "en-001/Scene/1") == draw(3, 0, "en-001/Scene/1")
    True
    """
    digest = hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big") % below


def plan_slots(knowledge: Knowledge, settings: QuestionSettings) -> Iterator[Slot]:
    """The questions about one meme; a dimension without individuals has none.

    Every toxicity question whose individual points to a toxic element is followed by a question
    about that element, its pair.
    """
    for dimension in DIMENSIONS:
        own = knowledge.of(dimension)
        if not own or (settings.dimensions and dimension not in settings.dimensions):
            continue
        for number in range(settings.per_dimension):
            focus = own[number % len(own)]
            slot = _make(f"{knowledge.meme}/{dimension}/{number + 1}", knowledge, focus, settings)
            yield slot
            element = find_toxic_element(knowledge, focus)
            if element is not None:
                name = f"{knowledge.meme}/{element.dimension}/toxic-{number + 1}"
                yield _make(name, knowledge, element, settings, slot.id)


def _make(
    name: str,
    knowledge: Knowledge,
    focus: Individual,
    settings: QuestionSettings,
    pair: str = "",
) -> Slot:
    longest = _SHOWN[draw(len(_SHOWN), settings.seed, "longest", name)]
    return Slot(name, knowledge.meme, focus.dimension, focus.key, longest, pair)


def find_toxic_element(knowledge: Knowledge, toxicity: Individual) -> Individual | None:
    """The first individual that a toxicity individual says it comes from; None: it names none."""
    if toxicity.dimension != "Toxicity":
        return None
    for link in toxicity.relations:
        if link.relation == "hasToxicElement" and link.target in knowledge.by_key:
            return knowledge.by_key[link.target]
    return None
