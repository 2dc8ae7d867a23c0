"""The studio's page and what it asks for, part by part. Nothing that comes in is kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from typing import Annotated
from xml.etree import ElementTree

import orjson
from fastapi import APIRouter, Depends, HTTPException, Query, Request
from markupsafe import Markup
from pydantic import BaseModel, Field, JsonValue
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse

from memantics.actions import kinder
from memantics.actions import studio as action
from memantics.core.errors import MemanticsError
from memantics.core.result import Result
from memantics.core.waiting import make_sync
from memantics.report.payload import embed_json
from memantics.serve.context import find_service
from memantics.serve.engine import Engine
from memantics.serve.inputs import read_json
from memantics.serve.pages import Pages, describe
from memantics.serve.studio.saving import MOST_PICTURE, StudioRecord, read_url, render_record
from memantics.web.site import Language

NAME = "this picture"
# The first row: puns, a harmful one, several panels, both languages. Kinder versions of them pass
# every check, or are declined with the reason.
FIRST: dict[Language, tuple[str, ...]] = {
    "en": ("en-030", "en-004", "en-035", "CN90001", "en-016", "en-009", "CN90007", "zh-004"),
    "zh": ("CN90001", "zh-004", "CN90007", "CN90009", "CN90003", "en-030", "CN90008", "en-035"),
}
_MOST_TEXT = 4000


class Said(BaseModel):
    """A caption, its language, and how many regions of text were not read."""

    text: str = Field(max_length=_MOST_TEXT)
    language: str = Field(default="", max_length=16)
    unread: int = Field(default=0, ge=0)
    left_out: str = Field(default="", max_length=_MOST_TEXT)


class OwnWords(BaseModel):
    """A picture as a data URL, and captions for it, one a line."""

    picture: str = Field(max_length=MOST_PICTURE)
    words: str = Field(min_length=1, max_length=_MOST_TEXT)

    def read(self) -> action.Picture:
        """The picture that was sent."""
        return action.Picture(read_url(self.picture), NAME)


def need_own_page(request: Request) -> None:
    """Refuse requests of other sites: they cannot set this header without our leave."""
    if request.headers.get("x-memantics") != "studio":
        raise HTTPException(403, "this address serves the studio's own page")


router = APIRouter(include_in_schema=False)
_own_page = [Depends(need_own_page)]


def find_pages(request: Request) -> Pages:
    """The pages of the application."""
    pages: Pages = request.app.state.pages
    return pages


def find_studio(request: Request) -> action.Studio:
    """What looks at memes."""
    studio: action.Studio = request.app.state.studio
    return studio


def find_engine(request: Request) -> Engine:
    """The queues of the service: where too many wait, it says so."""
    return find_service(request).engine


async def read_picture(request: Request) -> action.Picture:
    """The picture that is the body of a request."""
    return action.Picture(await request.body(), NAME)


async def read_said(request: Request) -> Said:
    """The caption that is the body of a request."""
    return await read_json(request, Said)


SharedStudio = Annotated[action.Studio, Depends(find_studio)]
SharedPages = Annotated[Pages, Depends(find_pages)]
Queues = Annotated[Engine, Depends(find_engine)]
SentPicture = Annotated[action.Picture, Depends(read_picture)]
SentText = Annotated[Said, Depends(read_said)]


@router.get("/")
def show_page(request: Request, pages: SharedPages) -> Response:
    """The page; everything else is asked for by its script."""
    words = pages.words(request)
    context = {
        "picks": action.list_starter(words.language, FIRST[words.language]),
        "models": request.app.state.settings.models.models,
        "keeps": request.app.state.settings.models.preferences is not None,
        "words_json": Markup(embed_json(dict(words.messages))),  # noqa: S704 - escaped for it
    }
    return pages.show(request, "studio.html", context)


@router.get("/studio/starter/{meme}.png")
def show_starter(meme: str) -> Response:
    """A meme of the starter pack."""
    return FileResponse(action.image_path(meme), media_type="image/png")


@router.post("/studio/starter/{meme}", dependencies=_own_page)
async def explain_starter(meme: str, queues: Queues) -> Response:
    """What the people who drew a meme of the starter pack say about it."""

    def tell() -> JsonValue:
        return show_meaning(action.tell_starter_meaning(meme))

    return await answer(queues.work(tell))


@router.post("/studio/text", dependencies=_own_page)
async def find_text(picture: SentPicture, studio: SharedStudio, queues: Queues) -> Response:
    """The captions with their boxes."""
    return await answer(queues.work(action.read_text, studio, picture))


@router.post("/studio/sound", dependencies=_own_page)
async def find_sound(said: SentText, queues: Queues) -> Response:
    """What a caption sounds like."""
    return await answer(queues.work(action.hear, said.text, said.language))


@router.post("/studio/harm", dependencies=_own_page)
async def find_harm(said: SentText, studio: SharedStudio, queues: Queues) -> Response:
    """A detector's verdict."""
    sent = (said.text, said.language, said.unread, said.left_out)
    return await answer(queues.work(action.judge, studio, *sent))


