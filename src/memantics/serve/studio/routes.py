"""HTTP routes of the studio: the page, each part of a meme's analysis, and the saved page.

Uploads are not stored, except choices if the operator enabled them. A saved page is self-contained
and consists of the parts that the user saw.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator, Awaitable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from xml.etree import ElementTree

import orjson
from fastapi import APIRouter, Depends, HTTPException, Query, Request
from markupsafe import Markup
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse

from memantics import workbench
from memantics.core.errors import InputError, MemanticsError
from memantics.core.images import MIME, probe
from memantics.core.labels import PERSON, Preference, append_preference
from memantics.core.result import Result
from memantics.core.samples import image_path
from memantics.core.waiting import make_sync
from memantics.evaluation import embed_json
from memantics.models.engine import Progress
from memantics.models.kinds import name_models, show_model
from memantics.serve.browse.routes import SharedPages, find_pages
from memantics.serve.context import find_service
from memantics.serve.engine import ServiceEngine
from memantics.serve.inputs import read_json
from memantics.serve.pages import describe
from memantics.understanding import NO_MODEL, read_style
from memantics.web.page import fill_page
from memantics.web.phrases import PageLanguage
from memantics.web.site import Catalogue
from memantics.workbench import KinderFound

_HERE = Path(__file__).parent
MOST_PICTURE = 40 * 1024 * 1024  # maximum number of characters of an image as a data URL
NAME = "this picture"
# The first sample memes shown: puns, a harmful meme, several panels, both languages.
FIRST: dict[PageLanguage, tuple[str, ...]] = {
    "en": ("en-030", "en-004", "en-035", "CN90001", "en-016", "en-009", "CN90007", "zh-004"),
    "zh": ("CN90001", "zh-004", "CN90007", "CN90009", "CN90003", "en-030", "CN90008", "en-035"),
}
_MOST_TEXT = 4000


class StudioRecord(BaseModel):
    """All analysis results of one meme as the page stores them, with its image as a data URL.

    The button "Save as data" writes the same record.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    name: str = Field(max_length=500)
    language: PageLanguage = "en"
    picture: str = Field(max_length=MOST_PICTURE)
    text: workbench.TextFound | None = None
    sound: workbench.HomophoneFound | None = None
    harm: workbench.HarmFound | None = None
    kinder: KinderFound | None = None
    meanings: tuple[workbench.MeaningFound, ...] = ()


def render_record(record: StudioRecord, words: Catalogue) -> str:
    """Render the saved page; its images are checked, since it may be opened later elsewhere."""
    styles = ("knowledge.css", "analysis.css", str(_HERE / "saved.css"))
    return fill_page(
        str(_HERE / "saved.html"),
        (read_style(), *styles),
        "analysis.js",
        language=words.language,
        t=words,
        translate=lambda kind, name: words.messages.get(f"{kind}{name}", name),
        person=PERSON,
        show_model=show_model,
        record=record,
        picture=check_picture(record.picture),
        kinder=check_picture(record.kinder.picture)
        if record.kinder and record.kinder.picture
        else "",
        letters=[(letter.char, _level(letter.share)) for letter in record.harm.characters]
        if record.harm
        else [],
        blurred=is_harmful(record),
        meanings=[(each, workbench.draw_meaning(each, words.language)) for each in record.meanings],
        date=datetime.now(UTC).date().isoformat(),
    )


def is_harmful(record: StudioRecord) -> bool:
    """Return whether a reliable verdict is harmful; the sample detector's does not count."""
    judged = record.harm is not None and record.harm.harmful and not record.harm.sample
    told = any(
        (found.harm is not None and found.harm.harmful) or found.knowledge.of("Toxicity")
        for found in record.meanings
    )
    return judged or told


def check_picture(url: str) -> str:
    """Return an image's data URL with the media type of its actual bytes."""
    data = read_url(url)
    return f"data:{MIME[probe(data, 'picture').format]};base64,{url.partition(';base64,')[2]}"


def read_url(url: str) -> bytes:
    """Return the bytes of an image in a data URL."""
    head, _, body = url.partition(";base64,")
    try:
        if head.startswith("data:"):
            return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        pass
    raise InputError("the image is not a data URL", hint="send data:image/…;base64,…")


