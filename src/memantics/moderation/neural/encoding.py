"""Encode examples as arrays: token ids, pixels and class indices; ids are not used."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import orjson
from numpy.typing import NDArray
from PIL import Image as Pillow
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memantics.core.data import Skip
from memantics.core.errors import DataError, ImageError, InputError, need_packages
from memantics.core.images import load
from memantics.metrics.rounding import Ints
from memantics.moderation.examples import LABELS, TYPES, Example
from memantics.moderation.neural.settings import NetworkShape, TrainingTarget
from memantics.understanding.vision.colours import Pixels


@dataclass(frozen=True, slots=True)
class Splitter:
    """A tokenizer: text to token ids with special tokens; ``pad`` is the padding id."""

    tokenizer: Any
    pad: int

    def split(self, text: str, length: int) -> list[int]:
        """Return at most ``length`` token ids; truncation keeps the closing token."""
        # Lone surrogates are replaced, and a row has at least one token, for attention.
        clean = text.encode("utf-8", "ignore").decode("utf-8")
        ids: list[int] = self.tokenizer.encode(clean).ids or [self.pad]
        return ids if len(ids) <= length else [*ids[: length - 1], ids[-1]]


def read_splitter(data: bytes, pad: int, name: str = "tokenizer.json") -> Splitter:
    """Read a tokenizer from ``tokenizer.json``; ``pad`` is the padding id."""
    need_packages("networks", "tokenizers", "tokenizers")
    try:
        tokenizer = importlib.import_module("tokenizers").Tokenizer.from_str(data.decode())
    except Exception as error:  # the package raises parser errors as bare Exception
        raise DataError(
            name, "is not a valid tokenizer.json", hint="save the tokenizer again"
        ) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # Special tokens written in a caption are treated as plain text.
    tokenizer.encode_special_tokens = True
    return Splitter(tokenizer, pad)


_LARGEST = 4096
# The ends of extremely long images are cropped before resizing, to bound memory; the centre crop
# would remove them anyway.
_LONGEST = 16
# image size in pixels from which images are resized without a crop, as in transformers
_PLAIN = 384


@dataclass(frozen=True, slots=True)
class Preparation:
    """Image preprocessing: resize to ``height`` × ``width`` and scale the pixels.

    ``edge`` is the length of the shorter side before the centre crop; 0 resizes the whole image to
    the final size without a crop.
    """

    height: int
    width: int
    edge: int = 0
    resample: int = 3
    mean: tuple[float, float, float] = (0.5, 0.5, 0.5)
    std: tuple[float, float, float] = (0.5, 0.5, 0.5)

    def prepare(self, image: Pillow.Image) -> Pixels:
        """Preprocess an image to rows × columns × RGB bytes.

        >>> Preparation(2, 2, edge=2).prepare(Pillow.new("RGB", (9, 3), "white")).shape
        (2, 2, 3)
        """
        how = Pillow.Resampling(self.resample)
        if not self.edge:
            return np.asarray(image.resize((self.width, self.height), how), dtype=np.uint8)
        image = self._cut_ends(image)
        wide, high = image.size
        short, long = min(wide, high), max(wide, high)
        other = int(self.edge * long / short)
        size = (self.edge, other) if wide <= high else (other, self.edge)
        pixels = np.asarray(image.resize(size, how), dtype=np.uint8)
        return _cut_middle(pixels, self.height, self.width)

    def _cut_ends(self, image: Pillow.Image) -> Pillow.Image:
        wide, high = image.size
        most = min(wide, high) * max(_LONGEST, 2 * max(self.height, self.width) // self.edge)
        if max(wide, high) <= most:
            return image
        left, top = max(0, wide - most) // 2, max(0, high - most) // 2
        return image.crop((left, top, left + min(wide, most), top + min(high, most)))


def _cut_middle(pixels: Pixels, height: int, width: int) -> Pixels:
    """Crop the centre of an image; pad with black if it is too small."""
    rows, columns = pixels.shape[:2]
    if rows < height or columns < width:
        whole = np.zeros((max(rows, height), max(columns, width), 3), np.uint8)
        top, left = (whole.shape[0] - rows + 1) // 2, (whole.shape[1] - columns + 1) // 2
        whole[top : top + rows, left : left + columns] = pixels
        pixels, rows, columns = whole, whole.shape[0], whole.shape[1]
    top, left = (rows - height) // 2, (columns - width) // 2
    return np.ascontiguousarray(pixels[top : top + height, left : left + width])


ImageSide = Annotated[int, Field(ge=1, le=_LARGEST)]


class _Sides(BaseModel):
    model_config = ConfigDict(extra="ignore")

    height: ImageSide | None = None
    width: ImageSide | None = None
    shortest_edge: ImageSide | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="ignore")

    size: _Sides | ImageSide = _Sides(height=224, width=224)
    crop_size: _Sides | ImageSide | None = None
    do_center_crop: bool | None = None
    crop_pct: float | None = Field(None, gt=0, le=1)
    resample: int = Field(3, ge=0, le=5)
    rescale_factor: float = 1 / 255
    image_mean: tuple[float, float, float] = (0.5, 0.5, 0.5)
    image_std: tuple[float, float, float] = (0.5, 0.5, 0.5)


def read_preparation(data: bytes, name: str = "preprocessor_config.json") -> Preparation:
    """Read a ``preprocessor_config.json``.

    >>> read_preparation(b'{"size": {"shortest_edge": 224}, "crop_size": 224}').edge
    224
    """
    try:
        file = _File.model_validate(orjson.loads(data))
    except (orjson.JSONDecodeError, ValidationError) as error:
        raise DataError(
            name, "has no image preprocessing settings", hint="download it beside the weights"
        ) from error
    if abs(file.rescale_factor * 255 - 1) > 1e-3:
        raise DataError(
            name, "has a scaling of pixel values that is not supported", hint="use another encoder"
        )
    size = file.size if isinstance(file.size, _Sides) else _square(file.size, file)
    crop = file.crop_size if isinstance(file.crop_size, _Sides) else _square(file.crop_size, None)
    if size.height and size.width and not size.shortest_edge:
        return Preparation(
            size.height, size.width, 0, file.resample, file.image_mean, file.image_std
        )
    edge = size.shortest_edge or 0
    height, width = crop.height or edge, crop.width or edge
    if file.crop_pct and edge < _PLAIN:
        # ResNet and ConvNeXt resize to a larger size and crop this proportion of it.
        edge = int(edge / file.crop_pct)
    if not edge or not height or not width:
        raise DataError(
            name,
            "has no image size",
            hint="use an encoder with a fixed image size",
        )
    return Preparation(height, width, edge, file.resample, file.image_mean, file.image_std)


def _square(side: int | None, file: _File | None) -> _Sides:
    """Read an image size; older files have one number for a square or the shorter edge."""
    if side is None:
        return _Sides()
    if file is not None and (file.crop_size is not None or file.do_center_crop):
        return _Sides(shortest_edge=side)
    return _Sides(height=side, width=side)


@dataclass(frozen=True, slots=True)
class LoadedImages:
    """Loaded images by row; ``faults`` has the error of each image that failed."""

    pixels: Pixels
    rows: tuple[int, ...]
    faults: dict[int, str]


def draw_images(
    paths: Sequence[Path | None],
    preparation: Preparation,
    place: Path | None = None,
    workers: int = 4,
) -> LoadedImages:
    """Decode every image once into one array (on disk if ``place`` is given).

    Training uses each image in every epoch, so decoding once saves time. Damaged files are found
    before the first step.
    """
    shape = (len(paths), preparation.height, preparation.width, 3)
    pixels: Pixels = (
        np.zeros(shape, np.uint8)
        if place is None
        else np.lib.format.open_memmap(place, "w+", np.uint8, shape)
    )
    faults: dict[int, str] = {}

    def draw(row: int) -> None:
        path = paths[row]
        if path is None:
            faults[row] = "no image"
            return
        try:
            pixels[row] = preparation.prepare(load(path))
        except ImageError as error:
            faults[row] = f"image {error.reason}"

    with ThreadPoolExecutor(max(1, workers)) as pool:
        for _ in pool.map(draw, range(len(paths))):
            pass
    rows = tuple(row for row in range(len(paths)) if row not in faults)
    return LoadedImages(pixels, rows, dict(sorted(faults.items())))


Ids = NDArray[np.int32]
_STEP = 8


@dataclass(frozen=True, slots=True)
class Reader:
    """The preprocessing of a network: tokenizer, image preprocessing, or both."""

    splitter: Splitter | None
    preparation: Preparation | None
    length: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """Examples as arrays, in the order of ``examples``.

    ``ids`` has a padded row per example and text (see :class:`NetworkShape`), ``lengths`` the
    number of tokens of each. Both are None for a network without a text encoder; the pixels are
    None without an image encoder. ``rows`` are the indices of the examples in the input.
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
class TextBatch:
    """One batch, padded to its longest text."""

    ids: Ids | None
    mask: NDArray[np.bool_] | None
    pixels: Pixels | None


