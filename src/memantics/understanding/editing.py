"""How memes are edited: settings with their flags, the planner, and the image editor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from memantics.core.errors import InputError
from memantics.core.lines import TextLine, explain_unread
from memantics.core.model import Editor
from memantics.core.parameters import Flag, TextTaken
from memantics.core.stamping import MarkSettings
from memantics.models.client import CallSettings, ProgressWatch, open_client, split_watch
from memantics.models.editors import open_editor
from memantics.models.embedded.ocr import RememberingOcr
from memantics.models.kinds import ModelSettings
from memantics.understanding.captions.mine import sees_nothing
from memantics.understanding.reappraisal.faces import BY_MODEL, FaceEditor, FaceFinder, open_faces
from memantics.understanding.reappraisal.grading import EmbeddedEditor
from memantics.understanding.reappraisal.stages import (
    NO_MODEL,
    ModelPlanner,
    MoodJudge,
    NoPlanner,
    Planner,
)
from memantics.understanding.vision.regions import ReadLines
from memantics.understanding.vision.roles import read_image_text
from memantics.web.phrases import PageLanguage

BEST_OF = 3


@dataclass(frozen=True, slots=True)
class EditorSettings(MarkSettings):
    """Settings for reading captions, for the image editor, and for marks in new images.

    Attributes:
        sign: Certificate chain and private key; see :class:`MarkSettings`.
        label: Add a visible label; see :class:`MarkSettings`.
        text: Which lines of an image are captions and may be rewritten: those with the role of a
            caption (``"caption"``), or ``"all"``.
        editor_url: URL of an image-edit server. Default: ``OPENAI_BASE_URL``.
        editor_params: Settings of the editor, such as ``{"seed": "7"}``.
    """

    text: TextTaken = "caption"
    editor_url: Annotated[
        str | None, Flag("URL of an image-edit server. Default: OPENAI_BASE_URL.")
    ] = None
    editor_params: Annotated[
        Mapping[str, str],
        Flag("Editor setting as NAME=VALUE; repeatable.", "--editor-param", metavar="NAME=VALUE"),
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DraftSettings(EditorSettings):
    """Settings for planning and drawing a reappraisal.

    Attributes:
        sign: See :class:`EditorSettings`.
        label: See :class:`EditorSettings`.
        text: See :class:`EditorSettings`.
        editor_url: See :class:`EditorSettings`.
        editor_params: See :class:`EditorSettings`.
        best_of: Plans that a model makes in one call. 1 asks for a single plan, as the authors of
            MER-Bench do.
        critic_model: Model that chooses among the versions or declines the meme. Default: --model.
        mood: Ask a model that sees images whether faces match the new captions.
        face: Let a generative editor repaint only the faces. Where they are: boxes (``X,Y,W,H`` in
            pixels), ``model`` (the vision model finds them), or the file of a YuNet detector.
    """

    best_of: Annotated[
        int,
        Flag(
            "Number of versions of the captions from which the critic chooses; 1 as in the "
            "MER-Bench paper.",
            min=1,
            max=8,
        ),
    ] = BEST_OF
    critic_model: Annotated[
        str | None,
        Flag(
            "Model that chooses among the versions or declines the meme. Default: --model.",
            metavar="MODEL",
        ),
    ] = None
    mood: Annotated[
        bool, Flag("Ask the model whether faces match the new captions (one more call per meme).")
    ] = True
    face: Annotated[
        Sequence[str],
        Flag(
            "Let --editor repaint only faces: boxes X,Y,W,H in pixels (repeatable), 'model' to ask"
            " --model for them, or a YuNet detector file (.onnx).",
            metavar="WHERE",
        ),
    ] = ()


@dataclass(frozen=True, slots=True)
class ReappraiseSettings(DraftSettings):
    """Settings of :func:`reappraise`.

    Attributes:
        sign: See :class:`EditorSettings`.
        label: See :class:`EditorSettings`.
        text: See :class:`EditorSettings`.
        editor_url: See :class:`EditorSettings`.
        editor_params: See :class:`EditorSettings`.
        best_of: See :class:`DraftSettings`.
        critic_model: See :class:`DraftSettings`.
        mood: See :class:`DraftSettings`.
        face: See :class:`DraftSettings`.
        sticker: Let the embedded editor add a sticker.
        versions: Number of versions that pass every check, with a contact sheet.
        choose: Take this version of the contact sheet and store it as a preference; 0 returns to
            the best version.
        language: Language of the page of versions: ``en`` or ``zh``.
    """

    sticker: Annotated[
        bool | None,
        Flag("Add a drawn face (editor 'embedded' only).", "--sticker/--no-sticker"),
    ] = None
    versions: Annotated[
        int,
        Flag("Number of rewritten versions to draw, shown side by side on a page.", min=1, max=8),
    ] = 1
    choose: Annotated[
        int | None,
        Flag("Number of the version that becomes the result; 0 reverts the choice.", min=0, max=16),
    ] = None
    language: Annotated[PageLanguage, Flag("Language of the page of versions: en or zh.")] = "en"


PlanModel = Annotated[
    str,
    Flag(
        "Model that writes the new captions, KIND/NAME. Without one, every meme is declined.",
        "--model -m",
    ),
]


@asynccontextmanager
async def open_painter(
    name: str, settings: EditorSettings, calls: CallSettings
) -> AsyncIterator[Editor | None]:
    """Open the image editor of that name; None if only captions change."""
    sticker = settings.sticker if isinstance(settings, ReappraiseSettings) else None
    faces = isinstance(settings, DraftSettings) and bool(settings.face)
    if sticker and name != "embedded" and not faces:
        raise InputError(
            "--sticker works only with the embedded editor", hint="remove --sticker or --editor"
        )
    if faces and name in ("embedded", "none"):
        raise InputError(
            f"editor {name!r} cannot repaint faces",
            hint="use --editor diffusers/PATH or remove --face",
        )
    if name == "none":
        yield None
        return
    reached = ModelSettings(
        settings.editor_url, timeout=calls.timeout, params=settings.editor_params
    )
    painter: Editor = EmbeddedEditor(sticker=sticker is True)
    if name != "embedded":
        painter = open_editor(name, reached)
        painter = FaceEditor(painter, sticker=sticker is True) if faces else painter
    try:
        yield painter
    finally:
        await painter.close()


@asynccontextmanager
async def open_planner(
    model: str,
    settings: DraftSettings,
    calls: CallSettings,
    out: Path,
    memes: int,
    progress: ProgressWatch | None = None,
) -> AsyncIterator[Planner]:
    """Open a model that logs its calls in the folder, or the planner that declines every meme."""
    if model == NO_MODEL:
        if settings.critic_model is not None:
            raise InputError("--critic-model needs --model", hint="add --model, or remove it")
        yield NoPlanner()
        return
    named = settings.critic_model or model
    watches = split_watch(progress, 2)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(open_client(model, calls, out, watches[0]))
        critic = client
        if named != model:  # only one client may write a call log
            opened = open_client(named, calls, out / "critic", watches[1])
            critic = await stack.enter_async_context(opened)
        planner = ModelPlanner(client, settings.best_of, critic)
        asked = 2 + (BY_MODEL in settings.face) + (find_judge(planner, settings) is not None)
        client.expect(asked * memes)
        critic.expect(memes)
        yield planner


def find_judge(planner: Planner, settings: DraftSettings) -> MoodJudge | None:
    """Return the planner if it is a vision-language model and may check faces in images."""
    if not isinstance(planner, ModelPlanner) or sees_nothing(planner.name):
        return None
    return planner if settings.mood else None


def find_faces(planner: Planner, settings: DraftSettings, memes: int) -> FaceFinder | None:
    """Return the source of face positions, if faces are to be repainted."""
    asker = planner.asker if isinstance(planner, ModelPlanner) else None
    return open_faces(settings.face, asker, memes)


def line_reader(ocr: RememberingOcr) -> ReadLines:
    """Return the function that reads captions for a reappraisal."""

    def read(data: bytes, name: str) -> Sequence[TextLine]:
        found = read_image_text(ocr, data, name)
        if found.unread:  # a caption that OCR did not read would remain in the image
            raise InputError(
                explain_unread(found.unread), hint="crop the image to the relevant part"
            )
        return found.lines

    return read
