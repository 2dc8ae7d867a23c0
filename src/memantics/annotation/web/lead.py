"""Pages for project leads: progress, guideline, items, members, invitations, settings."""

from __future__ import annotations

import re

from starlette.responses import Response

from memantics.annotation.errors import AnswerError, Forbidden, NotFound
from memantics.annotation.faults import DatabaseFailed
from memantics.annotation.project_settings import LocalizedText
from memantics.annotation.records import TrainingState
from memantics.annotation.web.agreement import draw_split
from memantics.annotation.web.asking import PageRequest, Routes
from memantics.annotation.web.pages import say_problem
from memantics.annotation.web.screens import draw_values
from memantics.annotation.workflow import ROLES, ProjectRole, list_workflows, read_workflow
from memantics.core.errors import InputError, MemanticsError
from memantics.web.site import LANGUAGES, NAMES

routes = Routes()
PAGE = 25


@routes.get("/p/{project:int}/progress")
def show_progress(ask: PageRequest) -> Response:
    """Show progress by stage and by member."""
    progress = ask.service.lead.progress(ask.actor, ask.project.id)
    return ask.project_page("progress.html", "progress", progress=progress)


@routes.get("/p/{project:int}/guideline")
def show_guideline(
    ask: PageRequest,
    status: int = 200,
    words: LocalizedText | None = None,
    drafted: str = "",
    error: str = "",
) -> Response:
    """Show the guideline with its versions, and the items with the largest disagreement."""
    chosen = ask.texts("number") or tuple(filter(None, [ask.query("number")]))
    found = ask.service.guideline.unclear(ask.actor, ask.project.id, limit=10_000)
    found = tuple(sorted(found, key=lambda one: str(one.number) not in chosen))[:PAGE]
    return ask.project_page(
        "guideline.html",
        "guideline",
        status,
        items=[draw_split(ask, entry) for entry in found],
        chosen=chosen,
        words=words or LocalizedText(en=ask.text("en"), zh=ask.text("zh")),
        drafted=drafted or ask.text("drafted", 200),
        drafter=ask.client.settings.drafter,
        error=error,
    )


@routes.post("/p/{project:int}/guideline")
def clarify(ask: PageRequest) -> Response:
    """Draft a rule with a model, or add a rule to the guideline."""
    project, draft = ask.project, ask.client.settings.draft
    numbers = [int(text) for text in ask.texts("number") if text.isdecimal() and len(text) < 9]
    if ask.text("do") == "draft" and draft is not None:
        try:
            words = draft(ask.service.guideline.describe(ask.actor, project.id, numbers))
        except DatabaseFailed:
            raise
        except MemanticsError as error:
            return show_guideline(ask, 502, error=str(error))
        return show_guideline(ask, 200, words, ask.client.settings.drafter)
    words = LocalizedText(en=ask.text("en"), zh=ask.text("zh"))
    if not words.en:
        return show_guideline(ask, 422, error=ask.words("guideline.empty"))
    again, drafted = ask.text("again") == "yes", ask.text("drafted", 200)
    ask.service.guideline.clarify(
        ask.actor, project.id, words, numbers, drafted=drafted, again=again
    )
    return ask.go(f"/p/{project.id}/guideline", "clarified")


@routes.get("/p/{project:int}/items")
def show_items(ask: PageRequest) -> Response:
    """Show the items of a project, page by page."""
    offset = ask.count("from")
    found = ask.service.lead.items(ask.actor, ask.project.id, limit=PAGE + 1, offset=offset)
    more, shown = len(found) > PAGE, found[:PAGE]
    return ask.project_page("items.html", "items", items=shown, offset=offset, page=PAGE, more=more)


@routes.get("/p/{project:int}/items/{item:int}")
def show_one(ask: PageRequest) -> Response:
    """Show one item with its assignments, answers and history."""
    flow, words = ask.project.workflow, ask.words
    item = ask.service.lead.item(ask.actor, ask.place("item"))
    return ask.project_page(
        "one.html",
        "items",
        item=item,
        assignments=[
            (assignment, draw_values(flow, assignment.values or {}, words))
            for assignment in item.assignments
        ],
        history=[(step, draw_values(flow, step.values, words)) for step in item.history],
        prelabels=draw_values(flow, item.prelabels, words),
        gold=draw_values(flow, item.gold or {}, words),
        hidden=draw_values(flow, item.hidden, words),
    )