def encode(
    examples: Sequence[Example],
    reader: Reader,
    shape: NetworkShape,
    place: Path | None = None,
    workers: int = 4,
) -> Encoded:
    """Encode examples as arrays; skip and list those whose image cannot be used."""
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
            "no example can be used"
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


def _texts(example: Example, shape: NetworkShape) -> tuple[str, ...]:
    captions = {"text": example.text_caption, "image": example.image_caption}
    return example.text, *(captions[kind] for kind in shape.joined)


def cut(encoded: Encoded, rows: Sequence[int] | Ints) -> TextBatch:
    """Make a batch of rows, padded to its longest text, rounded up to a multiple of 8 tokens."""
    chosen = np.asarray(rows)
    pixels = None if encoded.pixels is None else np.asarray(encoded.pixels[chosen])
    if encoded.ids is None or encoded.lengths is None:
        return TextBatch(None, None, pixels)
    longest = fit(encoded, chosen)
    mask = np.arange(longest) < encoded.lengths[chosen][..., None]
    return TextBatch(encoded.ids[chosen][..., :longest], mask, pixels)


def fit(encoded: Encoded, rows: Ints) -> int:
    """Return the padded length of a batch, one of a few sizes, so that memory can be reused."""
    if encoded.ids is None or encoded.lengths is None:
        return 0
    longest = int(encoded.lengths[rows].max())
    return min(-(-longest // _STEP) * _STEP, int(encoded.ids.shape[-1]))


def classes_of(target: TrainingTarget) -> tuple[str, ...]:
    """List the class names in the order of a network's outputs.

    >>> classes_of("harmful")
    ('harmless', 'harmful')
    """
    return tuple(LABELS) if target == "harmful" else tuple(TYPES)


def place_of(example: Example, target: TrainingTarget) -> int | None:
    """Return the class index of an example; None if it is unlabelled."""
    if target == "harmful":
        return example.label
    return None if example.type is None else TYPES.index(example.type)


def gold_places(examples: Sequence[Example], target: TrainingTarget) -> Ints:
    """Return the class indices of examples; raise InputError if one is unlabelled."""
    found = [place_of(example, target) for example in examples]
    for example, place in zip(examples, found, strict=True):
        if place is None:
            word = "label" if target == "harmful" else "type"
            raise InputError(
                f"example {example.id} has no {word}", hint=f"add a {word} column, or leave it out"
            )
    return np.array(found, np.int64)
