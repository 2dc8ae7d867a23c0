"""``reappraise``: rewrite negative memes in place, with panels and layout kept."""

from __future__ import annotations

import re
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias, overload

from memantics.core.errors import ImageError, InputError
from memantics.core.images import read_bytes
from memantics.core.language import guess_language
from memantics.core.lines import TextChoice
from memantics.core.memes import Meme, name_apart, read_memes
from memantics.core.parameters import (
    Argument,
    BuildFolder,
    FewMemes,
    Flag,
    ImagePath,
    ImagePaths,
    MemeFolder,
)
from memantics.core.result import Result
from memantics.core.stamping import open_stamp
from memantics.core.waiting import make_sync, run_sync
from memantics.models.client import CallSettings, ProgressWatch
from memantics.models.embedded.ocr import RememberingOcr, open_reader
from memantics.models.engine import Progress
from memantics.understanding.editing import (
    DraftSettings,
    EditorSettings,
    PlanModel,
    ReappraiseSettings,
    find_faces,
    find_judge,
    line_reader,
    open_painter,
    open_planner,
)
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
from memantics.understanding.reappraisal.kindness import rate_kindness
from memantics.understanding.reappraisal.records import (
    MEME,
    PAGE,
    SHEET,
    EditChecks,
    MemeFeeling,
    ReappraisalPlan,
    Shape,
    TargetEmotion,
)
from memantics.understanding.reappraisal.rules import pass_gate
from memantics.understanding.reappraisal.stages import NO_MODEL
from memantics.understanding.reappraisal.workshop import (
    ENDINGS,
    Reappraisal,
    ReappraisalStage,
    StageReview,
    Workshop,
)
from memantics.understanding.versions import keep_choice, show_versions
from memantics.understanding.vision.roles import read_image_text

__all__ = [
    "MEME",
    "NO_MODEL",
    "PAGE",
    "SHEET",
    "DraftSettings",
    "EditChecks",
    "EditorSettings",
    "MemeFeeling",
    "Reappraisal",
    "ReappraisalDrafts",
    "ReappraisalPlan",
    "ReappraisalStage",
    "ReappraiseSettings",
    "Shape",
    "TargetEmotion",
    "draft_reappraisals",
    "draft_reappraisals_async",
    "reappraise",
    "reappraise_async",
]

Results: TypeAlias = tuple[Reappraisal, ...]
NewEmotion = Annotated[
    TargetEmotion | None, Flag("Target emotion. Default: the counterpart of the meme's emotion.")
]
EditorName = Annotated[
    str,
    Flag(
        "Image editor: none (captions only), embedded (light and colours), "
        "openai-images/NAME or diffusers/PATH.",
        "--editor -e",
    ),
]
OutFolder = Annotated[ImagePath, Flag("Output folder, with one subfolder per meme.")]


@overload
async def reappraise_async(
    image: ImagePath,
    *,
    model: str = ...,
    target: TargetEmotion | None = ...,
    editor: str = ...,
    out: ImagePath = ...,
    settings: ReappraiseSettings | None = ...,
    calls: CallSettings | None = ...,
    review: StageReview | None = ...,
    ocr: RememberingOcr | None = ...,
    progress: ProgressWatch | None = ...,
) -> Reappraisal: ...


@overload
async def reappraise_async(
    image: ImagePaths,
    *,
    model: str = ...,
    target: TargetEmotion | None = ...,
    editor: str = ...,
    out: ImagePath = ...,
    settings: ReappraiseSettings | None = ...,
    calls: CallSettings | None = ...,
    review: StageReview | None = ...,
    ocr: RememberingOcr | None = ...,
    progress: ProgressWatch | None = ...,
) -> Results: ...


