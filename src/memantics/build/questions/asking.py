"""What is sent for a question: to write one, and to try whether it can be solved unfairly."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from memantics.build.extract.reading import Directory
from memantics.build.questions.records import WRITTEN, QuestionDraft, QuestionSettings, Slot
from memantics.build.questions.slots import draw
from memantics.core.memes import Meme
from memantics.core.prompt import Prompt, enclose, read_prompts
from memantics.core.records import Field as FormField
from memantics.core.records import Form, Image, Message, Option, Part, Request
from memantics.core.reply import read_object
from memantics.core.text import clean_line
from memantics.knowledge.ontology.vocabulary import DIMENSION_TERMS
from memantics.knowledge.records import Individual, Knowledge

LETTERS = "ABCD"
_PROMPTS = Path(__file__).parent / "prompts"
_LANGUAGES = {"en": "English", "zh": "Chinese"}
_MOST_KNOWN = 80
_CLOSED = ConfigDict(extra="forbid", frozen=True)


class SaidQuestion(BaseModel):
    """A question as a model gives it; what it is about is its first citation."""

    model_config = _CLOSED

    about: str = ""
    question: str = Field(min_length=1)
    correct: str = Field(min_length=1)
    plausible: str = Field(min_length=1)
    spare: str = Field(min_length=1)
    implausible: str = Field(min_length=1)
    explanation: str = ""
    cites: list[str] = Field(default=[], max_length=50)


@dataclass(frozen=True, slots=True)
class QuestionSubject:
    """A meme and what is known about it."""

    meme: Meme
    knowledge: Knowledge


@cache
def find_prompts() -> Mapping[str, Prompt]:
    """The prompts by name."""
    return read_prompts(_PROMPTS)


def list_known(knowledge: Knowledge, focus: str = "") -> tuple[Individual, ...]:
    """The individuals that are shown with a question: what belongs to its focus comes first."""
    if focus not in knowledge.by_key:
        return knowledge.individuals[:_MOST_KNOWN]
    own = knowledge.by_key[focus]
    near = {link.target for link in own.relations} - {focus}
    first = [one for one in knowledge.individuals if one.key in near]
    rest = [one for one in knowledge.individuals if one.key not in near and one is not own]
    return tuple([own, *first, *rest][:_MOST_KNOWN])


def show_known(individuals: Sequence[Individual]) -> str:
    """What is known, one individual a line with its relations, between marks."""
    lines = []
    for own in individuals:
        links = "; ".join(f"{link.relation} {link.target}" for link in own.relations)
        lines.append(
            f"{own.key}: {own.label}"
            + (f" ({own.description[:300]})" if own.description else "")
            + (f" [{links}]" if links else "")
        )
    return enclose("known about the meme", "\n".join(lines))


def ask_draft(
    subject: QuestionSubject, slot: Slot, settings: QuestionSettings, earlier: str = ""
) -> Request:
    """The request for one question; ``earlier`` is a version that readers solved blindly."""
    knowledge = subject.knowledge
    focus = knowledge.by_key[slot.focus]
    known = list_known(knowledge, slot.focus)
    reply: dict[str, JsonValue] = dict.fromkeys(SaidQuestion.model_fields, "…")
    text = find_prompts()["question"].fill(
        focus=enclose("element", f"{focus.key}: {focus.label} ({focus.description})"),
        definition=DIMENSION_TERMS[slot.dimension].definition,
        material=_show_text(subject.meme),
        known=show_known(known),
        language=_LANGUAGES.get(settings.language, settings.language),
        focus_key=focus.key,
        words=str(settings.words),
        target=str(settings.letters * (10 + draw(11, settings.seed, "length", slot.id)) // 24),
        longest=slot.longest,
        reply=json.dumps(reply | {"about": focus.key, "cites": []}, ensure_ascii=False),
    )
    if earlier:
        note = find_prompts()["solved"].fill(earlier=enclose("earlier", clean_line(earlier, 600)))
        text = f"{text}\n\n{note}"
    return _request((Image(subject.meme.image), text), settings, _schema(focus, known, settings))


def complain(request: Request, complaint: str | None) -> Request:
    """The same request again, with what was wrong with the last reply."""
    if complaint is None:
        return request
    (message,) = request.messages
    again = find_prompts()["again"].fill(complaint=clean_line(complaint, 600).rstrip("."))
    parts = (*message.parts[:-1], f"{message.parts[-1]}\n\n{again}")
    return Request((Message("user", parts),), request.form, request.sampling, request.schema)


def read_draft(text: str, knowledge: Knowledge) -> QuestionDraft:
    """Read what a model wrote; citations are resolved where it is clear what they mean."""
    said = read_object(text, SaidQuestion)
    cites = [said.about, *said.cites] if said.about else said.cites
    if not all(cite in knowledge.by_key for cite in cites):
        directory = Directory(knowledge.individuals)
        cites = [directory.resolve(cite) for cite in cites]
    texts = {role: even_out(clean_line(getattr(said, role), 300)) for role in WRITTEN}
    return QuestionDraft(
        clean_line(said.question, 600),
        **texts,
        explanation=clean_line(said.explanation, 1000),
        cites=tuple(dict.fromkeys(cites)),
    )


def even_out(option: str) -> str:
    """An option without the habits of writing that tell keys apart: stops, quotes, capitals.

    >>> even_out("“a cat on a mat.”"), even_out("Cats")
    ('A cat on a mat', 'Cats')
    """
    plain = option.strip(" \"'“”‘’「」").rstrip(" .。;；,，").strip(" \"'“”‘’「」") or option
    return plain[:1].upper() + plain[1:]


def ask_blind(question: str, options: Sequence[str], settings: QuestionSettings) -> Request:
    """Ask a question from its wording alone."""
    return _pose("blind", question, options, settings, (), {})


def ask_told(
    question: str, options: Sequence[str], settings: QuestionSettings, subject: QuestionSubject
) -> Request:
    """Ask a question with all that is known, but without the meme."""
    known = {"known": show_known(list_known(subject.knowledge))}
    return _pose("told", question, options, settings, (), known)


def ask_seen(
    question: str, options: Sequence[str], settings: QuestionSettings, subject: QuestionSubject
) -> Request:
    """Ask a question with the meme, but with nothing that is known about it."""
    return _pose("seen", question, options, settings, (Image(subject.meme.image),), {})


def _pose(
    prompt: str,
    question: str,
    options: Sequence[str],
    settings: QuestionSettings,
    images: tuple[Part, ...],
    more: Mapping[str, str],
) -> Request:
    listed = [Option(letter, text) for letter, text in zip(LETTERS, options, strict=True)]
    asked = "\n".join([question, *(f"{own.key}. {own.text}" for own in listed)])
    text = find_prompts()[prompt].fill(asked=asked, **more)
    form = Form(question, (FormField("answer", "choice", tuple(listed)),), settings.language)
    return Request((Message("user", (*images, text)),), form, settings.sampling)


def _show_text(meme: Meme) -> str:
    lines = [clean_line(line) for line in meme.text[:4000].splitlines()]
    return enclose("printed text", "\n".join(lines)) if meme.text.strip() else ""


def _schema(
    focus: Individual, known: Sequence[Individual], settings: QuestionSettings
) -> dict[str, JsonValue]:
    text: JsonValue = {"type": "string", "minLength": 1}
    option: JsonValue = {"type": "string", "minLength": 1, "maxLength": 2 * settings.letters}
    keys: list[JsonValue] = [own.key for own in known]
    fields: dict[str, JsonValue] = {
        "about": {"type": "string", "enum": [focus.key]},
        "question": text,
        **dict.fromkeys(WRITTEN, option),
        "explanation": {"type": "string"},
        "cites": {"type": "array", "items": {"type": "string", "enum": keys}},
    }
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def _request(
    parts: tuple[Part, ...], settings: QuestionSettings, schema: dict[str, JsonValue]
) -> Request:
    form = Form("", (), settings.language, "json")
    return Request((Message("user", parts),), form, settings.sampling, schema)
