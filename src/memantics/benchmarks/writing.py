"""Interface for writing benchmark formats: from reviewed memes to files and tables.

A benchmark whose dataset card names annotation workflows (``[publish] workflows``) has a
``write.py`` with one ``WRITER``. Results of those workflows are published in the benchmark's
format.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from memantics.core.data import inside
from memantics.core.errors import DataError
from memantics.core.images import decode, encode_png, probe, read_bytes
from memantics.core.language import UNKNOWN, guess_language
from memantics.core.marks import keep_mark
from memantics.core.queue import Review, Reviewed

Record = Mapping[str, JsonValue]
Files = dict[str, bytes]


@dataclass(frozen=True, slots=True)
class PublishedMeme:
    """A published meme; memes with the same ``template_cluster`` stay in one split."""

    id: str
    image: Path
    text: str = ""
    language: str = ""
    template_cluster: str = ""

    @property
    def file(self) -> str:
        """The file name of the meme's image in the published folder."""
        return f"{self.id}.png"


@dataclass(frozen=True, slots=True)
class Made:
    """The published content: ``files`` below ``data/``, and the ``tasks`` they support.

    ``skipped`` counts, by reason, items that annotators kept but the format cannot represent.
    """

    format: str
    tasks: tuple[str, ...]
    memes: tuple[PublishedMeme, ...]
    files: Mapping[str, bytes]
    tables: Mapping[str, Sequence[Record]]
    splits: tuple[str, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Writer:
    """The writer of a benchmark's format; ``add_chats`` adds the chats of another review.

    ``list_chat_memes`` returns the ids of the memes that these chats may contain.
    ``split`` divides the memes into a training and a test split without dividing template clusters.
    The proportions (8, 2) mean 8 and 2 of every 10 memes.
    """

    write: Callable[[Review], Made]
    add_chats: Callable[[Made, Review], Made] | None = None
    split: Callable[[Made, Sequence[int]], Made] | None = None
    list_chat_memes: Callable[[Made], Collection[str]] | None = None


_FAULTS_SHOWN = 50
# The file in the queue folder with groups of a pun and its two hard negatives.
HARD_NEGATIVES = "hard-negatives.jsonl"
_LACKING = {
    "text": "printed text",
    "description": "description of the image",
    "meaning": "meaning of the words",
}


def pack(value: object) -> bytes:
    """Return a value as indented JSON in bytes."""
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()


def gather_memes(review: Review) -> dict[str, PublishedMeme]:
    """Return the memes of kept queue items, by their names in the queue."""
    kept = [reviewed for reviewed in review.items if reviewed.kept]
    if not kept:
        raise DataError(review.folder, "no item was kept, so there is nothing to publish")
    names = name_memes(dict.fromkeys(reviewed.item.group for reviewed in kept))
    memes: dict[str, PublishedMeme] = {}
    for reviewed in kept:
        if reviewed.item.group not in memes:
            memes[reviewed.item.group] = PublishedMeme(
                names[reviewed.item.group],
                _find_image(reviewed, review.folder),
                take_text(reviewed, "text", default=""),
                _find_language(reviewed, review.card.language),
                take_text(reviewed, "template_cluster", default=""),
            )
    return memes


def _find_language(reviewed: Reviewed, default: str) -> str:
    """Return the language of a meme: as stored, else that of its text, else the queue's."""
    stored = take_text(reviewed, "language", default="")
    if stored:
        return stored
    text = next((t for n in ("caption", "text") if (t := take_text(reviewed, n, default=""))), "")
    guessed = guess_language(text).language
    return default if guessed == UNKNOWN else guessed


def walk_kept(
    review: Review, memes: Mapping[str, PublishedMeme]
) -> Iterator[tuple[Reviewed, PublishedMeme]]:
    """Yield every kept queue item with its meme."""
    return ((reviewed, memes[reviewed.item.group]) for reviewed in review.items if reviewed.kept)


def draw_parts(
    clusters: Mapping[str, str],
    strata: Mapping[str, Sequence[str]],
    shares: Sequence[int],
    seed: int = 0,
) -> dict[str, int]:
    """Assign memes to parts with the given proportions, stratified and cluster-disjoint.

    Memes of one template cluster go into one part. The largest clusters are assigned first. Each
    goes into the part that lacks its strata most, if it takes at most a third of that part. Ties
    are ordered by the seed. A meme may be in several strata (its label and its type).

    >>> clusters = {"a": "f", "b": "f", "c": "", "d": "", "e": ""}
    >>> found = draw_parts(clusters, dict.fromkeys(clusters, ["yes"]), (3, 2))
    >>> found["a"] == found["b"], sorted(found.values())
    (True, [0, 0, 0, 1, 1])
    """
    groups: dict[str, list[str]] = {}
    for meme, cluster in clusters.items():
        groups.setdefault(f"cluster {cluster}" if cluster else f"meme {meme}", []).append(meme)
    order = sorted(groups)
    random.Random(seed).shuffle(order)
    order.sort(key=lambda name: -len(groups[name]))
    totals = Counter(stratum for meme in clusters for stratum in strata[meme])
    aims = [share / sum(shares) for share in shares]
    held: list[Counter[str]] = [Counter() for _ in shares]
    sizes = [0 for _ in shares]
    placed: dict[str, int] = {}
    for name in order:
        members, size = groups[name], len(groups[name])
        inside = Counter(stratum for meme in members for stratum in strata[meme])
        ranks = []
        for part, aim, taken in zip(held, aims, sizes, strict=True):
            room = aim * len(clusters) - taken
            fits = size <= max(1.0, aim * len(clusters) / 3)
            missing = room / aim / len(clusters) + _miss(inside, part, aim, totals)
            ranks.append((room >= size / 2, fits, missing))
        chosen = ranks.index(max(ranks))
        held[chosen] += inside
        sizes[chosen] += size
        placed |= dict.fromkeys(members, chosen)
    return {meme: placed[meme] for meme in clusters}


def _miss(group: Counter[str], held: Counter[str], aim: float, totals: Counter[str]) -> float:
    """Return the missing proportion of a part's share of the strata, from 1 (all) downwards."""
    return sum(
        (1 - held[stratum] / aim / totals[stratum]) * count / group.total()
        for stratum, count in group.items()
    )


def take_text(reviewed: Reviewed, name: str, default: str | None = None) -> str:
    """Return a text from a queue item's values or hidden data; raise if it is required."""
    value = reviewed.values.get(name, reviewed.item.hidden.get(name, default))
    if not isinstance(value, str):
        raise DataError(
            reviewed.item.id,
            f"has no text {name!r}",
            hint="check that the queue was made for this workflow",
        )
    return value


def take_texts(reviewed: Reviewed, name: str) -> list[str]:
    """Return a list of texts from a queue item's values; empty if absent."""
    value = reviewed.values.get(name, reviewed.item.hidden.get(name, []))
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise DataError(reviewed.item.id, f"{name!r} is not a list of texts")
    return [str(one) for one in value]


def find_lacking(reviewed: Reviewed, *names: str) -> str:
    """Return the name of a required text that is empty."""
    for name in names:
        if not take_text(reviewed, name, default="").strip():
            return f"no {_LACKING.get(name, name)}"
    return ""


def refuse_faults(review: Review, faults: Iterable[str]) -> None:
    """Raise one error that lists all items that cannot be published, each with its reason."""
    found = list(faults)
    if not found:
        return
    shown = "; ".join(found[:_FAULTS_SHOWN])
    more = f"; and {len(found) - _FAULTS_SHOWN:,} more" if len(found) > _FAULTS_SHOWN else ""
    raise DataError(
        review.folder,
        f"{len(found):,} annotations cannot be published: {shown}{more}",
        hint="correct or drop these items in the annotation app, and export again",
    )


def refuse_nothing(review: Review, base: str, skipped: Mapping[str, int]) -> DataError:
    """Return the error that explains why no meme of a review fits a format."""
    why = ", ".join(f"{count:,} with {name}" for name, count in skipped.items())
    return DataError(
        review.folder,
        f"contains no meme that fits the format of {base}: {why}",
        hint="add texts and notes to memes.jsonl; 'memantics build captions' drafts notes",
    )


def _find_image(reviewed: Reviewed, folder: Path) -> Path:
    if not reviewed.item.images:
        raise DataError(
            reviewed.item.id,
            "has no image",
            hint="add an image; memes are published with their images",
        )
    return inside(folder, reviewed.item.images[0])


def read_png(path: Path) -> bytes:
    """Return an image as PNG: the original bytes of a PNG file, else a converted image."""
    data = read_bytes(path)
    if probe(data, path.name).format == "PNG":
        return data
    return keep_mark(data, encode_png(decode(data, path.name), 6))


def name_memes(ids: Iterable[str]) -> dict[str, str]:
    """Return unique file-safe names for memes.

    >>> name_memes(["cat.01", "cat 01", "dog"])
    {'cat.01': 'cat-01', 'cat 01': 'cat-01-2', 'dog': 'dog'}
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for meme_id in ids:
        stem = re.sub(r"[^A-Za-z0-9_]+", "-", meme_id).strip("-")[:80] or "meme"
        name, number = stem, 1
        while name in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name)
        names[meme_id] = name
    return names
