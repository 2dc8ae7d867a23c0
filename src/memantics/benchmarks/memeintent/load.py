"""Reader of the MemeIntent release: intents, background knowledge and captions of 950 memes."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from memantics.core.data import Source, conform, find_file, list_names, read_file, read_json
from memantics.core.errors import DataError, require_known
from memantics.core.files import read_regular
from memantics.core.language import read_script
from memantics.core.records import Lenient

IntentSplit = Literal["dev", "train", "test"]
FILES = ("sigdial.json", "data/sigdial.json")
IMAGE_FOLDERS = ("images", "img", "data/images")
PREFIX = "the meme "
SPLITS = ("all", "dev", "train", "test")
# MemeCap's files by split, and the possible folders of its images.
MEMECAP: Mapping[IntentSplit, str] = {"train": "memes-trainval.json", "test": "memes-test.json"}
MEMECAP_FOLDERS = ("", "data")
MEMECAP_IMAGES = ("memes", "images", "data/memes", "data/images")
_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class IntentMeme:
    """Store one meme; ``split`` is that of SemEval-2021 Task 6, the source of the images."""

    id: str
    file: str
    text: str
    image_caption: str
    background: tuple[str, ...]
    intents: tuple[str, ...]
    split: IntentSplit
    image: Path | None


class _Meme(BaseModel):
    model_config = ConfigDict(extra="forbid")

    img: str = Field(min_length=1)
    text: str = Field(min_length=1)
    image_caption: str = Field(min_length=1)
    bks: str
    intents: list[str] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class IntentRelease:
    """One copy of the MemeIntent release."""

    source: Source
    index: Path
    rows: tuple[IntentMeme, ...]
    images: Path | None
    repairs: Mapping[str, int]

    def memes(self, split: str = "all") -> Iterator[IntentMeme]:
        """Return the memes of a split, in release order."""
        require_known("split", split, SPLITS)
        chosen = tuple(row for row in self.rows if split in ("all", row.split))
        if not chosen:
            raise DataError(
                self.index.name,
                f"this copy contains no meme of split {split}",
                hint="use --split all",
            )
        return iter(chosen)


def open_release(source: Source) -> IntentRelease:
    """Read the annotations in a folder, in any official layout, or in that of MemeCap."""
    root = source.root
    if source.published and find_memecap(root):
        return open_memecap(source)
    index = find_file(root, FILES, "MemeIntent")
    images = source.images or next(
        (root / name for name in IMAGE_FOLDERS if (root / name).is_dir()), None
    )
    pictures = list_names(images)
    repairs: Counter[str] = Counter()
    rows: list[IntentMeme] = []
    files: dict[str, str] = {}
    for key, value in _entries(index).items():
        meme = conform(_Meme, value, index.name, key)
        _check(key, meme, files, index.name)
        files[meme.img] = key
        text = repair_text(meme.text)
        repairs["texts with wrongly decoded characters"] += text != meme.text
        background = split_background(meme.bks, index.name, key)
        repairs["empty background placeholders"] += not background
        image = images / meme.img if images and meme.img in pictures else None
        caption, intents = meme.image_caption, tuple(meme.intents)
        rows.append(
            IntentMeme(key, meme.img, text, caption, background, intents, find_split(key), image)
        )
    _refuse_repeats(index)
    return IntentRelease(source, index, tuple(rows), images, repairs)


def _entries(index: Path) -> dict[str, JsonValue]:
    value = read_json(index)
    if not isinstance(value, dict):
        raise DataError(index.name, "is not a JSON object of memes", hint="download it again")
    if not value:
        raise DataError(index.name, "contains no meme", hint="download it again")
    return value


def _refuse_repeats(index: Path) -> None:
    """Raise an error for repeated keys; the fast JSON parser silently keeps only the last one."""
    outer: list[str] = []

    def remember(pairs: list[tuple[str, object]]) -> None:
        # Inner objects are parsed first, so the last one is the outermost.
        outer[:] = [key for key, _ in pairs]

    json.loads(read_regular(index), object_pairs_hook=remember)
    for key, count in Counter(outer).items():
        if count > 1:
            raise DataError(index.name, "the key appears twice", row=key)


def _check(key: str, meme: _Meme, files: Mapping[str, str], where: str) -> None:
    if not _KEY.fullmatch(key):
        raise DataError(where, "a key may contain only letters, digits, - and _", row=key[:60])
    if meme.img in (".", "..") or re.search(r"[/\\\0]", meme.img):
        raise DataError(where, f"image name {meme.img[:60]!r} points outside its folder", row=key)
    if meme.img in files:
        raise DataError(
            where, f"image {meme.img} already belongs to row {files[meme.img]}", row=key
        )
    for intent in meme.intents:
        # The shared opening of intents is English; data in another script have none.
        if not (intent.startswith(PREFIX) or read_script(intent)):
            raise DataError(
                where, f"intent {intent[:40]!r} does not begin with 'the meme '", row=key
            )
    if len(set(meme.intents)) < len(meme.intents):
        raise DataError(where, "an intent appears twice", row=key)


def repair_text(text: str) -> str:
    """Undo UTF-8 that was decoded as Mac Roman; other text is unchanged.

    >>> repair_text("it‚Äôs fine‚Ä¶"), repair_text("café"), repair_text("plain")
    ('it’s fine…', 'café', 'plain')
    """
    try:
        return text.encode("mac_roman").decode("utf-8")
    except UnicodeError:
        return text


def split_background(text: str, where: str, row: str) -> tuple[str, ...]:
    r"""Return the bullet points of a background text; an empty bullet means no background.

    >>> split_background("* one\n* two", "x", "1"), split_background("* ", "x", "1")
    (('one', 'two'), ())
    """
    bullets = []
    for line in text.split("\n"):
        if line.strip() and not line.startswith("*"):
            raise DataError(where, f"background {line[:40]!r} does not begin with '* '", row=row)
        bullets.append(line.removeprefix("*").strip())
    return tuple(bullet for bullet in bullets if bullet)


def find_split(key: str) -> IntentSplit:
    """Return the SemEval split of a meme by its key; keys outside the known ranges count as test.

    >>> find_split("63"), find_split("64"), find_split("751"), find_split("en-001")
    ('dev', 'train', 'test', 'test')
    """
    number = int(key) if key.isascii() and key.isdecimal() and len(key) < 9 else 951
    if number <= 63:
        return "dev"
    return "train" if number <= 750 else "test"


class _Captioned(Lenient):
    """Schema of a MemeCap row: the poster's intended meaning (``meme_captions``) and the image."""

    img_fname: str
    post_id: str = Field(min_length=1)
    img_captions: list[str | None] = Field(default_factory=list)
    meme_captions: list[str | None] = Field(default_factory=list)


