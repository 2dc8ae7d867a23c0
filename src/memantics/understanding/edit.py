"""``edit``: edit the memes of the benchmark MER-Bench and write the images for the LLM judge."""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

from memantics.benchmarks.mer_bench.load import ReappraisalRelease, ReappraisalRow
from memantics.benchmarks.registry import find_benchmark, find_source
from memantics.core.data import DataKind
from memantics.core.errors import ImageError, InputError, ModelError, Unavailable
from memantics.core.files import replace_file
from memantics.core.images import load, read_bytes
from memantics.core.lines import TextChoice
from memantics.core.memes import Meme
from memantics.core.model import Editor
from memantics.core.parameters import Argument, DataFlag, FewMemes, Flag
from memantics.core.result import Result
from memantics.core.stamping import ImageStamp, open_stamp
from memantics.core.waiting import make_sync
from memantics.models.client import CallSettings, ProgressWatch
from memantics.models.embedded.ocr import open_reader
from memantics.models.engine import Progress
from memantics.understanding.editing import EditorSettings, line_reader, open_painter
from memantics.understanding.reappraisal.chain import reappraise
from memantics.understanding.reappraisal.making import describe_making
from memantics.understanding.reappraisal.records import MEME
from memantics.understanding.reappraisal.whole import EditWish, WishPlanner, edit_whole
from memantics.understanding.reappraisal.workshop import Workshop

EditMode = Literal["whole", "masked"]


@dataclass(frozen=True, slots=True)
class Edited(Result):
    """The folder of edited images; ``failed`` maps each failed meme to its reason."""

    folder: Path
    made: int
    kept: int
    failed: dict[str, str]


async def edit_async(
    name: Annotated[str, Argument("mer_bench, or a benchmark in the same format.")] = "mer_bench",
    *,
    editor: Annotated[
        str,
        Flag(
            "Image editor: openai-images/NAME, diffusers/PATH, embedded or none.",
            "--editor -e",
            default="embedded",
        ),
    ],
    mode: Annotated[
        EditMode,
        Flag(
            "whole: send the image and one instruction with the exact caption, without a mask; "
            "masked: the editor repaints around the captions, and Memantics draws them."
        ),
    ] = "whole",
    data: DataFlag = None,
    out: Annotated[
        str | Path | None,
        Flag("Folder for a copy of the release with the edits. Default: the release itself."),
    ] = None,
    called: Annotated[
        str, Flag("Name of the output folder. Default: the editor's name.", "--as")
    ] = "",
    limit: FewMemes = None,
    settings: EditorSettings | None = None,
    calls: CallSettings | None = None,
    progress: ProgressWatch | None = None,
) -> Edited:
    """Edit every meme in MER-Bench's index as its rows specify; existing images are kept.

    Args:
        name: ``mer_bench``, or a benchmark published in its format.
        editor: ``openai-images/NAME``, ``diffusers/PATH``, ``embedded`` or ``none``.
        mode: ``whole`` sends the image with one instruction that holds the exact caption and no
            mask, as the paper does; ``masked`` lets the editor repaint around the captions and
            sets them itself.
        data: ``release`` or ``sample``. Default: a registered release, else the sample data.
        out: Write a copy of the release with the edits there. Default: into the release.
        called: Name of the folder in ``EditedResults``. Default: the editor's name.
        limit: Take only the first memes.
        settings: Captions and editor; see :class:`EditorSettings`.
        calls: ``concurrency`` and ``timeout`` of the editor; see :class:`CallSettings`.
        progress: Called with the counts so far.

    Returns:
        The folder of edited images, how many were made or kept, and why others failed.

    Raises:
        InputError: The editor cannot work in this mode, the benchmark is not an index of
            reappraisals, or the sample data would be overwritten.

    Example:
        >>> mm.edit(editor="none", mode="masked", out="edited", limit=1).failed
        {}
    """
    settings, calls = settings or EditorSettings(), calls or CallSettings()
    if mode == "whole" and editor in ("embedded", "none"):
        raise InputError(
            f"editor {editor!r} cannot write captions",
            hint="add --mode masked, or use another editor",
        )
    release, kind = _open_index(name, data)
    rows = [row for row in release.rows if row.image is not None][:limit]
    if not rows:
        raise InputError(
            f"the registered copy of {name} has no source images",
            hint="run 'memantics data check' to see which images are missing",
        )
    short = _name_folder(called or re.sub(r"[^\w.-]+", "-", editor.rpartition("/")[2]))
    if out is None and kind != "release":
        raise InputError("the sample data cannot be overwritten", hint="add --out DIR")
    place = _find_place(release, Path(out) if out is not None else None, rows) / short
    width = calls.concurrency if mode == "whole" else 1
    stamp = open_stamp(settings)
    async with open_painter(editor, settings, calls) as painter:

        async def make(row: ReappraisalRow) -> str:
            if mode == "masked":
                return await _make_masked(row, place, (painter, stamp), settings.text)
            return await _make_whole(row, place, painter, stamp)

        return await _edit_all(rows, place, make, width, progress)


