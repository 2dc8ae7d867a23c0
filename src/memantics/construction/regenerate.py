"""``build regenerate``: what people sent back or revised is made again, and goes back to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Unpack

from memantics.benchmarks.writing import take_text
from memantics.core.data import inside
from memantics.core.errors import InputError
from memantics.core.memes import Meme
from memantics.core.parameters import Argument
from memantics.core.queue import Reviewed, find_queues, read_reviews
from memantics.core.result import Result
from memantics.core.waiting import make_sync
from memantics.models.embedded.ocr import RememberingOcr, open_reader
from memantics.understanding.reappraisal.chain import reappraise
from memantics.understanding.reappraisal.dataset import (
    QUEUE,
    Corrections,
    join_results,
    list_sent_back,
    open_kept,
    write_reappraisal_queue,
)
from memantics.understanding.reappraisal.workshop import Reappraisal, Workshop
from memantics.understanding.reappraise import EditingOptions, line_reader, open_painter


@dataclass(frozen=True, slots=True)
class Regenerated(Result):
    """The queue of memes that were made again; ``failed`` says by meme and editor why not."""

    queue: Path | None
    memes: int
    failed: Mapping[str, str]


async def regenerate_async(
    folder: Annotated[
        Path | str,
        Argument("The folder of 'build reappraisal', its queues with verdicts.jsonl."),
    ],
    **options: Unpack[EditingOptions],
) -> Regenerated:
    """Make again what the review of a build sent back, with people's corrections.

    The new pictures stand in a queue of their own beside the first, which people judge as before;
    publishing the build takes the later word on each meme.
    """
    build = Path(folder)
    review = read_reviews(find_queues(build))
    back = list(list_sent_back(review))
    if not back:
        raise InputError(f"{build}: nothing was sent back or revised", hint="publish it as it is")
    made: dict[str, list[Reappraisal]] = {}
    memes, failed = [], dict[str, str]()
    with open_reader() as ocr:
        for reviewed in back:
            image = inside(review.folder, reviewed.item.images[0])
            meme = Meme(reviewed.item.id, image, take_text(reviewed, "text", default=""))
            memes.append(replace(meme, language=take_text(reviewed, "language", default="en")))
            edits = reviewed.item.hidden.get("edits")
            for editor in edits if isinstance(edits, dict) else ():
                result, fault = await _make(build, editor, memes[-1], reviewed, ocr, options)
                made.setdefault(editor, []).append(result)
                if result.status != "done":
                    failed[f"{meme.id} ({editor})"] = fault or result.reason
    drafts = join_results(memes, made)
    if not drafts:
        return Regenerated(None, 0, failed)
    name = f"{QUEUE}-{len(find_queues(build)) + 1}"
    write_reappraisal_queue(build, drafts, "memantics build regenerate", name)
    return Regenerated(build / name, len(drafts), failed)


async def _make(
    build: Path,
    editor: str,
    meme: Meme,
    reviewed: Reviewed,
    ocr: RememberingOcr,
    options: EditingOptions,
) -> tuple[Reappraisal, str]:
    """One meme by one editor, in the folder of its former picture."""
    place = build / "reappraised" / editor
    planner, painter_name = open_kept(place / meme.id)
    corrections = Corrections(reviewed)
    async with open_painter(painter_name, options) as painter:
        shop = Workshop(planner, line_reader(ocr), place, painter, review=corrections)
        result = await reappraise(meme, shop)
    return result, corrections.faults.get(meme.id, "")


regenerate = make_sync(regenerate_async)
