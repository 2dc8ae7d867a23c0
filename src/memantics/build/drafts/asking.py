"""Requests of the drafting steps: material between marks, strict schemas, complaints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue

from memantics.build.collect.language import UNKNOWN, guess_language
from memantics.core.memes import Meme
from memantics.core.prompt import enclose
from memantics.core.records import Form, Image, Message, Request, Sampling
from memantics.core.step import Taken
from memantics.core.text import clean_line

NAMES = {
    "ar": "Arabic",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "hi": "Hindi",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "pt": "Portuguese",
    "ru": "Russian",
    "zh": "Chinese",
}
_LONGEST = 4000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a drafted text is from: the model, the hash of what it was sent, and when."""

    model: str
    prompt: str
    when: str


def note_source(taken: Taken[T]) -> Source:
    """The source of what a step brought."""
    return Source(taken.model, taken.prompt, taken.when)


def language_of(meme: Meme, default: str = "en") -> str:
    """The language of a meme: as given, else by its text, else the default.

    >>> from pathlib import Path
    >>> language_of(Meme("a", Path("a.png"), "今晚又失眠了"))
    'zh'
    """
    if meme.language and meme.language != UNKNOWN:
        return meme.language
    found = guess_language(meme.text).language
    return default if found == UNKNOWN else found


def name_language(code: str) -> str:
    """How a prompt calls a language.

    >>> name_language("zh"), name_language("eo")
    ('Chinese', 'the language with the code eo')
    """
    return NAMES.get(code, f"the language with the code {clean_line(code, 20)}")


def show_material(parts: Mapping[str, str]) -> str:
    """Texts by name, each between its own marks; empty ones are left out."""
    shown = [
        enclose(clean_line(name, 40), "\n".join(clean_line(x) for x in body[:_LONGEST].split("\n")))
        for name, body in parts.items()
        if body.strip()
    ]
    return "\n\n".join(shown) or "Nothing is known about it."


def make_request(
    body: str,
    schema: Mapping[str, JsonValue],
    *,
    meme: Meme | None = None,
    language: str = "en",
    sampling: Sampling | None = None,
) -> Request:
    """One turn of the user; the image comes first where the step may see it."""
    parts = (body,) if meme is None else (Image(meme.image), body)
    form = Form("", (), language, "json", {"text": meme.text if meme else ""})
    return Request((Message("user", parts),), form, sampling or Sampling(), schema)


def complain(request: Request, complaint: str | None) -> Request:
    """The same request again, with what was wrong with the last reply."""
    if complaint is None:
        return request
    (message,) = request.messages
    again = (
        f"Your last reply could not be used: {clean_line(complaint, 500).rstrip('.')}. "
        "Reply again, with the whole JSON object and nothing else."
    )
    parts = (*message.parts[:-1], f"{message.parts[-1]}\n\n{again}")
    return Request((Message("user", parts),), request.form, request.sampling, request.schema)


def text(longest: int = 0) -> JsonValue:
    """The schema of a text."""
    return {"type": "string", "maxLength": longest} if longest else {"type": "string"}


def choice(*options: str) -> JsonValue:
    """The schema of one of several words."""
    return {"type": "string", "enum": list(options)}


def array(items: JsonValue, least: int, most: int) -> JsonValue:
    """The schema of a list."""
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


def record(**fields: JsonValue) -> dict[str, JsonValue]:
    """The schema of a closed object that has all of its fields, as strict decoding demands."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }
