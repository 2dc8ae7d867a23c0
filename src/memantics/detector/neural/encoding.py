"""Examples to arrays: token ids of the three texts, pixels, class places. Ids are never read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memantics.core.data import Skip
from memantics.core.errors import InputError
from memantics.detector.examples import LABELS, TYPES, Example
from memantics.detector.neural.pictures import Pixels, Preparation, draw_images
from memantics.detector.neural.settings import Shape, Target
from memantics.detector.neural.tokens import Splitter

Ids = NDArray[np.int32]
Places = NDArray[np.int64]
_STEP = 8


@dataclass(frozen=True, slots=True)
class Reader:
    """How a network reads memes: its splitter of texts, its preparation of images, or both."""

    splitter: Splitter | None
    preparation: Preparation | None
    length: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """Examples as arrays, in the order of ``examples``.

    ``ids`` has a row per example and text (see :class:`Shape`), filled up; ``lengths`` says how
    far each is real. A network without a text or an image encoder has None there. ``rows`` are
    the places of the examples among those that were given.
    """

    examples: tuple[Example, ...]
    ids: Ids | None
    lengths: NDArray[np.int32] | None
    pixels: Pixels | None
    rows: tuple[int, ...]
    skips: tuple[Skip, ...] = ()

    def __len__(self) -> int:
        return len(self.examples)


@dataclass(frozen=True, slots=True)
class Rows:
    """One batch, cut to its longest text."""

    ids: Ids | None
    mask: NDArray[np.bool_] | None
    pixels: Pixels | None


def encode(
    examples: Sequence[Example],
    reader: Reader,
    shape: Shape,
    place: Path | None = None,
    workers: int = 4,
) -> Encoded:
    """Bring examples into arrays; those whose image cannot be used are left out and listed."""
    kept, pixels, skips = tuple(examples), None, tuple[Skip, ...]()
    left = tuple(range(len(kept)))
    if reader.preparation is not None:
        paths = [example.image for example in kept]
        drawn = draw_images(paths, reader.preparation, place, workers)
        skips = tuple(Skip("examples", kept[row].id, fault) for row, fault in drawn.faults.items())
        pixels = drawn.pixels if not skips else drawn.pixels[list(drawn.rows)]
        left = drawn.rows
        kept = tuple(kept[row] for row in left)
    if not kept:
        raise InputError(
            "no example is left to read"
            + (f": {len(skips)} have no usable image ({skips[0].reason})" if skips else ""),
            hint="give the folder with the images, or use a network without an image encoder",
        )
    if reader.splitter is None:
        return Encoded(kept, None, None, pixels, left, skips)
    texts = [text for example in kept for text in _texts(example, shape)]
    rows = [reader.splitter.split(text, reader.length) for text in texts]
    lengths = np.array([len(row) for row in rows], np.int32)
    ids = np.full((len(rows), int(lengths.max())), reader.splitter.pad, np.int32)
    for place_in, row in enumerate(rows):
        ids[place_in, : len(row)] = row
    fields = shape.fields
    return Encoded(
        kept, ids.reshape(len(kept), fields, -1), lengths.reshape(-1, fields), pixels, left, skips
    )


def _texts(example: Example, shape: Shape) -> tuple[str, ...]:
    if shape.integration == "none":
        return (example.text,)
    return example.text, example.text_caption, example.image_caption


def cut(encoded: Encoded, rows: Sequence[int] | Places) -> Rows:
    """A batch of some rows, as long as its longest text needs, in steps of eight."""
    chosen = np.asarray(rows)
    pixels = None if encoded.pixels is None else np.asarray(encoded.pixels[chosen])
    if encoded.ids is None or encoded.lengths is None:
        return Rows(None, None, pixels)
    longest = fit(encoded, chosen)
    mask = np.arange(longest) < encoded.lengths[chosen][..., None]
    return Rows(encoded.ids[chosen][..., :longest], mask, pixels)


def fit(encoded: Encoded, rows: Places) -> int:
    """How many columns a batch needs: few sizes, so that kernels and memory are found again."""
    if encoded.ids is None or encoded.lengths is None:
        return 0
    longest = int(encoded.lengths[rows].max())
    return min(-(-longest // _STEP) * _STEP, int(encoded.ids.shape[-1]))


def classes_of(target: Target) -> tuple[str, ...]:
    """The names of the classes, in the order of a network's outputs.

    >>> classes_of("harmful")
    ('harmless', 'harmful')
    """
    return tuple(LABELS) if target == "harmful" else tuple(TYPES)


def place_of(example: Example, target: Target) -> int | None:
    """Which class an example belongs to; None where nobody said."""
    if target == "harmful":
        return example.label
    return None if example.type is None else TYPES.index(example.type)


def gold_places(examples: Sequence[Example], target: Target) -> Places:
    """The classes of examples, all of which must have one."""
    found = [place_of(example, target) for example in examples]
    for example, place in zip(examples, found, strict=True):
        if place is None:
            word = "label" if target == "harmful" else "type"
            raise InputError(
                f"example {example.id} has no {word}", hint=f"add a {word} column, or leave it out"
            )
    return np.array(found, np.int64)
