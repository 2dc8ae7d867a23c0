"""Pages for agreement metrics, pairs of annotators and disagreements."""

from __future__ import annotations

from starlette.responses import Response

from memantics.annotation.agreement import ENOUGH, MORE
from memantics.annotation.consensus import DisagreementFilter
from memantics.annotation.context import DAY
from memantics.annotation.errors import Locked
from memantics.annotation.records import Disagreement
from memantics.annotation.web.asking import PageRequest, Routes
from memantics.annotation.web.screens import draw_values, label_of, show_value

routes = Routes()
PAGE = 25
DAYS = (1, 7, 30)


@routes.get("/p/{project:int}/agreement")
def show_agreement(ask: PageRequest) -> Response:
    """Show agreement by field, label, pair of annotators and time, and accuracy on gold."""
    project, lead = ask.project, ask.service.lead
    random_only = ask.query("items") == "random"
    rows = lead.agreement(ask.actor, project.id, random_only=random_only)
    flow, words = project.workflow, ask.words
    return ask.project_page(
        "agreement.html",
        "agreement",
        rows=rows,
        random_only=random_only,
        pairs=lead.pairs(ask.actor, project.id),
        labels=[
            (row, [(show_value(flow, row.field, _label(name), words)[0], n) for name, n in found])
            for row in rows
            if (found := list(row.labels.items()))
        ],
        more=MORE,
        enough=ENOUGH,
        drift=lead.drift(ask.actor, project.id),
        wins=lead.preferences(ask.actor, project.id),
        names={one.id: one.label.say(words.language) for one in flow.fields},
    )


def _label(name: str) -> str | bool:
    return name == "true" if name in ("true", "false") else name


@routes.get("/p/{project:int}/disagreements")
def show_disagreements(ask: PageRequest) -> Response:
    """Show items on which annotators differ, with all answers and a link to adjudicate."""
    project, offset = ask.project, ask.count("from")
    chosen = {name: ask.query(name) for name in ("one", "other", "field", "label", "days", "names")}
    days = ask.count("days")
    found = ask.service.lead.disagreements(
        ask.actor,
        project.id,
        limit=PAGE + 1,
        offset=offset,
        wanted=DisagreementFilter(
            people=tuple(chosen[name] for name in ("one", "other") if chosen[name]),
            field=chosen["field"],
            label=chosen["label"],
            since=ask.began - days * DAY if days else 0.0,
        ),
    )
    flow, words = project.workflow, ask.words
    fields = [field for field in flow.fields if field.scale_level != "none"]
    hidden = chosen["names"] == "hidden"
    return ask.project_page(
        "disagreements.html",
        "disagreements",
        items=[
            (*draw_split(ask, entry, hidden=hidden), draw_values(flow, entry.decision or {}, words))
            for entry in found[:PAGE]
        ],
        offset=offset,
        page=PAGE,
        more=len(found) > PAGE,
        chosen=chosen,
        people=[one.pseudonym for one in ask.service.projects.members(ask.actor, project.id)],
        fields=[(field.id, field.label.say(words.language)) for field in fields],
        labels={
            option.value: option.label.say(words.language)
            for field in fields
            for option in field.options
        },
        days=DAYS,
    )


def draw_split(
    ask: PageRequest, entry: Disagreement, *, hidden: bool = False
) -> tuple[Disagreement, list[object], list[object]]:
    """Return a disagreement with display texts of all answers and notes."""
    flow, words = ask.project.workflow, ask.words
    people = list(dict.fromkeys(who for said in entry.fields.values() for who, _ in said))
    people += [who for who, _ in entry.notes if who not in people]
    names = {who: chr(65 + place % 26) if hidden else who for place, who in enumerate(people)}
    annotations: list[object] = [
        (
            label_of(flow, name, words),
            [(names[who], show_value(flow, name, value, words)) for who, value in said],
        )
        for name, said in entry.fields.items()
    ]
    return entry, annotations, [(names[who], note) for who, note in entry.notes]


@routes.post("/p/{project:int}/decide/{number:int}")
def decide(ask: PageRequest) -> Response:
    """Start the adjudication of an item."""
    project, number = ask.place("project"), ask.place("number")
    try:
        assignment = ask.service.work.decide(ask.actor, project, number)
    except Locked:
        return ask.go(f"/p/{project}/disagreements", "undecidable")
    return ask.go(f"/work/{assignment}")
