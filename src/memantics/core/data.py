"""Readers for benchmark data: checked JSON, JSON lines and TOML, checksums, paths, and split files.

Errors name the file, the row and the field. Paths that lead outside a data folder are rejected. A
split file assigns each meme to a part (train, dev, test). Memes of one group are always in the same
part. The split file stores a checksum of its ids and parts.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args

import orjson
from pydantic import BaseModel, JsonValue, ValidationError

from memantics.core.errors import DataError, InputError, first_fault, require_known
from memantics.core.files import (
    bounded_lines,
    open_regular,
    read_regular,
    read_regular_text,
    replace_file,
)
from memantics.core.records import Closed

Reproduction = Literal[
    "reproduced",
    "differs",
    "not compared",
    "computed from the paper",
    "not recomputable",
    "no reference",
]
DataKind = Literal["sample", "release"]
Shape = TypeVar("Shape", bound=BaseModel)
R = TypeVar("R")
GroupKind = Literal["template", "time", "source", "author", "text"]
GROUP_KINDS: tuple[GroupKind, ...] = get_args(GroupKind)
SplitPart = Literal["train", "dev", "test"]
PARTS: tuple[SplitPart, ...] = get_args(SplitPart)


@dataclass(frozen=True, slots=True)
class Source:
    """A folder with a benchmark's data, and the folder with its images (None: no images).

    ``published`` marks user data in the format of a benchmark family, as opposed to a copy of the
    official release. With ``unseen`` no image is shown to a model, so an item may name a missing
    one.
    """

    kind: DataKind
    root: Path
    images: Path | None = None
    published: bool = False
    unseen: bool = False

    @property
    def official(self) -> bool:
        """Whether the data are a copy of the official release, on which papers report scores."""
        return self.kind == "release" and not self.published


@dataclass(frozen=True, slots=True)
class Skip:
    """A row that a reader skipped on purpose, and the reason."""

    file: str
    row: str
    reason: str


@dataclass(frozen=True, slots=True)
class Found:
    """The content of a data folder.

    ``counts`` gives the number of records of each type (memes, questions, …). ``records`` is the
    count in the unit that the benchmark's dataset card uses. ``repairs`` counts known format errors
    that were repaired while reading. ``notes`` are sentences about missing data and its
    consequences. ``details`` are further facts for ``data stats --json``.
    """

    records: int
    counts: Mapping[str, int]
    files: tuple[str, ...]
    checksum: str
    images_found: int = 0
    images_expected: int = 0
    skips: tuple[Skip, ...] = ()
    repairs: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    details: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Statistic:
    """One statistic that a paper prints, computed again from the data.

    ``paper`` is the printed value. ``known`` is the value in the complete official release (None:
    the release does not contain it). ``value`` is the value in the user's copy of the data. The
    verdict is "not compared" if that copy is not the complete release.
    """

    key: str
    title: str
    paper: JsonValue
    known: JsonValue
    value: JsonValue
    verdict: Reproduction
    definition: str
    note: str = ""


def judge(value: JsonValue, paper: JsonValue, digits: int | None = None) -> Reproduction:
    """Compare a recomputed value with the paper's, rounded or truncated to the paper's digits.

    >>> judge(10.641, 10.6, digits=1), judge(1.8, 1.7, digits=1), judge(None, 4.76)
    ('reproduced', 'differs', 'not recomputable')
    """
    if value is None:
        return "not recomputable"
    return "reproduced" if match_digits(value, paper, digits) else "differs"


DigitMatch = Literal["", "exact", "rounded", "truncated"]


def match_digits(value: JsonValue, paper: JsonValue, digits: int | None = None) -> DigitMatch:
    """Return how a printed value follows from a value: rounded, truncated, or not at all ("").

    >>> match_digits(14.6597, 14.66, 2), match_digits(14.6597, 14.65, 2)
    ('rounded', 'truncated')
    >>> match_digits(14.6597, 14.64, 2), match_digits(3, 3)
    ('', 'exact')
    """
    numbers = isinstance(value, int | float) and isinstance(paper, int | float)
    if digits is None or not numbers:
        return "exact" if value == paper else ""
    assert isinstance(value, int | float) and isinstance(paper, int | float)  # noqa: PT018
    # A margin covers binary rounding errors.
    unit, margin = 10.0**-digits, 1e-9
    if abs(value - paper) <= 0.5 * unit + margin:
        return "rounded"
    cut = abs(value) - abs(paper)
    return "truncated" if value * paper >= 0 and 0 <= cut < unit - margin else ""


def read_json(path: Path) -> JsonValue:
    """Read a JSON file; a parse error names the line."""
    data = read_file(path)
    try:
        value: JsonValue = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise DataError(
            path.name, f"not valid JSON: {error}", hint="repair the file, or download it again"
        ) from error
    return value


def read_jsonl(path: Path) -> Iterable[tuple[int, JsonValue]]:
    """Yield the values of a JSON lines file with their line numbers from 1; skip blank lines."""
    try:
        with open_regular(path) as file:
            for number, line in enumerate(bounded_lines(file), 1):
                if not line.isspace():
                    yield number, _parse_line(line, path, number)
    except OSError as error:
        raise _unreadable(path, error) from error


def _parse_line(line: bytes, path: Path, number: int) -> JsonValue:
    try:
        value: JsonValue = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DataError(
            path.name, f"not valid JSON: {error}", row=number, hint="repair that line"
        ) from error
    return value


def conform(
    shape: type[Shape], value: JsonValue, where: object, row: int | str | None = None
) -> Shape:
    """Validate a record of a dataset release; an error names the file, the row and the field.

    >>> class Meme(BaseModel, extra="forbid"):
    ...     text: str
    >>> conform(Meme, {"text": "hi", "txt": "hi"}, "memes.json", row=7)
    Traceback (most recent call last):
    memantics.core.errors.DataError: memes.json: row 7: unknown field 'txt'
    """
    try:
        return shape.model_validate(value, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        problem = {
            "extra_forbidden": f"unknown field {place!r}",
            "missing": f"missing field {place!r}",
        }.get(first["type"], f"field {place!r}: {first['msg']}" if place else first["msg"])
        raise DataError(where, problem, row=row) from error


def read_records(shape: type[Shape], path: Path) -> Iterator[tuple[int, Shape]]:
    """Yield validated records of a JSON lines file, with line numbers from 1.

    The records equal those of ``conform`` over ``read_jsonl``. Parsing is faster, because no
    dictionary is built in between.
    """
    for number, line in read_record_lines(path):
        yield number, check_record(shape, line, path, number)


def read_record_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the non-blank lines of a file, with line numbers from 1."""
    try:
        with open_regular(path) as file:
            for number, line in enumerate(file, 1):
                if not line.isspace():
                    yield number, line
    except OSError as error:
        raise _unreadable(path, error) from error


