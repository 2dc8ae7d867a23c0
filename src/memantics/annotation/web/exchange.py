"""Pages for exports, imports, uploads and images."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from starlette.responses import Response

from memantics.annotation.errors import Forbidden
from memantics.annotation.faults import DatabaseFailed
from memantics.annotation.tables import TABLES
from memantics.annotation.web.asking import PageRequest, Routes
from memantics.core.errors import InputError
from memantics.core.images import DEFAULT_BOUNDS

routes = Routes()
EXPORTS = {
    **TABLES,
    "aggregated": ("jsonl", "csv", "parquet"),
    "raw": ("jsonl", "csv", "parquet"),
    "annotations": ("jsonl",),
    "labelstudio": ("json", "zip"),
    "audit": ("jsonl", "csv"),
}
IMAGE_POLICY = "default-src 'none'; sandbox"


@routes.get("/p/{project:int}/data")
def show_data(
    ask: PageRequest, status: int = 200, problems: Sequence[str] = (), report: str = ""
) -> Response:
    """Show the exports and imports of a project."""
    if "lead" not in ask.project.roles:
        raise Forbidden
    return ask.project_page(
        "data.html",
        "data",
        status,
        exports=EXPORTS,
        problems=problems,
        report=report,
        progress=ask.service.lead.progress(ask.actor, ask.project.id),
    )


@routes.get("/p/{project:int}/export")
def export(ask: PageRequest) -> Response:
    """Send an export file."""
    what, form = ask.query("what"), ask.query("form")
    if form not in EXPORTS.get(what, ()):
        return ask.go(f"/p/{ask.place('project')}/data")
    made = ask.service.exchange.export(ask.actor, ask.place("project"), what, form)
    return Response(
        made.data,
        media_type=made.media_type,
        headers={"content-disposition": f"attachment; filename*=UTF-8''{quote(made.name)}"},
    )


@routes.post("/p/{project:int}/import", upload=True)
def take_import(ask: PageRequest) -> Response:
    """Import a Label Studio export: tasks, images, pre-labels and answers."""
    files = ask.uploads("file")
    if not files:
        return show_data(ask, 422, (ask.words("data.nofile"),))
    try:
        done = ask.service.exchange.import_tasks(ask.actor, ask.place("project"), files[0].file)
    except DatabaseFailed:
        raise
    except InputError as error:
        return show_data(ask, 422, (str(error),))
    report = ask.words("data.imported", items=done.items, images=done.images, answers=done.answers)
    return show_data(ask, 200, done.skipped, report)


@routes.post("/p/{project:int}/media", upload=True)
def take_images(ask: PageRequest) -> Response:
    """Import images, one item each; invalid images are listed, the others are kept."""
    project = ask.place("project")
    files = ask.uploads("file")
    if not files:
        return show_data(ask, 422, (ask.words("data.nofile"),))
    items, problems = 0, []
    for file in files:
        data = file.file.read(DEFAULT_BOUNDS.max_bytes + 1)
        try:
            done = ask.service.exchange.upload(ask.actor, project, file.filename or "", data)
        except DatabaseFailed:
            raise
        except InputError as error:
            problems.append(str(error))
        else:
            items += done.items
            problems += done.skipped
    report = ask.words("data.uploaded", items=items)
    return show_data(ask, 422 if problems and not items else 200, problems, report)


@routes.get("/media/{media}")
def show_image(ask: PageRequest) -> Response:
    """Send an image to a member of its project, always as an image type."""
    found = ask.service.exchange.media(ask.actor, ask.request.path_params["media"])
    return Response(
        found.path.read_bytes(),
        media_type=found.media_type,
        headers={
            "cache-control": "private, max-age=3600, immutable",
            "content-security-policy": IMAGE_POLICY,
            "content-disposition": "inline",
            "vary": "cookie",
        },
    )
