"""Pages for annotators: projects, next item, form, drafts, conflicts, undo, skip, breaks."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from memantics.annotation.errors import AnswerError, Conflict, FieldValues, GuidelineChanged
from memantics.annotation.records import AnnotationTask, Project, Saved
from memantics.annotation.web.asking import PageRequest, Routes
from memantics.annotation.web.fields import read_form
from memantics.annotation.web.pages import say_problem
from memantics.annotation.web.screens import compare_values, draw_item, draw_values

routes = Routes()


@routes.get("/")
def show_home(ask: PageRequest) -> Response:
    """Show all projects of a person."""
    projects = ask.service.projects.mine(ask.actor)
    cards = [
        (project, ask.service.work.standing(ask.actor, project.id) if project.consented else None)
        for project in projects
    ]
    return ask.page("home.html", cards=cards, here="home")


@routes.get("/p/{project:int}")
def show_project(ask: PageRequest) -> Response:
    """Show a person's open work, progress and pace in a project."""
    project = ask.project
    if not project.consented:
        return ask.go(f"/p/{project.id}/welcome")
    policy = project.workflow.decided_by
    names = ask.words.messages
    deciders = [names.get(f"role.{role}", role) for role in policy.deciders] if policy else []
    return ask.project_page(
        "project.html",
        "work",
        deciders=deciders,
        standing=ask.service.work.standing(ask.actor, project.id),
        stages=ask.service.work.stages_of(ask.actor, project.id),
        last=ask.service.work.mine(ask.actor, project.id, limit=5),
    )


@routes.get("/p/{project:int}/welcome")
def show_welcome(ask: PageRequest) -> Response:
    """Show the content warning and the conditions of participation."""
    return ask.project_page("welcome.html", "work")


@routes.post("/p/{project:int}/welcome")
def consent(ask: PageRequest) -> Response:
    """Record the consent to see the content, once per project."""
    project = ask.place("project")
    if ask.text("agree") != "yes":
        return ask.go(f"/p/{project}/welcome", "agree")
    ask.service.projects.consent(ask.actor, project)
    return ask.go(f"/p/{project}")


@routes.get("/p/{project:int}/next")
def take_next(ask: PageRequest) -> Response:
    """Open the next item, or the one that the person holds."""
    project = ask.place("project")
    assignment = ask.service.work.claim(ask.actor, project, ask.query("stage") or None)
    if assignment is None:
        standing = ask.service.work.standing(ask.actor, project)
        return ask.project_page("nothing.html", "work", standing=standing)
    last = ask.number("last")
    trail = f"?last={last}" if last is not None else ""
    done = "skipped" if ask.query("done") == "skipped" else ""
    return ask.go(f"/work/{assignment}{trail}", done)


@routes.get("/p/{project:int}/last")
def show_last(ask: PageRequest) -> Response:
    """Show the person's last items, to review or change an answer."""
    done = ask.service.work.mine(ask.actor, ask.project.id, limit=50)
    return ask.project_page("last.html", "last", done=done)


@routes.get("/work/{assignment:int}")
def show_item(ask: PageRequest) -> Response:
    """Show one item; the form holds the draft, earlier answer or sequential state."""
    task = ask.service.work.open(ask.actor, ask.place("assignment"))
    start = (
        task.state if task.kind == "sequential" else {}
    )  # a sequential stage continues from the last state
    filled = (values for values in (task.draft, task.answer) if values is not None)
    return _item_page(ask, task, next(filled, start))


def _item_page(
    ask: PageRequest,
    task: AnnotationTask,
    values: FieldValues,
    errors: dict[str, str] | None = None,
    status: int = 200,
    notice: str = "",
) -> Response:
    project = ask.service.projects.get(ask.actor, task.project)
    standing = ask.service.work.standing(ask.actor, project.id)
    due = ask.client.pauses.see(ask.actor.id, ask.began, standing.break_minutes)
    if due:
        ask.client.pauses.rest(ask.actor.id)
    before = ask.service.work.mine(ask.actor, project.id, limit=2)
    last = next((done for done in before if done.assignment != task.assignment), None)
    problems = {name: say_problem(text, ask.words) for name, text in (errors or {}).items()}
    return ask.page(
        "item.html",
        status,
        project=project,
        here="work",
        task=task,
        standing=standing,
        view=draw_item(project, task, values, problems, ask.words),
        errors=problems,
        notice=notice,
        again=task.answer is not None and _is_touched(project, task),
        seen=bool(ask.texts("seen")),
        break_due=due,
        last=last,
        saved_before=ask.query("last") != "",
        opened=int(ask.began),
    )


def _show_again(
    ask: PageRequest,
    assignment: int,
    values: FieldValues,
    status: int = 422,
    errors: dict[str, str] | None = None,
    notice: str = "",
) -> Response:
    """Show the form again; the input is kept as a draft."""
    ask.service.work.save_draft(ask.actor, assignment, values)
    task = ask.service.work.open(ask.actor, assignment)
    return _item_page(ask, task, values, errors, status, notice)