def check_record(shape: type[Shape], line: bytes, path: Path, number: int) -> Shape:
    """Parse and validate one JSON line."""
    try:
        record: Shape = shape.__pydantic_validator__.validate_json(line, strict=True)
    except ValidationError:
        return conform(shape, _parse_line(line, path, number), path.name, number)
    return record


def find_file(root: Path, names: Sequence[str], release: str) -> Path:
    """Return the first of several candidate file names that exists below a folder.

    The candidates are needed because official releases differ in their folder layouts.
    """
    for name in names:
        if (root / name).is_file():
            return root / name
    raise DataError(
        root,
        f"not a {release} release: none of these files was found: {', '.join(names)}",
        hint=f"give the cloned repository of {release}, or the folder with {Path(names[0]).name}",
    )


def list_names(folder: Path | None) -> frozenset[str]:
    """Return the names in a folder; an empty set if the folder does not exist."""
    try:
        return frozenset(path.name for path in folder.iterdir()) if folder else frozenset()
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    except OSError as error:
        raise DataError(
            folder, f"cannot be read: {error.strerror}", hint="check its permissions"
        ) from error


def list_plain_files(folder: Path) -> frozenset[str]:
    """Return the names of regular files in a folder; symbolic links are excluded."""
    try:
        with os.scandir(folder) as entries:
            return frozenset(e.name for e in entries if e.is_file(follow_symlinks=False))
    except OSError:
        return frozenset()