def find_memecap(root: Path) -> dict[IntentSplit, Path]:
    """Return the MemeCap files in a folder, by split; empty if it is not a copy."""
    places = (
        (split, root / folder / name)
        for split, name in MEMECAP.items()
        for folder in MEMECAP_FOLDERS
    )
    return {split: path for split, path in places if path.is_file()}


def open_memecap(source: Source) -> IntentRelease:
    """Return MemeCap data as MemeIntent records: captions of memes are used as intents.

    MemeCap has no printed text and no background knowledge; rows without a caption are skipped and
    counted.
    """
    root, files = source.root, find_memecap(source.root)
    images = source.images or next(
        (root / name for name in MEMECAP_IMAGES if (root / name).is_dir()), None
    )
    pictures, rows = list_names(images), list[IntentMeme]()
    repairs: Counter[str] = Counter()
    for split, path in files.items():
        for number, value in enumerate(_list_captioned(path), 1):
            said = conform(_Captioned, value, path.name, str(number))
            seen, meant = _keep(said.img_captions), _keep(said.meme_captions)
            repairs["memes without a caption"] += not meant
            if meant:
                file = said.img_fname.strip()
                image = images / file if images and file in pictures else None
                name, shown = f"{split}-{said.post_id}", seen[0] if seen else ""
                rows.append(IntentMeme(name, file, "", shown, (), meant, split, image))
    if not rows:
        raise DataError(root, "no meme of MemeCap has a caption", hint="download it again")
    return IntentRelease(source, next(iter(files.values())), tuple(rows), images, repairs)


def _list_captioned(path: Path) -> list[JsonValue]:
    """Return the rows of a MemeCap file, which contains NaN (invalid JSON) for missing values."""
    try:
        value = json.loads(read_file(path), parse_constant=lambda _: None)
    except ValueError as error:
        raise DataError(path.name, f"not valid JSON: {error}", hint="download it again") from error
    if not isinstance(value, list):
        raise DataError(path.name, "is not a JSON list of memes", hint="download it again")
    return value


def _keep(texts: list[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.strip() for text in texts if text and text.strip()))
