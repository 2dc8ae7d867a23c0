"""Check images in an audit: identical and near-identical images across splits.

Memes on one template with other captions are not near-identical: their perceptual hashes may be
close, but their pixels differ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from memantics.benchmarks.factories import proportion_score
from memantics.core.errors import ImageError
from memantics.core.finding import Finding, FindingWords, Gap, rank
from memantics.core.images import decode, read_bytes, read_exif
from memantics.core.translatable import Translatable
from memantics.metrics.grouping import join_pairs
from memantics.metrics.rounding import settle
from memantics.moderation.examples import Loaded
from memantics.understanding.vision.hashes import find_pairs, hash_image

_WORDS = FindingWords(__file__)
_BITS = 6  # maximum distance of the perceptual hashes of near-identical images
_SIDE, _BLOCK = 96, 6
# Maximum mean difference of a block of two grey thumbnails. Scaled and recompressed copies of 100
# memes reach 5.7; the same memes with another caption start at 19.7.
_DIFFERENT = 10.0
_MANY = 0.1
TRAIN = "train"


@dataclass(frozen=True, slots=True)
class PictureFacts:
    """An image file: size, format, digest, perceptual hash, a grey thumbnail and its EXIF."""

    width: int
    height: int
    bytes: int
    format: str
    digest: str
    hash: int
    thumbnail: NDArray[np.uint8]
    exif: Mapping[str, str] = field(default_factory=dict)

    def is_near(self, other: PictureFacts) -> bool:
        """Whether no block of the thumbnails differs visibly."""
        apart = np.abs(self.thumbnail.astype(np.float64) - other.thumbnail)
        count = _SIDE // _BLOCK
        blocks = apart.reshape(count, _BLOCK, count, _BLOCK).mean(axis=(1, 3))
        return bool(settle(float(blocks.max())) <= _DIFFERENT)


def read_pictures(data: Loaded) -> dict[int, PictureFacts]:
    """Read the facts of all images that exist and can be read, by position of the meme."""
    found = {}
    for place, example in enumerate(data.examples):
        if example.image is None:
            continue
        try:
            body = read_bytes(example.image)
            image = decode(body, example.image.name).convert("RGB")
        except ImageError:
            continue
        small = image.convert("L").resize((_SIDE, _SIDE), Image.Resampling.LANCZOS)
        found[place] = PictureFacts(
            *image.size,
            bytes=len(body),
            format=example.image.suffix.lower().lstrip("."),
            digest=hashlib.sha256(body).hexdigest(),
            hash=hash_image(image),
            thumbnail=np.asarray(small, np.uint8),
            exif=read_exif(body, example.image.name),
        )
    return found


def list_same(pictures: Mapping[int, PictureFacts]) -> Iterator[tuple[int, int]]:
    """List pairs of memes with identical or near-identical images."""
    places, facts = list(pictures), list(pictures.values())
    for one, other, _ in find_pairs([one.hash for one in facts], _BITS):
        if facts[one].digest == facts[other].digest or facts[one].is_near(facts[other]):
            yield places[one], places[other]


def find_shared_images(
    data: Loaded, pictures: Mapping[int, PictureFacts]
) -> tuple[list[Finding], list[Gap]]:
    """Find images of other splits that are identical or near-identical to a training image."""
    splits = [meme.split for meme in data.memes]
    held = [place for place in pictures if splits[place] not in ("", TRAIN)]
    train = {place for place in pictures if splits[place] == TRAIN}
    name = data.labels.name
    if not held or not train:
        if not pictures:
            return [], [Gap(name, "images across splits", "no image is available")]
        have = ", ".join(sorted(set(splits) - {""})) or "none"
        reason = f"the check needs images of train and of another split; splits: {have}"
        return [], [Gap(name, "images across splits", reason, "add a column split")]
    known: dict[str, int] = {}
    for place in sorted(train):
        known.setdefault(pictures[place].digest, place)
    near: dict[int, int] = {}
    for one, other in list_same(pictures):
        for here, there in ((one, other), (other, one)):
            if here not in train and splits[here] and there in train:
                near.setdefault(here, there)
    exact = [pictures[place].digest in known for place in held]
    close = [place in near for place in held]
    same = [data.gold[place] == data.gold[near[place]] for place in held if place in near]
    groups = [data.examples[place].id for place in held]
    shown = [f"{data.examples[p].id} and {data.examples[near[p]].id}" for p in held if p in near]
    marks = {"identical file": exact, "identical or near-identical": close}
    finding = _WORDS.find(
        "leak.images",
        proportion_score("proportion", close, groups),
        rank(any(close), broken=sum(close) >= _MANY * len(close) and any(close)),
        {
            "near": sum(close),
            "exact": sum(exact),
            "images": len(close),
            "same": sum(same) / max(1, len(same)),
        },
        task=name,
        rows=tuple(
            proportion_score("proportion", flags, groups, "images", label)
            for label, flags in marks.items()
        ),
        details=(Translatable("for example {pairs}", pairs="; ".join(shown[:5])),) if shown else (),
    )
    return [finding], []


def part_by_image(
    data: Loaded,
    copies: Sequence[str],
    pictures: Mapping[int, PictureFacts],
    names: Sequence[str],
) -> tuple[str, ...]:
    """Divide groups of memes with nearly the same text into groups with one image each.

    A text on another image can mean something else, so it is not a copy. Memes without any image
    are compared by text alone; an image that cannot be read counts by its file name.
    """
    members: dict[tuple[str, str], list[int]] = {}
    for place, (group, name) in enumerate(zip(copies, names, strict=True)):
        if place not in pictures:
            members.setdefault((group, name), []).append(place)
    pairs = [(places[0], place) for places in members.values() for place in places[1:]]
    pairs += [(one, other) for one, other in list_same(pictures) if copies[one] == copies[other]]
    roots = join_pairs(len(copies), pairs)
    return tuple(data.examples[root].id for root in roots)
