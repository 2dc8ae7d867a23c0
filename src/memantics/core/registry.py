"""The user's registered dataset releases and published benchmarks, stored in small JSON files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from memantics.core.data import Source
from memantics.core.errors import InputError, StoreError
from memantics.core.files import in_turn, read_regular, replace_file

# The home folder contains the registry of dataset releases and the answer cache.


def home() -> Path:
    """Return the Memantics home folder: ``$MEMANTICS_HOME``, else ``~/.memantics``."""
    return Path(os.environ.get("MEMANTICS_HOME") or Path.home() / ".memantics").expanduser()


@dataclass(frozen=True, slots=True)
class Registered:
    """One registered dataset release: its folder, its content and the date of registration."""

    name: str
    root: Path
    images: Path | None
    records: int
    checksum: str
    added: str

    @property
    def source(self) -> Source:
        """The data folder in the form that the benchmark's reader opens."""
        return Source("release", self.root, self.images)


Table = TypeVar("Table")
_TABLE = TypeAdapter(dict[str, Registered])
_SHELF = TypeAdapter(tuple[Path, ...])


def read_registry() -> dict[str, Registered]:
    """Return all registered dataset releases by benchmark name."""
    return _load(_TABLE, "releases.json", "run 'memantics data add' again") or {}


def write_registered(entry: Registered) -> None:
    """Add or replace one dataset release in the registry."""
    with in_turn(home()):
        _store("releases.json", read_registry() | {entry.name: entry})


def read_shelf() -> tuple[Path, ...]:
    """Return the folders of benchmarks published on this machine; skip deleted ones."""
    folders = _load(_SHELF, "benchmarks.json", "publish again") or ()
    return tuple(path for path in folders if (path / "card.toml").is_file())


def add_to_shelf(folder: Path) -> None:
    """Register a published benchmark so that ``memantics run`` finds it by name."""
    with in_turn(home()):
        _store("benchmarks.json", list(dict.fromkeys((*read_shelf(), folder.resolve()))))


def _load(adapter: TypeAdapter[Table], name: str, remedy: str) -> Table | None:
    path = home() / name
    try:
        return adapter.validate_json(read_regular(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(
            f"registry {path} cannot be read: {error.strerror}",
            hint="set MEMANTICS_HOME to a folder that you can read and write",
        ) from error
    except ValidationError as error:
        raise StoreError(
            f"registry {path} cannot be read: {str(error).splitlines()[0]}",
            hint=f"remove that file and {remedy}",
        ) from error


def _store(name: str, table: object) -> None:
    body = orjson.dumps(table, default=str, option=orjson.OPT_INDENT_2)
    replace_file(home() / name, body, "registry", "MEMANTICS_HOME")


def find_registered(name: str) -> Registered:
    """Return the registered release of a benchmark; raise an ``InputError`` if there is none."""
    entry = read_registry().get(name)
    if entry is None:
        raise InputError(
            f"no release of {name} is registered",
            hint=f"register one with 'memantics data add {name} DIR', or use --data sample",
        )
    if not entry.root.is_dir():
        raise InputError(
            f"the release of {name} is no longer at {entry.root}",
            hint=f"register its new folder with 'memantics data add {name} DIR'",
        )
    return entry


def find_places(*more: Path) -> tuple[Path, ...]:
    """Return the folders whose images may be shown: registered, published, built-in and given ones.

    A run folder may come from anybody, and its items name images by path. Web pages therefore show
    only images below the returned folders.
    """
    named = os.environ.get("MEMANTICS_BENCHMARKS", "").split(os.pathsep)
    found = [home(), Path(__file__).parent.parent, *read_shelf(), *map(Path, filter(None, named))]
    for release in read_registry().values():
        found += [release.root, *([release.images] if release.images else [])]
    return tuple(dict.fromkeys(place.resolve() for place in (*found, *more)))


def find_run_places(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Return ``find_places`` plus the current folder and the parents of these run folders."""
    return find_places(Path.cwd(), *(folder.resolve().parent for folder in folders))


def is_inside(path: Path, places: Iterable[Path]) -> bool:
    """Return whether a file is below one of the folders after resolving symbolic links.

    >>> is_inside(Path("/a/b/../c/x.png"), [Path("/a/c")]), is_inside(Path("/ab"), [Path("/a")])
    (True, False)
    """
    try:
        real = path.resolve()
    except (OSError, ValueError, RuntimeError):
        return False
    return any(real.is_relative_to(place) for place in places)
