"""Each pun beside two memes that are none: the nearest in picture, and the nearest in words.

PunMemeCN's groups of three. Both come from the memes of the same review that people called no puns,
so that they are labelled; none serves two puns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from memantics.build.chats.distractors import Embedders
from memantics.core.data import inside
from memantics.core.errors import InputError
from memantics.core.journal import write_lines
from memantics.core.memes import Meme
from memantics.core.queue import Review, Reviewed
from memantics.core.writing import LOOK_ALIKES, take_text


@dataclass(frozen=True, slots=True)
class LookAlikes:
    """A pun and its two look-alikes, by item of the queue, with their cosines."""

    pun: str
    similar_image: str
    similar_text: str
    image_cosine: float
    text_cosine: float


def find_look_alikes(review: Review, embedders: Embedders) -> list[LookAlikes]:
    """The groups of a review by the pun form: the nearest pairs first, each non-pun once."""
    kept = [reviewed for reviewed in review.items if reviewed.kept]
    puns = [reviewed for reviewed in kept if reviewed.values.get("pun") == "yes"]
    pool = [reviewed for reviewed in kept if reviewed.values.get("pun") == "no"]
    if not puns or len(pool) < 2:
        raise InputError(
            f"{len(puns)} puns and {len(pool)} others make no group of three",
            hint="let people judge more memes that are no puns",
        )
    images = embedders.image.encode([_meme(reviewed, review.folder) for reviewed in (*puns, *pool)])
    texts = embedders.text.encode([_say(reviewed) for reviewed in (*puns, *pool)])
    found = pair_up(images, texts, len(puns))
    return [
        LookAlikes(
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
    """For picture and words, the non-pun of each pun with their cosine; the first rows are puns."""
    found: dict[str, dict[int, tuple[int, float]]] = {"image": {}, "text": {}}
    near = {
        "image": images[:count] @ images[count:].T,
        "text": texts[:count] @ texts[count:].T,
    }
    used: set[int] = set()
    for kind, pun, other in _rank(near):
        if pun not in found[kind] and other not in used:
            found[kind][pun] = (other, float(near[kind][pun, other]))
            used.add(other)
    return found


def _rank(near: dict[str, np.ndarray]) -> Iterator[tuple[str, int, int]]:
    """All pairs of both kinds, the nearest first; a tie goes to the earlier pair."""
    rows = [
        (-float(table[pun, other]), pun, other, kind)
        for kind, table in near.items()
        for pun in range(table.shape[0])
        for other in range(table.shape[1])
    ]
    return ((kind, pun, other) for _, pun, other, kind in sorted(rows))


def _meme(reviewed: Reviewed, folder: Path) -> Meme:
    return Meme(reviewed.item.id, inside(folder, reviewed.item.images[0]), _say(reviewed))


def _say(reviewed: Reviewed) -> str:
    """What a meme says: of a pun what it is meant to be heard as, which its look-alike prints."""
    caption = take_text(reviewed, "caption")
    word, sound = (str(reviewed.values.get(name) or "") for name in ("pun_word", "homophone"))
    return caption.replace(word, sound, 1) if word and sound else caption


def write_look_alikes(folder: Path, groups: Sequence[LookAlikes]) -> Path:
    """Write the groups beside the queue, where publishing finds them."""
    return write_lines(folder / LOOK_ALIKES, groups)
