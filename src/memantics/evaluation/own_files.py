"""The files of a data set without a dataset config: tables by split, or class folders."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from memantics.benchmarks.dataset_files import CLASS_FOLDERS, is_image, read_split
from memantics.core.errors import InputError
from memantics.core.tables import DATA_ENDINGS

_NO_TABLES = {"dataset_infos.json", "package.json", "state.json", "dataset_info.json"}
_ORDER = ("train", "validation", "test", "")
_DEEPEST, _MOST_FILES = 5, 20_000
_SHOWN = 5  # folders that an error names


@dataclass(frozen=True, slots=True)
class FoundSet:
    """The tables of one data set: its folder, and the files of each split ('' if not named).

    ``unused`` are tables beside those of splits, such as a list of sources. With the ``form`` of
    class folders, the files are folders of images; ``unlabelled`` are the names of those that are
    no label.
    """

    root: Path
    files: Mapping[str, tuple[Path, ...]]
    unused: tuple[Path, ...] = ()
    form: str = ""
    unlabelled: tuple[str, ...] = ()

    def list_names(self, split: str) -> list[str]:
        """Return the files of a split relative to the folder."""
        return [path.relative_to(self.root).as_posix() for path in self.files[split]]


def is_table(word: str) -> bool:
    """Whether the first argument of ``data add`` is a table rather than a benchmark name."""
    return Path(word).suffix.lower() in DATA_ENDINGS and Path(word).is_file()


def name_split(path: Path, root: Path) -> tuple[str, Path]:
    """Return the split that a file is named after ('' for none), and the folder of its data set.

    >>> name_split(Path("/d/en/harm/val-00000-of-00002.parquet"), Path("/d"))
    ('validation', PosixPath('/d/en/harm'))
    >>> name_split(Path("/d/data/train/metadata.csv"), Path("/d"))
    ('train', PosixPath('/d'))
    """
    folder = path.parent
    split = read_split(path.stem)
    while folder != root and (read_split(folder.name, whole=True) or folder.name == "data"):
        split = split or read_split(folder.name, whole=True)
        folder = folder.parent
    return split, folder


def find_sets(folder: Path) -> list[FoundSet]:
    """Find the data sets below a folder: tables that belong together, by folder and split."""
    found: dict[Path, dict[str, list[Path]]] = {}
    count = 0
    for place, folders, names in os.walk(folder):
        depth = len(Path(place).relative_to(folder).parts)
        folders[:] = sorted(n for n in folders if depth < _DEEPEST and not n.startswith("."))
        for name in sorted(names):
            path = Path(place, name)
            if path.suffix.lower() not in DATA_ENDINGS or name in _NO_TABLES or name[0] == ".":
                continue
            count += 1
            if count > _MOST_FILES:
                raise InputError(f"{folder} contains more than {_MOST_FILES:,} tables")
            split, root = name_split(path, folder)
            found.setdefault(root, {}).setdefault(split, []).append(path)
    return [_choose(root, splits) for root, splits in found.items()]


def _choose(root: Path, splits: dict[str, list[Path]]) -> FoundSet:
    """Return the files of each split; raise an error if several forms of a split exist."""
    unused = splits.pop("", []) if len(splits) > 1 else []
    for split, paths in splits.items():
        endings = sorted({path.suffix.lower() for path in paths})
        if len(endings) > 1 or (not split and len(paths) > 1 and ".tar" not in endings):
            named = ", ".join(path.name for path in paths[:5])
            told = f"the split {split}" if split else "the data"
            raise InputError(
                f"{root}: {told} could be any of {named}", hint="give the one file to use"
            )
    files = {split: tuple(splits[split]) for split in _ORDER if split in splits}
    return FoundSet(root, files, tuple(unused))


def make_name(text: str) -> str:
    """Return a name of a data set made from the name of a file or folder.

    >>> make_name("My memes"), make_name("en/Hateful-Memes")
    ('my_memes', 'en_hateful_memes')
    """
    return re.sub(r"[^a-z0-9_]+", "_", text.lower()).strip("_") or "table"


@dataclass(frozen=True, slots=True)
class _Place:
    """A folder with images: its path, its split ('' for none), and the other parts of the path.

    ``cut`` is the position of the split in the path.
    """

    path: tuple[str, ...]
    split: str
    rest: tuple[str, ...]
    cut: int


def find_class_folders(root: Path) -> FoundSet | None:
    """Find folders of images whose names are labels; None if a folder has no such layout.

    The split is the name of a folder above. Raises an error if the folders name only splits.
    """
    listed = [
        _read_place(Path(place).relative_to(root).parts)
        for place, names in _walk_folders(root)
        if any(map(is_image, names))
    ]
    # Beside folders of splits, others are not read, nor are images beside the folders.
    split = any(place.split for place in listed)
    named = [place for place in listed if (place.split if split else place.path)]
    if not named:
        return None
    left = [place.path for place in listed if place not in named]
    depth = _count_shared([place.rest for place in named])
    labelled = [place for place in named if len(place.rest) > depth]
    if not labelled or any(place.split and depth < place.cut for place in labelled):
        if not split:
            return None
        names = ", ".join("/".join(place.path) for place in named[:_SHOWN])
        raise InputError(
            f"{root}: the folders {names} name splits, and no folder below names a label",
            hint="sort the images into SPLIT/LABEL folders, or add a metadata.csv with labels",
        )
    files: dict[str, dict[Path, None]] = {}
    for place in labelled:
        # The folder that the label names, with all folders below it.
        end = depth + 1 + (place.cut <= depth)
        files.setdefault(place.split, {})[root.joinpath(*place.path[:end])] = None
    bare = [place for place in named if place not in labelled]
    left += [place.path for place in bare if place.split in files]
    bare = [place for place in bare if place.split not in files]
    for place in bare:
        files.setdefault(place.split, {})[root.joinpath(*place.path)] = None
    kept = {name: tuple(files[name]) for name in _ORDER if name in files}
    unused = tuple(root.joinpath(*path) for path in left)
    unlabelled = tuple(dict.fromkeys(place.path[-1] for place in bare))
    return FoundSet(root, kept, unused, CLASS_FOLDERS, unlabelled)


def _count_shared(paths: Sequence[tuple[str, ...]]) -> int:
    """Return the number of leading folders that all paths have in common.

    >>> _count_shared([("a", "b"), ("a", "c", "d")]), _count_shared([("a",), ()])
    (1, 0)
    """
    parts = zip(*paths, strict=False)  # to the end of the shortest
    return len(list(takewhile(lambda some: len(set(some)) == 1, parts)))


def _read_place(path: tuple[str, ...]) -> _Place:
    for cut, part in enumerate(path):
        if split := read_split(part, whole=True):
            return _Place(path, split, path[:cut] + path[cut + 1 :], cut)
    return _Place(path, "", path, len(path))


def _walk_folders(root: Path) -> Iterator[tuple[str, list[str]]]:
    for place, folders, names in os.walk(root):
        depth = len(Path(place).relative_to(root).parts)
        folders[:] = sorted(n for n in folders if depth < _DEEPEST and not n.startswith("."))
        yield place, names
