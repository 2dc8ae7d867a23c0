"""Read one image file: text, hash and measures, cached by content."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image as Pillow
from pydantic import JsonValue

from memantics.core.data import conform, inside, read_jsonl
from memantics.core.errors import DataError, ImageError
from memantics.core.images import decode, read_bytes
from memantics.core.lines import Ocr, TextLine
from memantics.core.memes import MEMES, SUFFIXES, MemeLine
from memantics.core.text import escape_surrogates
from memantics.understanding.vision.hashes import hash_image
from memantics.understanding.vision.roles import read_image_text

VERSION = "looks-5"
_SIDE = 128  # size of the reduced copy in which the image around the text is measured
# margin around a line, as a proportion of its height, for outlines and shadows of letters
_MARGIN = 0.12
# If each letter of a text box covers more of the image than this, OCR misread a drawing.
_LARGEST_LETTER = 0.06


@dataclass(frozen=True, slots=True)
class FileLook:
    """Store the measures of one image file.

    ``hash`` is a perceptual hash of 16 hexadecimal digits. ``certainty`` is the OCR confidence,
    weighted by letters. ``height`` is the height of the largest line in pixels. ``covered`` is the
    proportion of the image under text. ``variety`` is the proportion of the remaining image that
    differs from its most frequent colour. ``error`` gives the reason if the file cannot be read.
    ``watermark`` is a small line that names a site or an account. ``text`` are the captions,
    ``other_text`` is all other text.
    """

    sha256: str
    version: str
    width: int = 0
    height: int = 0
    hash: str = ""
    text: str = ""
    certainty: float = 0.0
    line_height: int = 0
    covered: float = 0.0
    variety: float = 0.0
    error: str = ""
    watermark: str = ""
    other_text: str = ""


def digest_file(path: Path) -> str:
    """Return the SHA-256 of any file; empty if it cannot be read."""
    try:
        return hashlib.sha256(read_bytes(path)).hexdigest()
    except ImageError:
        return ""


def look_at(path: Path, reader: Ocr) -> FileLook:
    """Decode, read by OCR, hash and measure an image; errors become part of the result."""
    version = f"{VERSION}/{reader.version}"
    try:
        data = read_bytes(path)
    except ImageError as error:
        return FileLook("", version, error=f"{error.reason}")
    digest = hashlib.sha256(data).hexdigest()
    try:
        image = decode(data, path.name)
        printed = read_image_text(reader, data, path.name, image=image)
    except ImageError as error:
        return FileLook(digest, version, error=error.reason)
    lines = [line for line in printed.lines if line.text.strip()]
    covered, variety = _measure_picture(image, _find_boxes(image, lines))
    return FileLook(
        sha256=digest,
        version=version,
        width=image.width,
        height=image.height,
        hash=f"{hash_image(image):016x}",
        text=printed.caption,
        certainty=round(_weigh(lines), 4),
        line_height=max((line.box[3] - line.box[1] for line in lines), default=0),
        covered=round(covered, 4),
        variety=round(variety, 4),
        watermark=next((line.text for line in lines if line.role == "watermark"), ""),
        other_text=printed.other_text,
    )


def _weigh(lines: Sequence[TextLine]) -> float:
    letters = sum(len(line.text) for line in lines)
    return sum(line.score * len(line.text) for line in lines) / letters if letters else 0.0


def _find_boxes(image: Pillow.Image, lines: Sequence[TextLine]) -> list[tuple[int, int, int, int]]:
    """Return the boxes of text, without drawings misread as letters."""
    found = []
    for line in lines:
        left, top, right, bottom = line.box
        share = (right - left) * (bottom - top) / (image.width * image.height)
        if share <= _LARGEST_LETTER * len(line.text.strip()):
            found.append(line.box)
    return found


def _measure_picture(
    image: Pillow.Image, boxes: Sequence[tuple[int, int, int, int]]
) -> tuple[float, float]:
    """Return the proportion of the image under text, and the variety of colours in the rest."""
    small = np.asarray(image.resize((_SIDE, _SIDE), Pillow.Resampling.BILINEAR))
    text = np.zeros((_SIDE, _SIDE), dtype=bool)
    across, down = _SIDE / image.width, _SIDE / image.height
    for left, top, right, bottom in boxes:
        margin = _MARGIN * min(bottom - top, right - left)
        rows = slice(
            max(0, int((top - margin) * down)), max(0, int(np.ceil((bottom + margin) * down)))
        )
        columns = slice(
            max(0, int((left - margin) * across)), max(0, int(np.ceil((right + margin) * across)))
        )
        text[rows, columns] = True
    covered = float(text.mean())
    rest = small[~text]
    if len(rest) == 0:
        return covered, 0.0
    # 16 steps per channel, so that compression noise does not count as colour.
    colours = (rest >> 4).astype(np.uint32)
    keys = colours[:, 0] << 8 | colours[:, 1] << 4 | colours[:, 2]
    most_frequent = Counter(keys.tolist()).most_common(1)[0][1]
    return covered, 1.0 - most_frequent / len(rest)


# Files of a folder to read, their ids, and what is already known about them.

OWN = "collect"  # folder that collect writes beside the images
# Fields that an earlier run wrote are not user input.
_MADE = (
    "kept",
    "rule",
    "reason",
    "template_cluster",
    "hash",
    "copy_of",
    "width",
    "height",
    "collected",
)
_KNOWN = ("id", "image", "text", "language")


@dataclass(frozen=True, slots=True)
class ListedFile:
    """Describe one file; ``text`` and ``language`` are "" if not given.

    ``file`` is the path in the folder, escaped if it is not UTF-8. ``extra`` holds additional
    fields of the user's line, which are written back unchanged. ``pinned`` is a person's decision:
    True keeps the meme, False drops it.
    """

    id: str
    file: str
    path: Path
    text: str
    language: str
    extra: Mapping[str, JsonValue]
    pinned: bool | None = None

    @property
    def escaped(self) -> bool:
        """Whether the file name is not valid UTF-8."""
        return not self.path.as_posix().endswith(self.file)


def list_entries(folder: Path, out: Path | None = None) -> list[ListedFile]:
    """List the lines of ``memes.jsonl`` if it exists, then every other image of the folder.

    With ``out``, corrections made there take precedence over the file beside the images.
    """
    if not folder.is_dir():
        raise DataError(folder, "is not a folder", hint="give a folder of images")
    entries = list(_read_lines(folder, folder))
    if out is not None and out.resolve() != folder.resolve():
        repaired = {entry.file: entry for entry in _read_lines(out, folder)}
        entries = [repaired.pop(entry.file, entry) for entry in entries] + list(repaired.values())
    known = {entry.file: number for number, entry in enumerate(entries)}
    taken = {entry.id for entry in entries}
    if len(taken) < len(entries):
        raise DataError(folder / MEMES, "two memes have the same id", hint="rename one of them")
    for path in _walk(folder, out):
        file = escape_surrogates(path.relative_to(folder).as_posix())
        if file in known:
            entries[known[file]] = replace(entries[known[file]], path=path)
        else:
            meme_id = _make_id(file, taken)
            taken.add(meme_id)
            entries.append(ListedFile(meme_id, file, path, "", "", {}))
    if not entries:
        raise DataError(
            folder, "contains no images", hint="supported formats: PNG, JPEG, WebP, GIF, BMP"
        )
    return entries


def _read_lines(place: Path, folder: Path) -> Iterator[ListedFile]:
    path = place / MEMES
    if not path.is_file():
        return
    for row, line in read_jsonl(path):
        meme_line = conform(MemeLine, line, path, row)
        fields = dict(line) if isinstance(line, dict) else {}
        made = fields.get("collected")
        ours = made if isinstance(made, dict) else {}
        read = ours.get("text") == "read" and ours.get("wrote") == fingerprint(meme_line.text)
        guessed = ours.get("language") == "guessed" and ours.get("guess") == meme_line.language
        source = ours.get("file")
        file = source if isinstance(source, str) and source else meme_line.image
        yield ListedFile(
            meme_line.id,
            file,
            inside(folder, file),
            "" if read else meme_line.text,
            "" if guessed else meme_line.language,
            {name: value for name, value in fields.items() if name not in (*_MADE, *_KNOWN)},
            _find_pin(meme_line.kept, ours),
        )


def fingerprint(text: str) -> str:
    """Return a hash that distinguishes a text read by OCR from one that a person corrected."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def _find_pin(kept: bool, ours: Mapping[str, JsonValue]) -> bool | None:
    """Return a person's decision to keep or drop a meme, if any.

    It was given before the first run, in an earlier run, or by changing the last result.
    """
    if not ours:
        return None if kept else False
    pinned = ours.get("pinned")
    if kept != ours.get("verdict", kept):
        return kept
    return pinned if isinstance(pinned, bool) else None


def _walk(folder: Path, out: Path | None) -> Iterator[Path]:
    """Yield images below a folder in a fixed order; skip hidden folders, our own, and links."""
    ours = None if out is None or out.resolve() == folder.resolve() else out.resolve()
    for place, folders, files in os.walk(folder):
        here = Path(place)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name != OWN and (here / name).resolve() != ours
        )
        for name in sorted(files):
            path = here / name
            if path.suffix.lower() in SUFFIXES and not path.is_symlink() and path.is_file():
                yield path


def _make_id(file: str, taken: set[str]) -> str:
    """Return a unique id from a file name: letters, digits and ``_.-``.

    >>> _make_id("cats/my cat (1).png", set()), _make_id("a.png", {"a"})
    ('cats-my_cat_1', 'a-2')
    """
    plain = re.sub(r"[^\w.\-]+", "_", file.rpartition(".")[0].replace("/", "-"))
    plain = plain.strip("_.-")[:180] or "meme"
    meme_id, number = plain, 1
    while meme_id in taken:
        number += 1
        meme_id = f"{plain}-{number}"
    return meme_id
