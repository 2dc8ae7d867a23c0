"""Reader of ToxiCN MM, in any of its official layouts."""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, TypeVar, get_args

from pydantic import BaseModel, Field, JsonValue, ValidationError

from memantics.core.data import Source, read_json, toml_beside
from memantics.core.errors import DataError, first_row_fault, require_known
from memantics.core.files import open_regular_text
from memantics.core.releases import ReleaseRow, ReleaseText
from memantics.metrics.grouping import find_near_duplicates

# Records of the official files, validated row by row.

ReleaseVersion = Literal["v1", "v2"]
HarmSplit = Literal["train", "test"]
VERSIONS: tuple[ReleaseVersion, ...] = get_args(ReleaseVersion)
SPLITS: tuple[HarmSplit, ...] = get_args(HarmSplit)

# The paper's tables list general offence before sexual innuendo, unlike the class ids.
TYPE_IDS = ("none", "targeted", "sexual", "offence", "dispirited")
TYPES = ("none", "targeted", "offence", "sexual", "dispirited")
MODALITIES = ("fusion", "text", "image", "both")
# Names of the targets by class id, from 1; 0 means that no target was annotated.
CLASSES = toml_beside(__file__, "classes.toml")
TARGETS = tuple(CLASSES["targets"])


@dataclass(frozen=True, slots=True)
class HarmMeme:
    """One meme under one label version; ``id`` is its file name without extension.

    ``text`` is printed on the meme; a language model wrote the two captions. ``modality`` states
    where the harm lies (None: harmless): in the combination of text and image, in the text, in the
    image, or in each of them. ``target`` is available in label version 2.0 only.
    """

    id: str
    text: str
    text_caption: str
    image_caption: str
    harmful: bool
    type: str
    modality: str | None
    target: str | None
    split: HarmSplit
    image: Path | None


