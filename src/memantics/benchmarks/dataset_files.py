"""Files of data sets: tables, class folders, the rows of both, and images by their names.

A class folder contains images, and its name is their label: the layout of torchvision's
``ImageFolder`` and of Hugging Face's ``imagefolder`` without metadata.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from memantics.benchmarks.dataset_config import DatasetConfig
from memantics.core.data import Source, checksum, inside
from memantics.core.errors import DataError
from memantics.core.members import SUFFIXES
from memantics.core.tables import TableRow, read_rows

CLASS_FOLDERS = "class folders"  # the ``format`` of a dataset config
# The columns of a class folder: the path of an image from the data folder, and its label.
CLASS_IMAGE, CLASS_LABEL = "image", "label"
_IMAGES = (".", "images", "Images", "img", "memes", "Labelled Images")
# Depth below the given folder at which data files and images of a clone are searched.
_DEEPEST = 3
_LONGEST_NAME = 1024
# A data URL, and the first bytes of PNG, JPEG, GIF and WebP in base64.
_ENCODED = ("data:", "iVBORw0KGgo", "/9j/4", "R0lGOD", "UklGR")


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
    return tuple(dict.fromkeys(found))


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


_WORDS = {
    "train": ("train", "training", "trainval", "训练", "训练集"),
    "validation": (
        *("val", "valid", "validation", "dev", "development"),
        *("验证", "验证集", "开发集"),
    ),
    "test": ("test", "testing", "测试", "测试集"),
}
_SPLIT_OF = {word: split for split, words in _WORDS.items() for word in words}


def read_split(name: str, *, whole: bool = False) -> str:
    """Return the split that a name means; '' if it means none.

    >>> read_split("memes_dev-1"), read_split("memes_dev", whole=True), read_split("Dev")
    ('validation', '', 'validation')
    >>> read_split("valImages")
    'validation'
    """
    name = name.strip()
    cut = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    words = [name.lower()] if whole else re.findall(r"[a-z]+|[\u4e00-\u9fff]+", cut)
    return next((_SPLIT_OF[word] for word in words if word in _SPLIT_OF), "")


def name_image_file(name: str) -> str:
    """Return the path that the name of an image means in a copy of the data; '' for no name.

    Of a URL, and of a path on another computer, only the name of the file counts. Images that are
    text (base64) have no name.

    >>> name_image_file("img/a.png"), name_image_file("https://x.example/m/a%20b.png?w=3")
    ('img/a.png', 'a b.png')
    >>> name_image_file("/home/me/a.png"), name_image_file("data:image/png;base64,iVBORw0")
    ('a.png', '')
    """
    if is_encoded(name) or "\0" in name:
        return ""
    if "://" in name:
        name = unquote(name.partition("://")[2].partition("?")[0].partition("#")[0])
    elif not PurePosixPath(name).is_absolute():
        return name
    return PurePosixPath(name).name


def is_encoded(name: str) -> bool:
    """Return whether a cell contains an image as text, rather than its name."""
    return name.startswith(_ENCODED) or len(name) > _LONGEST_NAME


class ImageFinder:
    """Finds images by name: in the usual folders, else in one named after the split.

    Such a folder is ``train_images`` or ``valImages``. Other folders are not searched, since images
    of several splits may have equal names. The folder of the last image is tried first.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._last: Path | None = None
        self._by_split: dict[str, list[Path]] | None = None

    def find(self, name: str, beside: Path, split: str = "") -> Path | None:
        """Return the path of a meme's image, or None."""
        name = name_image_file(name)
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
        return self._find_by_split(name, split)

    def _find_by_split(self, name: str, split: str) -> Path | None:
        if self._by_split is None:
            self._by_split = _list_split_folders(self._source.images or self._source.root)
        folders = self._by_split.get(read_split(split), [])
        holding = [folder for folder in folders if (folder / name).is_file()]
        return inside(holding[0], name) if len(holding) == 1 else None


def _list_split_folders(root: Path) -> dict[str, list[Path]]:
    """Return the folders of images below a folder that are named after a split, by split."""
    found: dict[str, list[Path]] = {}
    for place, folders, names in os.walk(root):
        depth = len(Path(place).relative_to(root).parts)
        folders[:] = sorted(n for n in folders if depth < _DEEPEST and not n.startswith("."))
        split = read_split(Path(place).name) if depth else ""
        if split and any(map(is_image, names)):
            found.setdefault(split, []).append(Path(place))
    return found
