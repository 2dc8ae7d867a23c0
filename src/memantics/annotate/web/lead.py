"""What a lead sees: progress, agreement, drift, where people differ, and every change."""

from __future__ import annotations

from starlette.responses import Response

from memantics.annotate.web.asking import Ask, Routes
from memantics.annotate.web.screens import draw_values, show_value

routes = Routes()
PAGE = 25


@routes.get("/p/{project:int}/progress")
def show_progress(ask: Ask) -> Response:
    """How far the project is, stage by stage and person by person."""
    project = ask.service.projects.get(ask.actor, ask.place("project"))
    progress = ask.service.lead.progress(ask.actor, project.id)
    return ask.page("progress.html", project=project, here="progress", progress=progress)


@routes.get("/p/{project:int}/agreement")
def show_agreement(ask: Ask) -> Response:
    """Live agreement, overall and for each field, and each person against gold."""
    project = ask.service.projects.get(ask.actor, ask.place("project"))
    names = {field.id: field.label.say(ask.words.language) for field in project.workflow.fields}
    return ask.page(
        "agreement.html",
        project=project,
        here="agreement",
        rows=ask.service.lead.agreement(ask.actor, project.id),
        drift=ask.service.lead.drift(ask.actor, project.id),
        wins=ask.service.lead.preferences(ask.actor, project.id),
        names=names,
    )


@routes.get("/p/{project:int}/disagreements")
def show_disagreements(ask: Ask) -> Response:
    """Items on which people differ, field by field."""
    project = ask.service.projects.get(ask.actor, ask.place("project"))
    offset = ask.number("from", 0) or 0
    found = ask.service.lead.disagreements(ask.actor, project.id, limit=PAGE + 1, offset=offset)
    flow = project.workflow
    items = [
        (
            entry,
            [
                (
                    next(
                        (f.label.say(ask.words.language) for f in flow.fields if f.id == name), name
                    ),
                    [(who, show_value(flow, name, value, ask.words)) for who, value in said],
                )
                for name, said in entry.fields.items()
            ],
        )
        for entry in found[:PAGE]
    ]
    return ask.page(
        "disagreements.html",
        project=project,
        here="disagreements",
        items=items,
        offset=offset,
        page=PAGE,
        more=len(found) > PAGE,
    )


@routes.get("/p/{project:int}/items")
def show_items(ask: Ask) -> Response:
    """All items of a project."""
    project = ask.service.projects.get(ask.actor, ask.place("project"))
    offset = ask.number("from", 0) or 0
    found = ask.service.lead.items(ask.actor, project.id, limit=PAGE + 1, offset=offset)
    return ask.page(
        "items.html",
        project=project,
        here="items",
        items=found[:PAGE],
        offset=offset,
        page=PAGE,
        more=len(found) > PAGE,
    )


@routes.get("/p/{project:int}/items/{item:int}")
def show_one(ask: Ask) -> Response:
    """One item with its seats, its answers and its whole history."""
    project = ask.service.projects.get(ask.actor, ask.place("project"))
    item = ask.service.lead.item(ask.actor, ask.place("item"))
    flow, words = project.workflow, ask.words
    return ask.page(
        "one.html",
        project=project,
        here="items",
        item=item,
        seats=[(seat, draw_values(flow, seat.values or {}, words)) for seat in item.seats],
        history=[(step, draw_values(flow, step.values, words)) for step in item.history],
        prelabels=draw_values(flow, item.prelabels, words),
        gold=draw_values(flow, item.gold or {}, words),
        hidden=draw_values(flow, item.hidden, words),
    )


@routes.post("/p/{project:int}/reopen/{assignment:int}")
def reopen(ask: Ask) -> Response:
    """Open an answer again for the person who gave it."""
    ask.service.lead.reopen(ask.actor, ask.place("assignment"))
    item = ask.number("item", 0)
    return ask.go(f"/p/{ask.place('project')}/items/{item}", "reopened")


@routes.get("/p/{project:int}/audit")
def show_audit(ask: Ask) -> Response:
    """Every change, the newest first."""
    project = ask.service.projects.get(ask.actor, ask.place("project"))
    entries = ask.service.lead.audit(
        ask.actor, project.id, before=ask.number("before"), limit=PAGE * 2
    )
    return ask.page("audit.html", project=project, here="audit", entries=entries, page=PAGE * 2)
