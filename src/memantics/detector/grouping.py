"""Groups of memes that a fair split keeps together: templates, times, sources, authors, texts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from memantics.core.errors import ImageError, InputError
from memantics.core.images import load
from memantics.core.splits import GroupKind, SplitFile, SplitRow, sum_split
from memantics.core.text import split_pieces
from memantics.detector.examples import Loaded, natural_key
from memantics.detector.held_out import Ints, list_strata
from memantics.metrics.duplicates import list_near_pairs
from memantics.metrics.grouping import deal_groups, join_pairs
from memantics.vision.hashes import find_pairs, hash_image

FOLDS = 5
NEAR_TEXT = 0.8
FAMILY_BITS = 8  # as in ``collect``: another text on the same template
_BLOCKS = 50
_KNOWN = 0.9  # share of the memes that must have a date, a source, …
WORDS: dict[GroupKind, str] = {
    "template": "memes on one picture (perceptual hash within 8 bits) or with nearly one text",
    "time": "neighbours in the order of collection (date, else id)",
    "source": "memes of one source",
    "author": "memes of one author",
    "text": "memes with nearly one text (Jaccard 0.8 on words or Chinese characters)",
}


@dataclass(frozen=True, slots=True)
class Grouping:
    """Which memes hang together, and folds that part no group.

    ``order`` is the row of memes in time, where that is what groups them.
    """

    by: GroupKind
    groups: tuple[str, ...]
    folds: Ints
    order: Ints | None = None

    @property
    def sizes(self) -> Ints:
        """How many memes the group of each meme has."""
        counts = Counter(self.groups)
        return np.array([counts[group] for group in self.groups], np.int64)


def group_memes(data: Loaded, by: GroupKind) -> Grouping:
    """Group memes; InputError where the data do not say what would group them."""
    if by == "time":
        return _group_in_time(data)
    pairs = _list_bound(data)
    if by in ("source", "author"):
        keys = [getattr(meme, by) for meme in data.memes]
        named, known = len(set(keys) - {""}), sum(map(bool, keys))
        if known < _KNOWN * len(keys) or named < FOLDS:
            have = f"{known:,} of {len(keys):,} memes name {'an' if by == 'author' else 'a'} {by}"
            raise InputError(f"{have}, {named:,} different", hint=f"add a column {by}")
        pairs += _join_equal(keys)
    else:
        pairs += list_near_pairs([e.text for e in data.examples], NEAR_TEXT, split_pieces)
    if by == "template":
        pairs += _list_alike(data)
    roots = join_pairs(len(data.examples), pairs)
    groups = tuple(data.examples[root].id for root in roots)
    return Grouping(by, groups, deal_groups(list_strata(data), groups, FOLDS))


def find_copies(data: Loaded) -> tuple[str, ...]:
    """Groups of memes with nearly one text, whatever else the data say hangs together."""
    texts = [example.text for example in data.examples]
    roots = join_pairs(len(texts), list_near_pairs(texts, NEAR_TEXT, split_pieces))
    return tuple(data.examples[root].id for root in roots)


def _list_bound(data: Loaded) -> list[tuple[int, int]]:
    """What the data themselves say hangs together."""
    return _join_equal(data.groups)


def _join_equal(keys: tuple[str, ...] | list[str]) -> list[tuple[int, int]]:
    first: dict[str, int] = {}
    return [(first.setdefault(key, place), place) for place, key in enumerate(keys) if key]


def _list_alike(data: Loaded) -> list[tuple[int, int]]:
    families = [meme.family for meme in data.memes]
    if any(families):
        return _join_equal(families)
    looks: dict[int, int] = {}
    for place, example in enumerate(data.examples):
        if example.image is not None:
            try:
                looks[place] = hash_image(load(example.image))
            except ImageError:
                continue
    if len(looks) < _KNOWN * len(data.examples):
        have = f"{len(looks):,} of {len(data.examples):,} images are here"
        raise InputError(have, hint="add the images, or use --resplit text")
    places = list(looks)
    return [(places[a], places[b]) for a, b, _ in find_pairs(list(looks.values()), FAMILY_BITS)]


def _group_in_time(data: Loaded) -> Grouping:
    dates = [meme.date for meme in data.memes]
    dated = sum(map(bool, dates)) >= _KNOWN * len(dates)
    names = [
        f"{date}\0{example.id}" if dated else example.id
        for date, example in zip(dates, data.examples, strict=True)
    ]
    order = np.array(sorted(range(len(names)), key=lambda place: natural_key(names[place])))
    folds, blocks = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    for count, target in ((FOLDS, folds), (min(_BLOCKS, len(names)), blocks)):
        target[order] = np.arange(len(names)) * count // len(names)
    return Grouping("time", tuple(f"block {n + 1}" for n in blocks.tolist()), folds, order)


def make_split(data: Loaded, grouping: Grouping) -> SplitFile:
    """Three folds to train with, one to develop with, and the last to test with."""
    parts = ("train",) * (FOLDS - 2) + ("dev", "test")
    rows = [
        SplitRow.model_validate(
            {"id": example.id, "part": parts[fold], "fold": fold, "group": group}
        )
        for example, fold, group in zip(
            data.examples, grouping.folds.tolist(), grouping.groups, strict=True
        )
    ]
    return SplitFile(
        data=data.labels.name,
        data_checksum=data.checksum,
        by=grouping.by,
        checksum=sum_split((row.id, row.part) for row in rows),
        rows=rows,
    )
