"""Sources of memes: image files, folders, tables, tar shards and standard input.

Sources are streamed: each meme becomes a reference, and workers read the bytes.
"""

from __future__ import annotations

import os
import re
import tarfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import IO

import orjson

from memantics.core.errors import DataError, InputError
from memantics.core.files import check_regular, open_regular
from memantics.core.ids import escape_id, find_id_fault, normalise_id
from memantics.core.memes import MEMES, SUFFIXES
from memantics.moderation.columns import TableColumns
from memantics.moderation.scale.records import Ref
from memantics.moderation.scale.tables import (
    LINES,
    LONGEST_ID,
    LONGEST_LINE,
    PARQUET,
    TABLES,
    count_rows,
    find_columns,
    find_format,
    read_lines,
    read_table,
    show_name,
    stamp_file,
)

__all__ = ["STDIN", "count_ahead", "name_sources", "read_sources"]
# Memes in tar archives, by the convention of WebDataset.

# Errors that tarfile raises for invalid headers.
_DAMAGED = (tarfile.TarError, ValueError, OverflowError, LookupError, RecursionError)
_FARTHEST = 2**62
_CUT_OFF = "the archive is truncated or damaged: the rest is skipped; copy it again"


@dataclass(slots=True)
class _Sample:
    """Files of an archive with the same name before the first dot."""

    key: str
    id: str = ""
    text: str | None = None
    language: str = ""
    fault: str = ""
    images: list[tuple[str, tarfile.TarInfo]] = field(default_factory=list)


def read_tar(path: Path, columns: TableColumns) -> Iterator[Ref]:
    """Yield a reference for each image of a sample, or for the text of a sample without images."""
    try:
        check_regular(path)
        archive = tarfile.open(path, "r:")  # noqa: SIM115 - closed below, also when not exhausted
    except (*_DAMAGED, OSError) as error:
        raise DataError(
            path, f"is not a valid tar archive: {error}", hint="create it again"
        ) from error
    with archive:
        stamp = stamp_file(path)
        sample: _Sample | None = None
        damaged = _Sample(show_name(path.name), fault=_CUT_OFF)
        for member in _walk(archive):
            if member is None:
                yield from _list_refs(sample, path, stamp) if sample else ()
                sample = damaged
                break
            name = PurePosixPath(member.name)
            stem, _, ending = name.name.partition(".")
            if not stem:  # hidden files, such as those that macOS adds
                continue
            key = show_name((name.parent / stem).as_posix())
            if sample is not None and sample.key != key:
                yield from _list_refs(sample, path, stamp)
                sample = None
            sample = sample or _Sample(key)
            _add_member(sample, archive, member, ending, columns)
        if sample is not None:
            yield from _list_refs(sample, path, stamp)


def _walk(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo | None]:
    """Yield the files of an archive; a final None if it is truncated or damaged."""
    while True:
        try:
            member = archive.next()
        except tarfile.TarError:
            member = None
        except _DAMAGED:
            yield None
            return
        archive.members = []  # type: ignore[attr-defined]  # otherwise tarfile keeps every header in memory
        if member is None and _is_end(archive):
            return
        # A member with a negative size would make the reader go back and loop forever.
        if member is None or not (
            0 <= member.size < _FARTHEST and member.offset < archive.offset < _FARTHEST
        ):
            yield None
            return
        if not member.isdir():
            yield member


def _is_end(archive: tarfile.TarFile) -> bool:
    """Return whether only zeros or nothing follow, as at the end of an archive.

    tarfile also reports the end for a damaged header. A truncated member extends beyond the file,
    and reading it fails later.
    """
    held = archive.fileobj
    if held is None:
        return True
    held.seek(archive.offset)
    return not any(held.read(tarfile.BLOCKSIZE))


def _add_member(
    sample: _Sample,
    archive: tarfile.TarFile,
    member: tarfile.TarInfo,
    ending: str,
    columns: TableColumns,
) -> None:
    kind = ending.lower().rpartition(".")[2]  # ``input.png`` and ``mask.png`` are images, too
    if f".{kind}" in SUFFIXES and (not member.isfile() or member.issparse()):
        sample.fault = f"{show_name(member.name)} is stored as a link, a device or with holes"
    elif f".{kind}" in SUFFIXES:
        sample.images.append((ending, member))
    elif kind in ("txt", "json") and member.isfile() and member.size <= LONGEST_LINE:
        held = archive.extractfile(member)
        try:
            body = held.read() if held else b""
        except _DAMAGED:
            sample.fault = _CUT_OFF
            return
        if kind == "txt":
            said = body.decode("utf-8", "replace").strip()
            sample.text = said if sample.text is None else sample.text
        else:
            _add_fields(sample, body, member.name, columns)