async def reappraise_async(
    image: ImagePath | ImagePaths,
    *,
    model: str = NO_MODEL,
    target: TargetEmotion | None = None,
    editor: str = "none",
    out: ImagePath = "reappraised",
    settings: ReappraiseSettings | None = None,
    calls: CallSettings | None = None,
    review: StageReview | None = None,
    ocr: RememberingOcr | None = None,
    progress: ProgressWatch | None = None,
) -> Reappraisal | Results:
    """Reappraise one meme or several, as :func:`reappraise` does; both have one documentation."""
    alone = isinstance(image, Path | str)
    paths = [Path(image)] if isinstance(image, Path | str) else [Path(one) for one in image]
    if alone and paths[0].is_dir():
        raise InputError(f"{image} is a folder", hint="pass the folder in a list: [folder]")
    settings = settings or ReappraiseSettings()
    order = _Order(model, settings, calls or CallSettings(), progress)
    given = _Shop(Path(out), target, editor, review, ocr, settings)
    made = await _reappraise_all(find_memes(paths), order, given)
    return made[0] if alone else made


@overload
def reappraise(
    image: ImagePath,
    *,
    model: str = ...,
    target: TargetEmotion | None = ...,
    editor: str = ...,
    out: ImagePath = ...,
    settings: ReappraiseSettings | None = ...,
    calls: CallSettings | None = ...,
    review: StageReview | None = ...,
    ocr: RememberingOcr | None = ...,
    progress: ProgressWatch | None = ...,
) -> Reappraisal: ...


@overload
def reappraise(
    image: ImagePaths,
    *,
    model: str = ...,
    target: TargetEmotion | None = ...,
    editor: str = ...,
    out: ImagePath = ...,
    settings: ReappraiseSettings | None = ...,
    calls: CallSettings | None = ...,
    review: StageReview | None = ...,
    ocr: RememberingOcr | None = ...,
    progress: ProgressWatch | None = ...,
) -> Results: ...


def reappraise(
    image: Annotated[
        ImagePath | ImagePaths,
        Argument("Image files, or folders of memes.", "images", kind=list[Path]),
    ],
    *,
    model: PlanModel = NO_MODEL,
    target: NewEmotion = None,
    editor: EditorName = "none",
    out: OutFolder = "reappraised",
    settings: ReappraiseSettings | None = None,
    calls: CallSettings | None = None,
    review: StageReview | None = None,
    ocr: RememberingOcr | None = None,
    progress: ProgressWatch | None = None,
) -> Reappraisal | Results:
    """Rewrite the captions of negative memes in place; panels and layout are kept.

    The result of a failed meme names the stage and the reason; the other memes continue.

    Args:
        image: One image file, or a list of image files and folders of memes.
        model: Model that plans, ``KIND/NAME``. Without one, every meme is declined.
        target: The new emotion. Default: the counterpart of the meme's emotion.
        editor: Who repaints the image: ``none`` (captions only), ``embedded`` (light and
            colours), ``openai-images/NAME`` or ``diffusers/PATH``.
        out: Folder for the results, one folder per meme.
        settings: Planning, versions and editor; see :class:`ReappraiseSettings`.
        calls: How the model is called; see :class:`CallSettings`.
        review: Called with each stage; returns it, a corrected one, or ``None`` to skip the meme.
        ocr: A loaded OCR engine, for many calls.
        progress: Called with the counts so far.

    Returns:
        A :class:`Reappraisal` for one image; a tuple of them, in order, for a list.

    Raises:
        InputError: A folder is given without a list, or settings contradict each other.
        ImageError: An image file does not exist.

    Example:
        >>> quiet = mm.ReappraiseSettings(mood=False)
        >>> kinder = mm.reappraise("meme.png", model="recorded/replies.jsonl", settings=quiet)
        >>> kinder.save("kinder.png")
        PosixPath('kinder.png')
    """
    given: Any = image  # each overload of the async version accepts only one type of argument
    waiting: Coroutine[Any, Any, Reappraisal | Results] = reappraise_async(
        given,
        model=model,
        target=target,
        editor=editor,
        out=out,
        settings=settings,
        calls=calls,
        review=review,
        ocr=ocr,
        progress=progress,
    )
    return run_sync(waiting)