@routes.post("/p/{project:int}/reopen/{assignment:int}")
def reopen(ask: PageRequest) -> Response:
    """Reopen an answer for its annotator."""
    ask.service.lead.reopen(ask.actor, ask.place("assignment"))
    return ask.go(f"/p/{ask.place('project')}/items/{ask.count('item')}", "reopened")


@routes.get("/p/{project:int}/audit")
def show_audit(ask: PageRequest) -> Response:
    """Show the audit log, newest entries first."""
    entries = ask.service.lead.audit(
        ask.actor, ask.project.id, before=ask.number("before"), limit=PAGE * 2
    )
    return ask.project_page("audit.html", "audit", entries=entries, page=PAGE * 2)


# States that a lead can set; the others result from answers.
STATES: tuple[TrainingState, ...] = ("running", "passed")


@routes.get("/projects/new")
def show_new(ask: PageRequest, status: int = 200, error: str = "") -> Response:
    """Show the form for a new project."""
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
        languages=NAMES,
        here="new",
    )


@routes.post("/projects/new")
def create(ask: PageRequest) -> Response:
    """Create a project from a built-in workflow, or from the text of another."""
    workflow_text, chosen = ask.text("own", 60_000), ask.text("workflow", 100)
    if not workflow_text and chosen not in list_workflows():
        return show_new(ask, 422, ask.words("new.choose"))
    if not ask.text("title", 200):
        return show_new(ask, 422, ask.words("new.untitled"))
    try:
        project = ask.service.projects.create(
            ask.actor,
            ask.text("title", 200),
            # With a line break, it is a text and never a name or a file of the server.
            f"{workflow_text}\n" if workflow_text else chosen,
            changes=_read_changes(ask),
            language=ask.words.language,
        )
    except DatabaseFailed:
        raise
    except InputError as error:
        return show_new(ask, 422, str(error))
    return ask.go(f"/p/{project.id}/data", "created")


def _read_changes(ask: PageRequest) -> dict[str, object]:
    """Read overlap, adjudication, order, training and suggestions; empty fields stay unchanged."""
    said: dict[str, object] = {
        "annotators_per_item": ask.number("annotators_per_item"),
        "feedback": not ask.text("test"),
    }
    named = ("adjudicator", "order", "prelabels", "language")
    said |= {name: ask.text(name) or None for name in named}
    said["questionnaire"] = ask.text("questionnaire", 500)
    for name in ("overlap", "random_proportion", "pass_mark"):
        percent = ask.number(name)
        said[name] = percent / 100 if percent is not None else None
    said |= {name: ask.number(name) for name in ("daily_limit", "weekly_limit")}
    said["comments"] = True if ask.text("comments") else None
    return {name: value for name, value in said.items() if value is not None}


@routes.get("/p/{project:int}/members")
def show_members(ask: PageRequest, status: int = 200, link: str = "", error: str = "") -> Response:
    """Show the members of a project and their roles."""
    return ask.project_page(
        "members.html",
        "members",
        status,
        members=ask.service.projects.members(ask.actor, ask.project.id),
        invitations=ask.service.accounts.invitations(ask.actor, ask.project.id),
        roles=ROLES,
        needed={stage.role for stage in ask.project.workflow.stages},
        states=STATES,
        link=link,
        error=error,
    )


def _roles(ask: PageRequest) -> tuple[ProjectRole, ...]:
    given = ask.texts("role")
    return tuple(role for role in ROLES if role in given)


@routes.post("/p/{project:int}/invite")
def invite(ask: PageRequest) -> Response:
    """Create an invitation; its link is shown once."""
    roles = _roles(ask)
    if not roles:
        return show_members(ask, 422, error=ask.words("members.choose"))
    token = ask.service.accounts.invite(
        ask.actor, ask.place("project"), roles, note=ask.text("note", 200)
    )
    base = ask.client.settings.public_url.rstrip("/") or str(ask.request.base_url).rstrip("/")
    # The link fixes the language, since the browser's may differ from the memes'.
    greeting = f"?lang={ask.project.language}" if ask.project.language in LANGUAGES[1:] else ""
    return show_members(ask, 200, link=f"{base}/join/{token}{greeting}")


