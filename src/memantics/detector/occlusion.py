"""What moved a network: how its score changes where a word or a part of the picture is hidden.

Unlike the shares of a fast detector these do not add up: two words that say the same may each be
left out without loss.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from memantics.core.images import encode_png, load
from memantics.detector.examples import LABELS, Example
from memantics.detector.explanation import Explanation, FieldShare, Part
from memantics.detector.fast import Prediction

Predict = Callable[[Sequence[Example]], list[Prediction]]
_PIECE = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")
_MOST = 40  # pieces of a text; longer texts are hidden several words at a time
_SIDE = 4  # rows and columns of a picture


def explain_by_occlusion(
    predict: Predict, example: Example, threshold: float, *, texts: bool, pictures: bool
) -> Explanation:
    """Log-odds of harm, and what hiding each word and each part of the picture takes from them."""
    with tempfile.TemporaryDirectory() as folder:
        hidden = list(_hide_words(example)) if texts else []
        bare = replace(example, text="") if texts else example
        if pictures and example.image is not None:
            cut = list(_hide_parts(example, example.image, Path(folder)))
            bare = replace(bare, image=cut.pop()[1].image)
            hidden += cut
        said = predict([example, bare, *(changed for _, changed in hidden)])
    score, base, *scores = (_make_odds(one.probability) for one in said)
    parts = tuple(
        replace(part, contribution=score - other)
        for (part, _), other in zip(hidden, scores, strict=True)
    )
    fields = tuple(_share(example, parts))
    needed = _make_odds(threshold)
    return Explanation(
        score, base, needed, parts, fields, LABELS[1], LABELS[0], said[0], hiding=True
    )


def _make_odds(chance: float) -> float:
    chance = min(max(chance, 1e-9), 1 - 1e-9)
    return float(np.log(chance / (1 - chance)))


def _hide_words(example: Example) -> Iterator[tuple[Part, Example]]:
    found = list(_PIECE.finditer(example.text))
    size = -(-len(found) // _MOST) or 1
    for place in range(0, len(found), size):
        start, end = found[place].start(), found[place : place + size][-1].end()
        text = example.text
        part = Part("text", "left out", text[start:end], 0.0, start, end)
        yield part, replace(example, text=text[:start] + text[end:])


def _hide_parts(example: Example, path: Path, folder: Path) -> Iterator[tuple[Part, Example]]:
    """The picture with each part in its mean colour; last, all of it."""
    image = load(path)
    mean = np.asarray(image.resize((1, 1), Image.Resampling.BOX)).ravel().tolist()
    wide, high = image.size
    places = [(row, column) for row in range(_SIDE) for column in range(_SIDE)]
    for row, column in places:
        corners = (column, row, column + 1, row + 1)
        left, top, right, low = (
            corner * (high if place % 2 else wide) // _SIDE for place, corner in enumerate(corners)
        )
        made = image.copy()
        made.paste((mean[0], mean[1], mean[2]), (left, top, right, low))
        name = f"row {row + 1}, column {column + 1} of {_SIDE}"
        yield Part("image", "hidden", name, 0.0), _put(example, made, folder, f"{row}{column}")
    blank = Image.new("RGB", image.size, (mean[0], mean[1], mean[2]))
    yield Part("image", "hidden", "all", 0.0), _put(example, blank, folder, "all")


def _put(example: Example, image: Image.Image, folder: Path, name: str) -> Example:
    place = folder / f"{name}.png"
    place.write_bytes(encode_png(image))
    return replace(example, image=place)


def _share(example: Example, parts: Sequence[Part]) -> Iterator[FieldShare]:
    characters = np.zeros(len(example.text))
    for part in parts:
        if part.start is not None and part.end is not None:
            characters[part.start : part.end] = part.contribution / (part.end - part.start)
    if any(part.field == "text" for part in parts):
        yield FieldShare("text", example.text, tuple(characters.tolist()), float(characters.sum()))
