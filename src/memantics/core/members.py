"""Images inside Parquet files and tar archives, read on demand and never unpacked.

Such an image has a path below its file, such as ``train.parquet/@17/image/cat.png`` (row 17, column
``image``) or ``shard.tar/@1536+20480/cat.png`` (offset and size). No such path exists on disk, so
``images.read_bytes`` reads it with ``read_member``.
"""

from __future__ import annotations

import re
import tarfile
import threading
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import orjson
from pydantic import JsonValue

from memantics.core.errors import DataError, need_packages
from memantics.core.files import LARGEST_STREAM, check_regular, open_regular

if TYPE_CHECKING:
    import pyarrow.parquet as pq

BYTES = ".bytes"  # the ending of the column that says where the bytes of an image are
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp"})
_PLACE = re.compile(r"@(\d+)(?:\+(\d+))?")
# Rows that are decoded at once, since an image may have megabytes.
_ROWS = 16
_LONGEST = 20 << 20
_TAR_ERRORS = (tarfile.TarError, ValueError, OverflowError, LookupError, RecursionError, OSError)


def name_cell(row: int, column: str, name: str) -> str:
    """Return the path of an image in a row of a Parquet file, relative to the file.

    >>> name_cell(17, "image", "memes/cat.png"), name_cell(3, "image", "")
    ('@17/image/cat.png', '@3/image/3')
    """
    return f"@{row}/{quote(column, safe='')}/{PurePosixPath(name).name or row}"


def is_member(place: str) -> bool:
    """Return whether a place is that of an image inside a file, not a path that leaves the file.

    >>> is_member("@17/image/cat.png"), is_member("@1536+20480/cat.png"), is_member("/etc/passwd")
    (True, True, False)
    """
    parts = place.split("/")
    sized = re.fullmatch(r"@\d+\+\d+", parts[0]) is not None
    return (
        len(parts) == (2 if sized else 3)
        and _PLACE.fullmatch(parts[0]) is not None
        and not {"", ".", ".."} & set(parts)
        and "\0" not in place
    )


def read_member(path: Path, limit: int = _LONGEST) -> bytes | None:
    """Return the bytes of an image in a Parquet file or tar archive; None for other paths."""
    for parts, container in ((3, path.parent.parent.parent), (2, path.parent.parent)):
        place = _PLACE.fullmatch(path.parts[-parts]) if len(path.parts) > parts else None
        if place is None or not container.is_file():
            continue
        if parts == 2 and place[2]:
            return _read_span(container, int(place[1]), int(place[2]), limit)
        if parts == 3 and not place[2]:
            column = unquote(path.parts[-2])
            data = _open_images(container, _stamp(container)).read(int(place[1]), column)
            if len(data) > limit:
                raise OSError(27, f"more than {limit:,} bytes", str(path))
            return data
    return None