reappraise_async.__doc__ = reappraise.__doc__


def find_memes(paths: Sequence[Path]) -> list[Meme]:
    """List the memes that a user named."""
    found: list[Meme] = []
    for path in paths:
        if path.is_dir():
            found.extend(read_memes(path))
        elif path.exists():
            found.append(Meme(path.stem, path))
        else:
            raise ImageError(path, "missing", "no such file", hint="check the path")
    return name_apart(found)


@dataclass(frozen=True, slots=True)
class _Order:
    """Inputs of the planning stages: the planner, its settings and the progress callback."""

    model: str
    settings: DraftSettings
    calls: CallSettings
    progress: ProgressWatch | None


@dataclass(frozen=True, slots=True)
class _Shop:
    """The output folder, the target emotion and the components of a reappraisal."""

    out: Path
    target: TargetEmotion | None
    editor: str
    review: StageReview | None
    ocr: RememberingOcr | None
    settings: ReappraiseSettings


async def _reappraise_all(memes: Sequence[Meme], order: _Order, given: _Shop) -> Results:
    settings, calls, out = given.settings, order.calls, given.out
    wanted, choose = settings.versions, settings.choose
    if choose is not None and (wanted == 1 or len(memes) != 1):
        raise InputError(
            "--choose works only with one meme and several versions",
            hint="give one image, and the same --versions as before",
        )
    stamp = open_stamp(settings)
    memes = await _read_for(memes, order.model, settings.text)
    opened = open_reader(text=settings.text) if given.ocr is None else nullcontext(given.ocr)
    with opened as ocr:
        async with (
            open_painter(given.editor, settings, calls) as painter,
            open_planner(order.model, settings, calls, out, len(memes), order.progress) as planner,
        ):
            judge = find_judge(planner, settings)
            shop = Workshop(
                planner, line_reader(ocr), out, painter, given.target, given.review, judge
            )
            faces = find_faces(planner, settings, len(memes))
            # A person's captions are not scored by the classifier.
            shop = replace(shop, faces=faces, kindness=None if given.review else rate_kindness)
            shop = replace(shop, versions=wanted, choose=choose or 0, stamp=stamp)
            results = await _take_all(memes, shop, order)
    for meme, made in zip(memes, results, strict=True):
        show_versions(made, meme.image, wanted, settings.language)
        if choose is not None and made.versions:
            keep_choice(made, meme.image, choose, order.model)
    return results


async def _read_for(memes: Sequence[Meme], model: str, text: TextChoice) -> Sequence[Meme]:
    """Add homophone notes to memes for a model."""
    return memes if model == NO_MODEL else await read_once(memes, text=text)


async def _take_all(memes: Sequence[Meme], shop: Workshop, order: _Order) -> Results:
    """Reappraise memes in order; with a model, its client reports the progress."""
    alone = order.model == NO_MODEL
    watch = order.progress if alone and shop.review is None else None
    width = 1 if alone or shop.review else order.calls.concurrency
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
    places = {meme.id: place for place, meme in enumerate(memes)}
    return tuple(sorted(results, key=lambda result: places[result.meme]))