def name_modality(*, harmful: bool, text: bool, image: bool) -> str | None:
    """Return the modality of harm from its two flags; if both are off, the label decides.

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


# Label version 2.0 has one harmful meme without a type; it is kept unchanged.
UNTYPED = ("v2", "train", "7630")
UNTYPED_KEPT = "kept as released: 7630.jpg is harmful but has no type"
COPIES_DIFFER = "rows whose one-hot columns differ: label, type and modal are used"

_FILE = re.compile(r"([A-Za-z0-9_-]+)\.(?:jpg|png)", re.ASCII)
ZeroOne = Annotated[int, Field(ge=0, le=1)]
TypeId = Annotated[int, Field(ge=0, le=4)]
Row = TypeVar("Row", bound=BaseModel)


class _FirstRow(ReleaseRow):
    new_path: ReleaseText
    text: ReleaseText
    meme_discription: ReleaseText
    text_discription: ReleaseText
    label: ZeroOne
    type: TypeId
    modal: Annotated[list[ZeroOne], Field(min_length=2, max_length=2)]
    new_label: Annotated[list[ZeroOne], Field(min_length=2, max_length=2)]
    new_type: Annotated[list[ZeroOne], Field(min_length=5, max_length=5)]
    new_modal: TypeId


class _SecondRow(ReleaseRow):
    path: ReleaseText
    text: ReleaseText
    meme_discription: ReleaseText
    text_discription: ReleaseText
    label: ZeroOne
    type: TypeId
    text_modal: ZeroOne
    image_modal: ZeroOne
    target: Annotated[int, Field(ge=0, le=len(TARGETS))]


@dataclass(frozen=True, slots=True)
class LabelFile:
    """One data file: its label version and split."""

    path: Path
    version: ReleaseVersion
    split: HarmSplit


def read_memes(
    file: LabelFile, find_image: Callable[[str], Path | None], repairs: Counter[str]
) -> tuple[HarmMeme, ...]:
    """Read one data file; ``repairs`` counts repaired values and known errors that are kept."""
    top = read_json(file.path)
    if not isinstance(top, list):
        raise DataError(file.path.name, "is not a JSON array of memes", hint="download it again")
    if not top:
        raise DataError(file.path.name, "contains no records", hint="download the file again")
    memes: dict[str, HarmMeme] = {}
    for number, value in enumerate(top, 1):
        meme = _read_row(value, file, number, find_image, repairs)
        if meme.id in memes:
            raise DataError(file.path.name, f"meme {meme.id} appears twice", row=number)
        memes[meme.id] = meme
        if meme.harmful == (meme.type == "none"):
            if (file.version, file.split, meme.id) != UNTYPED:
                problem = f"label {int(meme.harmful)} does not match type {meme.type}"
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
        # The last code repeats the pair of flags and the label: 0 harmless, 1 fusion, 2-4 the
        # others.
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
        hint = f"this file should contain labels of version {file.version}"
        problem = first_row_fault(error, shown=True)
        raise DataError(file.path.name, problem, row=number, hint=hint) from error


NAMES: Mapping[tuple[ReleaseVersion, HarmSplit], str] = MappingProxyType(
    {
        ("v1", "train"): "train_data_discription.json",
        ("v1", "test"): "test_data_discription.json",
        ("v2", "train"): "train_data_discription_2.0.json",
        ("v2", "test"): "test_data_discription_2.0.json",
    }
)
CODE_BOOK = "target_info.csv"
# Possible layouts: the files alone (or the data folder), a clone, the parent folder of a clone.
_PLACES = ("", "data", "ToxiCN_MM/data")
_IMAGE_PLACES = ("images", "image", "memes", "meme", "../images", "../image", "")
_EXTENSIONS = (".jpg", ".png")


@dataclass(frozen=True, slots=True)
class HarmRelease:
    """A copy of ToxiCN MM: one or both label versions and splits."""

    folder: Path
    files: tuple[Path, ...]
    parts: Mapping[tuple[ReleaseVersion, HarmSplit], tuple[HarmMeme, ...]]
    repairs: Mapping[str, int]

    @property
    def versions(self) -> tuple[ReleaseVersion, ...]:
        """The label versions with at least one split in this copy."""
        return tuple(version for version in VERSIONS if any(v == version for v, _ in self.parts))

    def memes(self, version: str, split: str = "all") -> tuple[HarmMeme, ...]:
        """Return the memes of a label version in split ``train``, ``test`` or ``all``."""
        require_known("label version", version, VERSIONS)
        require_known("split", split, (*SPLITS, "all"))
        wanted = [key for key in self.parts if key[0] == version and split in (key[1], "all")]
        if not wanted:
            names = [name for (v, s), name in NAMES.items() if v == version and split in (s, "all")]
            raise DataError(
                self.folder,
                f"labels {version}, split {split} are not in this copy",
                hint=f"add {' and '.join(names)}, or choose another split or version",
            )
        return tuple(meme for key in wanted for meme in self.parts[key])


def open_release(source: Source) -> HarmRelease:
    """Read a copy of the data; errors name the file and the row."""
    folder = _find_folder(source.root)
    find_image = _find_images(folder, source.images)
    repairs: Counter[str] = Counter()
    parts: dict[tuple[ReleaseVersion, HarmSplit], tuple[HarmMeme, ...]] = {}
    files: list[Path] = []
    for (version, split), name in NAMES.items():
        path = folder / name
        if path.is_file():
            files.append(path)
            counted: Counter[str] = Counter()
            parts[version, split] = read_memes(LabelFile(path, version, split), find_image, counted)
            repairs.update({f"{name}: {what}": n for what, n in (+counted).items()})
    _refuse_overlap(parts)
    if (folder / CODE_BOOK).is_file():
        files.append(folder / CODE_BOOK)
        _check_code_book(folder / CODE_BOOK)
    return HarmRelease(
        folder, tuple(files), MappingProxyType(parts), MappingProxyType(dict(repairs))
    )


def _find_folder(root: Path) -> Path:
    for place in _PLACES:
        if any((root / place / name).is_file() for name in NAMES.values()):
            return root / place
    raise DataError(
        root,
        f"no ToxiCN MM release found: expected {', '.join(NAMES.values())}, here or in data/",
        hint="give the folder of a clone of the official repository, or the folder with its files",
    )


def _find_images(folder: Path, given: Path | None) -> Callable[[str], Path | None]:
    """Return a map from meme id to image, from the given folder or the first one with images."""
    if given is not None and not given.is_dir():
        raise DataError(given, "image folder not found", hint="check the path")
    places = [given] if given is not None else [folder / place for place in _IMAGE_PLACES]
    found: dict[str, Path] = {}
    for place in places:
        if not found and place.is_dir():
            with os.scandir(place) as entries:
                for entry in entries:
                    stem, extension = os.path.splitext(entry.name)  # noqa: PTH122 - hot, plain
                    if extension in _EXTENSIONS and entry.is_file():
                        found[stem] = place / entry.name
    return found.get


def _refuse_overlap(parts: Mapping[tuple[ReleaseVersion, HarmSplit], tuple[HarmMeme, ...]]) -> None:
    for version in VERSIONS:
        train = {meme.id for meme in parts.get((version, "train"), ())}
        for number, meme in enumerate(parts.get((version, "test"), ()), 1):
            if meme.id in train:
                raise DataError(
                    NAMES[version, "test"],
                    f"meme {meme.id} is also in {NAMES[version, 'train']}",
                    row=number,
                    hint="download both files again",
                )


def _check_code_book(path: Path) -> None:
    """Raise an error unless the code book lists the 15 known targets."""
    try:
        with open_regular_text(path, "utf-8-sig", newline="") as file:
            codes = [row[0] for row in csv.reader(file) if row and row[0].isdecimal()]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(path.name, f"cannot be read: {error}") from error
    if codes != [str(code) for code in range(1, len(TARGETS) + 1)]:
        raise DataError(
            path.name,
            f"has {len(codes)} target codes, not 1 to {len(TARGETS)} in order",
            hint="download the file again",
        )


# Test texts that also occur in the training split: one definition for statistics, audit and
# reproduced paper.

NEAR = 0.8


@dataclass(frozen=True, slots=True)
class TextLeakage:
    """For each test meme, whether its text (nearly) equals a training text, and which one.

    Texts are compared as released. "Nearly" means that the Jaccard index of the character sets of
    two texts is at least 0.8.
    """

    test: tuple[HarmMeme, ...]
    identical: tuple[bool, ...]
    twins: tuple[HarmMeme | None, ...]

    @property
    def near(self) -> tuple[bool, ...]:
        """Whether each test text has a near-duplicate in the training split."""
        return tuple(twin is not None for twin in self.twins)


def find_leakage(release: HarmRelease) -> TextLeakage | None:
    """Compare train and test texts of one label version; both versions have the same texts."""
    for version in release.versions:
        train, test = (release.parts.get((version, part)) for part in ("train", "test"))
        if train and test:
            first = {meme.text: meme for meme in reversed(train)}
            texts = sorted(first)
            places = find_near_duplicates([meme.text for meme in test], texts, NEAR)
            return TextLeakage(
                test,
                tuple(meme.text in first for meme in test),
                tuple(None if place is None else first[texts[place]] for place in places),
            )
    return None
