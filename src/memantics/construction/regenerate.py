"""``build regenerate``: create memes again that annotators sent back or revised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from memantics.benchmarks.writing import take_text
from memantics.core.data import inside
from memantics.core.errors import InputError
from memantics.core.memes import Meme
from memantics.core.parameters import Argument
from memantics.core.queue import Reviewed, find_queues, read_reviews
from memantics.core.result import Result
from memantics.core.waiting import make_sync
from memantics.models.client import CallSettings
from memantics.models.embedded.ocr import open_reader
from memantics.understanding.editing import EditorSettings, line_reader, open_painter
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


@dataclass(frozen=True, slots=True)
class Regenerated(Result):
    """Store the queue of regenerated memes; ``failed`` gives the reason per meme and editor."""

    queue: Path | None
    memes: int
    failed: Mapping[str, str]


async def regenerate_async(
    folder: Annotated[
        Path | str,
        Argument("Folder written by 'build reappraisal', with annotations.jsonl in its queues."),
    ],
    *,
    settings: EditorSettings | None = None,
    calls: CallSettings | None = None,
) -> Regenerated:
    """Regenerate memes that annotators sent back or revised, using their corrections.

    The new images go into a second queue beside the first, which people annotate as before.
    Publishing the build takes the latest annotation of each meme.

    Args:
        folder: The folder of ``memantics build reappraisal``; its queues have annotations.
        settings: Captions and editor; see :class:`EditorSettings`.
        calls: ``timeout`` of the editor; see :class:`CallSettings`.

    Returns:
        The new queue, the number of memes in it, and why others failed.

    Raises:
        InputError: Nothing was sent back or revised.

    Example:
        >>> # after people have annotated the queue of the build
        >>> mm.regenerate("builds/memes-reappraisal").failed  # doctest: +SKIP
        {}
    """
    settings, calls = settings or EditorSettings(), calls or CallSettings()
    build = Path(folder)
    review = read_reviews(find_queues(build))
    back = list(list_sent_back(review))
    if not back:
        raise InputError(
            f"{build}: no meme was sent back or revised",
            hint="nothing to regenerate; publish the build",
        )
    made: dict[str, list[Reappraisal]] = {}
    memes, failed = [], dict[str, str]()
    with open_reader(text=settings.text) as ocr:
        for reviewed in back:
            image = inside(review.folder, reviewed.item.images[0])
            meme = Meme(reviewed.item.id, image, take_text(reviewed, "text", default=""))
            memes.append(replace(meme, language=take_text(reviewed, "language", default="en")))
            edits = reviewed.item.hidden.get("edits")
            for editor in edits if isinstance(edits, dict) else ():
                place = build / "reappraised" / editor
                planner, painter_name = open_kept(place / meme.id)
                async with open_painter(painter_name, settings, calls) as painter:
                    shop = Workshop(planner, line_reader(ocr), place, painter)
                    result, fault = await _make(shop, memes[-1], reviewed)
                made.setdefault(editor, []).append(result)
                if result.status != "done":
                    failed[f"{meme.id} ({editor})"] = fault or result.reason
    drafts = join_results(memes, made)
    if not drafts:
        return Regenerated(None, 0, failed)
    name = f"{QUEUE}-{len(find_queues(build)) + 1}"
    write_reappraisal_queue(build, drafts, "memantics build regenerate", name)
    return Regenerated(build / name, len(drafts), failed)


async def _make(shop: Workshop, meme: Meme, reviewed: Reviewed) -> tuple[Reappraisal, str]:
    """Regenerate one meme with one editor, in the folder of its earlier image."""
    corrections = Corrections(reviewed)
    result = await reappraise(meme, replace(shop, review=corrections))
    return result, corrections.faults.get(meme.id, "")


regenerate = make_sync(regenerate_async)
