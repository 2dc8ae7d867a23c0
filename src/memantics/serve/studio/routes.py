"""The studio's page and what it asks for, part by part. Nothing that comes in is kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from xml.etree import ElementTree

import orjson
from fastapi import APIRouter, Depends, HTTPException, Request
from markupsafe import Markup
from pydantic import BaseModel, Field, JsonValue
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse

from memantics.actions.studio import (
    EMBEDDED,
    MeaningFound,
    Picture,
    Studio,
    ask_meaning,
    draw_meaning,
    hear,
    judge,
    read_text,
    soften,
    tell_starter_meaning,
)
from memantics.core.errors import MemanticsError, UnknownName
from memantics.core.result import Result
from memantics.report.payload import embed_json
from memantics.run.progress import Progress
from memantics.serve.pages import Pages, describe
from memantics.serve.studio.saving import StudioRecord, render_record
from memantics.starter import StarterMeme, image_path, read_starter
from memantics.web.site import Language

UPLOADS = tuple(f"/studio/{name}" for name in ("text", "kinder", "meaning", "page"))
NAME = "this picture"
# The first row: puns, a harmful one, several panels, both languages.
FIRST: dict[Language, tuple[str, ...]] = {
    "en": ("en-030", "en-004", "en-002", "CN90001", "en-016", "en-010", "CN90007", "zh-004"),
    "zh": ("CN90001", "zh-004", "CN90007", "zh-002", "CN90003", "en-030", "CN90008", "en-002"),
}
_MOST_TEXT = 4000


class Said(BaseModel):
    """A caption and its language."""

    text: str = Field(max_length=_MOST_TEXT)
    language: str = Field(default="", max_length=16)


def need_own_page(request: Request) -> None:
    """Refuse requests of other sites: they cannot set this header without our leave."""
    if request.headers.get("x-memantics") != "studio":
        raise HTTPException(403, "this address serves the studio's own page")


def make_router(pages: Pages, studio: Studio) -> APIRouter:
    """The routes of the studio."""
    router = APIRouter(include_in_schema=False)
    own = [Depends(need_own_page)]

    @router.get("/")
    def page(request: Request) -> Response:
        words = pages.words(request)
        context = {
            "picks": order_starter(words.language),
            "models": studio.models,
            "words_json": Markup(embed_json(dict(words.messages))),  # noqa: S704 - escaped for it
        }
        return pages.show(request, "studio.html", context)

    @router.get("/studio/starter/{meme}.png")
    def starter_image(meme: str) -> Response:
        try:
            return FileResponse(image_path(meme), media_type="image/png")
        except UnknownName as error:
            return JSONResponse(describe(error), 404)

    @router.post("/studio/starter/{meme}", dependencies=own)
    async def starter(meme: str) -> Response:
        async def tell() -> JsonValue:
            return show_meaning(await asyncio.to_thread(tell_starter_meaning, meme))

        return await answer(tell())

    @router.post("/studio/text", dependencies=own)
    async def text(request: Request) -> Response:
        picture = Picture(await request.body(), NAME)
        return await answer(asyncio.to_thread(read_text, studio, picture))

    @router.post("/studio/sound", dependencies=own)
    async def sound(said: Said) -> Response:
        return await answer(asyncio.to_thread(hear, said.text, said.language))

    @router.post("/studio/harm", dependencies=own)
    async def harm(said: Said) -> Response:
        return await answer(asyncio.to_thread(judge, studio, said.text, said.language))

    @router.post("/studio/kinder", dependencies=own)
    async def kinder(request: Request, model: str = EMBEDDED) -> Response:
        return await answer(soften(studio, Picture(await request.body(), NAME), model))

    @router.post("/studio/meaning", dependencies=own)
    async def meaning(request: Request, model: str) -> Response:
        picture, language = Picture(await request.body(), NAME), pages.words(request).language
        lines = follow_meaning(studio, picture, model, language)
        return StreamingResponse(lines, media_type="application/x-ndjson")

    @router.post("/studio/page", dependencies=own)
    async def save(record: StudioRecord) -> Response:
        words = pages.site.words(record.language)
        body = await asyncio.to_thread(render_record, record, words)
        return Response(body, media_type="text/html; charset=utf-8")

    return router


async def answer(work: Awaitable[Result | JsonValue]) -> Response:
    """A part as JSON, or why there is none."""
    try:
        found = await work
    except MemanticsError as error:
        return JSONResponse(describe(error), 422)
    plain = found.to_dict() if isinstance(found, Result) else found
    return Response(orjson.dumps(plain), media_type="application/json")


async def follow_meaning(
    studio: Studio, picture: Picture, model: str, language: str
) -> AsyncIterator[bytes]:
    """Lines of JSON: how far a model is, then what it said or what went wrong."""
    steps: asyncio.Queue[Progress | None] = asyncio.Queue()
    work = asyncio.create_task(ask_meaning(studio, picture, model, language, steps.put_nowait))
    work.add_done_callback(lambda _: steps.put_nowait(None))
    try:
        while (step := await steps.get()) is not None:
            yield _line({"done": step.done, "total": step.total})
        try:
            yield _line(show_meaning(work.result()))
        except MemanticsError as error:
            yield _line(describe(error))
    finally:
        work.cancel()  # the person has left: no further call is paid


def _line(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


def show_meaning(found: MeaningFound) -> JsonValue:
    """A meaning with its drawings as trees, which the page grows without reading markup."""
    drawn = draw_meaning(found)
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


def order_starter(language: Language) -> list[StarterMeme]:
    """The starter pack: a few chosen ones first, then those in the person's language."""
    first = {name: place for place, name in enumerate(FIRST[language])}

    def rank(meme: StarterMeme) -> tuple[int, bool, str]:
        return first.get(meme.id, len(first)), meme.language != language, meme.id

    return sorted(read_starter(), key=rank)