def _is_touched(project: Project, task: AnnotationTask) -> bool:
    """Return whether a new guideline rule reopened this item."""
    added = project.settings.clarifications
    return bool(task.lease_until) and any(task.number in one.items for one in added)


@routes.post("/work/{assignment:int}")
def save(ask: PageRequest) -> Response:
    """Save an answer; it is on disk before the response is sent."""
    assignment = ask.place("assignment")
    values = read_form(ask.form)
    if ask.text("more"):
        # Without JavaScript, a submit button adds rows.
        return _show_again(ask, assignment, values, 200)
    if len(ask.texts("seen")) < ask.count("veiled"):
        # Answers to images that were never shown are rejected.
        return _show_again(ask, assignment, values, notice="look")
    opened = ask.number("opened")
    try:
        saved = ask.service.work.submit(
            ask.actor,
            assignment,
            values,
            ask.count("version"),
            ask.began - opened if opened else None,
            ask.number("guideline"),
        )
    except GuidelineChanged:
        return _show_again(ask, assignment, values, 409, notice="changed")
    except AnswerError as error:
        return _show_again(ask, assignment, values, errors=error.problems)
    except Conflict as error:
        return _conflict_page(ask, assignment, error)
    shown = saved.feedback
    told = shown is not None and (
        shown.gold or shown.state != "running"
    )  # a test shows the result at its end
    following = f"/p/{ask.count('project')}/next?last={assignment}"
    return _feedback_page(ask, values, saved) if told else ask.go(following)


def _conflict_page(ask: PageRequest, assignment: int, conflict: Conflict) -> Response:
    """Show both versions side by side; the person keeps one of them."""
    if not conflict.by_me:
        # The lease expired and another person has the item; their answer is not shown.
        held = ask.service.projects.get(ask.actor, ask.count("project"))
        rows = draw_values(held.workflow, conflict.mine, ask.words)
        return ask.page("lost.html", 409, project=held, here="work", rows=rows)
    task = ask.service.work.open(ask.actor, assignment)
    project = ask.service.projects.get(ask.actor, task.project)
    return ask.page(
        "conflict.html",
        409,
        project=project,
        here="work",
        task=task,
        conflict=conflict,
        rows=compare_values(project, task, conflict.mine, conflict.theirs, ask.words),
        view=draw_item(project, task, conflict.mine, {}, ask.words),
        opened=int(ask.began),
    )


def _feedback_page(ask: PageRequest, values: FieldValues, saved: Saved) -> Response:
    """Show the expected answer after a training item."""
    task = ask.service.work.open(ask.actor, saved.assignment)
    project = ask.service.projects.get(ask.actor, task.project)
    assert saved.feedback is not None
    return ask.page(
        "feedback.html",
        project=project,
        here="work",
        task=task,
        feedback=saved.feedback,
        rows=compare_values(project, task, values, saved.feedback.gold, ask.words),
        standing=ask.service.work.standing(ask.actor, project.id),
    )


@routes.post("/work/{assignment:int}/draft")
def keep_draft(ask: PageRequest) -> Response:
    """Save a draft; the script calls this while typing and when the page closes.

    A draft that is older than the saved answer is dropped.
    """
    task = ask.service.work.open(ask.actor, ask.place("assignment"))
    if ask.count("version", task.version) != task.version:
        return JSONResponse({"kept": False}, 409)
    ask.service.work.save_draft(ask.actor, task.assignment, read_form(ask.form))
    return JSONResponse({"kept": True})


@routes.post("/work/{assignment:int}/skip")
def skip(ask: PageRequest) -> Response:
    """Skip a meme permanently; no reason is needed."""
    task = ask.service.work.open(ask.actor, ask.place("assignment"))
    ask.service.work.skip(ask.actor, task.assignment)
    return ask.go(f"/p/{task.project}/next", "skipped")


@routes.post("/work/{assignment:int}/release")
def release(ask: PageRequest) -> Response:
    """Release an item for other annotators and stop."""
    task = ask.service.work.open(ask.actor, ask.place("assignment"))
    ask.service.work.release(ask.actor, task.assignment)
    return ask.go(f"/p/{task.project}", "released")


@routes.post("/work/{assignment:int}/undo")
def undo(ask: PageRequest) -> Response:
    """Undo the last change of an answer and show the result."""
    version = ask.count("version")
    task = ask.service.work.undo(ask.actor, ask.place("assignment"), version)
    return ask.go(f"/work/{task.assignment}", "undone")


@routes.post("/work/{assignment:int}/keep")
def keep_saved(ask: PageRequest) -> Response:
    """After a conflict, keep the saved version and drop the other."""
    task = ask.service.work.open(ask.actor, ask.place("assignment"))
    ask.service.work.save_draft(ask.actor, task.assignment, task.answer or task.state)
    return ask.go(f"/p/{task.project}/next?last={task.assignment}")
