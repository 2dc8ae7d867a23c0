"""Pages that show a knowledge graph and a folder of runs. Every page has its own URL."""

from __future__ import annotations

import threading
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from markupsafe import Markup
from pydantic import JsonValue
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from memantics.core.data import toml_beside
from memantics.core.errors import DataError, InputError, MemanticsError, UnknownName
from memantics.evaluation import RunFolder, embed_json, show_value
from memantics.models.kinds import name_models
from memantics.serve.context import find_service
from memantics.serve.pages import Pages
from memantics.serve.refusals import Refusal
from memantics.serve.settings import ServedModels
from memantics.understanding import StoreReader, list_dimensions, read_cell

router = APIRouter(prefix="/browse", include_in_schema=False)
MEMES, ITEMS = 24, 50
_QUERY_SECONDS = 15.0
_LOCK = threading.Lock()
# a report page sets its own content security policy
_IN_PAGE = "base-uri 'none'; frame-ancestors 'none'"
EXAMPLES = toml_beside(__file__, "examples.toml")


def list_tabs(models: ServedModels) -> tuple[tuple[str, str], ...]:
    """Return the tabs of the page header."""
    runs = (("runs", "/browse/runs"),) if models.runs else ()
    return (("studio", "/"), ("store", "/browse/store"), *runs, ("api", "/docs"))


def find_pages(request: Request) -> Pages:
    """Return the pages of the application."""
    pages: Pages = request.app.state.pages
    return pages


def find_store(request: Request) -> StoreReader:
    """Return the knowledge graph store; it is opened at first use."""
    state = request.app.state
    with _LOCK:
        if getattr(state, "store_reader", None) is None:
            models: ServedModels = state.settings.models
            state.store_reader = StoreReader(models.store, models.images)
    reader: StoreReader = state.store_reader
    return reader


def find_runs(request: Request) -> RunFolder:
    """Return the folder of runs."""
    models: ServedModels = request.app.state.settings.models
    if models.runs is None:
        raise InputError(
            "the service has no folder of runs", hint="start the service with --runs FOLDER"
        )
    return RunFolder(models.runs)


SharedPages = Annotated[Pages, Depends(find_pages)]
SharedStore = Annotated[StoreReader, Depends(find_store)]
SharedRuns = Annotated[RunFolder, Depends(find_runs)]
Start = Annotated[int, Query(ge=0, le=10_000_000)]
TextQuery = Annotated[str, Query(max_length=500)]


@router.get("")
def show_first() -> Response:
    """Redirect to the first page."""
    return RedirectResponse("/browse/store", 303)


@router.get("/store")
def show_store(
    request: Request,
    pages: SharedPages,
    store: SharedStore,
    q: TextQuery = "",
    dimension: TextQuery = "",
    start: Start = 0,
) -> Response:
    """List the memes of the knowledge graph that match the search words and the dimension."""
    try:
        total, cards = store.search(q, dimension, start, MEMES)
    except UnknownName as error:
        return pages.refuse(request, error)
    context = {
        "cards": cards,
        "total": total,
        "q": q,
        "dimension": dimension,
        "dimensions": list_dimensions(),
        "start": start,
        "step": MEMES,
        "own": store.folder is not None,
    }
    return pages.show(request, "store.html", context)


@router.get("/store/query")
async def show_query(
    request: Request,
    pages: SharedPages,
    store: SharedStore,
    q: Annotated[str, Query(max_length=20_000)] = "",
) -> Response:
    """Show a SPARQL query and its rows; a query from another site is shown but not run."""
    service = find_service(request)
    rows, status = None, 200
    error: MemanticsError | None = None
    if q.strip():
        try:
            service.access.check_site(request, reads=True)
            rows = await service.engine.work(store.query, q, _QUERY_SECONDS)
        except Refusal as refused:
            if refused.status != 403:
                raise
            error = InputError(
                "the link to this query comes from another site, so the query was not run",
                hint="read the query, then run it yourself",
            )
            status = 403
        except MemanticsError as refused:
            error, status = refused, 422
    context = {"q": q, "rows": rows, "error": error, "examples": EXAMPLES, "cell": read_cell}
    return pages.show(request, "query.html", context, status)


@router.get("/store/meme")
def show_meme(request: Request, pages: SharedPages, store: SharedStore, id: TextQuery) -> Response:  # noqa: A002 - it stands in the address
    """Show one meme: its card, its graph and all statements about it."""
    try:
        sheet = store.sheet(id)
    except (UnknownName, DataError) as error:
        return pages.refuse(request, error)
    words = pages.words(request).messages
    graph: dict[str, JsonValue] = {
        key: text for key, text in words.items() if key.startswith("graph.")
    }
    context = {
        "sheet": sheet,
        "words_json": Markup(embed_json(graph)),  # noqa: S704 - escaped for a script element
    }
    return pages.show(request, "meme.html", context)


@router.get("/runs")
def show_runs(request: Request, pages: SharedPages, runs: SharedRuns) -> Response:
    """List all runs of the folder."""
    rows = runs.list()
    names = name_models(row.model for row in rows)
    return pages.show(request, "runs.html", {"rows": rows, "names": names})


@router.get("/runs/progress")
def tell_progress(runs: SharedRuns) -> Response:
    """Return the progress of every run, for the page that lists runs."""
    return JSONResponse([row.to_dict() for row in runs.list()])


@router.get("/runs/report")
def show_report(
    request: Request,
    pages: SharedPages,
    runs: SharedRuns,
    run: Annotated[list[str], Query(max_length=40)] = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Show the report on some runs."""
    try:
        page = runs.report(run, pages.words(request).language)
    except MemanticsError as error:
        return pages.refuse(request, error, 422)
    return HTMLResponse(page, headers={"content-security-policy": _IN_PAGE})


@router.get("/runs/run")
def show_run(
    request: Request,
    pages: SharedPages,
    runs: SharedRuns,
    name: TextQuery,
    verdict: TextQuery = "",
    start: Start = 0,
) -> Response:
    """Show one run and its items."""
    try:
        row = runs.get(name)
        total, items = runs.items(name, verdict, start, ITEMS)
        spending = runs.spending(name)
    except MemanticsError as error:
        return pages.refuse(request, error)
    context = {
        "row": row,
        "spending": spending,
        "items": items,
        "total": total,
        "verdict": verdict,
        "start": start,
        "step": ITEMS,
        "value": show_value,
    }
    return pages.show(request, "run.html", context)


@router.get("/runs/item")
def show_item(
    request: Request, pages: SharedPages, runs: SharedRuns, run: TextQuery, item: TextQuery
) -> Response:
    """Show one item with the answers of all models."""
    try:
        sheet = runs.sheet(run, item)
    except MemanticsError as error:
        return pages.refuse(request, error)
    pictures = [runs.picture(image.path) for image in sheet.item.images]
    context = {"sheet": sheet, "pictures": pictures, "value": show_value}
    return pages.show(request, "item.html", context)