@dataclass(frozen=True, slots=True)
class ReappraisalDrafts(Result):
    """Dataset drafts in ``folder``; ``made`` are the results by editor.

    ``skipped`` maps each meme that the annotations excluded to the reason.
    """

    folder: Path
    drafts: tuple[ReappraisalDraft, ...]
    made: Mapping[str, Results]
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def queue(self) -> Path:
        """The queue in which people check every stage."""
        return self.folder / QUEUE

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Number of memes by final status, for each editor."""
        return {
            name: {status: sum(result.status == status for result in results) for status in ENDINGS}
            for name, results in self.made.items()
        }


async def draft_reappraisals_async(
    folder: MemeFolder,
    *,
    model: PlanModel = NO_MODEL,
    editors: Annotated[
        Sequence[str],
        Flag("Image editor; repeatable. Default: none, only captions change.", "--editor -e"),
    ] = (),
    out: BuildFolder = None,
    limit: FewMemes = None,
    annotations: Annotated[
        ImagePath | None,
        Flag("Annotations of the workflow find-emotions; only clearly negative memes are used."),
    ] = None,
    settings: DraftSettings | None = None,
    calls: CallSettings | None = None,
    progress: ProgressWatch | None = None,
) -> ReappraisalDrafts:
    """Reappraise every meme of a folder with one or more editors, as drafts of a data set.

    The drafts go into a queue in which people check every stage; ``memantics build reappraisal``
    is the command.

    Args:
        folder: A folder of memes, a registered release, or ``sample`` for the sample data.
        model: Model that plans, ``KIND/NAME``. Without one, every meme is declined.
        editors: Who repaints; see ``editor`` of :func:`reappraise`. Default: captions only.
        out: Folder of the build. Default: ``builds/NAME-reappraisal``.
        limit: Take only the first memes.
        annotations: Annotations of the workflow ``find-emotions``: only memes that people called
            clearly negative are reappraised, with the emotion that they agreed on.
        settings: Planning and editor; see :class:`DraftSettings`.
        calls: How the model is called; see :class:`CallSettings`.
        progress: Called with the counts so far.

    Returns:
        The drafts, the results by editor, the queue, and why memes were left out.

    Raises:
        InputError: No folder is named, or it holds no memes.

    Example:
        >>> drafts = mm.draft_reappraisals("memes", model="recorded/replies.jsonl", limit=1)
        >>> drafts.queue
        PosixPath('builds/memes-reappraisal/queue')
    """
    if folder is None:
        raise InputError(
            "no folder of memes was named",
            hint="name a folder, or use 'sample' for the sample data",
        )
    settings, calls = settings or DraftSettings(), calls or CallSettings()
    stamp = open_stamp(settings)
    order = _Order(model, settings, calls, progress)
    names = list(dict.fromkeys(editors)) or ["none"]
    place = Path(out or Path("builds") / f"{Path(folder).resolve().name}-reappraisal")
    found = name_apart(find_folder(Path(folder), notes=False)[:limit])
    gate = pass_gate(found, None if annotations is None else Path(annotations))
    memes = await _read_for(gate.memes, model, settings.text)
    made: dict[str, Results] = {}
    with open_reader(text=settings.text) as ocr:
        planned = open_planner(model, settings, calls, place, len(memes) * len(names), progress)
        async with planned as planner:
            for name in names:
                # Every editor has its own folder; plans are requested only once.
                short = "captions-only" if name == "none" else re.sub(r"[^\w.-]+", "-", name)
                editor = open_painter(name, settings, calls)
                async with editor as painter:
                    edited = place / "reappraised" / short
                    judge = find_judge(planner, settings)
                    shop = Workshop(planner, line_reader(ocr), edited, painter, judge=judge)
                    faces = find_faces(planner, settings, len(memes))
                    shop = replace(
                        shop,
                        emotions=gate.emotions,
                        faces=faces,
                        kindness=rate_kindness,
                        stamp=stamp,
                    )
                    made[short] = await _take_all(memes, shop, order)
        done = {one.meme for results in made.values() for one in results if one.status == "done"}
        known = [_describe(meme, ocr) for meme in memes if meme.id in done]
    drafts = join_results(known, made)
    write_drafts(place, drafts)
    if drafts:
        write_reappraisal_queue(place, drafts, f"memantics build reappraisal, {model}")
    return ReappraisalDrafts(place, tuple(drafts), made, gate.skipped)


def _describe(meme: Meme, ocr: RememberingOcr) -> Meme:
    """Add the printed text to a meme by OCR if it is not given."""
    text = meme.text
    if not text:
        found = read_image_text(ocr, read_bytes(meme.image), meme.image.name)
        text = " ".join(line.text for line in found.captions)
    return replace(meme, text=text, language=meme.language or guess_language(text).language)


draft_reappraisals = make_sync(draft_reappraisals_async)