def read_file(path: Path) -> bytes:
    """Return the content of a file; raise a ``DataError`` with the reason if it is unreadable."""
    try:
        return read_regular(path)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(path.name, f"cannot be read: {error.strerror}", hint="check the path")


def checksum(paths: Iterable[Path], root: Path) -> str:
    """Compute one SHA-256 over the names and contents of files, in sorted order.

    >>> len(checksum([], Path("."))) == 64
    True
    """
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(path.relative_to(root).as_posix().encode() + b"\0")
        with open_regular(path) as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


def checksum_rows(rows: Iterable[JsonValue]) -> str:
    """Compute one SHA-256 over the rows of a table that does not depend on their order.

    >>> checksum_rows([{"a": 1}, {"a": 2}]) == checksum_rows([{"a": 2}, {"a": 1}])
    True
    """
    digests = sorted(
        hashlib.sha256(orjson.dumps(row, option=orjson.OPT_SORT_KEYS)).digest() for row in rows
    )
    return hashlib.sha256(b"".join(digests)).hexdigest()


def inside(root: Path, name: str) -> Path:
    """Return the path of ``name`` below ``root``; reject a name that points outside ``root``.

    >>> inside(Path("/data"), "a/b.png").as_posix()
    '/data/a/b.png'
    >>> inside(Path("/data"), "../etc/passwd")
    Traceback (most recent call last):
    memantics.core.errors.DataError: ../etc/passwd: points outside its folder; use a path in it
    """
    path = root / name
    if not name or "\0" in name or not (_stays(root, path) or _resolves(root, path)):
        raise DataError(
            name or "(empty name)", "points outside its folder", hint="use a path in it"
        )
    return path


def _resolves(root: Path, path: Path) -> bool:
    # ``Path.resolve`` is not used: it raises RuntimeError for a symbolic link to itself.
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def _stays(root: Path, path: Path) -> bool:
    """Return whether a regular file is below the root, resolving each folder only once."""
    folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100 - hot, plain
    if name in ("", ".", "..") or ".." in path.parts or os.path.islink(path):  # noqa: PTH114
        return False
    top = _find_real(os.path.abspath(root))  # noqa: PTH100
    return f"{_find_real(folder)}/".startswith(f"{top.rstrip('/')}/")


@lru_cache(maxsize=256)
def _find_real(folder: str) -> str:
    return os.path.realpath(folder)


def open_once(reader: Callable[[Source], R], source: Source) -> R:
    """Read a data folder with a reader function and cache the result for all tasks of a run."""
    return cast("R", _open(reader, source))


@lru_cache(maxsize=8)
def _open(reader: Callable[[Source], object], source: Source) -> object:
    return reader(source)


def note_gaps(images: int, memes: int, folder: Path | None, get_images: str) -> Iterator[str]:
    """Yield sentences about missing images; ``get_images`` explains how to obtain them."""
    if not images:
        yield f"Images are not in this copy: tasks that need them cannot run. {get_images}"
    elif images < memes:
        yield f"{memes - images:,} memes have no image in {folder or 'this copy'}."


def note_part(source: Source, memes: int, complete: int) -> Iterator[str]:
    """Yield a sentence if this copy of a release is incomplete."""
    if source.official and memes < complete:
        yield (
            f"This copy holds {memes:,} of the release's {complete:,} memes, so its counts differ "
            "from the paper's."
        )


