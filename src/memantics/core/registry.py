"""What a user has registered: releases, and benchmarks built by the user; small JSON files."""

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
from memantics.core.files import in_turn, replace_file

# Where Memantics keeps what outlives a command: the registry of releases and the cache.


def home() -> Path:
    """``$MEMANTICS_HOME``, else ``~/.memantics``."""
    return Path(os.environ.get("MEMANTICS_HOME") or Path.home() / ".memantics").expanduser()


@dataclass(frozen=True, slots=True)
class Registered:
    """One release: where it is, what was found there and when."""

    name: str
    root: Path
    images: Path | None
    records: int
    checksum: str
    added: str

    @property
    def source(self) -> Source:
        """Where its reader begins."""
        return Source("release", self.root, self.images)


Table = TypeVar("Table")
_TABLE = TypeAdapter(dict[str, Registered])
_SHELF = TypeAdapter(tuple[Path, ...])


def read_registry() -> dict[str, Registered]:
    """All registered releases by benchmark name."""
    return _load(_TABLE, "releases.json", "run 'memantics data add' again") or {}


def write_registered(entry: Registered) -> None:
    """Add or replace one release."""
    with in_turn(home()):
        _store("releases.json", read_registry() | {entry.name: entry})


def read_shelf() -> tuple[Path, ...]:
    """Folders of benchmarks that were published on this machine; those that are gone stay out."""
    folders = _load(_SHELF, "benchmarks.json", "publish again") or ()
    return tuple(path for path in folders if (path / "card.toml").is_file())


def add_to_shelf(folder: Path) -> None:
    """Let ``memantics run`` find a published benchmark by its name."""
    with in_turn(home()):
        _store("benchmarks.json", list(dict.fromkeys((*read_shelf(), folder.resolve()))))


def _load(adapter: TypeAdapter[Table], name: str, remedy: str) -> Table | None:
    path = home() / name
    try:
        return adapter.validate_json(path.read_bytes())
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
    """The release of a benchmark, or what to do to have one."""
    entry = read_registry().get(name)
    if entry is None:
        raise InputError(
            f"no release of {name} is registered",
            hint=f"memantics data add {name} DIR, or use --data sample",
        )
    if not entry.root.is_dir():
        raise InputError(
            f"the release of {name} is no longer at {entry.root}",
            hint=f"memantics data add {name} DIR with its new place",
        )
    return entry


def find_places(*more: Path) -> tuple[Path, ...]:
    """The folders whose images belong to data: registered, published, ours, and those given.

    A run folder may come from anybody, and its items name images by path: pages show those below
    these folders, no other image of the machine.
    """
    named = os.environ.get("MEMANTICS_BENCHMARKS", "").split(os.pathsep)
    found = [home(), Path(__file__).parent.parent, *read_shelf(), *map(Path, filter(None, named))]
    for release in read_registry().values():
        found += [release.root, *([release.images] if release.images else [])]
    return tuple(dict.fromkeys(place.resolve() for place in (*found, *more)))


def find_run_places(folders: Iterable[Path]) -> tuple[Path, ...]:
    """The same for these run folders: what lies beside them and below the current folder too."""
    return find_places(Path.cwd(), *(folder.resolve().parent for folder in folders))


def is_inside(path: Path, places: Iterable[Path]) -> bool:
    """Whether a file lies below one of the folders, links followed.

    >>> is_inside(Path("/a/b/../c/x.png"), [Path("/a/c")]), is_inside(Path("/ab"), [Path("/a")])
    (True, False)
    """
    try:
        real = path.resolve()
    except (OSError, ValueError, RuntimeError):
        return False
    return any(real.is_relative_to(place) for place in places)