@routes.post("/p/{project:int}/invitations/{invitation:int}/revoke")
def revoke(ask: PageRequest) -> Response:
    """Revoke an invitation."""
    ask.service.accounts.revoke_invitation(ask.actor, ask.place("invitation"))
    return ask.go(f"/p/{ask.place('project')}/members", "revoked")


@routes.post("/p/{project:int}/members")
def add_member(ask: PageRequest) -> Response:
    """Add a person with an existing account."""
    if not _roles(ask):
        return show_members(ask, 422, error=ask.words("members.choose"))
    try:
        ask.service.projects.add_member(
            ask.actor, ask.place("project"), ask.text("name", 200), _roles(ask)
        )
    except NotFound:
        return show_members(ask, 404, error=ask.words("members.nobody"))
    return ask.go(f"/p/{ask.place('project')}/members", "kept")


@routes.post("/p/{project:int}/members/{user:int}")
def change_member(ask: PageRequest) -> Response:
    """Change roles, limits and training of a member; no roles removes the member."""
    project, user = ask.place("project"), ask.place("user")
    try:
        ask.service.projects.set_roles(ask.actor, project, user, _roles(ask))
    except AnswerError:
        return show_members(ask, 422, error=ask.words("members.lastlead"))
    if _roles(ask):
        ask.service.projects.set_limits(
            ask.actor, project, user, ask.number("daily"), ask.number("weekly")
        )
        state = ask.text("training")
        wanted = next((known for known in STATES if known == state), None)
        if wanted is not None and wanted != ask.text("training_before"):
            ask.service.lead.set_training(ask.actor, project, user, wanted)
    return ask.go(f"/p/{project}/members", "kept")


@routes.post("/p/{project:int}/leave")
def leave(ask: PageRequest) -> Response:
    """Leave a project."""
    try:
        ask.service.projects.set_roles(ask.actor, ask.place("project"), ask.actor.id, ())
    except AnswerError:
        return ask.go(f"/p/{ask.place('project')}", "lastlead")
    return ask.go("/", "left")


@routes.get("/p/{project:int}/setup")
def show_setup(ask: PageRequest, status: int = 200, error: str = "") -> Response:
    """Show the settings of a project."""
    if "lead" not in ask.project.roles:
        raise Forbidden
    trained = ask.service.lead.progress(ask.actor, ask.project.id).training_items
    return ask.project_page(
        "setup.html", "setup", status, error=error, trained=trained, languages=NAMES
    )


@routes.post("/p/{project:int}/setup")
def save_setup(ask: PageRequest) -> Response:
    """Save the settings of a project."""
    before = ask.project.settings
    minutes = ("lease_minutes", "break_minutes")
    changes = _read_changes(ask) | {
        "training": ask.text("training") == "on",
        "contact": ask.text("contact", 500),
        "warning": ask.text("warning", 2000),
        **{name: ask.count(name, getattr(before, name)) for name in minutes},
    }
    chosen = [int(number) for number in re.findall(r"\d{1,9}", ask.text("train_on"))]
    try:
        ask.service.projects.change(ask.actor, ask.place("project"), changes)
        if chosen:
            ask.service.exchange.train_on(ask.actor, ask.place("project"), chosen)
    except DatabaseFailed:
        raise
    except InputError as error:
        return show_setup(ask, 422, say_problem(str(error), ask.words))
    return ask.go(f"/p/{ask.place('project')}/setup", "kept")


@routes.post("/p/{project:int}/archive")
def archive(ask: PageRequest) -> Response:
    """Close a project for new work, or reopen it."""
    project = ask.place("project")
    ask.service.projects.archive(ask.actor, project, archived=ask.text("archived") == "yes")
    return ask.go(f"/p/{project}/setup", "kept")
