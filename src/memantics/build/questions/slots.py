"""Which questions to write: so many for each dimension, each about an individual that is there."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from memantics.build.questions.records import QuestionSettings, Slot, Written
from memantics.knowledge.ontology.vocabulary import DIMENSIONS
from memantics.knowledge.records import Individual, Knowledge

_SHOWN: tuple[Written, ...] = ("correct", "plausible", "implausible")


def draw(below: int, *parts: object) -> int:
    """A number below a bound that depends on the parts alone.

    >>> draw(3, 0, "en-001/Scene/1") == draw(3, 0, "en-001/Scene/1")
    True
    """
    digest = hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big") % below


def plan_slots(knowledge: Knowledge, settings: QuestionSettings) -> list[Slot]:
    """The questions about one meme; a dimension without individuals has none.

    Every toxicity question whose individual points to a toxic element has a pair: a question
    about that element, one that is asked anyway or one more.
    """
    slots: dict[str, Slot] = {}
    for dimension in DIMENSIONS:
        own = knowledge.of(dimension)
        if own and (not settings.dimensions or dimension in settings.dimensions):
            for number in range(settings.per_dimension):
                focus = own[number % len(own)]
                name = f"{knowledge.meme}/{dimension}/{number + 1}"
                slots[name] = _make(name, focus, knowledge.meme, settings)
    for toxic in [slot for slot in slots.values() if slot.dimension == "Toxicity"]:
        element = find_toxic_element(knowledge, knowledge.by_key[toxic.focus])
        if element is None:
            continue
        free = (s for s in slots.values() if s.focus == element.key and not s.pair)
        slot = next(free, None)
        if slot is None:
            last = toxic.id.rpartition("/")[2]
            name = f"{knowledge.meme}/{element.dimension}/toxic-{last}"
            slot = _make(name, element, knowledge.meme, settings)
        slots[slot.id] = replace(slot, pair=toxic.id)
    return list(slots.values())


def _make(name: str, focus: Individual, meme: str, settings: QuestionSettings) -> Slot:
    longest = _SHOWN[draw(len(_SHOWN), settings.seed, "longest", name)]
    return Slot(name, meme, focus.dimension, focus.key, longest)


def find_toxic_element(knowledge: Knowledge, toxicity: Individual) -> Individual | None:
    """The first individual that a toxicity individual says it comes from; None: it names none."""
    if toxicity.dimension != "Toxicity":
        return None
    for link in toxicity.relations:
        if link.relation == "hasToxicElement" and link.target in knowledge.by_key:
            return knowledge.by_key[link.target]
    return None
