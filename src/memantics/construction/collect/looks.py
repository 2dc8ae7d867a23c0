"""What one image file shows: read once, within bounds, and remembered by content."""

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
_SIDE = 128  # of the small copy in which the picture around the text is judged
_MARGIN = 0.12  # of a line's height: outlines and shadows of letters belong to the text
# A box of which each letter takes more of the image than this is a drawing misread as a letter.
_LARGEST_LETTER = 0.06


@dataclass(frozen=True, slots=True)
class FileLook:
    """One look at a file.

    ``hash`` is perceptual, 16 hexadecimal digits. ``certainty`` is the OCR's, weighted by letters;
    ``height`` of the largest line in pixels; ``covered`` the share of the image under text;
    ``variety`` the share of the picture around the text that is not of its one commonest colour.
    ``error`` says why there is no more than that; ``watermark`` is a small line that names a site
    or an account. ``text`` are the captions, ``other_text`` is all other text.
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
    """The SHA-256 of a file that may be no image at all; empty where it cannot be read."""
    try:
        return hashlib.sha256(read_bytes(path)).hexdigest()
    except ImageError:
        return ""


def look_at(path: Path, reader: Ocr) -> FileLook:
    """Decode within bounds, read, hash and measure; what is wrong with a file is a result."""
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
    """Where text stands, without the drawings that were taken for it."""
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
    """The share of the image under text, and how much is going on in the rest."""
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
    # 16 steps per channel: noise of compression does not count as colour.
    colours = (rest >> 4).astype(np.uint32)
    keys = colours[:, 0] << 8 | colours[:, 1] << 4 | colours[:, 2]
    commonest = Counter(keys.tolist()).most_common(1)[0][1]
    return covered, 1.0 - commonest / len(rest)


# Which files of a folder are to be looked at, under which ids, and what is known about them.

OWN = "collect"  # our own folder beside the images
# What we wrote ourselves in an earlier run is no knowledge about the meme.
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
    """One file. ``text`` and ``language`` are "" where nobody gave them.

    ``file`` is its place in the folder, escaped where that is not UTF-8.
    ``extra`` holds fields of the user's own line, which come out again as they went in.
    ``pinned`` is what a person decided against or before us: True keeps, False drops.
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
        """Whether no list can hold the name of the file as it is."""
        return not self.path.as_posix().endswith(self.file)


def list_entries(folder: Path, out: Path | None = None) -> list[ListedFile]:
    """The lines of ``memes.jsonl`` where there is one, then every other image below the folder.

    With ``out``, what a person repaired there counts before what stands beside the images.
    """
    if not folder.is_dir():
        raise DataError(folder, "is not a folder", hint="name a folder of images")
    entries = list(_read_lines(folder, folder))
    if out is not None and out.resolve() != folder.resolve():
        repaired = {entry.file: entry for entry in _read_lines(out, folder)}
        entries = [repaired.pop(entry.file, entry) for entry in entries] + list(repaired.values())
    known = {entry.file: number for number, entry in enumerate(entries)}
    taken = {entry.id for entry in entries}
    if len(taken) < len(entries):
        raise DataError(folder / MEMES, "two memes have one id", hint="rename one")
    for path in _walk(folder, out):
        file = escape_surrogates(path.relative_to(folder).as_posix())
        if file in known:
            entries[known[file]] = replace(entries[known[file]], path=path)
        else:
            meme_id = _make_id(file, taken)
            taken.add(meme_id)
            entries.append(ListedFile(meme_id, file, path, "", "", {}))
    if not entries:
        raise DataError(folder, "holds no images", hint="PNG, JPEG, WebP, GIF and BMP are read")
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
    """By which a text that we wrote is told from one that a person repaired."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def _find_pin(kept: bool, ours: Mapping[str, JsonValue]) -> bool | None:
    """What a person decided: before us, in an earlier round, or against our last verdict."""
    if not ours:
        return None if kept else False
    pinned = ours.get("pinned")
    if kept != ours.get("verdict", kept):
        return kept
    return pinned if isinstance(pinned, bool) else None


def _walk(folder: Path, out: Path | None) -> Iterator[Path]:
    """Images below a folder in a fixed order; hidden folders, our own, and links are passed by."""
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
    """An id from a file name: letters, digits and ``_.-``, and nobody else's.

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