def _level(share: float) -> str:
    size = min(4, int(abs(share) * 5))
    return f"{'h' if share > 0 else 'g'}{size}" if size else ""


class CaptionBody(BaseModel):
    """A caption, its language, and the number of text regions that OCR skipped."""

    text: str = Field(max_length=_MOST_TEXT)
    language: str = Field(default="", max_length=16)
    unread: int = Field(default=0, ge=0)
    other_text: str = Field(default="", max_length=_MOST_TEXT)


class KinderWish(BaseModel):
    """The model that plans, the number of versions, and whether they get a visible label."""

    model: str = NO_MODEL
    versions: int = Field(default=1, ge=1, le=8)
    label: bool = True


class OwnWords(BaseModel):
    """An image as a data URL, and captions for it, one per line."""

    picture: str = Field(max_length=MOST_PICTURE)
    words: str = Field(min_length=1, max_length=_MOST_TEXT)
    label: bool = True

    def read(self) -> workbench.Picture:
        """Return the uploaded image."""
        return workbench.Picture(read_url(self.picture), NAME)


def need_own_page(request: Request) -> None:
    """Reject requests from other web sites, which cannot set this header without permission."""
    if request.headers.get("x-memantics") != "studio":
        raise HTTPException(403, "this endpoint accepts requests from the studio page only")


router = APIRouter(include_in_schema=False)
_own_page = [Depends(need_own_page)]


def find_studio(request: Request) -> workbench.Studio:
    """Return the studio of the service."""
    studio: workbench.Studio = request.app.state.studio
    return studio


def find_engine(request: Request) -> ServiceEngine:
    """Return the work queues of the service, which reject work when they are full."""
    return find_service(request).engine


async def read_picture(request: Request) -> workbench.Picture:
    """Return the image in the request body."""
    return workbench.Picture(await request.body(), NAME)


async def read_said(request: Request) -> CaptionBody:
    """Return the caption in the request body."""
    return await read_json(request, CaptionBody)


SharedStudio = Annotated[workbench.Studio, Depends(find_studio)]
Queues = Annotated[ServiceEngine, Depends(find_engine)]
SentPicture = Annotated[workbench.Picture, Depends(read_picture)]
SentText = Annotated[CaptionBody, Depends(read_said)]


@router.get("/")
def show_page(request: Request, pages: SharedPages) -> Response:
    """Show the studio page; its script loads everything else."""
    words = pages.words(request)
    context = {
        "picks": workbench.list_samples(words.language, FIRST[words.language]),
        "models": name_models(request.app.state.settings.models.models),
        "keeps": request.app.state.settings.models.preferences is not None,
        "words_json": Markup(embed_json(dict(words.messages))),  # noqa: S704 - escaped for it
    }
    return pages.show(request, "studio.html", context)


@router.get("/studio/sample/{meme}.png")
def show_sample(meme: str) -> Response:
    """Return an image of the sample data."""
    return FileResponse(image_path(meme), media_type="image/png")


@router.post("/studio/sample/{meme}", dependencies=_own_page)
async def explain_sample(meme: str, queues: Queues) -> Response:
    """Return the annotations of a meme of the sample data."""

    def tell() -> JsonValue:
        return show_meaning(workbench.tell_sample_meaning(meme))

    return await answer(queues.work(tell))


@router.post("/studio/text", dependencies=_own_page)
async def find_text(picture: SentPicture, studio: SharedStudio, queues: Queues) -> Response:
    """Return the captions of an image with their boxes."""
    return await answer(queues.work(workbench.read_text, studio, picture))


@router.post("/studio/sound", dependencies=_own_page)
async def find_sound(said: SentText, queues: Queues) -> Response:
    """Return the homophone readings of a caption."""
    return await answer(queues.work(workbench.find_homophones, said.text, said.language))


