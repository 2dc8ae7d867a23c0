"""Training of the text-role model: images, labels by alignment, and the fit that ships.

A line is a caption if most of its characters appear, in order, in the caption of the release.
``python -m research.roles`` fits ``vision/roles.json`` on the development set;
``python -m research cross-validate roles/zh`` measures the model.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from PIL import Image

from memantics.core.images import decode
from memantics.core.lines import TextLine
from memantics.metrics.weighted import Case
from memantics.models.embedded.ocr import OcrProfile, open_reader
from memantics.understanding.phonetics.caption import simplify
from memantics.understanding.phonetics.detector import fit_logistic
from memantics.understanding.vision.roles import (
    FEATURES,
    WEIGHTS,
    choose_roles,
    measure_lines,
    rate_lines,
)
from research.data import read_puns
from research.pictures import crowd_meme, draw_meme
from research.protocol import DATA, ROOT, Cases, Row, hash_group, split_folds, take_development_set

Matrix = NDArray[np.float64]
DRAWN = ROOT / "build" / "roles"
_SAME, _SAME_MISREAD = 0.6, 0.5  # proportion of a line's characters found in the caption
_WORD = (
    5  # Latin letters in a row: fewer are in any caption, so a shorter line must be a word of it
)
_READ_WELL = 0.97  # OCR confidence below which a line may be misread
KNOTS, RIDGE = 4, 3.0
LOSS = 0.005  # proportion of caption characters that the threshold may lose
DATASET, YES, CROWDED = "punmemecn", "yes", "zh, crowded"
LAST, STRIDE = "CN00150", 4  # the role model was fitted on these; 250 groups have images
KEPT, TAKEN = "caption characters kept", "selected characters that are caption"


@dataclass(frozen=True, slots=True)
class Picture:
    """An image as read by OCR: lines, their features and labels, and the caption."""

    lines: tuple[TextLine, ...]
    table: Matrix
    labels: tuple[bool, ...]
    caption: str
    path: Path
    height: int

    @property
    def captions(self) -> list[TextLine]:
        """Lines that belong to the caption."""
        return [line for line, label in zip(self.lines, self.labels, strict=True) if label]


def clean(text: str) -> str:
    """Keep letters and digits only, and simplify Chinese characters.

    >>> clean("So, AM I!")
    'soami'
    """
    return "".join(simplify(char) for char in text.casefold() if char.isalnum())


def label_lines(lines: Sequence[TextLine], caption: str) -> tuple[bool, ...]:
    """Label the lines that belong to the caption, longer lines first.

    A line counts if most of its characters are in the caption and not yet used by another line. A
    repetition of a caption line counts, too.

    >>> def label(*texts):
    ...     return label_lines([TextLine(text, (0, 0, 9, 9)) for text in texts], "缺大德")
    >>> label("缺大德", "地图", "大"), label("缺", "大德")
    ((True, False, False), (True, True))
    """
    wanted, texts = clean(caption), [clean(line.text) for line in lines]
    words = {clean(word) for word in re.findall(r"[\x21-\x7e]+", caption)}
    left, found = Counter(wanted), [False] * len(texts)
    for place in sorted(range(len(texts)), key=lambda at: -len(texts[at])):
        said = texts[place]
        if said.isascii() and 1 < len(said) < _WORD:
            found[place] = said in words
        elif len(said) > 1:
            least = _WORD if said.isascii() else 1 if len(said) <= 4 else 2
            blocks = SequenceMatcher(None, said, wanted, autojunk=False).get_matching_blocks()
            same = sum(block.size for block in blocks if block.size >= least)
            share = _SAME if lines[place].score >= _READ_WELL else _SAME_MISREAD
            free = (Counter(said) & left).total() >= len(said) / 2
            again = any(found[at] and texts[at] == said for at in range(len(texts)))
            found[place] = same >= share * len(said) and (free or again)
        elif said:
            found[place] = left[said] > 0
        if found[place]:
            left -= Counter(said)
    return tuple(found)


def _read(path: Path, caption: str, profile: OcrProfile) -> Picture:
    data = path.read_bytes()
    with open_reader(profile) as ocr:
        lines = ocr.read(data, path.name).lines
    image = decode(data, path.name)
    labels = label_lines(lines, caption)
    table = measure_lines(lines, np.asarray(image))
    return Picture(lines, table, labels, caption, path, image.height)


@cache
def read_chinese(profile: OcrProfile = "fast", last: str = LAST) -> list[Row[Picture]]:
    """Read the images of PunMemeCN up to a group: a pun with the two memes made from it."""
    folder = DATA / "punmemecn" / "images"
    rows = []
    for row in read_puns():
        path = folder / f"{row.id.removesuffix('.png')}.png"
        if path.is_file() and row.group <= last:
            picture = _read(path, row.content.caption, profile)
            rows.append(Row(row.id, row.group, picture, {**row.tags, "language": "zh"}))
    return rows


@cache
def read_drawn(profile: OcrProfile = "fast") -> list[Row[Picture]]:
    """Render memes on every fourth image of PunMemeCN: alternately English and crowded Chinese.

    English captions replace the inpainted Chinese ones. Crowded images keep their captions and get
    other Chinese text. A rendered meme belongs to the group of its image, so that the locked test
    set contains no background that was used for training.
    """
    texts = [
        " ".join(str(value["text"]).split())
        for value in json.loads((DATA / "memeintent" / "sigdial.json").read_bytes()).values()
    ]
    texts = [text for text in texts if text.isascii() and 3 <= len(text.split()) <= 24]
    DRAWN.mkdir(parents=True, exist_ok=True)
    rows = []
    for place, row in enumerate(read_chinese(profile)[::STRIDE]):
        language = ("en", CROWDED)[place % 2]
        path = DRAWN / f"{row.id}.png"
        note = path.with_suffix(".txt")
        seed = int(1000 * hash_group("drawn", row.id))
        if not note.is_file():
            caption = row.content.caption
            if language == "en":
                meme = draw_meme(_paint_over(row.content), texts[seed % len(texts)], seed)
                meme.image.save(path)
                caption = meme.caption
            else:
                image = decode(row.content.path.read_bytes(), path.name)
                boxes = [line.box for line in row.content.captions]
                crowd_meme(image, boxes, seed).save(path)
            note.write_text(caption, encoding="utf-8")
        picture = _read(path, note.read_text(encoding="utf-8"), profile)
        rows.append(Row(f"{row.id} {language}", row.group, picture, {"language": language}))
    return rows


def _paint_over(picture: Picture) -> Image.Image:
    import cv2

    image = decode(picture.path.read_bytes(), picture.path.name)
    pixels = np.array(image)
    holes = np.zeros(pixels.shape[:2], np.uint8)
    for line, label in zip(picture.lines, picture.labels, strict=True):
        if label:
            left, top, right, bottom = line.box
            grow = 4 + line.height // 10
            holes[max(0, top - grow) : bottom + grow, max(0, left - grow) : right + grow] = 1
    return Image.fromarray(cv2.inpaint(pixels, holes, 3, cv2.INPAINT_TELEA))


def spread(table: Matrix, knots: Sequence[Sequence[float]]) -> Matrix:
    """Expand each feature into a piecewise linear basis with its inner knots."""
    parts = []
    for place, at in enumerate(knots):
        column = np.clip(table[:, place], at[0], at[-1])
        parts.append(column)
        parts.extend(np.maximum(0.0, column - knot) for knot in at[1:-1])
    return np.column_stack(parts)


def fit_curves(rows: Sequence[Row[Picture]]) -> dict[str, Any]:
    """Fit a piecewise linear curve per feature, with knots at quantiles."""
    table = np.vstack([row.content.table for row in rows])
    labels = np.array([label for row in rows for label in row.content.labels])
    shares = np.linspace(0.02, 0.98, KNOTS)
    knots = [sorted(set(np.round(np.quantile(column, shares), 3).tolist())) for column in table.T]
    wide = spread(table, knots)
    names = [str(place) for place in range(wide.shape[1])]
    linear = fit_logistic(wide, labels, names, RIDGE)
    weights, curves, start = list(linear.weights.values()), {}, 0
    for name, at in zip(FEATURES, knots, strict=True):
        size = 1 + max(0, len(at) - 2)
        slopes = np.cumsum(weights[start : start + size])
        start += size
        if len(at) > 1:
            gives = np.cumsum(np.concatenate(([at[0] * slopes[0]], np.diff(at) * slopes)))
            curves[name] = [at, np.round(gives, 4).tolist()]
    return {"bias": round(linear.bias, 4), "curves": curves}


def fit(rows: Sequence[Row[Picture]]) -> dict[str, Any]:
    """Fit curves, and the threshold that loses few caption characters on held-out folds."""
    held: list[tuple[float, int]] = []
    parts = split_folds(DATASET, rows)
    for part in parts:
        model = fit_curves([row for other in parts if other is not part for row in other])
        for row in part:
            chances = rate_lines(row.content.table, model)
            best = max(chances, default=0.0)
            held.extend(
                (chance, len(clean(line.text)))
                for line, label, chance in zip(
                    row.content.lines, row.content.labels, chances, strict=True
                )
                if label and chance < best
            )
    total = sum(len(clean(line.text)) for row in rows for line in row.content.captions)
    lost, threshold = 0, 0.01
    for chance, size in sorted(held):
        if lost + size > LOSS * total:
            break
        lost, threshold = lost + size, chance
    return fit_curves(rows) | {"threshold": round(threshold, 3)}


def measure(known: Sequence[Row[Picture]], asked: Sequence[Row[Picture]]) -> Cases:
    """Measure recall and precision of caption characters, with roles and with all lines."""
    model = fit(known)
    cases: dict[str, list[Case]] = {}
    for row in asked:
        picture = row.content
        chances = rate_lines(picture.table, model)
        found = choose_roles(picture.lines, chances, picture.height, model["threshold"])
        taken = [line.role == "caption" for line in found]
        for way, chosen in (("roles", taken), ("all lines", [True] * len(taken))):
            for name, values in _count(picture, chosen).items():
                cases.setdefault(f"{way}, {name}", []).extend(
                    Case(f"{row.id}/{at}", row.group, YES, YES if value else None, None, row.tags)
                    for at, value in enumerate(values)
                )
    return cases


def _count(picture: Picture, chosen: Sequence[bool]) -> dict[str, list[bool]]:
    """Tell for each caption character if it is kept, for each selected one if it is caption."""
    pairs = list(zip(picture.lines, picture.labels, chosen, strict=True))
    said = Counter(char for line, _, take in pairs if take for char in clean(line.text))
    wanted = Counter(clean(picture.caption))
    kept = [place < said[char] for char, count in wanted.items() for place in range(count)]
    right = [label for line, label, take in pairs if take for _ in clean(line.text)]
    return {KEPT: kept, TAKEN: right}


def main() -> None:
    """Fit the model on the development set and write ``vision/roles.json``."""
    rows = take_development_set(DATASET, [*read_chinese(), *read_drawn()])
    WEIGHTS.write_bytes(orjson.dumps(fit(rows), option=orjson.OPT_INDENT_2) + b"\n")


if __name__ == "__main__":
    main()