def _stamp(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns


def _read_span(archive: Path, offset: int, size: int, limit: int) -> bytes:
    """Read a member of a tar archive; its header must still precede it."""
    if size > limit:
        raise OSError(27, f"{size:,} bytes are more than the limit of {limit:,}", str(archive))
    with open_regular(archive) as file:
        file.seek(max(0, offset - tarfile.BLOCKSIZE))
        header, data = file.read(tarfile.BLOCKSIZE), file.read(size)
    try:
        known = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape").size == size
    except tarfile.TarError:
        known = False
    if not known or len(data) < size:
        raise OSError(22, "the archive was changed: register it again", str(archive))
    return data


class _Images:
    """The embedded images of one Parquet file, in batches of a few rows.

    Reading forward continues in the open row group; reading backward starts the row group again.
    """

    def __init__(self, path: Path) -> None:
        self._file = open_parquet(path)
        self._path, self._lock = path, threading.Lock()
        groups = range(self._file.num_row_groups)
        self._counts = [self._file.metadata.row_group(group).num_rows for group in groups]
        self._column, self._group, self._next = "", -1, 0
        self._batches: Iterator[object] = iter(())
        self._kept: dict[int, list[bytes | None]] = {}

    def read(self, row: int, column: str) -> bytes:
        """Return the bytes of one cell."""
        with self._lock:
            first = row - row % _ROWS
            try:
                data = self._find(row, column)
            except OSError:
                raise
            except Exception as error:  # pyarrow raises its own errors for damaged pages
                raise OSError(22, f"the row is damaged: {error}"[:120], str(self._path)) from error
            if data is None:
                raise FileNotFoundError(2, "the row has no image", f"{self._path} row {first}")
            return data

    def _find(self, row: int, column: str) -> bytes | None:
        group, place = 0, row
        while group < len(self._counts) and place >= self._counts[group]:
            place -= self._counts[group]
            group += 1
        if group == len(self._counts):
            raise OSError(22, "the file has fewer rows: register it again", str(self._path))
        start = place - place % _ROWS
        if (column, group) != (self._column, self._group) or (
            start < self._next and start not in self._kept
        ):
            self._column, self._group, self._next, self._kept = column, group, 0, {}
            self._batches = self._file.iter_batches(
                _ROWS, row_groups=[group], columns=[self._leaf(column)], use_threads=False
            )
        while start not in self._kept:
            batch = next(self._batches)
            cells = batch.column(0)  # type: ignore[attr-defined]
            cells = (
                cells.field("bytes")
                if hasattr(cells.type, "num_fields") and (cells.type.num_fields)
                else cells
            )
            self._kept[self._next] = cells.to_pylist()
            self._next += _ROWS
            while len(self._kept) > 4:  # workers ask for rows that are close to each other
                del self._kept[next(iter(self._kept))]
        return self._kept[start][place - start]

    def _leaf(self, column: str) -> str:
        leaves = list_leaves(self._file)
        return column + BYTES if column + BYTES in leaves else column


@lru_cache(maxsize=4)
def _open_images(path: Path, _stamp: tuple[int, int]) -> _Images:
    return _Images(path)


def open_parquet(path: Path) -> pq.ParquetFile:
    """Open a Parquet file so that columns are read in pieces, not as a whole."""
    need_packages("Parquet tables", "parquet", "pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        check_regular(path)
        return pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 18)
    except (pa.ArrowException, OSError) as error:
        raise DataError(path.name, f"is not a valid Parquet file: {error}"[:200]) from error


def list_leaves(file: pq.ParquetFile) -> list[str]:
    """Return the paths of all columns of a Parquet file, such as ``image.bytes``."""
    return [file.schema.column(place).path for place in range(len(file.schema))]


def read_samples(path: Path) -> Iterator[tuple[int, JsonValue]]:
    """Yield the samples of a tar archive (WebDataset), numbered from 1.

    Files with one name before the first dot are a sample. A ``.json`` gives columns, a ``.txt`` the
    column ``text``, other small files a column with their ending. The image is named in the column
    ``image``; ``image.bytes`` says where it is.
    """
    try:
        check_regular(path, LARGEST_STREAM)
        archive = tarfile.open(path, "r:")  # noqa: SIM115 - closed below, also when not exhausted
    except _TAR_ERRORS as error:
        raise DataError(
            path.name, f"is not a valid tar archive: {error}", hint="download it again"
        ) from error
    with archive:
        number, key, sample = 0, "", dict[str, JsonValue]()
        for member in _walk(archive, path):
            name = PurePosixPath(member.name)
            stem, _, ending = name.name.partition(".")
            if not stem or not member.isfile():
                continue
            if (found := (name.parent / stem).as_posix()) != key:
                if sample:
                    number += 1
                    yield number, sample
                key, sample = found, {"__key__": found}
            _add_member(sample, archive, member, ending.lower(), path)
        if sample:
            yield number + 1, sample


def _walk(archive: tarfile.TarFile, path: Path) -> Iterator[tarfile.TarInfo]:
    """Yield the members of an archive; raise an error for a truncated or damaged one."""
    count = 0
    while True:
        try:
            member = archive.next()
            held = archive.fileobj
            if member is None and held is not None:
                held.seek(archive.offset)
                if any(held.read(tarfile.BLOCKSIZE)):
                    raise tarfile.ReadError("damaged header")
            elif member is not None and not (
                0 <= member.size <= path.stat().st_size - member.offset_data
            ):
                raise tarfile.ReadError("the archive is not complete")
        except _TAR_ERRORS as error:
            raise DataError(
                path.name,
                f"is truncated or damaged after {count:,} files",
                hint="download it again",
            ) from error
        archive.members = []  # type: ignore[attr-defined]  # tarfile keeps every header otherwise
        if member is None:
            return
        count += 1
        yield member


def _add_member(
    sample: dict[str, JsonValue],
    archive: tarfile.TarFile,
    member: tarfile.TarInfo,
    ending: str,
    path: Path,
) -> None:
    kind = f".{ending.rpartition('.')[2]}"
    if kind in SUFFIXES:
        name = PurePosixPath(member.name)
        sample["image"] = name.name
        sample["image" + BYTES] = f"@{member.offset_data}+{member.size}/{name.name}"
        return
    if member.size > 1 << 20:
        return
    held = archive.extractfile(member)
    body = held.read() if held else b""
    if kind != ".json":
        sample["text" if kind == ".txt" else ending] = body.decode("utf-8", "replace").strip()
        return
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        problem = f"{member.name} is not valid JSON"
        raise DataError(path.name, problem, hint="repair the archive") from error
    if not isinstance(fields, dict):
        raise DataError(path.name, f"{member.name} is not a JSON object", hint="repair it")
    sample.update(fields)


def read_class_names(path: Path, column: str) -> tuple[str, ...]:
    """Return the names of a column's numbered classes, as Hugging Face writes them in a file."""
    facts = (open_parquet(path).schema_arrow.metadata or {}).get(b"huggingface")
    try:
        features = orjson.loads(facts)["info"]["features"] if facts else {}
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return ()
    feature = features.get(column) if isinstance(features, dict) else None
    names = feature.get("names") if isinstance(feature, dict) else None
    return tuple(map(str, names)) if isinstance(names, list) else ()
