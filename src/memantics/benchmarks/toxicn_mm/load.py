"""Open a copy of ToxiCN MM, in any of its official layouts."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from memantics.benchmarks.toxicn_mm.rows import (
    SPLITS,
    TARGETS,
    VERSIONS,
    HarmMeme,
    LabelFile,
    Split,
    Version,
    read_memes,
)
from memantics.core.data import Source
from memantics.core.errors import DataError, UnknownName

NAMES: Mapping[tuple[Version, Split], str] = MappingProxyType(
    {
        ("v1", "train"): "train_data_discription.json",
        ("v1", "test"): "test_data_discription.json",
        ("v2", "train"): "train_data_discription_2.0.json",
        ("v2", "test"): "test_data_discription_2.0.json",
    }
)
CODE_BOOK = "target_info.csv"
# The files alone (or the data folder itself), a clone, the folder around a clone.
_PLACES = ("", "data", "ToxiCN_MM/data")
_IMAGE_PLACES = ("images", "image", "memes", "meme", "../images", "../image", "")
_EXTENSIONS = (".jpg", ".png")


@dataclass(frozen=True, slots=True)
class HarmRelease:
    """A copy of ToxiCN MM; either or both label versions, either or both splits."""

    folder: Path
    files: tuple[Path, ...]
    parts: Mapping[tuple[Version, Split], tuple[HarmMeme, ...]]
    repairs: Mapping[str, int]

    @property
    def versions(self) -> tuple[Version, ...]:
        """The label versions of which this copy has at least one split."""
        return tuple(version for version in VERSIONS if any(v == version for v, _ in self.parts))

    def memes(self, version: str, split: str = "all") -> tuple[HarmMeme, ...]:
        """The memes of a label version: ``train``, ``test`` or ``all`` there are."""
        if version not in VERSIONS:
            raise UnknownName("label version", version, VERSIONS)
        if split not in (*SPLITS, "all"):
            raise UnknownName("split", split, (*SPLITS, "all"))
        wanted = [key for key in self.parts if key[0] == version and split in (key[1], "all")]
        if not wanted:
            names = [name for (v, s), name in NAMES.items() if v == version and split in (s, "all")]
            raise DataError(
                self.folder,
                f"labels {version}, split {split}: not in this copy",
                hint=f"add {' and '.join(names)}, or choose another split or version",
            )
        return tuple(meme for key in wanted for meme in self.parts[key])


def open_release(source: Source) -> HarmRelease:
    """Read a copy of the release; what is not as it should be is named with file and row."""
    folder = _find_folder(source.root)
    find_image = _find_images(folder, source.images)
    repairs: Counter[str] = Counter()
    parts: dict[tuple[Version, Split], tuple[HarmMeme, ...]] = {}
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
        f"no ToxiCN MM release: looked for {', '.join(NAMES.values())}, here and in data/",
        hint="give the folder of a clone of the official repository, or the one with its files",
    )


def _find_images(folder: Path, given: Path | None) -> Callable[[str], Path | None]:
    """A look-up from id to image, in the folder given or in the first that has any."""
    if given is not None and not given.is_dir():
        raise DataError(given, "no such folder of images", hint="check the path")
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


def _refuse_overlap(parts: Mapping[tuple[Version, Split], tuple[HarmMeme, ...]]) -> None:
    for version in VERSIONS:
        train = {meme.id for meme in parts.get((version, "train"), ())}
        for number, meme in enumerate(parts.get((version, "test"), ()), 1):
            if meme.id in train:
                raise DataError(
                    NAMES[version, "test"],
                    f"meme {meme.id} is in {NAMES[version, 'train']} too",
                    row=number,
                    hint="download both files again",
                )


def _check_code_book(path: Path) -> None:
    """The code book names 15 targets; another number means other codes than we know."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            codes = [row[0] for row in csv.reader(file) if row and row[0].isdecimal()]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(path.name, f"cannot be read: {error}") from error
    if codes != [str(code) for code in range(1, len(TARGETS) + 1)]:
        raise DataError(
            path.name,
            f"has {len(codes)} target codes, not 1 to {len(TARGETS)} in order",
            hint="download the file again",
        )
