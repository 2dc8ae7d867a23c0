"""Requests to a model: write a question, or try to answer it without the meme.

A request contains the image first, then the known facts about the meme in a fixed order, then the
task. Servers with a prefix cache therefore process each meme once for all of its questions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import Field, JsonValue

from memantics.construction.questions.records import QuestionDraft, QuestionSettings, Slot, draw
from memantics.core.memes import NOTED, Meme
from memantics.core.prompt import enclose, prompts_beside
from memantics.core.records import Closed, Form, Image, Message, MessagePart, Option, Request
from memantics.core.records import Field as FormField
from memantics.core.reply import read_object
from memantics.core.text import clean_line, cut_short
from memantics.models.drafts import array, choice, name_language, record, show_material
from memantics.understanding.extraction.reading import Directory
from memantics.understanding.knowledge.ontology.vocabulary import DIMENSION_TERMS, SPATIAL
from memantics.understanding.knowledge.records import Individual, Knowledge

LETTERS = "ABCD"
_MOST_KNOWN, _MOST_NEAR, _TOLD, _WHOLE = 80, 6, 160, 600
_PLAUSIBLE, _IMPLAUSIBLE = 3, 2


class SaidQuestion(Closed):
    """Schema of a question as a model returns it; its first citation names its subject.

    ``spare`` is an additional plausible option, requested by earlier prompts.
    """

    about: str = ""
    question: str = Field(min_length=1)
    correct: str = Field(min_length=1)
    plausible: list[str] | str = Field(min_length=1)
    spare: str = ""
    implausible: list[str] | str = Field(min_length=1)
    explanation: str = ""
    cites: list[str] = Field(default=[], max_length=50)


@dataclass(frozen=True, slots=True)
class QuestionSubject:
    """Store a meme and the known facts about it."""

    meme: Meme
    knowledge: Knowledge


find_prompts = prompts_beside(__file__)


def show_known(
    individuals: Iterable[Individual], label: str, *, details: bool, longest: int = _TOLD
) -> str:
    """List the facts about a meme (ontology individuals), one per line, in their stored order."""
    lines = [
        f"{individual.key}: {individual.label}"
        + (
            f" ({cut_short(individual.description, longest)})"
            if details and individual.description
            else ""
        )
        for individual in individuals
    ]
    return enclose(label, "\n".join(lines))


def list_near(knowledge: Knowledge, focus: Individual) -> list[Individual]:
    """Return the facts (ontology individuals) linked to the fact ``focus`` in either direction."""
    ends = {link.target for link in focus.relations}
    return [
        individual
        for individual in knowledge.individuals
        if individual is not focus
        and (
            individual.key in ends or any(link.target == focus.key for link in individual.relations)
        )
    ]


def ask_draft(
    subject: QuestionSubject,
    slot: Slot,
    settings: QuestionSettings,
    earlier: str = "",
    others: Sequence[str] = (),
) -> Request:
    """Return the request for one question.

    ``earlier`` is an earlier version that was too easy: a model answered it without the meme.

    ``others`` are facts about other memes. They serve as distractors whose wording does not reveal
    that they are wrong.
    """
    knowledge = subject.knowledge
    focus = knowledge.by_key[slot.focus] if slot.focus else None
    reply: dict[str, JsonValue] = dict.fromkeys(SaidQuestion.model_fields, "…")
    del reply["spare"]
    if focus is None:
        del reply["about"], reply["cites"]
    wrong: dict[str, JsonValue] = {
        "plausible": ["…"] * _PLAUSIBLE,
        "implausible": ["…"] * _IMPLAUSIBLE,
    }
    prompts = find_prompts()
    text = prompts["question"].fill(
        focus=enclose("element", tell_focus(focus, slot, knowledge))
        if focus
        else prompts["from_image"].text,
        near=show_known(list_near(knowledge, focus)[:_MOST_NEAR], "linked with it", details=True)
        if focus
        else "",
        definition=define(slot.dimension, settings),
        guidance=guide(slot.dimension, settings),
        language=name_language(settings.language),
        words=str(settings.words),
        target=str(settings.letters * (10 + draw(11, settings.seed, "length", slot.id)) // 24),
        longest='"correct" is' if slot.longest == "correct" else "one or two wrong options are",
        cites=f"\n{prompts['cites'].text}" if focus else "",
        reply=json.dumps(
            reply | wrong | ({"about": focus.key, "cites": []} if focus else {}),
            ensure_ascii=False,
        ),
    )
    if earlier:
        note = prompts["solved"].fill(earlier=enclose("earlier", clean_line(earlier, 900)))
        text = f"{text}\n\n{note}"
    if others:
        told = enclose("other memes", "\n".join(clean_line(one, _TOLD) for one in others))
        text = f"{text}\n\n{prompts['others'].fill(others=told)}"
    listed = knowledge.individuals[:_MOST_KNOWN] if focus else ()
    known = show_known(listed, "known about the meme", details=False) if listed else ""
    notes = {name: subject.meme.notes.get(name, "") for name in NOTED}
    material = show_material({"printed text": subject.meme.text, **notes}, nothing="")
    parts = (Image(subject.meme.image), f"{material}\n\n{known}".strip(), text)
    form = Form("", (), settings.language, "json")
    schema = _schema(focus, knowledge, settings)
    return Request((Message("user", parts),), form, settings.sampling, schema)


def define(dimension: str, settings: QuestionSettings) -> str:
    """Return the definition of a dimension."""
    spec = settings.specs.get(dimension)
    if spec is not None and spec.definition:
        return spec.definition
    return DIMENSION_TERMS[dimension].definition if dimension in DIMENSION_TERMS else dimension


def guide(dimension: str, settings: QuestionSettings) -> str:
    """Return what a question tests; a user's dimension file may define it."""
    spec = settings.specs.get(dimension)
    if spec is not None and spec.question:
        return spec.question
    prompts = find_prompts()
    return prompts[dimension if dimension in prompts else "own"].text


def tell_focus(focus: Individual, slot: Slot, knowledge: Knowledge) -> str:
    """Describe the question's subject; for the second question of a toxicity pair, add the harm."""
    line = f"{focus.key}: {focus.label} ({focus.description})"
    toxic = next(
        (individual for individual in knowledge.of("Toxicity") if _points_to(individual, focus)),
        None,
    )
    line += "".join(f"\n{told}" for told in list_places(knowledge, focus))
    if slot.pair and toxic is not None:
        line += f"\nIt carries this harm: {toxic.label} ({toxic.kind}): {toxic.description}"
    return line


def list_places(knowledge: Knowledge, focus: Individual) -> list[str]:
    """Return one sentence per spatial relation of an element, or of the participants of a scene."""
    shown = {focus.key, *(link.target for link in focus.relations if focus.dimension == "Scene")}
    return [
        f"{thing.label} is {SPATIAL[link.relation].label} {knowledge.by_key[link.target].label}."
        for thing in knowledge.individuals
        for link in thing.relations
        if link.relation in SPATIAL
        and link.target in knowledge.by_key
        and {thing.key, link.target} & shown
    ][:_MOST_NEAR]


def _points_to(toxic: Individual, focus: Individual) -> bool:
    return any(link.target == focus.key for link in toxic.relations)


def read_draft(text: str, knowledge: Knowledge) -> QuestionDraft:
    """Parse a model's reply; resolve citations of facts whose target is unambiguous."""
    said = read_object(text, SaidQuestion)
    cites = [said.about, *said.cites] if said.about else said.cites
    if not all(cite in knowledge.by_key for cite in cites):
        directory = Directory(knowledge.individuals)
        cites = [directory.resolve(cite) for cite in cites]
    return QuestionDraft(
        clean_line(said.question, 600),
        _even(said.correct),
        (*_list(said.plausible), *_list(said.spare)),
        _list(said.implausible),
        clean_line(said.explanation, 1000),
        tuple(dict.fromkeys(cites)),
    )


def _list(said: list[str] | str) -> tuple[str, ...]:
    texts = [said] if isinstance(said, str) else said
    return tuple(dict.fromkeys(_even(text) for text in texts if text.strip()))


_STOPS = " .。;；,，!！"
_QUOTES = (('"', '"'), ("'", "'"), ("“", "”"), ("‘", "’"), ("「", "」"))