@router.post("/studio/harm", dependencies=_own_page)
async def find_harm(
    request: Request, said: SentText, studio: SharedStudio, queues: Queues
) -> Response:
    """Return the detector's verdict on a meme, with reasons in the language of the page."""
    page = find_pages(request).words(request).language
    sent = (said.text, said.language, said.unread, said.other_text, page)
    return await answer(queues.work(workbench.judge, studio, *sent))


@router.post("/studio/kinder", dependencies=_own_page)
async def find_kinder(
    request: Request,
    picture: SentPicture,
    studio: SharedStudio,
    queues: Queues,
    wish: Annotated[KinderWish, Query()],
) -> Response:
    """Return a kinder version of a meme, or several to choose from, with a visible label."""
    language = find_pages(request).words(request).language
    if wish.model != NO_MODEL:  # mostly waits for a model, so it needs no thread
        asked = (wish.model, wish.versions, language)
        return await answer(workbench.soften(studio, picture, *asked, label=wish.label))
    return await answer(
        queues.work(
            make_sync(workbench.soften),
            studio,
            picture,
            versions=wish.versions,
            language=language,
            label=wish.label,
        )
    )


@router.post("/studio/words", dependencies=_own_page)
async def draw_words(request: Request, studio: SharedStudio, queues: Queues) -> Response:
    """Return a version of a meme with the user's own captions."""
    sent = await read_json(request, OwnWords)
    language = find_pages(request).words(request).language
    return await answer(
        queues.work(
            make_sync(workbench.redraw),
            studio,
            sent.read(),
            sent.words,
            language,
            label=sent.label,
        )
    )


@router.post("/studio/choice", dependencies=_own_page)
async def keep_choice(request: Request, queues: Queues) -> Response:
    """Store a user's choice, if the operator enabled that."""
    place = request.app.state.settings.models.preferences
    if place is None:
        raise HTTPException(
            404, "this service does not store choices; start it with --preferences FILE"
        )
    preference = await read_json(request, Preference)
    await queues.work(append_preference, place, preference)
    return JSONResponse({"kept": True})


@router.post("/studio/meaning", dependencies=_own_page)
async def find_meaning(
    request: Request, picture: SentPicture, studio: SharedStudio, model: str
) -> Response:
    """Stream the model's analysis as JSON lines."""
    language = find_pages(request).words(request).language
    steps = workbench.follow_meaning(studio, picture, model, language)
    return StreamingResponse(write_lines(steps), media_type="application/x-ndjson")


@router.post("/studio/page", dependencies=_own_page)
async def save_page(request: Request, pages: SharedPages, queues: Queues) -> Response:
    """Return all analysis results as one self-contained page."""
    record = await read_json(request, StudioRecord)

    def render() -> Response:
        body = render_record(record, pages.site.words(record.language))
        return Response(body, media_type="text/html; charset=utf-8")

    return await answer(queues.work(render))


async def answer(work: Awaitable[Result | JsonValue | Response]) -> Response:
    """Return one analysis result as JSON, or the error."""
    try:
        found = await work
    except MemanticsError as error:
        return JSONResponse(describe(error), 422)
    if isinstance(found, Response):
        return found
    plain = found.to_dict() if isinstance(found, Result) else found
    return Response(orjson.dumps(plain), media_type="application/json")


async def write_lines(
    steps: AsyncIterator[Progress | workbench.MeaningFound],
) -> AsyncIterator[bytes]:
    """Yield JSON lines: the progress of a model, then its result or error."""
    try:
        async for step in steps:
            if isinstance(step, workbench.MeaningFound):
                yield _line(show_meaning(step))
            else:
                yield _line({"done": step.done, "total": step.total})
    except MemanticsError as error:
        yield _line(describe(error))


def _line(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


def show_meaning(found: workbench.MeaningFound) -> JsonValue:
    """Return an analysis of meaning with drawings as trees, so that the page parses no markup."""
    drawn = workbench.draw_meaning(found)
    trees = {"wide": drawn.wide, "narrow": drawn.narrow}
    return {"found": found.to_dict(), **{name: to_tree(svg) for name, svg in trees.items()}}


def to_tree(svg: str) -> JsonValue:
    """Convert an SVG drawing to ``[tag, attributes, …children]``; None without a drawing.

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
