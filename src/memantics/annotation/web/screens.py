"""Values that the item page shows, prepared for the template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from memantics.annotation.errors import FieldValues
from memantics.annotation.records import AnnotationTask, Project
from memantics.annotation.web.fields import draw_form
from memantics.annotation.workflow import Workflow, WorkflowField
from memantics.web.site import Catalogue


@dataclass(frozen=True, slots=True)
class ValueRow:
    """A field with its display text; ``differs`` marks differences on comparison pages."""

    id: str
    label: str
    texts: tuple[str, ...]
    other: tuple[str, ...] = ()
    differs: bool = False


def draw_item(
    project: Project,
    task: AnnotationTask,
    values: FieldValues,
    errors: Mapping[str, str],
    words: Catalogue,
) -> dict[str, object]:
    """Return all values of the item page for its template.

    ``annotations`` lists fields with each annotator's value and whether they differ.
    """
    flow = project.workflow
    fields = [flow.field(name) for name in task.fields]
    pairs = {
        field.id: shown
        for field in fields
        if field.kind == "pairwise"
        for shown in task.shown
        if shown.label.casefold() == field.of.casefold() and isinstance(shown.value, list)
    }
    paired = {shown.label for shown in pairs.values()}
    asked = [
        _settle(field, task)
        for field in fields
        if not field.needs or field.needs.casefold() in task.labels
    ]
    blocks, declared = draw_form(asked, values, task.state, errors, words)
    return {
        "blocks": blocks,
        "declared": declared,
        "stands": _draw_standing(flow, fields, task, words),
        "shown": [shown for shown in task.shown if shown.label not in paired],
        "pairs": pairs,
        "suggestions": draw_values(flow, task.suggestions, words),
        "history": [(step, draw_values(flow, step.values, words)) for step in task.history],
        "annotations": _draw_annotations(flow, task, words),
    }


def _settle(field: WorkflowField, task: AnnotationTask) -> WorkflowField:
    """Keep only conditions on fields of this form; the others are already decided."""
    if all(name in task.fields for name in field.show_if):
        return field
    kept = {name: values for name, values in field.show_if.items() if name in task.fields}
    return field.model_copy(update={"show_if": kept})


def _draw_standing(
    flow: Workflow, fields: list[WorkflowField], task: AnnotationTask, words: Catalogue
) -> tuple[ValueRow, ...]:
    """Return values of earlier stages that the form itself does not show."""
    here = {field.id for field in fields if not field.show_if} | {field.each for field in fields}
    rest = {name: value for name, value in task.state.items() if name not in here}
    return draw_values(flow, rest, words)


def _draw_annotations(
    flow: Workflow, task: AnnotationTask, words: Catalogue
) -> list[tuple[str, list[tuple[str, tuple[str, ...]]], bool]]:
    rows = []
    for name in dict.fromkeys(
        name for annotation in task.annotations for name in annotation.values
    ):
        said = [
            (annotation.person, show_value(flow, name, annotation.values.get(name), words))
            for annotation in task.annotations
        ]
        rows.append((label_of(flow, name, words), said, len({text for _, text in said}) > 1))
    return rows


def draw_values(flow: Workflow, values: FieldValues, words: Catalogue) -> tuple[ValueRow, ...]:
    """Return values as display texts in workflow order; unknown names come last."""
    order = [field.id for field in flow.fields if field.id in values]
    order += [name for name in values if name not in order]
    return tuple(
        ValueRow(name, label_of(flow, name, words), show_value(flow, name, values[name], words))
        for name in order
    )


def compare_values(
    project: Project, task: AnnotationTask, mine: FieldValues, theirs: FieldValues, words: Catalogue
) -> tuple[ValueRow, ...]:
    """Return two answers to one form, row by row."""
    flow = project.workflow
    rows = []
    for name in task.fields:
        if name in mine or name in theirs:
            here = show_value(flow, name, mine.get(name), words)
            there = show_value(flow, name, theirs.get(name), words)
            rows.append(ValueRow(name, label_of(flow, name, words), here, there, here != there))
    return tuple(rows)


def label_of(flow: Workflow, name: str, words: Catalogue) -> str:
    """Return the label of a field, or its name if the workflow does not define it."""
    return next((f.label.say(words.language) for f in flow.fields if f.id == name), name)


def show_value(flow: Workflow, name: str, value: JsonValue, words: Catalogue) -> tuple[str, ...]:
    """Return a value as display texts: one text, or one per list element."""
    field = next((entry for entry in flow.fields if entry.id == name), None)
    if isinstance(value, list):
        return tuple(_show_one(field, part, words) for part in value)
    return (_show_one(field, value, words),)


def _show_one(field: WorkflowField | None, value: JsonValue, words: Catalogue) -> str:
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return words("item.yes") if value else words("item.no")
    if field is not None and field.kind == "pairwise" and value in ("first", "second", "tie"):
        return words(f"item.{value}")
    if field is not None and field.kind == "choice":
        named = next((o.label.say(words.language) for o in field.options if o.value == value), None)
        if named is not None:
            return named
    return str(value)