def _even(said: str) -> str:
    return even_out(clean_line(said, 300))


def even_out(option: str) -> str:
    """Remove punctuation, quotes and case patterns that could reveal the correct option.

    >>> even_out("“a cat on a mat.”"), even_out("Cats"), even_out("骂人的“下贱”")
    ('A cat on a mat', 'Cats', '骂人的“下贱”')
    """
    plain = option.strip().rstrip(_STOPS)
    for opening, closing in _QUOTES:
        if plain.startswith(opening) and plain.find(closing, 1) == len(plain) - 1:
            plain = plain[1:-1].strip().rstrip(_STOPS)
    return plain[:1].upper() + plain[1:] or option


Posed = Sequence[tuple[str, Sequence[str]]]  # questions, each with its options


def ask_blind(posed: Posed, settings: QuestionSettings, _: QuestionSubject) -> Request:
    """Return a request that contains only questions and options."""
    return _pose("blind", posed, settings, ())


def ask_known(posed: Posed, settings: QuestionSettings, subject: QuestionSubject) -> Request:
    """Return a request with the known facts about the meme, but without the image."""
    told = subject.knowledge.individuals[:_MOST_KNOWN]
    longest = _TOLD if settings.version == "1" else _WHOLE
    known = show_known(told, "known about the meme", details=True, longest=longest)
    return _pose("known", posed, settings, (known,))


def ask_seen(posed: Posed, settings: QuestionSettings, subject: QuestionSubject) -> Request:
    """Return a request with the image, but without the known facts about the meme."""
    return _pose("seen", posed, settings, (Image(subject.meme.image),))


def _pose(
    prompt: str, posed: Posed, settings: QuestionSettings, before: tuple[MessagePart, ...]
) -> Request:
    """Return a request that expects one letter, or a list of letters for several questions."""
    listed = [
        [Option(letter, text) for letter, text in zip(LETTERS, options, strict=True)]
        for _, options in posed
    ]
    shown = [
        "\n".join([question, *(f"{option.key}. {option.text}" for option in options)])
        for (question, _), options in zip(posed, listed, strict=True)
    ]
    if len(posed) == 1:
        text = find_prompts()[prompt].fill(asked=shown[0])
        field = FormField("answer", "choice", tuple(listed[0]))
        form, schema = Form(posed[0][0], (field,), settings.language), None
    else:
        text = find_prompts()[f"{prompt}_many"].fill(
            count=str(len(posed)),
            asked="\n\n".join(f"{number}. {one}" for number, one in enumerate(shown, 1)),
            reply=json.dumps({"answers": ["…"] * len(posed)}, ensure_ascii=False),
        )
        fields = (
            FormField(str(number), "choice", tuple(one)) for number, one in enumerate(listed, 1)
        )
        asked = "\n".join(question for question, _ in posed)
        form = Form(asked, tuple(fields), settings.language, "json")
        schema = record(answers=array(choice(*LETTERS), len(posed), len(posed)))
    messages = [Message("user", (*before, text))]
    if settings.version != "1":
        messages.insert(0, Message("system", (find_prompts()["reader"].text,)))
    return Request(tuple(messages), form, settings.sampling, schema)


def _schema(
    focus: Individual | None, knowledge: Knowledge, settings: QuestionSettings
) -> dict[str, JsonValue]:
    option: JsonValue = {"type": "string", "minLength": 1, "maxLength": 2 * settings.letters}
    about: dict[str, JsonValue] = {}
    cites: dict[str, JsonValue] = {}
    if focus is not None:
        keys: list[JsonValue] = [one.key for one in knowledge.individuals[:_MOST_KNOWN]]
        about["about"] = {"type": "string", "enum": [focus.key]}
        cites["cites"] = {"type": "array", "items": {"type": "string", "enum": keys}}
    return record(
        **about,
        question={"type": "string", "minLength": 1},
        correct=option,
        plausible=array(option, _PLAUSIBLE, _PLAUSIBLE + 1),
        implausible=array(option, _IMPLAUSIBLE, _IMPLAUSIBLE + 1),
        explanation={"type": "string"},
        **cites,
    )
