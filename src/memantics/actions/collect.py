"""From a folder of images to memes that can be worked with; nothing is deleted."""

from __future__ import annotations

import time
from pathlib import Path

from memantics.actions.desk import Watch
from memantics.build.collect.gather import PAGE, Collected, CollectSettings, gather
from memantics.build.collect.listing import OWN
from memantics.models.embedded.ocr import open_reader
from memantics.report.pages.collection import write_page
from memantics.run.progress import Progress


def collect(
    folder: Path | str,
    settings: CollectSettings | None = None,
    *,
    page: bool = True,
    progress: Watch | None = None,
) -> Collected:
    """Read a folder of images: text, language, copies, templates, filters.

    What is kept is listed in ``memes.jsonl``; a ``page`` shows what was dropped, and why.
    """
    begin = time.monotonic()

    def watch(now: int, total: int) -> None:
        if progress is not None:
            seconds = time.monotonic() - begin
            progress(Progress(done=now, total=total, answered=now, seconds=seconds))

    done = gather(Path(folder), open_reader, settings or CollectSettings(), watch)
    if page:
        write_page(done, done.folder / OWN / PAGE)
    return done
