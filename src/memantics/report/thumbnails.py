"""Images as they enter the page: small, each once, and never trusted."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from PIL import Image as Pillow

from memantics.core.errors import ImageError
from memantics.core.images import load
from memantics.core.registry import is_inside

_BATCH = 64
# More images, smaller ones: a page of thousands must still open at once.
_SIDES = ((500, 420), (1_500, 300), (4_000, 220))
_SMALLEST = 160


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """An image of the page: a data URI with its size, or the reason why there is none."""

    name: str
    uri: str = ""
    width: int = 0
    height: int = 0
    reason: str = ""


def choose_side(count: int) -> int:
    """The longest side of thumbnails when the page shows that many.

    >>> choose_side(60), choose_side(5_000)
    (420, 160)
    """
    return next((side for most, side in _SIDES if count <= most), _SMALLEST)


def make_thumbnails(
    paths: Sequence[Path], max_bytes: int, places: Sequence[Path] | None = None
) -> Iterator[Thumbnail]:
    """One thumbnail per path, in order, until they fill ``max_bytes`` of the page together.

    Only images below ``places`` are shown; None: all.
    """
    side, used = choose_side(len(paths)), 0
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for start in range(0, len(paths), _BATCH):
            batch = paths[start : start + _BATCH]
            if used >= max_bytes:
                yield from (Thumbnail(path.name, reason="left out: page limit") for path in batch)
                continue
            for made in pool.map(lambda path: make_thumbnail(path, side, places), batch):
                used += len(made.uri)
                yield made


def make_thumbnail(path: Path, side: int, places: Sequence[Path] | None = None) -> Thumbnail:
    """Shrink one image; one that is missing or hostile becomes its name and a reason."""
    if places is not None and not is_inside(path, places):
        return Thumbnail(path.name, reason="outside of the registered data")
    try:
        # A pipe or device under an image's name would block or never end.
        if path.exists() and not path.is_file():
            return Thumbnail(path.name, reason="not a file")
        image = load(path)
    except ImageError as error:
        return Thumbnail(path.name, reason=error.reason)
    except (OSError, ValueError):
        return Thumbnail(path.name, reason="unreadable")
    image.thumbnail((side, side), Pillow.Resampling.BICUBIC, reducing_gap=2.0)
    out = io.BytesIO()
    image.save(out, "WEBP", quality=74, method=2)
    body = base64.b64encode(out.getvalue()).decode("ascii")
    return Thumbnail(path.name, f"data:image/webp;base64,{body}", image.width, image.height)
