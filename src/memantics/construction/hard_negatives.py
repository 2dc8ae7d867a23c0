"""``build hard-negatives``: for each pun, find the non-puns nearest in image and in text.

PunMemeCN calls a pun with its two hard negatives a group of three. Both hard negatives are memes of
the same annotation queue that annotators labelled as non-puns. No meme serves two puns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from memantics.benchmarks.registry import find_benchmark, find_source
from memantics.benchmarks.writing import HARD_NEGATIVES, take_text
from memantics.construction.chats.distractors import Embedders
from memantics.construction.chats.selection import ChatTools, ImageFolder, TextFolder, open_tools
from memantics.core.data import dump_json, inside, open_once
from memantics.core.errors import DataError, InputError
from memantics.core.files import replace_file, write_lines
from memantics.core.memes import Meme
from memantics.core.parameters import Argument, DataFlag, Flag, QueueAnnotations
from memantics.core.queue import Review, Reviewed, read_review
from memantics.core.result import Result
from memantics.metrics.rounding import VECTORS, settle


@dataclass(frozen=True, slots=True)
class HardNegatives:
    """Store a pun and its two hard negatives by queue item, with cosine similarities."""

    pun: str
    similar_image: str
    similar_text: str
    image_cosine: float
    text_cosine: float


def find_hard_negatives(review: Review, embedders: Embedders) -> list[HardNegatives]:
    """Return the groups (a pun and two hard negatives) of an annotated queue.

    The most similar pairs are formed first, and each non-pun is used once.
    """
    kept = [reviewed for reviewed in review.items if reviewed.kept]
    puns = [reviewed for reviewed in kept if reviewed.values.get("pun") == "yes"]
    pool = [reviewed for reviewed in kept if reviewed.values.get("pun") == "no"]
    if not puns or len(pool) < 2:
        raise InputError(
            f"{len(puns)} puns and {len(pool)} memes without a pun are too few: each pun needs "
            "two hard negatives",
            hint="annotate more memes that are not puns",
        )
    images = embedders.image.encode([_meme(reviewed, review.folder) for reviewed in (*puns, *pool)])
    texts = embedders.text.encode([_say(reviewed) for reviewed in (*puns, *pool)])
    found = pair_up(images, texts, len(puns))
    return [
        HardNegatives(
            reviewed.item.id,
            pool[found["image"][pun][0]].item.id,
            pool[found["text"][pun][0]].item.id,
            round(found["image"][pun][1], 4),
            round(found["text"][pun][1], 4),
        )
        for pun, reviewed in enumerate(puns)
        if pun in found["image"] and pun in found["text"]
    ]


def pair_up(
    images: np.ndarray, texts: np.ndarray, count: int
) -> dict[str, dict[int, tuple[int, float]]]:
    """Return the non-pun nearest to each pun, by image and by text; puns are the first rows.

    With fewer than two non-puns per pun, the puns with the most similar pairs get both, so that
    each group is complete.
    """
    found: dict[str, dict[int, tuple[int, float]]] = {"image": {}, "text": {}}
    near = {
        "image": images[:count] @ images[count:].T,
        "text": texts[:count] @ texts[count:].T,
    }
    used: set[int] = set()
    begun: set[int] = set()
    most = (len(images) - count) // 2
    for kind, pun, other in _rank(near):
        if pun not in begun and len(begun) == most:
            continue
        if pun not in found[kind] and other not in used:
            begun.add(pun)
            found[kind][pun] = (other, float(near[kind][pun, other]))
            used.add(other)
    return found


def _rank(near: dict[str, np.ndarray]) -> Iterator[tuple[str, int, int]]:
    """Return all image pairs and text pairs, most similar first; ties keep the earlier pair."""
    rows = [
        (-float(table[pun, other]), pun, other, kind)
        for kind, table in ((kind, settle(table, VECTORS)) for kind, table in near.items())
        for pun in range(table.shape[0])
        for other in range(table.shape[1])
    ]
    return ((kind, pun, other) for _, pun, other, kind in sorted(rows))


def _meme(reviewed: Reviewed, folder: Path) -> Meme:
    return Meme(reviewed.item.id, inside(folder, reviewed.item.images[0]), _say(reviewed))


def _say(reviewed: Reviewed) -> str:
    """Return the text to compare: the intended reading of a pun, else the printed text."""
    caption = take_text(reviewed, "caption")
    word, sound = (str(reviewed.values.get(name) or "") for name in ("pun_word", "homophone"))
    return caption.replace(word, sound, 1) if word and sound else caption


def write_hard_negatives(folder: Path, groups: Sequence[HardNegatives]) -> Path:
    """Write the groups of a pun and two hard negatives to the queue folder for ``publish``."""
    return write_lines(folder / HARD_NEGATIVES, groups)


@dataclass(frozen=True, slots=True)
class Grouped(Result):
    """Store the groups of a pun and two hard negatives, and the file that ``publish`` reads."""

    file: Path
    groups: tuple[HardNegatives, ...]


def group_hard_negatives(
    queue: Annotated[Path | str, Argument("Queue annotated with the workflow pun-form.")],
    *,
    annotations: QueueAnnotations = None,
    text_encoder: TextFolder = None,
    image_encoder: ImageFolder = None,
) -> Grouped:
    """Give each pun of a queue two hard negatives among the memes that are not puns.

    One is nearest by image, one by text. :func:`publish` then writes the groups of three.

    Args:
        queue: A queue annotated by the workflow ``pun-form``.
        annotations: Its annotations. Default: ``annotations.jsonl`` in the queue.
        text_encoder: Folder of a text encoder. Default: the embedded one.
        image_encoder: Folder of an image encoder. Default: a perceptual hash.

    Returns:
        The file of groups, and the groups.

    Raises:
        InputError: The queue is not of that workflow, or has no annotations.

    Example:
        >>> # after people have annotated the queue
        >>> mm.group_hard_negatives("queue-puns").groups  # doctest: +SKIP
    """
    folder = Path(queue)
    review = read_review(folder, Path(annotations) if annotations else None)
    tools = ChatTools(text_encoder=text_encoder, image_encoder=image_encoder)
    with open_tools(tools) as (embedders, _):
        groups = find_hard_negatives(review, embedders)
    return Grouped(write_hard_negatives(folder, groups), tuple(groups))


@dataclass(frozen=True, slots=True)
class HardNegativeCheck(Result):
    """Store how many groups of a release are recovered by image and by text."""

    groups: int
    image: int
    text: int


def check_hard_negatives(
    *,
    data: DataFlag = None,
    text_encoder: TextFolder = None,
    image_encoder: ImageFolder = None,
    out: Annotated[
        Path | None, Flag("File for the metrics; 'paper --statistics' reads it.")
    ] = None,
) -> HardNegativeCheck:
    """Rebuild PunMemeCN's groups of three with the method of ``build hard-negatives``.

    A pun counts as correct by image if its nearest non-pun is the image neighbour of its group. The
    same rule applies to text. Groups without all three images are skipped.
    """
    benchmark = find_benchmark("punmemecn")
    source = find_source(benchmark, data)
    seen = [meme for meme in open_once(benchmark.plugin.open_release, source).memes if meme.image]
    whole = {meme.group for meme in seen if sum(m.group == meme.group for m in seen) == 3}
    puns = [meme for meme in seen if meme.group in whole and meme.is_pun]
    pool = [meme for meme in seen if meme.group in whole and not meme.is_pun]
    if not puns:
        raise DataError(
            source.root,
            "no pun and its two hard negatives have all three images",
            hint="register the images with 'memantics data add punmemecn DIR --images DIR'",
        )
    tools = ChatTools(text_encoder=text_encoder, image_encoder=image_encoder)
    memes = [Meme(meme.id, meme.image, meme.caption) for meme in (*puns, *pool)]
    with open_tools(tools) as (embedders, _):
        images = embedders.image.encode(memes)
        texts = embedders.text.encode([meme.reading or meme.caption for meme in (*puns, *pool)])
    found = pair_up(images, texts, len(puns))
    right = {
        kind: sum(
            (pool[pairs[n][0]].group, pool[pairs[n][0]].role) == (pun.group, f"similar_{kind}")
            for n, pun in enumerate(puns)
            if n in pairs
        )
        for kind, pairs in found.items()
    }
    done = HardNegativeCheck(len(puns), right["image"], right["text"])
    if out is not None:
        metrics = {f"hard_negatives.{name}": getattr(done, name) for name in ("groups", *right)}
        replace_file(out, dump_json(metrics).encode(), "metrics")
    return done
