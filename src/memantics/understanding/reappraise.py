"""Turn negative memes around: captions rewritten in place, panels and layout kept.

Options of reappraising and of every action that edits images, with their flags.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, TypeAlias, Unpack, overload

from memantics.core.errors import ImageError, InputError
from memantics.core.images import read_bytes
from memantics.core.labels import find_judges
from memantics.core.language import guess_language
from memantics.core.lines import TextLine, explain_unread
from memantics.core.memes import Meme, name_apart, read_memes
from memantics.core.model import Editor
from memantics.core.parameters import (
    Argument,
    BuildFolder,
    FewMemes,
    Flag,
    ImagePath,
    ImagePaths,
    MemeFolder,
    TextTaken,
)
from memantics.core.result import Result
from memantics.core.waiting import make_sync, run_sync
from memantics.models.client import AskingOptions, Watch, asking_of, open_client
from memantics.models.editors import open_editor
from memantics.models.embedded.ocr import RememberingOcr, open_reader
from memantics.models.engine import Progress
from memantics.models.kinds import ModelSettings
from memantics.understanding.captions.mine import sees_nothing
from memantics.understanding.reading import find_memes as find_folder
from memantics.understanding.reading import read_once
from memantics.understanding.reappraisal.chain import reappraise_all
from memantics.understanding.reappraisal.dataset import (
    QUEUE,
    ReappraisalDraft,
    join_results,
    write_drafts,
    write_reappraisal_queue,
)
from memantics.understanding.reappraisal.faces import BY_MODEL, FaceEditor, FaceFinder, open_faces
from memantics.understanding.reappraisal.grading import EmbeddedEditor
from memantics.understanding.reappraisal.kindness import rate_kindness
from memantics.understanding.reappraisal.planner import EMBEDDED, EmbeddedPlanner
from memantics.understanding.reappraisal.records import (
    MEME,
    PAGE,
    SHEET,
    Checks,
    MemeFeeling,
    ReappraisalPlan,
    Shape,
    Target,
)
from memantics.understanding.reappraisal.rules import pass_gate
from memantics.understanding.reappraisal.stages import ModelPlanner, MoodJudge, Planner
from memantics.understanding.reappraisal.workshop import (
    ENDINGS,
    Reappraisal,
    Stage,
    StageReview,
    Workshop,
)
from memantics.understanding.versions import keep_choice, show_versions
from memantics.understanding.vision.regions import ReadLines
from memantics.understanding.vision.roles import read_image_text

__all__ = [
    "EMBEDDED",
    "MEME",
    "PAGE",
    "SHEET",
    "Checks",
    "MemeFeeling",
    "Reappraisal",
    "ReappraisalDrafts",
    "ReappraisalPlan",
    "Shape",
    "Stage",
    "Target",
    "reappraisal",
    "reappraisal_async",
    "reappraise",
    "reappraise_async",
]

BEST_OF = 3


class EditingOptions(AskingOptions, total=False):
    """Who plans (``model``: KIND/NAME, or our lexicon, a baseline) and how an editor is reached.

    ``best_of`` is how many plans a model makes in one call, of which the best by our checks is
    taken; 1 asks for a single plan, as MER-Bench's authors do. ``mood`` False: a model
    that sees is not asked whether faces go with the new captions. ``face`` lets a generative editor
    repaint faces alone: places (``X,Y,W,H`` in pixels), ``model``, or the file of a YuNet detector.
    ``text`` is which lines of a picture are captions and may be rewritten: what their roles say, or
    all. ``progress`` is told how far it is.
    """

    model: Annotated[
        str,
        Flag("Who plans: KIND/NAME, or our lexicon, a baseline.", "--model -m", default=EMBEDDED),
    ]
    best_of: Annotated[
        int,
        Flag(
            "Plans that a model makes in one call; the best by our checks is taken. 1: as the"
            " authors of MER-Bench ask.",
            min=1,
            max=8,
            default=BEST_OF,
        ),
    ]
    mood: Annotated[
        bool,
        Flag("Ask the model whether faces go with the new captions: a call.", default=True),
    ]
    face: Annotated[
        Sequence[str],
        Flag(
            "Let --editor repaint faces alone: X,Y,W,H in pixels (may be repeated), 'model' to ask"
            " --model, or the file of a YuNet detector (.onnx).",
            metavar="WHERE",
        ),
    ]
    text: TextTaken
    editor_url: Annotated[
        str | None, Flag("Address of an image-edit server. Default: OPENAI_BASE_URL.")
    ]
    editor_params: Annotated[
        Mapping[str, str], Flag("A setting of the editor.", "--editor-param", metavar="NAME=VALUE")
    ]
    progress: Watch | None


class ReappraiseOptions(EditingOptions, total=False):
    """Options of :func:`reappraise`.

    ``target`` is the new emotion (default: the counterpart of the meme's own); ``editor`` who
    repaints: none, embedded, openai-images/NAME or diffusers/PATH; ``sticker`` lets the embedded
    one add a drawing; ``out`` is where the folders of the memes go; ``force`` turns memes around,
    too, in which our words find nothing negative; ``versions`` is how many are wanted that pass
    every check, with a contact sheet; ``choose`` takes one by its number (0: back to the best), and
    keeps that as a preference; ``review`` sees each stage and may correct it; ``ocr`` reads the
    captions, where one is loaded already.
    """

    target: Annotated[
        Target | None,
        Flag("The new emotion. Default: the counterpart of the meme's own."),
    ]
    editor: Annotated[
        str,
        Flag(
            "Who repaints: none (captions only), embedded (light and colours), "
            "openai-images/NAME or diffusers/PATH.",
            "--editor -e",
            default="none",
        ),
    ]
    out: Annotated[ImagePath, Flag("Where the folders of the memes go.", default="reappraised")]
    sticker: Annotated[
        bool | None,
        Flag("Embedded editor: add a sticker. Default: no.", "--sticker/--no-sticker"),
    ]
    force: Annotated[
        bool, Flag("Turn memes around in which our words find nothing negative.", default=False)
    ]
    versions: Annotated[
        int,
        Flag("Versions that pass all checks, on a contact sheet.", min=1, max=8, default=1),
    ]
    choose: Annotated[
        int | None,
        Flag("Take this version of the contact sheet; 0 takes the choice back.", min=0, max=16),
    ]
    review: StageReview | None
    ocr: RememberingOcr | None


Results: TypeAlias = tuple[Reappraisal, ...]
EMOTION = "emotion"  # the topic of classifiers that tell what a meme feels like


@overload
async def reappraise_async(
    image: ImagePath, **options: Unpack[ReappraiseOptions]
) -> Reappraisal: ...


@overload
async def reappraise_async(image: ImagePaths, **options: Unpack[ReappraiseOptions]) -> Results: ...


async def reappraise_async(
    image: ImagePath | ImagePaths, **options: Unpack[ReappraiseOptions]
) -> Reappraisal | Results:
    """Reappraise one meme, or several images and folders of memes, in their order.

    ``image`` is a file, a folder, or several. A meme that fails says at which stage and why; it
    does not end the others.
    """
    alone = isinstance(image, Path | str)
    paths = [Path(image)] if isinstance(image, Path | str) else [Path(one) for one in image]
    if alone and paths[0].is_dir():
        raise InputError(f"{image} is a folder", hint="give it in a list: [folder]")
    made = await _reappraise_all(find_memes(paths), options)
    return made[0] if alone else made


@overload
def reappraise(image: ImagePath, **options: Unpack[ReappraiseOptions]) -> Reappraisal: ...


@overload
def reappraise(image: ImagePaths, **options: Unpack[ReappraiseOptions]) -> Results: ...


def reappraise(
    image: Annotated[
        ImagePath | ImagePaths,
        Argument("Image files, or folders of memes.", "images", kind=list[Path]),
    ],
    **options: Unpack[ReappraiseOptions],
) -> Reappraisal | Results:
    """:func:`reappraise_async`, waited for."""
    if isinstance(image, Path | str):
        return run_sync(reappraise_async(image, **options))
    return run_sync(reappraise_async(image, **options))


def find_memes(paths: Sequence[Path]) -> list[Meme]:
    """The memes that a user named."""
    found: list[Meme] = []
    for path in paths:
        if path.is_dir():
            found.extend(read_memes(path))
        elif path.exists():
            found.append(Meme(path.stem, path))
        else:
            raise ImageError(path, "missing", "no such file", hint="check the path")
    return name_apart(found)


async def _reappraise_all(memes: Sequence[Meme], options: ReappraiseOptions) -> Results:
    out, review = Path(options.get("out", "reappraised")), options.get("review")
    editor, sticker = options.get("editor", "none"), options.get("sticker")
    wanted, choose = options.get("versions", 1), options.get("choose")
    if choose is not None and (wanted == 1 or len(memes) != 1):
        raise InputError(
            "--choose takes one of several versions of one meme",
            hint="name one image, and --versions as for its contact sheet",
        )
    memes = await _read_for(memes, options)
    given = options.get("ocr")
    choice = options.get("text", "caption")
    with nullcontext(given) if given is not None else open_reader(text=choice) as ocr:
        async with (
            open_painter(editor, options, sticker=sticker) as painter,
            open_planner(options, out, len(memes), force=options.get("force", False)) as planner,
        ):
            judge = _find_judge(planner, options)
            target = options.get("target")
            shop = Workshop(planner, line_reader(ocr), out, painter, target, review, judge)
            faces = _find_faces(planner, options, len(memes))
            # A person's words are not weighed by a classifier.
            shop = replace(shop, faces=faces, kindness=None if review else rate_kindness)
            shop = replace(shop, versions=wanted, choose=choose or 0)
            results = await _take_all(memes, shop, options)
    for meme, made in zip(memes, results, strict=True):
        show_versions(made, meme.image, wanted)
        if choose is not None and made.versions:
            keep_choice(made, meme.image, choose, options.get("model", EMBEDDED))
    return results


async def _read_for(memes: Sequence[Meme], options: EditingOptions) -> Sequence[Meme]:
    """Memes with what was heard in them, where a model is told of it; ours listens itself."""
    if options.get("model", EMBEDDED) == EMBEDDED:
        return memes
    return await read_once(memes, text=options.get("text", "caption"))


@asynccontextmanager
async def open_painter(
    name: str, options: EditingOptions, *, sticker: bool | None = None
) -> AsyncIterator[Editor | None]:
    """The editor of that name; None where only captions change."""
    face = bool(options.get("face"))
    if sticker and name != "embedded" and not face:
        raise InputError("--sticker goes with the embedded editor", hint="leave one of them out")
    if face and name in ("embedded", "none"):
        raise InputError(
            f"editor {name!r} repaints no faces",
            hint="--editor diffusers/PATH, or leave --face out",
        )
    if name == "none":
        yield None
        return
    timeout = asking_of(options).settings.timeout
    params = options.get("editor_params") or {}
    settings = ModelSettings(options.get("editor_url"), timeout=timeout, params=params)
    painter: Editor = EmbeddedEditor(sticker=sticker is True)
    if name != "embedded":
        painter = open_editor(name, settings)
        painter = FaceEditor(painter, sticker=sticker is True) if face else painter
    try:
        yield painter
    finally:
        await painter.close()


@asynccontextmanager
async def open_planner(
    options: EditingOptions, out: Path, memes: int, *, force: bool = False
) -> AsyncIterator[Planner]:
    """A model's planner with its call log in the folder, or the embedded one."""
    model = options.get("model", EMBEDDED)
    if model == EMBEDDED:
        yield EmbeddedPlanner(judge=find_judges([EMOTION]).get(EMOTION), force=force)
        return
    async with open_client(model, asking_of(options), out, options.get("progress")) as client:
        planner = ModelPlanner(client, options.get("best_of", BEST_OF))
        calls = 2 + (BY_MODEL in options.get("face", ()))
        client.expect((calls + (_find_judge(planner, options) is not None)) * memes)
        yield planner


def _find_judge(planner: Planner, options: EditingOptions) -> MoodJudge | None:
    """The planner, where it is a model that sees pictures and may be asked."""
    if not isinstance(planner, ModelPlanner) or sees_nothing(planner.name):
        return None
    return planner if options.get("mood", True) else None


def _find_faces(planner: Planner, options: EditingOptions, memes: int) -> FaceFinder | None:
    """Who says where faces are, where they are to be repainted."""
    asker = planner.asker if isinstance(planner, ModelPlanner) else None
    return open_faces(options.get("face", ()), asker, memes)


def line_reader(ocr: RememberingOcr) -> ReadLines:
    """How a reappraisal reads captions."""

    def read(data: bytes, name: str) -> Sequence[TextLine]:
        found = read_image_text(ocr, data, name)
        if found.unread:  # captions would stay that nobody knows of
            raise InputError(explain_unread(found.unread), hint="cut out the part that matters")
        return found.lines

    return read


async def _take_all(memes: Sequence[Meme], shop: Workshop, options: EditingOptions) -> Results:
    """Reappraise memes, in their order; where a model plans, its client tells the progress."""
    embedded = options.get("model", EMBEDDED) == EMBEDDED
    watch = options.get("progress") if embedded and shop.review is None else None
    width = 1 if embedded or shop.review else asking_of(options).concurrency
    results: list[Reappraisal] = []
    start = time.monotonic()
    async for result in reappraise_all(memes, shop, width):
        results.append(result)
        if watch is not None:
            done = sum(each.status == "done" for each in results)
            watch(
                Progress(
                    done=len(results),
                    total=len(memes),
                    answered=done,
                    failed=sum(each.status in ("failed", "flawed") for each in results),
                    resumed=sum(each.resumed for each in results),
                    seconds=time.monotonic() - start,
                )
            )
    order = {meme.id: place for place, meme in enumerate(memes)}
    return tuple(sorted(results, key=lambda result: order[result.meme]))


@dataclass(frozen=True, slots=True)
class ReappraisalDrafts(Result):
    """Drafts of a data set in ``folder``; ``made`` are the results by editor.

    ``left_out`` says by meme why the gate of people's verdicts did not let it through.
    """

    folder: Path
    drafts: tuple[ReappraisalDraft, ...]
    made: Mapping[str, Results]
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def queue(self) -> Path:
        """The queue in which people check every stage."""
        return self.folder / QUEUE

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """How the memes of each editor ended."""
        return {
            name: {status: sum(result.status == status for result in results) for status in ENDINGS}
            for name, results in self.made.items()
        }


async def reappraisal_async(
    folder: MemeFolder,
    *,
    editors: Annotated[
        Sequence[str],
        Flag("Who repaints; may be repeated. Default: none, captions only.", "--editor -e"),
    ] = (),
    out: BuildFolder = None,
    limit: FewMemes = None,
    verdicts: Annotated[
        ImagePath | None,
        Flag("What people said by the workflow find-emotions: only clear cases go on."),
    ] = None,
    **options: Unpack[EditingOptions],
) -> ReappraisalDrafts:
    """Turn every meme of a folder around with one or more editors; people check the drafts.

    With ``verdicts`` (workflow ``find-emotions``) only memes that people judged clearly negative
    are, with the feeling that they agreed on.
    """
    if folder is None:
        raise InputError("no folder of memes was named", hint="'sample' is one that ships")
    names = list(dict.fromkeys(editors)) or ["none"]
    place = Path(out or Path("builds") / f"{Path(folder).resolve().name}-reappraisal")
    found = name_apart(find_folder(Path(folder), notes=False)[:limit])
    gate = pass_gate(found, None if verdicts is None else Path(verdicts))
    memes = await _read_for(gate.memes, options)
    made: dict[str, Results] = {}
    with open_reader(text=options.get("text", "caption")) as ocr:
        async with open_planner(options, place, len(memes) * len(names)) as planner:
            for name in names:
                # Every editor has a folder of its own; plans are asked for once.
                short = "captions-only" if name == "none" else re.sub(r"[^\w.-]+", "-", name)
                async with open_painter(name, options) as painter:
                    edited = place / "reappraised" / short
                    judge = _find_judge(planner, options)
                    shop = Workshop(planner, line_reader(ocr), edited, painter, judge=judge)
                    faces = _find_faces(planner, options, len(memes))
                    shop = replace(
                        shop, emotions=gate.emotions, faces=faces, kindness=rate_kindness
                    )
                    made[short] = await _take_all(memes, shop, options)
        done = {one.meme for results in made.values() for one in results if one.status == "done"}
        known = [_describe(meme, ocr) for meme in memes if meme.id in done]
    drafts = join_results(known, made)
    write_drafts(place, drafts)
    if drafts:
        origin = f"memantics build reappraisal, {options.get('model', EMBEDDED)}"
        write_reappraisal_queue(place, drafts, origin)
    return ReappraisalDrafts(place, tuple(drafts), made, gate.left_out)


def _describe(meme: Meme, ocr: RememberingOcr) -> Meme:
    """The meme with its printed text, read where nobody gave it."""
    text = meme.text
    if not text:
        found = read_image_text(ocr, read_bytes(meme.image), meme.image.name)
        text = " ".join(line.text for line in found.captions)
    return replace(meme, text=text, language=meme.language or guess_language(text).language)


reappraisal = make_sync(reappraisal_async)
