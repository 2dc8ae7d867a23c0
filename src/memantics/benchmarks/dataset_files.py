"""Files of data sets: tables, class folders, the rows of both, and images by their names.

A class folder contains images, and its name is their label: the layout of torchvision's
``ImageFolder`` and of Hugging Face's ``imagefolder`` without metadata.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from memantics.benchmarks.dataset_config import DatasetConfig
from memantics.core.data import Source, checksum, inside
from memantics.core.errors import DataError
from memantics.core.members import SUFFIXES
from memantics.core.tables import TableRow, read_rows

CLASS_FOLDERS = "class folders"  # the ``format`` of a dataset config
# The columns of a class folder: the path of an image from the data folder, and its label.
CLASS_IMAGE, CLASS_LABEL = "image", "label"
_IMAGES = (".", "images", "Images", "img", "memes", "Labelled Images")
# Depth below the given folder at which data files of a clone are searched.
_DEEPEST = 3


def read_data_file(
    root: Path, path: Path, form: str = "", encoding: str = ""
) -> Iterator[tuple[int, TableRow]]:
    """Yield the numbered rows of a table, or of a class folder (one row per image)."""
    if form == CLASS_FOLDERS:
        for number, name in enumerate(list_images(root, path), 1):
            yield number, {CLASS_IMAGE: name, CLASS_LABEL: path.name}
        return
    ending = f".{form}" if form else ""
    yield from read_rows(path, ending=ending, detect=True, encoding=encoding)


def list_images(root: Path, folder: Path) -> list[str]:
    """Return the paths of the images in a folder and below it, relative to the root, sorted."""
    return sorted(
        Path(place, name).relative_to(root).as_posix()
        for place, folders, names in os.walk(folder)
        for name in names
        if not name.startswith(".") and is_image(name)
    )


def is_image(name: str) -> bool:
    """Return whether a file is named like an image that can be read.

    >>> is_image("a.PNG"), is_image("a.csv")
    (True, False)
    """
    return os.path.splitext(name)[1].lower() in SUFFIXES  # noqa: PTH122 - called for every file


def stamp_files(found: Sequence[tuple[str, Path]]) -> tuple[tuple[int, int], ...]:
    """Return what changes if a file changes, or if images are added to a class folder."""
    return tuple(map(_stamp, (path for _, path in found)))


def _stamp(path: Path) -> tuple[int, int]:
    if path.is_dir():
        walked = [(len(names), Path(place).stat().st_mtime_ns) for place, _, names in os.walk(path)]
        return sum(count for count, _ in walked), max(time for _, time in walked)
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns


def sum_files(config: DatasetConfig, root: Path, files: Sequence[Path]) -> str:
    """Return the checksum of the data files; for class folders, that of all images."""
    if config.format == CLASS_FOLDERS:
        return checksum([root / name for one in files for name in list_images(root, one)], root)
    return checksum(files, root)


def find_data_files(config: DatasetConfig, root: Path) -> tuple[tuple[str, Path], ...]:
    """Return the files of each split; raise an error if a folder has none of them."""
    found = tuple(
        (split, path)
        for split, names in config.files.items()
        for name in names
        for path in _find_files(root, name, whole=config.format != CLASS_FOLDERS)
    )
    if not found:
        names = [name for file in config.files.values() for name in file]
        raise DataError(
            root,
            f"{config.title} was not found: expected {', '.join(names)}",
            hint="give the folder that contains these files",
        )
    return found


def _find_files(root: Path, name: str, *, whole: bool) -> list[Path]:
    """Find the files of a data set at the configured path, else in the first subfolder."""
    fits = Path.is_file if whole else Path.is_dir
    found = [root / name]
    for depth in range(_DEEPEST + 1):
        if found := [path for path in found if fits(path)]:
            break
        found = sorted(root.glob("*/" * depth + name))
    return [path for path in found if fits(path) and path.parent == found[0].parent]


def name_files(root: Path, paths: Sequence[Path]) -> dict[Path, str]:
    """Return the name of each file in the ids of its rows: with its folder if another is equal."""
    same = Counter(path.stem for path in dict.fromkeys(paths))
    return {
        path: path.stem
        if same[path.stem] == 1
        else path.relative_to(root).with_suffix("").as_posix()
        for path in paths
    }


class ImageFinder:
    """Finds images by name; the folder of the last one is tried first."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._last: Path | None = None

    def find(self, name: str, beside: Path) -> Path | None:
        """Return the path of a meme's image: in the given folder, else in the usual places."""
        if not name:
            return None
        given = self._source.images
        folders = dict.fromkeys((self._source.root, beside))
        roots = [given] if given else [f / place for f in folders for place in _IMAGES]
        if self._last in roots:
            roots = [self._last, *(root for root in roots if root != self._last)]
        # The whole name first: images of several splits may have equal last parts.
        for relative in dict.fromkeys((name, Path(name).name)):
            for root in roots:
                path = inside(root, relative)
                if path.is_file():
                    self._last = root
                    return path
        return None
