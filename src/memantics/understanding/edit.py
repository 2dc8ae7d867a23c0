"""``edit``: run an editor over MER-Bench's index; the judge takes the folder that it writes."""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal, Unpack

from memantics.benchmarks.mer_bench.load import ReappraisalRelease, ReappraisalRow
from memantics.benchmarks.registry import find_benchmark, find_source
from memantics.core.errors import ImageError, InputError, ModelError, Unavailable
from memantics.core.files import replace_file
from memantics.core.images import load, read_bytes
from memantics.core.memes import Meme
from memantics.core.model import Editor
from memantics.core.parameters import Argument, Data, FewMemes, Flag
from memantics.core.result import Result
from memantics.core.waiting import make_sync
from memantics.models.client import asking_of
from memantics.models.embedded.ocr import open_reader
from memantics.models.engine import Progress
from memantics.understanding.reappraisal.chain import reappraise
from memantics.understanding.reappraisal.records import MEME
from memantics.understanding.reappraisal.whole import EditWish, WishPlanner, edit_whole
from memantics.understanding.reappraisal.workshop import Workshop
from memantics.understanding.reappraise import EditingOptions, line_reader, open_painter

EditMode = Literal["whole", "masked"]


@dataclass(frozen=True, slots=True)
class Edited(Result):
    """A folder of edited images; ``failed`` says by meme why there is none."""

    folder: Path
    made: int
    kept: int
    failed: dict[str, str]


async def edit_async(
    name: Annotated[
        str, Argument("mer_bench, or a benchmark published in its format.")
    ] = "mer_bench",
    *,
    editor: Annotated[
        str,
        Flag(
            "openai-images/NAME, diffusers/PATH, embedded or none.",
            "--editor -e",
            default="embedded",
        ),
    ],
    mode: Annotated[
        EditMode,
        Flag(
            "whole: the picture with one instruction that holds the exact caption, no mask; "
            "masked: repaint around the captions, which are set by us."
        ),
    ] = "whole",
    data: Data = None,
    out: Annotated[
        str | Path | None,
        Flag("Write a copy of the release with the edits there. Default: the release."),
    ] = None,
    called: Annotated[
        str, Flag("Name of the editor's folder. Default: the editor's.", "--as")
    ] = "",
    limit: FewMemes = None,
    **options: Unpack[EditingOptions],
) -> Edited:
    """Edit every meme of an index, as its rows wish; images that are there are kept.

    ``whole`` sends the picture with one instruction that holds the exact caption, no mask, as the
    paper does; ``masked`` lets the editor repaint around the captions and sets them itself. The
    images go into ``EditedResults/CALLED`` of the release, or of a copy of it in ``out``.
    """
    if mode == "whole" and editor in ("embedded", "none"):
        raise InputError(
            f"editor {editor!r} cannot write captions", hint="add --mode masked, or name another"
        )
    benchmark = find_benchmark(name)
    source = find_source(benchmark, data)
    release = benchmark.open(source)
    if not isinstance(release, ReappraisalRelease):
        raise InputError(
            f"{name} is no index of reappraisals", hint="name mer_bench or one like it"
        )
    rows = [row for row in release.rows if row.image is not None][:limit]
    if not rows:
        raise InputError(f"{name} has no source images here", hint="see 'memantics data check'")
    short = called or re.sub(r"[^\w.-]+", "-", editor.rpartition("/")[2])
    if Path(short).name != short or short.startswith("."):
        raise InputError(f"{short!r} is no name of a folder", hint="one word, such as --as mine")
    if out is None and source.kind != "release":
        raise InputError("the sample is not written to", hint="add --out DIR")
    place = _find_place(release, Path(out) if out is not None else None, rows) / short
    async with open_painter(editor, options) as painter:
        return await _edit_all(rows, place, painter, mode, options)


edit = make_sync(edit_async)


def _find_place(
    release: ReappraisalRelease, out: Path | None, rows: Sequence[ReappraisalRow]
) -> Path:
    """The folder of edited images: the release's own, or that of a copy for the judge."""
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
    painter: Editor | None,
    mode: EditMode,
    options: EditingOptions,
) -> Edited:
    free = asyncio.Semaphore(asking_of(options).concurrency if mode == "whole" else 1)
    failed: dict[str, str] = {}
    made, kept, start = 0, 0, time.monotonic()
    watch = options.get("progress")

    async def take(row: ReappraisalRow) -> None:
        nonlocal made, kept
        if _is_there(place / row.id):
            kept += 1
        else:
            async with free:
                reason = await _make(row, place, painter, mode)
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
    """What a row of the index asks for."""
    return EditWish(**{field.name: getattr(row, field.name) for field in fields(EditWish)})


def _is_there(path: Path) -> bool:
    """Whether an image was made before, whole."""
    if not path.is_file():
        return False
    try:
        load(path)
    except ImageError:
        return False
    return True


async def _make(row: ReappraisalRow, place: Path, painter: Editor | None, mode: EditMode) -> str:
    """Make one image; why it failed, or nothing."""
    assert row.image is not None  # rows without one were left out
    if mode == "masked":
        return await _make_masked(row, place, painter)
    assert painter is not None
    try:
        picture = await edit_whole(_wish(row), row.image, painter)
    except Unavailable:
        raise  # every meme would end like this one
    except (ModelError, InputError) as error:
        return str(error)
    replace_file(place / row.id, picture, "image")
    return ""


async def _make_masked(row: ReappraisalRow, place: Path, painter: Editor | None) -> str:
    assert row.image is not None
    stem = row.id.removesuffix(".png")
    with open_reader() as ocr:
        shop = Workshop(WishPlanner(_wish(row)), line_reader(ocr), place / ".stages", painter)
        result = await reappraise(Meme(stem, row.image, row.caption), shop)
    if not result.drawn:
        return f"{result.stage}: {result.reason}"
    replace_file(place / row.id, read_bytes(result.folder / MEME), "image")
    return ""