def load_toml(text: str) -> dict[str, Any]:
    """Parse TOML; raise ``TOMLDecodeError`` for every kind of invalid input.

    >>> load_toml("a = 1")
    {'a': 1}
    >>> load_toml("a = " + "[" * 100_000)
    Traceback (most recent call last):
    tomllib.TOMLDecodeError: nested too deeply
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError as error:
        raise tomllib.TOMLDecodeError("nested too deeply") from error
    except ValueError as error:  # Python rejects integers with thousands of digits.
        raise tomllib.TOMLDecodeError(str(error)) from error


def read_toml(path: Path, record: type[Shape], form: str, see: str) -> Shape:
    """Read a UTF-8 TOML file into a record.

    ``form`` is the hint that an error shows for a syntax error, and ``see`` the one for an invalid
    field.
    """
    try:
        return record.model_validate(load_toml(read_regular_text(path)))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(path, str(error), hint=form) from error
    except ValidationError as error:
        raise DataError(path, first_fault(error), hint=see) from error


def toml_beside(file: str, name: str) -> dict[str, Any]:
    """Read the TOML file ``name`` in the folder of the module ``file``."""
    return tomllib.loads((Path(file).parent / name).read_text(encoding="utf-8"))


def dump_json(value: object) -> str:
    """Format a value as indented JSON with a stable layout."""
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


class SplitRow(Closed):
    """One meme of a split: its part, its cross-validation fold and its group.

    All memes of a group are in the same part.
    """

    id: str
    part: SplitPart
    fold: int
    group: str


class SplitFile(Closed):
    """A split of a data set into train, dev and test.

    ``data`` is NAME/LABEL. ``by`` is the property that defines a group (such as text or template).
    ``checksum`` is the hash of ids and parts, ``data_checksum`` the hash of the data.
    """

    kind: Literal["memantics split"] = "memantics split"
    version: Literal[1] = 1
    data: str
    data_checksum: str
    by: GroupKind
    checksum: str
    rows: list[SplitRow]

    def list_ids(self, part: str) -> list[str]:
        """Return the ids of the memes in a part, or in ``all`` parts."""
        require_known("part of a split", part, (*PARTS, "all"))
        return [row.id for row in self.rows if part in (row.part, "all")]

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of memes in each part."""
        return {part: len(self.list_ids(part)) for part in PARTS}

    def save(self, path: Path) -> Path:
        """Write the split as JSON and return the path of the file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        body = dump_json(self.model_dump(mode="json"))
        replace_file(path, body.encode(), "split")
        return path


def sum_split(parts: Iterable[tuple[str, str]]) -> str:
    """Compute the SHA-256 of a split over sorted lines ``ID<TAB>PART``, each ended by a line feed.

    >>> sum_split([("b", "test"), ("a", "train")]) == sum_split([("a", "train"), ("b", "test")])
    True
    """
    lines = sorted(f"{name}\t{part}\n" for name, part in parts)
    return hashlib.sha256("".join(lines).encode(errors="replace")).hexdigest()


def read_split(path: Path) -> SplitFile:
    """Read a split file; reject it if the checksum does not match the rows."""
    if not path.is_file():
        raise InputError(
            f"no such file: {path}", hint="create one with 'memantics audit NAME --resplit text'"
        )
    found = conform(SplitFile, read_json(path), path.name)
    if sum_split((row.id, row.part) for row in found.rows) != found.checksum:
        raise DataError(path, "the checksum does not match the rows", hint="create the split again")
    return found


def cut_split(split: str) -> tuple[tuple[SplitFile, str] | None, str]:
    """Parse ``--split``: ``FILE.json:PART`` is a part of a split file; other values name a split.

    For a split file the second returned value is ``all``: all data are read, and the part is
    selected afterwards.

    >>> cut_split("train")
    (None, 'train')
    """
    place, colon, part = split.rpartition(":")
    if not colon or not place.endswith(".json"):
        return None, split
    found = read_split(Path(place))
    found.list_ids(part)
    return (found, part), "all"
