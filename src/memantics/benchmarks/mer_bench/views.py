"""Views: the edits that are judged, and the sampled runs in which each edit counts.

Sampling repeats the authors' method: one random generator per table, seeded once, samples the runs
in turn. A pair of source and edit that is sampled several times is judged once and counted as often
as it was sampled.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar, get_args

from memantics.benchmarks.mer_bench.load import (
    LAYOUTS,
    POLARITIES,
    VISUAL_TYPES,
    ReappraisalRelease,
    ReappraisalRow,
)
from memantics.core.errors import DataError, ImageError, UnknownName
from memantics.core.images import load

_MOST_THREADS = 8


@dataclass(frozen=True, slots=True)
class KeptMemes:
    """The memes that can be judged, in the order of the index file.

    ``skipped`` counts unusable images by type (source or edit) and error; a meme may have several.
    """

    rows: tuple[ReappraisalRow, ...]
    editors: tuple[str, ...]
    total: int
    skipped: Mapping[str, int] = field(default_factory=dict)


def choose_editors(release: ReappraisalRelease, wanted: str) -> tuple[str, ...]:
    """Return the editors that a user names (``all``, or joined by ``+``), in the authors' order.

    If the judge sees no image, any editor name is accepted.
    """
    known, unseen = release.editors(), release.source.unseen
    if not known and (wanted == "all" or not unseen):
        put = "put each editor's images into EditedResults/EDITOR, named like the sources"
        raise DataError(
            release.source.root,
            "no edited images found in data/EditedResults or EditedResults",
            hint="name the editors of the judged edits: --set editors=NAME+NAME" if unseen else put,
        )
    if wanted == "all":
        return known
    names = [name.strip() for name in wanted.replace(",", "+").split("+") if name.strip()]
    for name in names:
        if name not in known and not unseen:
            raise UnknownName("editor", name, [*known, "all"])
    return tuple(sorted(set(names))) or known


def keep_judgeable(release: ReappraisalRelease, editors: tuple[str, ...]) -> KeptMemes:
    """Keep memes whose images can all be decoded.

    The authors only check that the image files exist, so that a truncated or empty image counts as
    an edit.
    """
    kept: list[ReappraisalRow] = []
    reasons: Counter[str] = Counter()
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as pool:
        faults = pool.map(lambda row: list(_find_faults(release, editors, row)), release.rows)
        for row, found_faults in zip(release.rows, faults, strict=True):
            reasons.update(found_faults)
            if not found_faults:
                kept.append(row)
    if not kept:
        worst = ", ".join(f"{reason} ({count})" for reason, count in reasons.most_common(3))
        raise DataError(
            release.index.name,
            f"no meme has a readable source and an edit by each of {', '.join(editors)}: {worst}",
            hint="judge fewer editors with --set editors=NAME, or add the images",
        )
    return KeptMemes(tuple(kept), editors, len(release.rows), dict(reasons.most_common()))


def _find_faults(
    release: ReappraisalRelease, editors: tuple[str, ...], row: ReappraisalRow
) -> Iterator[str]:
    """Yield the errors of a meme's images; without its source, edits are not checked."""
    missing = None if release.source.unseen else "missing"
    if fault := _fault(row.image, missing):
        yield f"source {fault}"
        return
    for editor in editors:
        if fault := _fault(release.find_edited(editor, row), missing):
            yield f"{editor} {fault}"


def _fault(path: Path | None, missing: str | None) -> str | None:
    if path is None:
        return missing
    try:
        load(path)
    except ImageError as error:
        return error.reason
    return None


View = Literal["all", "model", "category", "overall"]
Factor = Literal["visual_type", "layout", "polarity"]
FACTORS: tuple[Factor, ...] = get_args(Factor)
LEVELS: dict[Factor, tuple[str, ...]] = {
    "visual_type": VISUAL_TYPES,
    "layout": LAYOUTS,
    "polarity": POLARITIES,
}
RUNS = 10
PER_MODEL = 100
PER_CATEGORY = 50
T = TypeVar("T")


@dataclass(slots=True)
class EditToJudge:
    """One edit to judge; ``runs`` lists its sampled runs by table ("" for all, else a factor)."""

    row: ReappraisalRow
    editor: str
    runs: dict[str, list[int]] = field(default_factory=dict)


def level_of(row: ReappraisalRow, factor: Factor) -> str:
    """Return the category of a meme."""
    return {"visual_type": row.visual_type, "layout": row.layout, "polarity": row.polarity}[factor]


def draw_pairs(kept: KeptMemes, view: View, seed: int) -> tuple[EditToJudge, ...]:
    """Return the pairs of source and edit of a view (a sample of edits), by editor and row."""
    pairs = {(row.id, name): EditToJudge(row, name) for name in kept.editors for row in kept.rows}
    if view == "all":
        for pair in pairs.values():
            pair.runs[""] = [0]
        return tuple(pairs.values())
    for table, run, editor, row in _draw(kept, view, seed):
        pairs[row.id, editor].runs.setdefault(table, []).append(run)
    return tuple(pair for pair in pairs.values() if pair.runs)


def _draw(kept: KeptMemes, view: View, seed: int) -> Iterator[tuple[str, int, str, ReappraisalRow]]:
    if view == "model":
        chance = random.Random(seed)
        for run in range(RUNS):
            for row in draw_some(kept.rows, PER_MODEL, chance):
                yield from (("", run, editor, row) for editor in kept.editors)
    elif view == "overall":
        # The paper's overall score uses 700 edits per run for its 14 editors.
        yield from _draw_table("", kept.rows, kept.editors, PER_CATEGORY * len(kept.editors), seed)
    else:
        for factor in FACTORS:
            for level in LEVELS[factor]:
                rows = [row for row in kept.rows if level_of(row, factor) == level]
                if rows:
                    yield from _draw_table(factor, rows, kept.editors, PER_CATEGORY, seed)


def _draw_table(
    table: str, rows: Sequence[ReappraisalRow], editors: Sequence[str], size: int, seed: int
) -> Iterator[tuple[str, int, str, ReappraisalRow]]:
    chance = random.Random(seed)
    for run in range(RUNS):
        shares = share_out(size, len(editors), chance)
        for editor, share in zip(editors, shares, strict=True):
            yield from ((table, run, editor, row) for row in draw_some(rows, share, chance))


def share_out(total: int, parts: int, chance: random.Random) -> list[int]:
    """Divide a total evenly into parts; the remainder goes to randomly chosen parts.

    >>> sorted(share_out(50, 14, random.Random(42)))
    [3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4]
    """
    base, rest = divmod(total, parts)
    shares = [base] * parts
    if rest:
        order = list(range(parts))
        chance.shuffle(order)
        for place in order[:rest]:
            shares[place] += 1
    return shares


def draw_some(rows: Sequence[T], count: int, chance: random.Random) -> list[T]:
    """Sample rows without repetition; with repetition only if there are too few rows.

    >>> sorted(draw_some("abc", 3, random.Random(42))), len(draw_some("abc", 5, random.Random(42)))
    (['a', 'b', 'c'], 5)
    """
    if len(rows) >= count:
        return chance.sample(list(rows), k=count)
    return [chance.choice(rows) for _ in range(count)]
