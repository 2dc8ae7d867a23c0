"""Conversion between workflow fields and HTML forms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue
from starlette.datastructures import FormData

from memantics.annotation.errors import AnnotateError, AnswerError, FieldValues
from memantics.annotation.workflow import Scalar, WorkflowField
from memantics.web.site import Catalogue

PREFIX = "f-"
KIND = "k-"
MOST_PARTS = 500
SPARE_ROWS = 3
RESERVED = "vbze"  # keys reserved for: show image, back, undo, write


@dataclass(frozen=True, slots=True)
class OptionView:
    """One option of a field; no option is preselected."""

    value: str
    label: str
    key: str
    chosen: bool


FieldView = Mapping[str, object]
FormBlock = tuple[str, int, tuple[FieldView, ...]]
"""Form section: the fields about one list element, with its number, or a single field."""


def draw_form(
    fields: Sequence[WorkflowField],
    values: FieldValues,
    state: FieldValues,
    errors: Mapping[str, str],
    words: Catalogue,
) -> tuple[list[FormBlock], list[tuple[str, str]]]:
    """Return the form fields with the current values, and their declarations.

    :func:`read_form` uses the declarations to parse the post. ``state`` holds the values of earlier
    stages, which name the elements of ``each`` fields.
    """
    blocks: list[FormBlock] = []
    declared = []
    for field in fields:
        about_each = values.get(field.each, state.get(field.each))
        elements = [str(text) for text in _listed(about_each)]
        declared.append((KIND + field.id, _declare(field, len(elements))))
        if not field.each:
            blocks.append(("", 0, (_draw_field(field, None, values, errors, words),)))
        elif not any(field.id == view["id"] for *_, drawn in blocks for view in drawn):
            together = [other for other in fields if other.each == field.each]
            for place, about in enumerate(elements):
                views = (_draw_field(other, place, values, errors, words) for other in together)
                blocks.append((about, place + 1, tuple(views)))
    return blocks, declared


def _declare(field: WorkflowField, count: int) -> str:
    kind = "flag" if _is_flag(field) else field.kind
    return f"{kind}:{count}" if field.each else kind


def _is_flag(field: WorkflowField) -> bool:
    """Return whether a field is an optional yes/no field, drawn as a checkbox."""
    return field.kind == "boolean" and not field.required and not field.each


def _draw_field(
    field: WorkflowField,
    place: int | None,
    values: FieldValues,
    errors: Mapping[str, str],
    words: Catalogue,
) -> FieldView:
    """Return one field for the template.

    ``name`` is its form name. ``when`` is the JSON condition for the script (empty: always shown).
    ``anchors`` are the steps of a scale that have a text. ``rows`` are the texts of a list.
    ``is_tall`` places long options below each other.
    """
    value, error = values.get(field.id), errors.get(field.id, "")
    if place is not None:
        value = dict(enumerate(_listed(value))).get(place)
        # The message is about the whole list: show it at the first empty element.
        error = words("problem.needed") if error and value is None else ""
    rows = [text for text in _listed(value) if isinstance(text, str)]
    anchors = [anchor.say(words.language) for anchor in field.anchors]
    options = _draw_options(field, value, words)
    return {
        "id": field.id,
        "name": PREFIX + field.id + ("" if place is None else f"-{place}"),
        "kind": "flag" if _is_flag(field) else field.kind,
        "label": field.label.say(words.language),
        "help": field.help.say(words.language),
        "required": field.required,
        "when": _draw_condition(field.show_if),
        "error": error,
        "anchors": [step for step in zip(options, anchors, strict=False) if step[1]],
        "limit": field.max_length,
        "options": options,
        "is_tall": any(len(option.label) > 34 for option in options),
        "text": value if isinstance(value, str) else "",
        "rows": (*rows, *[""] * SPARE_ROWS) if field.kind in ("list", "ranked") else (),
    }


def _key_of(key: str, place: int) -> str:
    """Return the keyboard shortcut of an option; reserved keys are replaced by its number.

    >>> _key_of("y", 1), _key_of("v", 2), _key_of("z", 3), _key_of("", 12)
    ('y', '2', '3', '')
    """
    return key if key and key not in RESERVED else str(place) if place < 10 else ""


def _draw_options(field: WorkflowField, value: JsonValue, words: Catalogue) -> list[OptionView]:
    offered: list[tuple[Scalar, str, str]] = []  # value, label and key
    match field.kind:
        case "choice":
            for place, option in enumerate(field.options, 1):
                label = option.label.say(words.language)
                offered.append((option.value, label, _key_of(option.key, place)))
        case "scale":
            steps = range(field.low, field.high + 1)
            offered = [(step, str(step), str(step) if 0 <= step < 10 else "") for step in steps]
        case "boolean" if _is_flag(field):
            offered = [(True, field.label.say(words.language), "u")]
        case "boolean":
            offered = [(True, words("item.yes"), "y"), (False, words("item.no"), "n")]
        case "pairwise":
            sides = ("first", "second", "tie") if field.ties else ("first", "second")
            offered = [(side, words(f"item.{side}"), str(n)) for n, side in enumerate(sides, 1)]
    return [
        # True equals 1 in Python, but is not a step of a scale.
        OptionView(spell(one), label, key, value == one and type(value) is type(one))
        for one, label, key in offered
    ]


def _draw_condition(show_if: Mapping[str, tuple[Scalar, ...]]) -> str:
    if not show_if:
        return ""
    return json.dumps(
        {PREFIX + name: [spell(value) for value in values] for name, values in show_if.items()}
    )


def spell(value: Scalar) -> str:
    """Return a value as an HTML form writes it.

    >>> spell(True), spell(3), spell("YES")
    ('true', '3', 'YES')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def _listed(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, list) else ()


def read_form(form: FormData) -> dict[str, JsonValue]:
    """Return the values of a post; fields without an answer are absent.

    The form declares the kind of each field (``k-NAME``), so that parsing needs no database access.
    The data layer validates the values afterwards.

    >>> read_form(FormData([("k-ok", "boolean"), ("f-ok", "true"), ("k-fit", "scale:2"),
    ...                     ("f-fit-1", "4"), ("k-why", "text"), ("f-why", " ")]))
    {'ok': True, 'fit': [None, 4]}
    """
    values: dict[str, JsonValue] = {}
    for key, declared in form.multi_items():
        if not key.startswith(KIND) or not isinstance(declared, str):
            continue
        name = key.removeprefix(KIND)
        kind, _, count = declared.partition(":")
        if count:
            several = _read_count(name, count)
            parts = [_read_part(kind, form, f"{PREFIX}{name}-{n}") for n in range(several)]
            if any(part is not None for part in parts):
                values[name] = parts
        else:
            value = _read_part(kind, form, PREFIX + name)
            if value is not None:
                values[name] = value
    return values


class TooLong(AnnotateError):
    """A form field is longer than allowed."""


def bound(name: str, value: str, longest: int) -> str:
    """Return a text, or raise TooLong."""
    if len(value) > longest:
        raise TooLong(
            f"{name}: {len(value):,} characters; the limit is {longest:,}",
            hint="go back, shorten it and submit again",
        )
    return value


def _read_count(name: str, count: str) -> int:
    """Return the declared number of parts of a field, limited to a valid range."""
    known = count.isascii() and count.isdigit()
    if known and (len(count) > 6 or int(count) > MOST_PARTS):
        raise AnswerError({name: f"at most {MOST_PARTS} parts"})
    return int(count) if known else 0


def _read_part(kind: str, form: FormData, name: str) -> JsonValue:
    if kind in ("list", "ranked"):
        rows = _read_rows(form, name)
        return list(rows) if rows else None
    text = form.get(name)
    if kind == "flag":
        return text == "true"
    if not isinstance(text, str) or not text.strip():
        return None
    text = text.replace("\r\n", "\n").strip()
    if kind == "boolean":
        return {"true": True, "false": False}.get(text, text)
    if kind == "scale":
        digits = text.removeprefix("-")
        return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 6 else text
    return text


def _read_rows(form: FormData, name: str) -> list[str]:
    """Return the filled rows of a list in order of their rank numbers.

    >>> _read_rows(FormData([("n", "b"), ("n-rank", "2"), ("n", " "), ("n-rank", ""),
    ...                      ("n", "a"), ("n-rank", "1")]), "n")
    ['a', 'b']
    """
    texts = [text for text in form.getlist(name) if isinstance(text, str)]
    ranks = [rank for rank in form.getlist(f"{name}-rank") if isinstance(rank, str)]
    ranks += [""] * (len(texts) - len(ranks))
    placed = [
        (int(rank) if rank.isascii() and rank.isdigit() and len(rank) < 6 else 10**6, place, text)
        for place, (text, rank) in enumerate(zip(texts, ranks, strict=False))
        if text.strip()
    ]
    return [text.strip() for _, _, text in sorted(placed)]