def _add_fields(sample: _Sample, body: bytes, name: str, columns: TableColumns) -> None:
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError:
        sample.fault = f"{show_name(name)} is not valid JSON"
        return
    if not isinstance(fields, dict):
        return
    names = find_columns(fields, columns, Path(name), strict=False)
    given_id, text = fields.get(names.id), fields.get(names.text)
    language = fields.get("language")
    sample.id = "" if given_id is None else normalise_id(str(given_id))
    if sample.id and (fault := find_id_fault(sample.id, LONGEST_ID)):
        sample.fault = f"the id in {show_name(name)} {fault}; change the id"
    sample.text = text if isinstance(text, str) and text.strip() else sample.text
    sample.language = language if isinstance(language, str) else ""


def _list_refs(sample: _Sample, path: Path, stamp: str) -> Iterator[Ref]:
    ref = Ref(
        sample.id or sample.key,
        text=sample.text,
        language=sample.language,
        fault=sample.fault,
        apart="" if sample.id else f"{show_name(path)}/{sample.key}",
    )
    for ending, member in sample.images:
        place = replace(
            ref,
            kind="member",
            place=str(path),
            index=member.offset_data,
            size=member.size,
            stamp=stamp,
        )
        if len(sample.images) > 1:  # each image of a sample gets its own id
            tail = f".{show_name(ending)}"
            longer = f"{place.apart}{tail}" if place.apart else ""
            place = replace(place, id=place.id + tail, apart=longer)
        yield place
    if not sample.images:
        empty = ref.text is None and not ref.fault
        fault = f"{path.name} has neither an image nor a text for this sample"
        yield replace(ref, fault=fault) if empty else ref


STDIN = "-"
_PIPED = "standard input"
# Metadata files beside images, as ``collect`` and the Hugging Face ``imagefolder`` convention name
# them.
_LISTS = (MEMES, "metadata.jsonl", "metadata.csv", "metadata.parquet")
# Images without read permission are listed too; their rows then contain the error.
_PICTURES = SUFFIXES | {".avif", ".heic", ".heif", ".jfif", ".jxl", ".svg", ".tif", ".tiff"}
_LONGEST_TEXT = 25_000
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".tgz")
_ASIDE = re.compile(rb'"kept"\s*:\s*false')  # rejected by ``collect``


def read_sources(
    sources: Sequence[str | Path],
    columns: TableColumns | None = None,
    stdin: IO[bytes] | None = None,
) -> Iterator[Ref]:
    """Yield references to all memes of the sources, in order."""
    columns = columns or TableColumns()
    for source in sources:
        _check(source, stdin)  # check all sources first, since the last may be reached hours later
    for source in sources:
        if str(source) == STDIN and stdin is not None:
            yield from map(_bound, read_lines(stdin, Path.cwd() / _PIPED, columns))
        else:
            yield from map(_bound, _read_path(Path(source), columns))


def _bound(ref: Ref) -> Ref:
    """Make the id of a reference valid, and shorten its text, to bound memory."""
    if find_id_fault(ref.id, LONGEST_ID):
        ref = replace(ref, id=escape_id(ref.id, LONGEST_ID))
    if ref.text is not None and len(ref.text) > _LONGEST_TEXT:
        ref = replace(ref, text=ref.text[:_LONGEST_TEXT])
    return ref


def _check(source: str | Path, stdin: IO[bytes] | None) -> None:
    """Raise InputError if a source is missing or not supported."""
    path, ending = Path(source), Path(source).suffix.lower()
    if str(source) == STDIN:
        if stdin is None:
            raise InputError("standard input is not available", hint="give a file or folder")
    elif "://" in str(source):
        raise InputError(f"{source}: URLs are not supported", hint="download the data first")
    elif not path.exists():
        raise InputError(f"{path}: no such file or folder", hint="check the path")
    elif path.is_dir() or ending in _PICTURES or ending == ".tar" or find_format(path):
        return
    elif ending in _COMPRESSED:
        raise InputError(
            f"{path}: compressed archives are not supported",
            hint="decompress the archive; only tables may be .gz, .bz2 or .xz",
        )
    else:
        raise InputError(
            f"{path} is not a supported image, table or tar archive",
            hint=f"use {', '.join(sorted(SUFFIXES))}, {', '.join(TABLES)}, .tar or a folder",
        )


