"""The contact sheet of a meme as one self-contained page: the original and its kinder versions."""

from __future__ import annotations

from pathlib import Path

from memantics.core.journal import write_text
from memantics.reappraise.folder import PAGE
from memantics.reappraise.workshop import Reappraisal
from memantics.report.kit import fill_page
from memantics.report.thumbnails import make_thumbnail

_SIDE = 560


def write_page(made: Reappraisal, image: Path, line: str, command: str) -> None:
    """Write the page beside its pictures, in one step.

    ``line`` says how many versions there are, ``command`` is how one is chosen.
    """
    page = fill_page(
        "versions.html",
        ("page.css", "versions.css"),
        made=made,
        original=make_thumbnail(image, _SIDE),
        versions=[
            (version, make_thumbnail(version.path(made.folder), _SIDE)) for version in made.versions
        ],
        line=line,
        command=command,
    )
    write_text(made.folder / PAGE, page)
