"""The daily work: the next item, its form, drafts, conflicts, undo, skips, breaks."""

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
    """All projects of a person."""
    projects = ask.service.projects.mine(ask.actor)
    cards = [
        (project, ask.service.work.standing(ask.actor, project.id) if project.consented else None)
        for project in projects
    ]
    return ask.page("home.html", cards=cards, here="home")


@routes.get("/p/{project:int}")
def show_project(ask: PageRequest) -> Response:
    """What there is to do in a project, how far it is, and how fast it goes."""
    project = ask.project
    if not project.consented:
        return ask.go(f"/p/{project.id}/welcome")
    return ask.project_page(
        "project.html",
        "work",
        standing=ask.service.work.standing(ask.actor, project.id),
        stages=ask.service.work.stages_of(ask.actor, project.id),
        last=ask.service.work.mine(ask.actor, project.id, limit=5),
    )


@routes.get("/p/{project:int}/welcome")
def show_welcome(ask: PageRequest) -> Response:
    """The content warning, what the work is, and the rights of who does it."""
    return ask.project_page("welcome.html", "work")


@routes.post("/p/{project:int}/welcome")
def consent(ask: PageRequest) -> Response:
    """Agree to see such content, once for each project."""
    project = ask.place("project")
    if ask.text("agree") != "yes":
        return ask.go(f"/p/{project}/welcome", "agree")
    ask.service.projects.consent(ask.actor, project)
    return ask.go(f"/p/{project}")


@routes.get("/p/{project:int}/next")
def take_next(ask: PageRequest) -> Response:
    """Take the next item, or go on with the one in hand."""
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
    """My last items: look again, or change an answer."""
    done = ask.service.work.mine(ask.actor, ask.project.id, limit=50)
    return ask.project_page("last.html", "last", done=done)


@routes.get("/work/{assignment:int}")
def show_item(ask: PageRequest) -> Response:
    """One item with its form. A draft comes back; nothing else is filled in."""
    task = ask.service.work.open(ask.actor, ask.place("assignment"))
    start = task.state if task.kind == "sequential" else {}  # a chain goes on from the last state
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
    """The form again, with what was filled in kept as a draft."""
    ask.service.work.save_draft(ask.actor, assignment, values)
    task = ask.service.work.open(ask.actor, assignment)
    return _item_page(ask, task, values, errors, status, notice)


def _is_touched(project: Project, task: AnnotationTask) -> bool:
    """Whether a clarification gave this item back to people who had judged it."""
    added = project.settings.clarifications
    return bool(task.lease_until) and any(task.number in one.items for one in added)


@routes.post("/work/{assignment:int}")
def save(ask: PageRequest) -> Response:
    """Save an answer; once this responds, it is on disk."""
    assignment = ask.place("assignment")
    values = read_form(ask.form)
    if ask.text("more"):
        # Without the script, a button of the form asks for more rows.
        return _show_again(ask, assignment, values, 200)
    if len(ask.texts("seen")) < ask.count("veiled"):
        # The form says how many pictures it blurred; a vote on one that was never shown is none.
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
    told = shown is not None and (shown.gold or shown.state != "running")  # a test tells at its end
    following = f"/p/{ask.count('project')}/next?last={assignment}"
    return _feedback_page(ask, values, saved) if told else ask.go(following)


def _conflict_page(ask: PageRequest, assignment: int, conflict: Conflict) -> Response:
    """Both versions side by side; mine can be saved over theirs, or theirs kept."""
    if not conflict.by_me:
        # The time for this item ran out and somebody else has it; their answer is not shown.
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
    """After a training item: what was expected."""
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
    """Keep what was typed so far; the script calls this, and so does a page that closes.

    A draft that was overtaken by an answer is let go: it would hide what was saved.
    """
    task = ask.service.work.open(ask.actor, ask.place("assignment"))
    if ask.count("version", task.version) != task.version:
        return JSONResponse({"kept": False}, 409)
    ask.service.work.save_draft(ask.actor, task.assignment, read_form(ask.form))
    return JSONResponse({"kept": True})


@routes.post("/work/{assignment:int}/skip")
def skip(ask: PageRequest) -> Response:
    """Never see this meme again. No question is asked."""
    task = ask.service.work.open(ask.actor, ask.place("assignment"))
    ask.service.work.skip(ask.actor, task.assignment)
    return ask.go(f"/p/{task.project}/next", "skipped")


@routes.post("/work/{assignment:int}/release")
def release(ask: PageRequest) -> Response:
    """Give an item back for somebody else, and stop here."""
    task = ask.service.work.open(ask.actor, ask.place("assignment"))
    ask.service.work.release(ask.actor, task.assignment)
    return ask.go(f"/p/{task.project}", "released")


@routes.post("/work/{assignment:int}/undo")
def undo(ask: PageRequest) -> Response:
    """Take back the last change of an answer, then show it."""
    version = ask.count("version")
    task = ask.service.work.undo(ask.actor, ask.place("assignment"), version)
    return ask.go(f"/work/{task.assignment}", "undone")


@routes.post("/work/{assignment:int}/keep")
def keep_saved(ask: PageRequest) -> Response:
    """After a conflict: what is saved stays, and the other version is let go."""
    task = ask.service.work.open(ask.actor, ask.place("assignment"))
    ask.service.work.save_draft(ask.actor, task.assignment, task.answer or task.state)
    return ask.go(f"/p/{task.project}/next?last={task.assignment}")
