"""Reader of the MER-Bench release: its index file, and the paths of source and edited images."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, JsonValue

from memantics.core.data import Source, conform, find_file, list_names, read_json
from memantics.core.errors import DataError
from memantics.core.samples import PanelLayout, Polarity, VisualType

_ROUNDS = 8
_FIELD = re.compile(r'(?:.*"(?:pos_txt|spec)"\s*|\s*):\s*(?=")', re.DOTALL)
_ESCAPE = re.compile(r"""\\+(u[0-9a-fA-F]{4}|[nrt"'/])""")
_MEANINGS = {"n": "\n", "r": "\n", "t": "\t"}
_CLOSING = '"“”'


def decode_once(text: str, *, strict: bool = True) -> str | None:
    r"""Return the string inside a JSON string literal; None if the text is not such a literal.

    >>> decode_once('"a \\"b\\""'), decode_once('a')
    ('a "b"', None)

    Without ``strict``, the string may contain raw line breaks.
    """
    try:
        value = json.loads(text, strict=strict)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def unwrap(text: str) -> str:
    r"""Remove wrapping quotes, remains of a JSON object, and double escapes from a released text.

    >>> unwrap('"be calm"'), unwrap('"be calm",'), unwrap(': "be calm"'), unwrap("“be calm”")
    ('be calm', 'be calm', 'be calm', 'be calm')
    >>> unwrap('"Me: \\\\\\\\"hi\\\\\\\\"\\\\\\\\nYou: hello"')
    'Me: "hi"\nYou: hello'
    >>> unwrap('she said "hi" to me')
    'she said "hi" to me'
    """
    text = _FIELD.sub("", text.strip(), count=1) if _FIELD.match(text.strip()) else text.strip()
    if text.endswith(",") and text[:-1].rstrip()[-1:] in tuple(_CLOSING):
        text = text[:-1].rstrip()
    inner = decode_once(text, strict=False)
    if inner is None:
        text = _strip_quotes(text)
    for _ in range(_ROUNDS):
        if inner is None:
            break
        text, inner = inner.strip(), decode_once(inner, strict=False)
    return _ESCAPE.sub(_unescape, text).strip()


def _strip_quotes(text: str) -> str:
    """Remove the outer quotes, or a single unmatched quote."""
    opened, closed = text[:1] == '"', text[-1:] in tuple(_CLOSING)
    if len(text) > 1 and opened and closed:
        return text[1:-1]
    if text[:1] == "“" and text[-1:] == "”" and text.count("“") == 1:
        return text[1:-1]
    if text.count('"') % 2:
        return text[1:] if opened else text.removesuffix('"')
    return text


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if len(code) == 5:
        return chr(int(code[1:], 16))
    return _MEANINGS.get(code, code)


INDEX_FILES = ("data/index_final.json", "index_final.json")
IMAGE_FOLDERS = ("data/Original", "Original", "images")
EDITED_FOLDERS = ("data/EditedResults", "EditedResults")

Negative = Literal["angry", "sad", "tense", "bored"]
Positive = Literal["calm", "happy", "relaxed", "excited"]
TARGETS: Mapping[Negative, Positive] = {
    "angry": "calm",
    "sad": "happy",
    "tense": "relaxed",
    "bored": "excited",
}
VISUAL_TYPES: tuple[VisualType, ...] = get_args(VisualType)
POLARITIES: tuple[Polarity, ...] = get_args(Polarity)
LAYOUTS: tuple[PanelLayout, ...] = get_args(PanelLayout)
_ID = re.compile(r"[A-Za-z0-9_-]+\.png")


@dataclass(frozen=True, slots=True)
class ReappraisalRow:
    """One meme and the goal of its reappraisal.

    ``caption`` is the text of the source image, ``rewritten`` the text of the edited one, and
    ``plan`` the planned change of the image. ``written`` and ``planned`` are the raw released
    values of ``rewritten`` and ``plan``.
    """

    id: str
    source_emotion: Negative
    target_emotion: Positive
    description: str
    caption: str
    rewritten: str
    plan: str
    visual_type: VisualType
    polarity: Polarity
    layout: PanelLayout
    image: Path | None
    written: str = field(default="", repr=False)
    planned: str = field(default="", repr=False)


class _ReleaseRow(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: str
    det_emo: Negative
    img_desc: str
    pos_txt: str
    spec: str
    tgt_emo: Positive
    gen_id: str
    text: str
    visual_type: VisualType
    sentiment_polarity: Polarity
    layout_type: Literal["SinglePanel_Meme", "MultiPanel_Meme", "SinglePanel", "MultiPanel"]


@dataclass(frozen=True, slots=True)
class ReappraisalRelease:
    """One copy of the MER-Bench release."""

    source: Source
    index: Path
    rows: tuple[ReappraisalRow, ...]
    images: Path | None
    edited: Path | None
    repairs: Mapping[str, int]

    def editors(self) -> tuple[str, ...]:
        """Return the editing models whose images are in this copy, by folder name."""
        if self.edited is None:
            return ()
        folders = (path for path in self.edited.iterdir() if path.is_dir())
        # Hidden folders of other tools and editors without images are skipped; such an editor would
        # leave no memes.
        return tuple(sorted(path.name for path in folders if not path.name.startswith(".")))

    def find_edited(self, editor: str, row: ReappraisalRow) -> Path | None:
        """Return the image that an editing model made from a meme."""
        path = self.edited / editor / row.id if self.edited else None
        return path if path is not None and path.is_file() else None


def open_release(source: Source) -> ReappraisalRelease:
    """Read the index file in a folder, in any official layout."""
    root = source.root
    index = find_file(root, INDEX_FILES, "MER-Bench")
    images = source.images or _find_folder(root, IMAGE_FOLDERS)
    pictures = list_names(images)
    rows: dict[str, ReappraisalRow] = {}
    repairs: Counter[str] = Counter()
    for number, value in enumerate(_entries(index), 1):
        released = conform(_ReleaseRow, value, index.name, number)
        _check(released, index.name, number)
        if released.id in rows:
            raise DataError(index.name, f"id {released.id} appears twice", row=number)
        row = _convert(
            released, images / released.id if images and released.id in pictures else None
        )
        repairs["rewritten captions unwrapped"] += row.rewritten != released.pos_txt.strip()
        repairs["edit plans unwrapped"] += row.plan != released.spec.strip()
        rows[released.id] = row
    edited = _find_folder(root, EDITED_FOLDERS)
    return ReappraisalRelease(source, index, tuple(rows.values()), images, edited, repairs)


def _entries(index: Path) -> list[JsonValue]:
    value = read_json(index)
    if not isinstance(value, list):
        raise DataError(index.name, "is not a JSON array of memes", hint="download it again")
    if not value:
        raise DataError(index.name, "contains no meme", hint="download it again")
    return value


def _check(row: _ReleaseRow, where: str, number: int) -> None:
    if not _ID.fullmatch(row.id):
        raise DataError(
            where, f"id {row.id[:60]!r} is not a plain file name that ends in .png", row=number
        )
    if row.gen_id != row.id:
        raise DataError(where, f"gen_id {row.gen_id[:60]!r} differs from id {row.id}", row=number)
    if TARGETS[row.det_emo] != row.tgt_emo:
        raise DataError(
            where,
            f"{row.det_emo} must be paired with {TARGETS[row.det_emo]}, not with {row.tgt_emo}",
            row=number,
        )


def _convert(row: _ReleaseRow, image: Path | None) -> ReappraisalRow:
    return ReappraisalRow(
        id=row.id,
        source_emotion=row.det_emo,
        target_emotion=row.tgt_emo,
        description=row.img_desc,
        caption=row.text.strip(),
        rewritten=unwrap(row.pos_txt),
        plan=unwrap(row.spec),
        visual_type=row.visual_type,
        polarity=row.sentiment_polarity,
        layout="MultiPanel" if row.layout_type.startswith("Multi") else "SinglePanel",
        image=image,
        written=row.pos_txt,
        planned=row.spec,
    )


def _find_folder(root: Path, names: tuple[str, ...]) -> Path | None:
    return next((root / name for name in names if (root / name).is_dir()), None)
