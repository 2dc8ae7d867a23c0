"""Prompts of ``analyze`` about harm, emotion and puns.

``harm.toml`` defines the harm taxonomy and threshold of all prompts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from string import Template
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from pydantic import Field, model_validator

from memantics.core.data import toml_beside
from memantics.core.meaning import Dimension
from memantics.core.memes import HOMOPHONES, Meme
from memantics.core.model import Step
from memantics.core.prompt import prompts_beside
from memantics.core.records import Closed
from memantics.core.reply import read_object
from memantics.core.task import Unparsed
from memantics.core.text import clean_line
from memantics.models import drafts
from memantics.models.drafts import choice, make_request, name_language, record, show_material, text
from memantics.understanding.analysis.records import Feeling, Harm, PunSeen, SeenReading
from memantics.understanding.knowledge.ontology.vocabulary import DIMENSION_TERMS
from memantics.understanding.knowledge.records import Knowledge

# Two definitions of toxicity: the six kinds of M-QUEST's paper, or the harm taxonomy of "analyze".
ToxicityRule = Literal["paper", "reviewer"]
_ANY = "Harmful"  # the kind of toxicity that names no specific group or form
NONE = "none"
WordedEmotion = Literal[
    "happy", "calm", "relaxed", "excited", "sad", "angry", "tense", "bored", "neutral"
]
_MOST_ELEMENTS = 8


class HarmTerm(NamedTuple):
    """A type of harm and the equivalent kinds of toxicity."""

    name: str
    definition: str
    kinds: frozenset[str]


def _read_taxonomy() -> tuple[str, Mapping[str, str], Mapping[str, HarmTerm]]:
    told = toml_beside(__file__, "harm.toml")
    terms = {
        name: HarmTerm(name, value["definition"], frozenset((*value["kinds"], _ANY)))
        for name, value in told["types"].items()
    }
    return told["threshold"], MappingProxyType(told["rules"]), MappingProxyType(terms)


THRESHOLD, RULES, HARM_TERMS = _read_taxonomy()


def list_types() -> str:
    """List the types of harm for a prompt, one per line."""
    return "\n".join(f"- {term.name}: {term.definition}." for term in HARM_TERMS.values())


def tell_rule(rule: ToxicityRule) -> dict[str, str]:
    """Fill the placeholders of a prompt about toxicity: definition, types of harm, threshold.

    >>> tell_rule("paper")["counts"]
    'Whatever is of one of the kinds below counts.'
    """
    types = "; ".join(term.definition for term in HARM_TERMS.values())
    placeholders = {"types": types, "threshold": THRESHOLD}
    return {"counts": Template(RULES[rule]).substitute(placeholders), **placeholders}


def agrees(type_: str, kind: str) -> bool:
    """Tell whether a type of harm and a kind of toxicity are compatible.

    Unknown types and kinds are compatible with all others.

    >>> agrees("targeted", "Hateful"), agrees("dispirited", "Propaganda"), agrees("", "Abusive")
    (True, False, True)
    """
    return type_ not in HARM_TERMS or not kind or kind in HARM_TERMS[type_].kinds


class _HarmReply(Closed):
    harmful: bool
    type: str
    target: str
    elements: list[str] = Field(max_length=_MOST_ELEMENTS)
    reason: str


class WordedFeeling(Closed):
    """An emotion of the fixed list; ``word`` has the model's own word if it is not in the list.

    Known words map to the nearest emotion: "tired" to bored, "disgusted" to angry.
    """

    emotion: str
    word: str = Field(default="", max_length=60)

    @model_validator(mode="before")
    @classmethod
    def _name(cls, given: Any) -> Any:
        said = str(given.get("emotion")) if isinstance(given, dict) else ""
        nearest = _NEAREST.get(said.strip().casefold())
        return given if nearest is None else {**given, "emotion": nearest, "word": said[:60]}


_NEAREST = {
    word: emotion
    for emotion, words in toml_beside(__file__, "emotions.toml").items()
    for word in words
}


class _FeelingReply(WordedFeeling):
    emotion: WordedEmotion
    reason: str


find_prompts = prompts_beside(__file__)


def ask_harm(meme: Meme, language: str, model: str, known: Knowledge | None = None) -> Step[Harm]:
    """Build the harm question; the prompt includes extracted toxicity and background."""
    names = (*HARM_TERMS, NONE)
    body = find_prompts()["harm"].fill(
        **_show(meme, known, "Toxicity", "BackgroundKnowledge"),
        types=list_types(),
        threshold=THRESHOLD,
        names=" or ".join(f'"{name}"' for name in names),
        language=drafts.name_language(language),
    )
    schema = drafts.record(
        harmful={"type": "boolean"},
        type=drafts.choice(*names),
        target=drafts.text(),
        elements=drafts.array(drafts.text(), 0, _MOST_ELEMENTS),
        reason=drafts.text(),
    )
    request = drafts.make_request(body, schema, meme=meme, language=language)
    return Step(f"{meme.id}/harm", request, partial(_read_harm, model))


def ask_feeling(
    meme: Meme, language: str, model: str, known: Knowledge | None = None
) -> Step[Feeling]:
    """Build the emotion question; the prompt includes the emotions extracted from the meme."""
    emotions = get_args(WordedEmotion)
    body = find_prompts()["feeling"].fill(
        **_show(meme, known, "Emotion"),
        language=drafts.name_language(language),
        emotions=", ".join(emotions),
    )
    schema = drafts.record(emotion=drafts.choice(*emotions), reason=drafts.text())
    request = drafts.make_request(body, schema, meme=meme, language=language)
    return Step(f"{meme.id}/feeling", request, partial(_read_feeling, model))


def _read_harm(model: str, reply: str) -> Harm:
    said = read_object(reply, _HarmReply)
    if said.type not in (*HARM_TERMS, NONE):
        raise Unparsed(f"the field 'type' must be one of {', '.join((*HARM_TERMS, NONE))}")
    if said.harmful != (said.type != NONE):
        raise Unparsed(f"harmful is {said.harmful}, but type is {said.type}: make both agree")
    return Harm(
        said.harmful,
        model,
        type="" if said.type == NONE else said.type,
        target=clean_line(said.target, 200),
        elements=tuple(clean_line(element, 200) for element in said.elements if element.strip()),
        reason=clean_line(said.reason, 1000),
    )


def _read_feeling(model: str, reply: str) -> Feeling:
    said = read_object(reply, _FeelingReply)
    word = f"{said.word}: " if said.word.casefold() not in ("", said.emotion) else ""
    return Feeling(said.emotion, model, clean_line(word + said.reason, 1000))


def _show(meme: Meme, known: Knowledge | None, *dimensions: Dimension) -> dict[str, str]:
    """Build the description of a meme for a prompt, with a caution if a model extracted parts."""
    first = {
        f"{DIMENSION_TERMS[dimension].label}, by a first reading": "\n".join(
            f"{individual.label}: {individual.description}".rstrip(": ")
            for individual in (known.of(dimension) if known else ())
        )
        for dimension in dimensions
    }
    caution = find_prompts()["caution"].text.rstrip() if any(first.values()) else ""
    told = drafts.show_material({"printed text": meme.text, **meme.notes, **first})
    return {"material": told, "caution": caution}


# One structured question about puns: the word with two readings, and the visible one.


class _Reply(Closed):
    picture: str
    word: str
    written: str
    other: str
    seen: SeenReading
    pun: bool
    reason: str


def ask_pun(meme: Meme, language: str, model: str, homophones: str) -> Step[PunSeen]:
    """Build the pun question; ``homophones`` are the readings, empty if there are none."""
    body = find_prompts()["pun"].fill(
        material=show_material({"caption": meme.text, HOMOPHONES: homophones}),
        language=name_language(language),
    )
    schema = record(
        picture=text(),
        word=text(),
        written=text(),
        other=text(),
        seen=choice(*get_args(SeenReading)),
        pun={"type": "boolean"},
        reason=text(),
    )
    request = make_request(body, schema, meme=meme, language=language)
    return Step(f"{meme.id}/pun", request, partial(_read, model))


def _read(model: str, reply: str) -> PunSeen:
    said = read_object(reply, _Reply)
    if said.pun and not (said.word.strip() and said.other.strip()):
        raise Unparsed("a pun needs a word and its other reading: name both, or say pun is false")
    if said.pun and said.seen == "neither":
        raise Unparsed("a pun shows one of its readings: say which is seen, or say pun is false")
    return PunSeen(
        said.pun,
        clean_line(said.picture, 1000),
        clean_line(said.word, 200),
        clean_line(said.written, 200),
        clean_line(said.other, 200),
        said.seen,
        clean_line(said.reason, 1000),
        model,
    )