def name_sources(sources: Sequence[str | Path]) -> tuple[str, ...]:
    """Return the identity of each source: its absolute path, or ``-``."""
    return tuple(
        STDIN if str(source) == STDIN else show_name(Path(source).absolute()) for source in sources
    )


@contextmanager
def count_ahead(
    sources: Sequence[str | Path], columns: TableColumns | None = None
) -> Iterator[Callable[[], int | None]]:
    """Count the memes of the sources in a thread, for progress estimates.

    The yielded function returns None until counting is finished, and always for standard input.
    Errors in sources are ignored here; reading the source reports them.
    """
    ended = threading.Event()
    found: list[int] = []

    def count() -> None:
        with suppress(Exception):
            number = 0
            for some in _count_memes(sources, columns or TableColumns()):
                if ended.is_set():
                    return
                number += some
            found.append(number)

    if STDIN not in map(str, sources):
        threading.Thread(target=count, daemon=True).start()
    try:
        yield lambda: found[0] if found else None
    finally:
        ended.set()


def _count_memes(sources: Sequence[str | Path], columns: TableColumns) -> Iterator[int]:
    """Yield partial counts of memes; tables are counted without reading their rows."""
    for path in map(Path, sources):
        _check(path, None)
        if path.suffix.lower() == LINES and path.is_file():
            with open_regular(path) as lines:
                while line := lines.readline(LONGEST_LINE):
                    whole = line.endswith(b"\n") or len(line) < LONGEST_LINE
                    yield whole and not _ASIDE.search(line) and bool(line.strip())
        elif path.suffix.lower() == PARQUET and path.is_file():
            import pyarrow.parquet as pq

            check_regular(path)
            with pq.ParquetFile(path) as file:
                yield count_rows(file, path)
        else:
            yield from (1 for _ in _read_path(path, columns))


def _read_path(path: Path, columns: TableColumns) -> Iterator[Ref]:
    if path.is_dir():
        yield from _read_folder(path, columns)
    elif path.suffix.lower() == ".tar":
        yield from read_tar(path, columns)
    elif find_format(path):
        yield from read_table(path, columns)
    else:
        yield _find_file(path, path.name)


def _find_file(path: Path, name: str) -> Ref:
    place = str(path)
    return Ref(show_name(name), "file", place, stamp=stamp_file(place), apart=show_name(place))


def _read_folder(folder: Path, columns: TableColumns) -> Iterator[Ref]:
    """Read a published benchmark, a collected folder, dataset splits, or images and archives."""
    if (folder / "card.toml").is_file() and (folder / "data").is_dir():
        folder = folder / "data"
    for name in _LISTS:
        if (folder / name).is_file():
            yield from read_table(folder / name, columns)
            return
    found, passed = False, ""
    for base, folders, files in os.walk(folder):
        folders.sort()
        folders[:] = [name for name in folders if not name.startswith(".")]
        here = Path(base)
        listed = next((name for name in _LISTS if name in files), None)
        if listed and here != folder:
            folders.clear()
            found = True
            yield from _name_below(read_table(here / listed, columns), here.relative_to(folder))
            continue
        for name in sorted(name for name in files if not name.startswith(".")):
            path = here / name
            if path.suffix.lower() in _PICTURES:
                found = True
                yield _find_file(path, path.relative_to(folder).as_posix())
            elif path.suffix.lower() in (".tar", PARQUET):
                found = True
                yield from _read_path(path, columns)
            elif find_format(path) or path.suffix == ".arrow":
                passed = passed or show_name(path)
    if not found:
        raise DataError(folder, "has no image, Parquet table or archive", hint=_advise(passed))


def _advise(passed: str) -> str:
    """Suggest how to screen a folder that has only tables of other formats."""
    if passed.endswith(".arrow"):
        return "the folder was written by datasets.save_to_disk: export it with to_parquet"
    return f"give its tables as sources, such as {passed}" if passed else "check the path"


def _name_below(refs: Iterable[Ref], place: Path) -> Iterator[Ref]:
    """Prefix ids with the name of their split, so that they are unique."""
    return (replace(ref, id=f"{show_name(place)}/{ref.id}") for ref in refs)
