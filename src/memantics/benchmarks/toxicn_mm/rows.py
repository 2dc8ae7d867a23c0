"""The official files of ToxiCN MM, row by row, checked as they enter."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, ValidationError

from memantics.core.data import read_json, toml_beside
from memantics.core.errors import DataError, first_row_fault

Version = Literal["v1", "v2"]
Split = Literal["train", "test"]
VERSIONS: tuple[Version, ...] = get_args(Version)
SPLITS: tuple[Split, ...] = get_args(Split)

# The paper's tables list general offence before sexual innuendo; the class ids do not.
TYPE_IDS = ("none", "targeted", "sexual", "offence", "dispirited")
TYPES = ("none", "targeted", "offence", "sexual", "dispirited")
MODALITIES = ("fusion", "text", "image", "both")
# By class id, from 1; 0 means that no target was annotated.
CLASSES = toml_beside(__file__, "classes.toml")
TARGETS = tuple(CLASSES["targets"])


@dataclass(frozen=True, slots=True)
class HarmMeme:
    """One meme under one label version; ``id`` is its file name without extension.

    ``text`` is printed on the meme; the two captions were written by a language model.
    ``modality`` says where the harm lies (None: harmless): in text and image only when taken
    together, in the text, in the image, or in both by themselves. ``target`` is known in version
    2.0 only.
    """

    id: str
    text: str
    text_caption: str
    image_caption: str
    harmful: bool
    type: str
    modality: str | None
    target: str | None
    split: Split
    image: Path | None


def name_modality(*, harmful: bool, text: bool, image: bool) -> str | None:
    """The modality from its two flags; both off is ambiguous without the label.

    >>> name_modality(harmful=True, text=False, image=False)
    'fusion'
    >>> name_modality(harmful=False, text=False, image=False) is None
    True
    """
    if not harmful:
        return None
    return {(False, False): "fusion", (True, False): "text", (False, True): "image"}.get(
        (text, image), "both"
    )


# Version 2.0 has one harmful meme without a type; it is kept as it is.
UNTYPED = ("v2", "train", "7630")
UNTYPED_KEPT = "kept as released: 7630.jpg is harmful but has no type"
COPIES_DIFFER = "rows whose one-hot copies say otherwise: label, type and modal were believed"

_FILE = re.compile(r"([A-Za-z0-9_-]+)\.(?:jpg|png)", re.ASCII)
Text = Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
Flag = Annotated[int, Field(ge=0, le=1)]
TypeId = Annotated[int, Field(ge=0, le=4)]
Row = TypeVar("Row", bound=BaseModel)


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _FirstRow(_Closed):
    new_path: Text
    text: Text
    meme_discription: Text
    text_discription: Text
    label: Flag
    type: TypeId
    modal: Annotated[list[Flag], Field(min_length=2, max_length=2)]
    new_label: Annotated[list[Flag], Field(min_length=2, max_length=2)]
    new_type: Annotated[list[Flag], Field(min_length=5, max_length=5)]
    new_modal: TypeId


class _SecondRow(_Closed):
    path: Text
    text: Text
    meme_discription: Text
    text_discription: Text
    label: Flag
    type: TypeId
    text_modal: Flag
    image_modal: Flag
    target: Annotated[int, Field(ge=0, le=len(TARGETS))]


@dataclass(frozen=True, slots=True)
class LabelFile:
    """One file of one label version and split."""

    path: Path
    version: Version
    split: Split


def read_memes(
    file: LabelFile, find_image: Callable[[str], Path | None], repairs: Counter[str]
) -> tuple[HarmMeme, ...]:
    """Read one file; what is mended or kept on purpose is counted in ``repairs``."""
    top = read_json(file.path)
    if not isinstance(top, list):
        raise DataError(file.path.name, "not a JSON array of memes", hint="download it again")
    if not top:
        raise DataError(file.path.name, "no records", hint="download the file again")
    memes: dict[str, HarmMeme] = {}
    for number, value in enumerate(top, 1):
        meme = _read_row(value, file, number, find_image, repairs)
        if meme.id in memes:
            raise DataError(file.path.name, f"meme {meme.id} comes twice", row=number)
        memes[meme.id] = meme
        if meme.harmful == (meme.type == "none"):
            if (file.version, file.split, meme.id) != UNTYPED:
                problem = f"label {int(meme.harmful)} does not go with type {meme.type}"
                raise DataError(file.path.name, problem, row=number)
            repairs[UNTYPED_KEPT] += 1
    return tuple(memes.values())


def _read_row(
    value: JsonValue,
    file: LabelFile,
    number: int,
    find_image: Callable[[str], Path | None],
    repairs: Counter[str],
) -> HarmMeme:
    row: _FirstRow | _SecondRow
    if file.version == "v1":
        row, target = _check(_FirstRow, value, file, number), 0
        path, (text, image) = row.new_path, row.modal
        # The last code counts what the pair and the label already say: 0 harmless, 1 fusion, 2-4.
        code = row.label and {(0, 0): 1, (1, 0): 2, (0, 1): 3, (1, 1): 4}[text, image]
        copies = (row.new_label, row.new_type, row.new_modal)
        repairs[COPIES_DIFFER] += copies != (_one_hot(row.label, 2), _one_hot(row.type, 5), code)
    else:
        row = _check(_SecondRow, value, file, number)
        path, text, image, target = row.path, row.text_modal, row.image_modal, row.target
    name = _parse_name(path, file, number)
    return HarmMeme(
        id=name,
        text=row.text,
        text_caption=row.text_discription,
        image_caption=row.meme_discription,
        harmful=row.label == 1,
        type=TYPE_IDS[row.type],
        modality=name_modality(harmful=row.label == 1, text=text == 1, image=image == 1),
        target=TARGETS[target - 1] if target else None,
        split=file.split,
        image=find_image(name),
    )


def _one_hot(index: int, size: int) -> list[int]:
    return [int(place == index) for place in range(size)]


def _parse_name(name: str, file: LabelFile, number: int) -> str:
    parts = _FILE.fullmatch(name)
    if parts is None:
        problem = f"{name!r} is not a plain .jpg or .png file name"
        raise DataError(file.path.name, problem, row=number)
    return parts[1]


def _check(model: type[Row], value: JsonValue, file: LabelFile, number: int) -> Row:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        hint = f"this file should hold labels of version {file.version}"
        problem = first_row_fault(error, shown=True)
        raise DataError(file.path.name, problem, row=number, hint=hint) from error
