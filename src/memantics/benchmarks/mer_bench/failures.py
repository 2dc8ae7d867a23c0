"""Which memes can be judged at all: the source and every editor's image must really decode."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from memantics.benchmarks.mer_bench.load import Release, Row
from memantics.core.errors import DataError, ImageError, UnknownName
from memantics.core.images import load

_MOST_THREADS = 8


@dataclass(frozen=True, slots=True)
class Kept:
    """Memes that can be judged, in the order of the index.

    ``left_out`` counts unusable images by what they are and what is wrong; a meme may have
    several.
    """

    rows: tuple[Row, ...]
    editors: tuple[str, ...]
    total: int
    left_out: Mapping[str, int] = field(default_factory=dict)


def choose_editors(release: Release, wanted: str) -> tuple[str, ...]:
    """The editors that a user names (``all``, or joined by ``+``), sorted as the authors do."""
    known = release.editors()
    if not known:
        raise DataError(
            release.source.root,
            "no edited images to judge: looked for data/EditedResults and EditedResults",
            hint="put each editor's images into EditedResults/EDITOR, named like the sources",
        )
    if wanted == "all":
        return known
    names = [name.strip() for name in wanted.replace(",", "+").split("+") if name.strip()]
    for name in names:
        if name not in known:
            raise UnknownName("editor", name, [*known, "all"])
    return tuple(sorted(set(names))) or known


def keep_judgeable(release: Release, editors: tuple[str, ...]) -> Kept:
    """Decode every image of every meme; a meme stays only when none of them fails.

    The authors look whether the files exist; a cut or empty image then counts as an edit.
    """
    kept: list[Row] = []
    reasons: Counter[str] = Counter()
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as pool:
        faults = pool.map(lambda row: list(_find_faults(release, editors, row)), release.rows)
        for row, own in zip(release.rows, faults, strict=True):
            reasons.update(own)
            if not own:
                kept.append(row)
    if not kept:
        worst = ", ".join(f"{reason} ({count})" for reason, count in reasons.most_common(3))
        raise DataError(
            release.index.name,
            f"no meme has a readable source and an edit by each of {', '.join(editors)}: {worst}",
            hint="judge fewer editors with --set editors=NAME, or add the images",
        )
    return Kept(tuple(kept), editors, len(release.rows), dict(reasons.most_common()))


def _find_faults(release: Release, editors: tuple[str, ...], row: Row) -> Iterator[str]:
    """What is wrong with the images of a meme. Without its source the edits do not matter."""
    if fault := _fault(row.image):
        yield f"source {fault}"
        return
    for editor in editors:
        if fault := _fault(release.find_edited(editor, row)):
            yield f"{editor} {fault}"


def _fault(path: Path | None) -> str | None:
    if path is None:
        return "missing"
    try:
        load(path)
    except ImageError as error:
        return error.reason
    return None