edit = make_sync(edit_async)


def _name_folder(name: str) -> str:
    if Path(name).name != name or name.startswith("."):
        raise InputError(
            f"{name!r} is not a valid folder name", hint="use one word, for example --as mine"
        )
    return name


def _open_index(name: str, data: DataKind | None) -> tuple[ReappraisalRelease, DataKind]:
    """Open the list of edits (index) of a benchmark; also return the data that it belongs to."""
    benchmark = find_benchmark(name)
    source = find_source(benchmark, data)
    release = benchmark.open(source)
    if not isinstance(release, ReappraisalRelease):
        raise InputError(
            f"{name} has no list of reappraisals as MER-Bench has",
            hint="use mer_bench or a benchmark in the same format",
        )
    return release, source.kind


def _find_place(
    release: ReappraisalRelease, out: Path | None, rows: Sequence[ReappraisalRow]
) -> Path:
    """Find the folder of edited images: in the release, or in a copy for the judge."""
    if out is None:
        return release.edited or release.index.parent / "EditedResults"
    (out / "Original").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(release.index, out / release.index.name)
    for row in rows:
        if row.image is not None and not (out / "Original" / row.id).is_file():
            shutil.copyfile(row.image, out / "Original" / row.id)
    return out / "EditedResults"


async def _edit_all(
    rows: Sequence[ReappraisalRow],
    place: Path,
    make: Callable[[ReappraisalRow], Awaitable[str]],
    width: int,
    watch: ProgressWatch | None,
) -> Edited:
    """Create missing images, ``width`` at a time; ``make`` returns a failure reason or nothing."""
    free = asyncio.Semaphore(width)
    failed: dict[str, str] = {}
    made, kept, start = 0, 0, time.monotonic()

    async def take(row: ReappraisalRow) -> None:
        nonlocal made, kept
        if _is_there(place / row.id):
            kept += 1
        else:
            async with free:
                reason = await make(row)
            if reason:
                failed[row.id] = reason
            else:
                made += 1
        if watch is not None:
            done = made + kept + len(failed)
            seconds = time.monotonic() - start
            watch(
                Progress(
                    done=done,
                    total=len(rows),
                    answered=made,
                    failed=len(failed),
                    resumed=kept,
                    seconds=seconds,
                )
            )

    await asyncio.gather(*(take(row) for row in rows))
    return Edited(place, made, kept, failed)


def _wish(row: ReappraisalRow) -> EditWish:
    """Build the request to the image editor from one row of the benchmark's index."""
    return EditWish(**{field.name: getattr(row, field.name) for field in fields(EditWish)})


def _is_there(path: Path) -> bool:
    """Tell whether a complete image exists."""
    if not path.is_file():
        return False
    try:
        load(path)
    except ImageError:
        return False
    return True


async def _make_whole(
    row: ReappraisalRow, place: Path, painter: Editor | None, stamp: ImageStamp
) -> str:
    """Create one edited image; return the failure reason or nothing."""
    assert row.image is not None  # rows without an image were skipped
    assert painter is not None
    try:
        picture = await edit_whole(_wish(row), row.image, painter)
        making = await describe_making(Meme(row.id, row.image), "", painter, changed=False)
        picture = await asyncio.to_thread(stamp.apply, picture, making)
    except Unavailable:
        raise  # the same error would occur for every meme
    except (ModelError, InputError) as error:
        return str(error)
    replace_file(place / row.id, picture, "image")
    return ""


async def _make_masked(
    row: ReappraisalRow,
    place: Path,
    tools: tuple[Editor | None, ImageStamp],
    text: TextChoice,
) -> str:
    assert row.image is not None
    stem = row.id.removesuffix(".png")
    with open_reader(text=text) as ocr:
        painter, stamp = tools
        planner = WishPlanner(_wish(row))
        shop = Workshop(planner, line_reader(ocr), place / ".stages", painter, stamp=stamp)
        result = await reappraise(Meme(stem, row.image, row.caption), shop)
    if not result.drawn:
        return f"{result.stage}: {result.reason}"
    replace_file(place / row.id, read_bytes(result.folder / MEME), "image")
    return ""
