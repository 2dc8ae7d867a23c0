"""What a step sends: the meme, what is known already as compact typed lists, and a strict schema.

Printed text, notes, background files and earlier answers are material between marks
(:func:`~memantics.core.prompt.enclose`); the prompt says that nothing in there is an instruction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pydantic import JsonValue

from memantics.build.extract.plan import PlannedStep
from memantics.build.extract.reading import MOST, MOST_RELATIONS
from memantics.core.memes import Meme
from memantics.core.prompt import Prompt, enclose, read_prompts
from memantics.core.records import Form, Image, Message, Request, Sampling
from memantics.core.text import clean_line
from memantics.knowledge.ontology.vocabulary import (
    DIMENSION_TERMS,
    KIND_TERMS,
    Dimension,
    RelationTerm,
)
from memantics.knowledge.records import Individual

PROMPTS = Path(__file__).parent / "prompts"
# A list of allowed targets makes dangling references impossible where decoding is constrained;
# servers bound how long such lists may be.
_MOST_LISTED = 400
_LONGEST_TEXT = 4000
_LANGUAGES = {"en": "English", "zh": "Chinese"}

Known = Mapping[Dimension, Sequence[Individual] | None]
"""What is known by dimension; None: that step brought no answer."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What does not change between the steps of one meme. ``background`` are the user's files."""

    meme: Meme
    background: str = ""
    language: str = "en"
    sampling: Sampling = field(default_factory=Sampling)


@cache
def find_prompts() -> Mapping[str, Prompt]:
    """The prompts of the extraction by name."""
    return {**read_prompts(PROMPTS), **read_prompts(PROMPTS / "guidance")}


def ask_individuals(
    situation: Situation, step: PlannedStep, known: Known, relations: Sequence[RelationTerm]
) -> Request:
    """The request for the individuals of a dimension, with relations where some are allowed."""
    term = DIMENSION_TERMS[step.dimension]
    listed = [own for name in step.inputs for own in known.get(name) or ()]
    usable = _usable(relations, listed)
    prompts = find_prompts()
    text = prompts["individuals"].fill(
        label=f'"{term.label}" ({term.name})',
        definition=term.definition,
        guidance=prompts[step.dimension].text,
        material=_show_material(situation, background=step.background),
        context=_show_known(step.inputs, known),
        language=_LANGUAGES.get(situation.language, situation.language),
        extra=_describe_extra(step.dimension, usable),
        reply=_example(step.dimension, bool(usable)),
    )
    return _request(situation, text, _schema(step.dimension, usable, listed))


def ask_links(
    situation: Situation,
    dimension: Dimension,
    sources: Sequence[Individual],
    known: Known,
    relations: Sequence[RelationTerm],
) -> Request:
    """The request for the relations of a dimension's individuals, in a pass of their own."""
    names = tuple(dict.fromkeys(name for term in relations for name in term.range))
    listed = [own for name in names for own in known.get(name) or ()]
    text = find_prompts()["relations"].fill(
        label=DIMENSION_TERMS[dimension].label,
        material=_show_material(situation, background=False),
        context=enclose("entries to link", _list_individuals(sources)),
        known=_show_known(names, known),
        relations="\n".join(_describe(term) for term in relations),
        reply='{"relations": [{"source": "Dimension/name", "relation": "…", '
        '"target": "Dimension/name"}]}',
    )
    link = _link_schema(_usable(relations, listed), listed, sources)
    return _request(
        situation,
        text,
        _object(relations={"type": "array", "maxItems": MOST_RELATIONS, "items": link}),
    )


def complain(request: Request, complaint: str | None) -> Request:
    """The same request again, with what was wrong with the last reply."""
    if complaint is None:
        return request
    (message,) = request.messages
    again = find_prompts()["again"].fill(complaint=clean_line(complaint, 500).rstrip("."))
    parts = (*message.parts[:-1], f"{message.parts[-1]}\n\n{again}")
    return Request((Message("user", parts),), request.form, request.sampling, request.schema)


def _request(situation: Situation, text: str, schema: dict[str, JsonValue]) -> Request:
    form = Form("", (), situation.language, "json", {"text": situation.meme.text})
    parts = (Image(situation.meme.image), text)
    return Request((Message("user", parts),), form, situation.sampling, schema)


def _show_material(situation: Situation, *, background: bool) -> str:
    meme = situation.meme
    parts = [
        enclose("printed text", _trim(meme.text)) if meme.text.strip() else "",
        *(
            enclose(f"note: {clean_line(name, 40)}", _trim(text))
            for name, text in sorted(meme.notes.items())
            if text.strip()
        ),
        enclose("background files", situation.background)
        if background and situation.background
        else "",
    ]
    shown = "\n\n".join(part for part in parts if part)
    return shown or "Nothing is given besides the image."


def _trim(text: str) -> str:
    return "\n".join(clean_line(line) for line in text[:_LONGEST_TEXT].splitlines())


def _show_known(names: Iterable[Dimension], known: Known) -> str:
    """The individuals of several dimensions, one a line; empty and unknown ones are said to be."""
    lines = []
    for name in names:
        entries = known.get(name)
        if entries:
            lines.append(_list_individuals(entries))
        else:
            lines.append(f"{name}: {'not known' if entries is None else 'none found'}")
    return enclose("known so far", "\n".join(lines)) if lines else "Nothing is known so far."


def _list_individuals(entries: Iterable[Individual]) -> str:
    return "\n".join(
        f"{own.key}: {own.label}" + (f" ({own.description[:300]})" if own.description else "")
        for own in entries
    )


def _usable(
    relations: Sequence[RelationTerm], listed: Sequence[Individual]
) -> tuple[RelationTerm, ...]:
    present = {own.dimension for own in listed}
    return tuple(term for term in relations if present & set(term.range))


def _describe(term: RelationTerm) -> str:
    return f"- {term.name}, to {' or '.join(term.range)}: {term.definition}"


def _describe_extra(dimension: Dimension, relations: Sequence[RelationTerm]) -> str:
    lines = []
    if dimension == "Toxicity":
        kinds = " ".join(f"{kind.name}: {kind.definition}" for kind in KIND_TERMS.values())
        lines.append(f'- "kind" is one of these. {kinds}')
    if relations:
        lines.append(
            '- "relations" link an entry to what is known so far; name targets exactly as they '
            "are listed, dimension included. These may be used:"
        )
        lines += [f"  {_describe(term)}" for term in relations]
    return "\n".join(lines)


def _example(dimension: Dimension, relations: bool) -> str:
    entry: dict[str, JsonValue] = {"name": "…", "label": "…", "description": "…"}
    if dimension == "Toxicity":
        entry["kind"] = "…"
    if relations:
        entry["relations"] = [{"relation": "…", "target": "Dimension/name"}]
    return json.dumps({"individuals": [entry]}, ensure_ascii=False)


def _schema(
    dimension: Dimension, relations: Sequence[RelationTerm], listed: Sequence[Individual]
) -> dict[str, JsonValue]:
    text: dict[str, JsonValue] = {"type": "string"}
    fields: dict[str, JsonValue] = {"name": text, "label": text | {"minLength": 1}}
    fields["description"] = text
    if dimension == "Toxicity":
        fields["kind"] = {"type": "string", "enum": list(KIND_TERMS)}
    if relations:
        fields["relations"] = {"type": "array", "items": _link_schema(relations, listed)}
    return _object(individuals={"type": "array", "maxItems": MOST, "items": _object(**fields)})


def _link_schema(
    relations: Sequence[RelationTerm],
    listed: Sequence[Individual],
    sources: Sequence[Individual] | None = None,
) -> JsonValue:
    """Each relation with its own targets (and sources); long lists give way to plain text."""
    shapes: list[JsonValue] = []
    room = _MOST_LISTED // max(1, len(relations))
    for term in relations:
        fields: dict[str, JsonValue] = {"relation": {"type": "string", "enum": [term.name]}}
        if sources is not None:
            fields = {"source": _reference(sources, term.domain, room), **fields}
        shapes.append(_object(**fields, target=_reference(listed, term.range, room)))
    return shapes[0] if len(shapes) == 1 else {"anyOf": shapes}


def _reference(
    listed: Sequence[Individual], dimensions: Sequence[Dimension], room: int
) -> dict[str, JsonValue]:
    keys: list[JsonValue] = [own.key for own in listed if own.dimension in dimensions]
    if 0 < len(keys) <= room:
        return {"type": "string", "enum": keys}
    return {"type": "string"}


def _object(**fields: JsonValue) -> dict[str, JsonValue]:
    """A closed object that must have all of its fields, as strict decoding demands."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }
