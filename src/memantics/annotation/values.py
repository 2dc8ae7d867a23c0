"""Validation of answers: which fields are shown, and which values are allowed."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from memantics.annotation.errors import AnswerError, FieldValues
from memantics.annotation.workflow import PAIR, Workflow, WorkflowField
from memantics.core.text import drop_unseen

SIDES = ("first", "second", "tie")
_EMPTY: tuple[JsonValue, ...] = (None, "", [])


def visible(
    workflow: Workflow, fields: Iterable[str], values: FieldValues, labels: frozenset[str]
) -> tuple[str, ...]:
    """Return the fields to ask, given the answers so far and the labels of the shown texts.

    >>> from memantics.annotation.workflow import read_workflow
    >>> form = read_workflow("label-by-vote")
    >>> visible(form, form.stages[0].fields, {"harmful": "no"}, frozenset())
    ('harmful',)
    """
    asked: list[str] = []
    for name in fields:
        field = workflow.field(name)
        if field.needs and field.needs.casefold() not in labels:
            continue
        if all(
            _holds(workflow.field(other), values, wanted, asked, fields)
            for other, wanted in field.show_if.items()
        ):
            asked.append(name)
    return tuple(asked)


def _holds(
    other: WorkflowField,
    values: FieldValues,
    wanted: tuple[str | bool | int, ...],
    asked: list[str],
    fields: Iterable[str],
) -> bool:
    if other.id in fields and other.id not in asked:
        return False
    value = values.get(other.id)
    if value is None and other.kind == "boolean":
        value = False  # an unticked box
    return any(value == want and type(value) is type(want) for want in wanted)


def check(
    workflow: Workflow,
    fields: Iterable[str],
    values: FieldValues,
    *,
    labels: frozenset[str] = frozenset(),
    state: FieldValues | None = None,
) -> dict[str, JsonValue]:
    """Return the answer in form order; raise AnswerError with a message per invalid field.

    Values of fields that are not asked are dropped.

    >>> from memantics.annotation.workflow import read_workflow
    >>> form = read_workflow("label-by-vote")
    >>> check(form, form.stages[0].fields, {"harmful": "no", "type": "offence"})
    {'harmful': 'no'}
    """
    names = tuple(fields)
    problems = {name: "this stage has no such field" for name in values if name not in names}
    kept: dict[str, JsonValue] = {}
    for name in visible(workflow, names, values, labels):
        field = workflow.field(name)
        value = values.get(name)
        problem, clean = _check_field(field, value, (state or {}).get(field.each))
        if problem:
            problems[name] = problem
        elif clean is not None:
            kept[name] = clean
            whole = kept.get(field.within, (state or {}).get(field.within))
            if field.within and isinstance(whole, str) and str(clean) not in whole:
                label = workflow.field(field.within).label.en
                problems[name] = f"must occur in the field {label!r}"
    if problems:
        raise AnswerError(problems)
    return kept


def _check_field(
    field: WorkflowField, value: JsonValue, elements: JsonValue
) -> tuple[str, JsonValue]:
    if field.each:
        return _check_each(field, value, elements)
    if value is None and field.kind == "boolean" and not field.required:
        return "", False  # an unticked box means no
    if value in _EMPTY or (isinstance(value, str) and not value.strip()):
        return ("an answer is needed" if field.required else ""), None
    return _check_one(field, value)


def _check_each(
    field: WorkflowField, value: JsonValue, elements: JsonValue
) -> tuple[str, JsonValue]:
    count = len(elements) if isinstance(elements, list) else 0
    given = value if isinstance(value, list) else []
    if len(given) != count:
        return f"{count} answers are needed, one per part of the item", None
    clean: list[JsonValue] = []
    for place, one in enumerate(given, 1):
        if one in _EMPTY:
            return f"number {place} has no answer", None
        problem, good = _check_one(field, one)
        if problem:
            return f"number {place}: {problem}", None
        clean.append(good)
    return "", clean


def _check_one(field: WorkflowField, value: JsonValue) -> tuple[str, JsonValue]:
    match field.kind:
        case "choice":
            return ("", value) if value in field.allowed else ("choose one of the options", None)
        case "boolean":
            return ("", value) if isinstance(value, bool) else ("choose yes or no", None)
        case "pairwise":
            allowed = PAIR if field.ties else PAIR[:2]
            return ("", value) if value in allowed else ("choose one of the two", None)
        case "scale":
            fits = type(value) is int and field.low <= value <= field.high
            return ("", value) if fits else (f"choose {field.low} to {field.high}", None)
        case "text" | "longtext":
            return _check_text(field, value)
        case "list" | "ranked":
            return _check_list(field, value)


def _check_text(field: WorkflowField, value: JsonValue) -> tuple[str, JsonValue]:
    if not isinstance(value, str):
        return "a text is needed", None
    if len(value) > field.max_length:
        return f"at most {field.max_length:,} characters", None
    text = clean_text(value, lines=field.kind == "longtext")
    if not text:  # only invisible characters
        return ("an answer is needed" if field.required else ""), None
    return "", text


def _check_list(field: WorkflowField, value: JsonValue) -> tuple[str, JsonValue]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        return "a list of texts is needed", None
    texts = [clean_text(str(one), lines=False) for one in value]
    texts = [text for text in texts if text]
    if len(texts) > field.max_items:
        return f"at most {field.max_items} entries", None
    if any(len(text) > field.max_length for text in texts):
        return f"at most {field.max_length:,} characters each", None
    if len(set(texts)) != len(texts):
        return "an entry occurs twice", None
    if not texts:
        return ("an answer is needed" if field.required else ""), None
    return "", list(texts)


def clean_text(text: str, *, lines: bool) -> str:
    r"""Normalise a text: NFC, trimmed, no control characters; ``lines`` keeps line breaks.

    >>> clean_text("  a\x00\u202eb\nc ", lines=False), clean_text("a\r\nb", lines=True)
    ('ab c', 'a\nb')
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    # Format characters can reverse a text on the page; joiners are part of words and emoji.
    kept = unicodedata.normalize("NFC", drop_unseen(text, keep="\n\t\u200c\u200d"))
    return kept.strip() if lines else " ".join(kept.split())


def turn_pairs(
    workflow: Workflow, values: FieldValues, *, swapped: bool, outward: bool
) -> dict[str, JsonValue]:
    """Convert pairwise values between storage (a, b) and display order (first, second).

    >>> from memantics.annotation.workflow import read_workflow
    >>> form = read_workflow("rate-outputs")
    >>> turn_pairs(form, {"preference": "first"}, swapped=True, outward=False)
    {'preference': 'b'}
    """
    order = ("b", "a", "tie") if swapped else PAIR
    pairs = zip(order, SIDES, strict=True) if outward else zip(SIDES, order, strict=True)
    names: Mapping[str, str] = dict(pairs)
    kinds = {field.id: field.kind for field in workflow.fields}
    return {
        name: names.get(value, "")
        if kinds.get(name) == "pairwise" and isinstance(value, str)
        else value
        for name, value in values.items()
    }