@router.post("/studio/kinder", dependencies=_own_page)
async def find_kinder(
    picture: SentPicture,
    studio: SharedStudio,
    queues: Queues,
    model: str = kinder.EMBEDDED,
    versions: Annotated[int, Query(ge=1, le=8)] = 1,
) -> Response:
    """A kinder version, or several to choose from."""
    if model != kinder.EMBEDDED:  # waits for a model most of the time, and takes no thread for it
        return await answer(kinder.soften(studio, picture, model, versions))
    return await answer(queues.work(make_sync(kinder.soften), studio, picture, versions=versions))


@router.post("/studio/words", dependencies=_own_page)
async def draw_words(request: Request, studio: SharedStudio, queues: Queues) -> Response:
    """A version in a person's words."""
    sent = await read_json(request, OwnWords)
    return await answer(queues.work(make_sync(kinder.redraw), studio, sent.read(), sent.words))


@router.post("/studio/choice", dependencies=_own_page)
async def keep_choice(request: Request, queues: Queues) -> Response:
    """A person's choice, kept where whoever runs the service wants that."""
    place = request.app.state.settings.models.preferences
    if place is None:
        raise HTTPException(404, "choices are not kept here")
    preference = await read_json(request, kinder.Preference)
    await queues.work(kinder.append_preference, place, preference)
    return JSONResponse({"kept": True})


@router.post("/studio/meaning", dependencies=_own_page)
async def find_meaning(
    request: Request, picture: SentPicture, studio: SharedStudio, model: str
) -> Response:
    """What a model says; lines of JSON as it goes on."""
    language = find_pages(request).words(request).language
    steps = action.follow_meaning(studio, picture, model, language)
    return StreamingResponse(write_lines(steps), media_type="application/x-ndjson")


@router.post("/studio/page", dependencies=_own_page)
async def save_page(request: Request, pages: SharedPages, queues: Queues) -> Response:
    """All parts as one page."""
    record = await read_json(request, StudioRecord)

    def render() -> Response:
        body = render_record(record, pages.site.words(record.language))
        return Response(body, media_type="text/html; charset=utf-8")

    return await answer(queues.work(render))


async def answer(work: Awaitable[Result | JsonValue | Response]) -> Response:
    """A part as JSON, or why there is none."""
    try:
        found = await work
    except MemanticsError as error:
        return JSONResponse(describe(error), 422)
    if isinstance(found, Response):
        return found
    plain = found.to_dict() if isinstance(found, Result) else found
    return Response(orjson.dumps(plain), media_type="application/json")


async def write_lines(
    steps: AsyncIterator[action.Progress | action.MeaningFound],
) -> AsyncIterator[bytes]:
    """Lines of JSON: how far a model is, then what it said or what went wrong."""
    try:
        async for step in steps:
            if isinstance(step, action.MeaningFound):
                yield _line(show_meaning(step))
            else:
                yield _line({"done": step.done, "total": step.total})
    except MemanticsError as error:
        yield _line(describe(error))


def _line(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


def show_meaning(found: action.MeaningFound) -> JsonValue:
    """A meaning with its drawings as trees, which the page grows without reading markup."""
    drawn = action.draw_meaning(found)
    trees = {"wide": drawn.wide, "narrow": drawn.narrow}
    return {"found": found.to_dict(), **{name: to_tree(svg) for name, svg in trees.items()}}


def to_tree(svg: str) -> JsonValue:
    """A drawing of ours as ``[tag, attributes, …children]``; None where there is none.

    >>> to_tree('<svg class="a"><text>b</text></svg>')
    ['svg', {'class': 'a'}, ['text', {}, 'b']]
    """
    return _branch(ElementTree.fromstring(svg)) if svg else None  # noqa: S314 - our own drawing


def _branch(element: ElementTree.Element) -> list[JsonValue]:
    children: list[JsonValue] = [element.text] if element.text else []
    for child in element:
        children.append(_branch(child))
        if child.tail:
            children.append(child.tail)
    return [element.tag.rpartition("}")[2], dict(element.attrib), *children]
