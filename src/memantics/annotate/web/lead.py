"""What leads see and decide: progress, agreement, history; people, invitations, settings."""

from __future__ import annotations

from pydantic import ValidationError
from starlette.responses import Response

from memantics.annotate.errors import AnswerError, Forbidden, NotFound
from memantics.annotate.records import Project, TrainingState
from memantics.annotate.web.asking import Ask, Routes
from memantics.annotate.web.screens import draw_values, show_value
from memantics.annotate.workflow import ROLES, ProjectSettings, Role, list_workflows, read_workflow
from memantics.core.errors import InputError

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


# What a lead may decide; the other states come about by answering.
STATES: tuple[TrainingState, ...] = ("running", "passed")


@routes.get("/projects/new")
def show_new(ask: Ask) -> Response:
    """The form for a new project."""
    return _new_page(ask, 200, "")


def _new_page(ask: Ask, status: int, error: str) -> Response:
    if not ask.actor.admin:
        raise Forbidden
    workflows = [(name, read_workflow(name)) for name in list_workflows()]
    return ask.page(
        "new.html",
        status,
        workflows=workflows,
        error=error,
        title=ask.text("title", 200),
        own=ask.text("own", 60_000),
        here="new",
    )


@routes.post("/projects/new")
def create(ask: Ask) -> Response:
    """Create a project from one of our workflows, or from the text of another."""
    text, chosen = ask.text("own", 60_000), ask.text("workflow", 100)
    if not text and chosen not in list_workflows():
        return _new_page(ask, 422, ask.words("new.choose"))
    if not ask.text("title", 200):
        return _new_page(ask, 422, ask.words("new.untitled"))
    try:
        project = ask.service.projects.create(
            ask.actor, ask.text("title", 200), text or chosen, language=ask.words.language
        )
    except Forbidden:
        raise
    except InputError as error:
        return _new_page(ask, 422, str(error))
    return ask.go(f"/p/{project.id}/data", "created")


@routes.get("/p/{project:int}/members")
def show_members(ask: Ask) -> Response:
    """Who takes part, and with which roles."""
    return _members_page(ask, 200)


def _members_page(ask: Ask, status: int, link: str = "", error: str = "") -> Response:
    project = ask.service.projects.get(ask.actor, ask.place("project"))
    return ask.page(
        "members.html",
        status,
        project=project,
        here="members",
        members=ask.service.projects.members(ask.actor, project.id),
        invitations=ask.service.accounts.invitations(ask.actor, project.id),
        roles=ROLES,
        needed=_roles_of(project),
        states=STATES,
        link=link,
        error=error,
    )


def _roles_of(project: Project) -> tuple[Role, ...]:
    """The roles that the stages of a workflow ask for."""
    return tuple(dict.fromkeys(stage.role for stage in project.workflow.stages))


def _roles(ask: Ask) -> tuple[Role, ...]:
    given = ask.texts("role")
    return tuple(role for role in ROLES if role in given)


@routes.post("/p/{project:int}/invite")
def invite(ask: Ask) -> Response:
    """Make an invitation; its link is shown once."""
    roles = _roles(ask)
    if not roles:
        return _members_page(ask, 422, error=ask.words("members.choose"))
    token = ask.service.accounts.invite(
        ask.actor, ask.place("project"), roles, note=ask.text("note", 200)
    )
    base = ask.desk.settings.public_url.rstrip("/") or str(ask.request.base_url).rstrip("/")
    return _members_page(ask, 200, link=f"{base}/join/{token}")


@routes.post("/p/{project:int}/invitations/{invitation:int}/revoke")
def revoke(ask: Ask) -> Response:
    """Take an invitation back."""
    ask.service.accounts.revoke_invitation(ask.actor, ask.place("invitation"))
    return ask.go(f"/p/{ask.place('project')}/members", "revoked")


@routes.post("/p/{project:int}/members")
def add_member(ask: Ask) -> Response:
    """Add somebody who has an account already."""
    if not _roles(ask):
        return _members_page(ask, 422, error=ask.words("members.choose"))
    try:
        ask.service.projects.add_member(
            ask.actor, ask.place("project"), ask.text("name", 200), _roles(ask)
        )
    except NotFound:
        return _members_page(ask, 404, error=ask.words("members.nobody"))
    return ask.go(f"/p/{ask.place('project')}/members", "kept")


@routes.post("/p/{project:int}/members/{user:int}")
def change_member(ask: Ask) -> Response:
    """Change roles, limits and training of one member; without a role, they are out."""
    project, user = ask.place("project"), ask.place("user")
    try:
        ask.service.projects.set_roles(ask.actor, project, user, _roles(ask))
    except AnswerError:
        return _members_page(ask, 422, error=ask.words("members.lastlead"))
    if _roles(ask):
        ask.service.projects.set_limits(
            ask.actor, project, user, ask.number("daily"), ask.number("weekly")
        )
        state = ask.text("training")
        wanted = next((known for known in STATES if known == state), None)
        if wanted is not None and wanted != ask.text("training_before"):
            ask.service.lead.set_training(ask.actor, project, user, wanted)
    return ask.go(f"/p/{project}/members", "kept")


@routes.get("/p/{project:int}/setup")
def show_setup(ask: Ask) -> Response:
    """A project's settings."""
    return _setup_page(ask, 200, "")


def _setup_page(ask: Ask, status: int, error: str) -> Response:
    project = ask.service.projects.get(ask.actor, ask.place("project"))
    if "lead" not in project.roles:
        raise Forbidden
    return ask.page("setup.html", status, project=project, here="setup", error=error)


@routes.post("/p/{project:int}/setup")
def save_setup(ask: Ask) -> Response:
    """Keep a project's settings."""
    before = ask.service.projects.get(ask.actor, ask.place("project")).settings
    try:
        settings = ProjectSettings.model_validate(
            {
                "prelabels": ask.text("prelabels"),
                "training": ask.text("training") == "on",
                "lease_minutes": ask.number("lease_minutes", before.lease_minutes),
                "daily_limit": ask.number("daily_limit", before.daily_limit),
                "weekly_limit": ask.number("weekly_limit", before.weekly_limit),
                "break_minutes": ask.number("break_minutes", before.break_minutes),
                "contact": ask.text("contact", 500),
                "warning": ask.text("warning", 2000),
            }
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return _setup_page(ask, 422, f"{first['loc'][0]}: {first['msg']}")
    ask.service.projects.set_settings(ask.actor, ask.place("project"), settings)
    return ask.go(f"/p/{ask.place('project')}/setup", "kept")


@routes.post("/p/{project:int}/archive")
def archive(ask: Ask) -> Response:
    """Close a project for new work, or open it again."""
    project = ask.place("project")
    ask.service.projects.archive(ask.actor, project, archived=ask.text("archived") == "yes")
    return ask.go(f"/p/{project}/setup", "kept")
