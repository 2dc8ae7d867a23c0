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
from memantics.core.language import read_script
from memantics.core.records import Lenient

IntentSplit = Literal["dev", "train", "test"]
FILES = ("sigdial.json", "data/sigdial.json")
IMAGE_FOLDERS = ("images", "img", "data/images")
PREFIX = "the meme "
SPLITS = ("all", "dev", "train", "test")
# MemeCap's files by part, and the folders in which its images may lie.
MEMECAP: Mapping[IntentSplit, str] = {"train": "memes-trainval.json", "test": "memes-test.json"}
MEMECAP_FOLDERS = ("", "data")
MEMECAP_IMAGES = ("memes", "images", "data/memes", "data/images")
_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class IntentMeme:
    """One meme. ``split`` is the one of SemEval-2021 Task 6, whose images these are."""

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
    """One copy of the release."""

    source: Source
    index: Path
    rows: tuple[IntentMeme, ...]
    images: Path | None
    repairs: Mapping[str, int]

    def memes(self, split: str = "all") -> Iterator[IntentMeme]:
        """The memes of a split, in the release's order."""
        require_known("split", split, SPLITS)
        chosen = tuple(row for row in self.rows if split in ("all", row.split))
        if not chosen:
            raise DataError(
                self.index.name, f"no meme of split {split} is in this copy", hint="use --split all"
            )
        return iter(chosen)


def open_release(source: Source) -> IntentRelease:
    """Read the annotations below the folder, in any official layout; MemeCap's, too."""
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
        raise DataError(index.name, "expected a JSON object of memes", hint="download it again")
    if not value:
        raise DataError(index.name, "holds no meme", hint="download it again")
    return value


def _refuse_repeats(index: Path) -> None:
    """The fast parser keeps the last of two equal keys and says nothing."""
    outer: list[str] = []

    def remember(pairs: list[tuple[str, object]]) -> None:
        # Inner objects come first, so what remains is the outermost.
        outer[:] = [key for key, _ in pairs]

    json.loads(index.read_bytes(), object_pairs_hook=remember)
    for key, count in Counter(outer).items():
        if count > 1:
            raise DataError(index.name, "this key stands there twice", row=key)


def _check(key: str, meme: _Meme, files: Mapping[str, str], where: str) -> None:
    if not _KEY.fullmatch(key):
        raise DataError(where, "a key has letters, digits, - and _ only", row=key[:60])
    if meme.img in (".", "..") or re.search(r"[/\\\0]", meme.img):
        raise DataError(where, f"image name {meme.img[:60]!r} points outside its folder", row=key)
    if meme.img in files:
        raise DataError(
            where, f"image {meme.img} belongs to row {files[meme.img]} already", row=key
        )
    for intent in meme.intents:
        # The opening is English; a set in another script has none.
        if not (intent.startswith(PREFIX) or read_script(intent)):
            raise DataError(
                where, f"intent {intent[:40]!r} does not begin with 'the meme '", row=key
            )
    if len(set(meme.intents)) < len(meme.intents):
        raise DataError(where, "an intent stands there twice", row=key)


def repair_text(text: str) -> str:
    """Undo UTF-8 that was once read as Mac Roman; other text stays as it is.

    >>> repair_text("it‚Äôs fine‚Ä¶"), repair_text("café"), repair_text("plain")
    ('it’s fine…', 'café', 'plain')
    """
    try:
        return text.encode("mac_roman").decode("utf-8")
    except UnicodeError:
        return text


def split_background(text: str, where: str, row: str) -> tuple[str, ...]:
    r"""The bullets of one text; a bullet without words means that there is none.

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
    """The SemEval split, by the ranges of the release's keys; other keys count as test.

    >>> find_split("63"), find_split("64"), find_split("751"), find_split("en-001")
    ('dev', 'train', 'test', 'test')
    """
    number = int(key) if key.isascii() and key.isdecimal() and len(key) < 9 else 951
    if number <= 63:
        return "dev"
    return "train" if number <= 750 else "test"


class _Captioned(Lenient):
    """A row of MemeCap: what the poster means (``meme_captions``), what one sees."""

    img_fname: str
    post_id: str = Field(min_length=1)
    img_captions: list[str | None] = Field(default_factory=list)
    meme_captions: list[str | None] = Field(default_factory=list)


def find_memecap(root: Path) -> dict[IntentSplit, Path]:
    """The files of MemeCap below a folder, by part; none where it is no copy of it."""
    places = (
        (split, root / folder / name)
        for split, name in MEMECAP.items()
        for folder in MEMECAP_FOLDERS
    )
    return {split: path for split, path in places if path.is_file()}


def open_memecap(source: Source) -> IntentRelease:
    """MemeCap in the records of MemeIntent: captions of memes are their intents.

    It has no text of the meme and no background; a row without a caption is left out and counted.
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
    """The rows of a file; MemeCap writes NaN for what is missing, which is no JSON."""
    try:
        value = json.loads(read_file(path), parse_constant=lambda _: None)
    except ValueError as error:
        raise DataError(path.name, f"not valid JSON: {error}", hint="download it again") from error
    if not isinstance(value, list):
        raise DataError(path.name, "expected a JSON list of memes", hint="download it again")
    return value


def _keep(texts: list[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.strip() for text in texts if text and text.strip()))
