"""Where memes come from: image files, folders, tables, tar shards, lists and standard input.

A source is walked, never held: each meme becomes a reference, and workers fetch the bytes.
"""

from __future__ import annotations

import csv
import os
import re
import tarfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import orjson

from memantics.core.data import inside
from memantics.core.errors import DataError, InputError, MemanticsError
from memantics.core.memes import MEMES, SUFFIXES
from memantics.scale.records import Ref

STDIN = "-"
TABLES = (".jsonl", ".csv", ".parquet")
# Beside images: what our own collections and the Hugging Face ``imagefolder`` convention name.
_LISTS = (MEMES, "metadata.jsonl", "metadata.csv", "metadata.parquet")
_IDS = ("id", "meme_id", "image_id", "__key__")
_IMAGES = ("image", "file_name", "image_path", "img", "path", "file", "jpg", "png")
_TEXTS = ("text", "caption", "ocr", "txt")
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".tgz")
_ASIDE = re.compile(rb'"kept"\s*:\s*false')  # what ``collect`` set aside
_LONGEST_LINE = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of tables, where they do not have one of the usual names."""

    id: str = ""
    image: str = ""
    text: str = ""


def read_sources(
    sources: Sequence[str | Path], columns: Columns | None = None, stdin: IO[bytes] | None = None
) -> Iterator[Ref]:
    """References to every meme of the sources, in order."""
    columns = columns or Columns()
    for source in sources:
        if str(source) == STDIN:
            if stdin is None:
                raise InputError("there is no standard input here", hint="name a file or folder")
            yield from _read_lines(stdin, "standard input", Path.cwd(), columns)
        else:
            yield from _read_path(Path(source), columns)


@contextmanager
def count_ahead(
    sources: Sequence[str | Path], columns: Columns | None = None
) -> Iterator[Callable[[], int | None]]:
    """Count the memes of the sources in a thread, so that progress can say how long it takes.

    The function gives None until all are counted, and always for standard input. Faults of a
    source are left to whoever walks it for its memes.
    """
    ended = threading.Event()
    found: list[int] = []

    def count() -> None:
        with suppress(MemanticsError, OSError, ValueError):
            number = 0
            for some in _count_memes(sources, columns or Columns()):
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


def _count_memes(sources: Sequence[str | Path], columns: Columns) -> Iterator[int]:
    """Numbers that add up to the memes of the sources; tables are counted without being read."""
    for path in map(Path, sources):
        if path.suffix.lower() == ".jsonl" and path.is_file():
            with path.open("rb") as lines:
                for line in lines:
                    yield not _ASIDE.search(line) and bool(line.strip())
        elif path.suffix.lower() == ".parquet" and path.is_file():
            import pyarrow.parquet as pq

            yield pq.ParquetFile(path).metadata.num_rows
        else:
            yield from (1 for _ in _read_path(path, columns))


def _read_path(path: Path, columns: Columns) -> Iterator[Ref]:
    if path.is_dir():
        yield from _read_folder(path, columns)
    elif not path.exists():
        raise InputError(f"{path}: no such file or folder", hint="check the path")
    elif path.suffix.lower() in SUFFIXES:
        yield Ref(path.name, "file", str(path))
    elif path.suffix.lower() == ".tar":
        yield from _read_tar(path)
    elif path.suffix.lower() in TABLES:
        yield from _read_table(path, columns)
    elif path.suffix.lower() in _COMPRESSED:
        raise InputError(
            f"{path}: compressed archives cannot be read from the middle",
            hint="decompress it to .tar, so that shards can be read and resumed on their own",
        )
    else:
        raise InputError(
            f"{path}: neither an image nor a table nor a tar archive",
            hint=f"give {', '.join(sorted(SUFFIXES))}, {', '.join(TABLES)}, .tar or a folder",
        )


def _read_folder(folder: Path, columns: Columns) -> Iterator[Ref]:
    """A published benchmark, a listed folder, splits of a data set, or images and archives."""
    if (folder / "card.toml").is_file() and (folder / "data").is_dir():
        folder = folder / "data"
    for name in _LISTS:
        if (folder / name).is_file():
            yield from _read_table(folder / name, columns)
            return
    found = False
    for base, folders, files in os.walk(folder):
        folders.sort()
        folders[:] = [name for name in folders if not name.startswith(".")]
        here = Path(base)
        listed = next((name for name in _LISTS if name in files), None)
        if listed and here != folder:
            folders.clear()
            found = True
            yield from _name_below(_read_table(here / listed, columns), here.relative_to(folder))
            continue
        for name in sorted(files):
            path = here / name
            if path.suffix.lower() in SUFFIXES:
                found = True
                yield Ref(path.relative_to(folder).as_posix(), "file", str(path))
            elif path.suffix.lower() in (".tar", ".parquet"):
                found = True
                yield from _read_path(path, columns)
    if not found:
        raise DataError(folder, "holds no image, table or archive", hint="check the path")


def _name_below(refs: Iterable[Ref], place: Path) -> Iterator[Ref]:
    """Ids of a split, told apart from the same ids of another."""
    return (replace(ref, id=f"{place.as_posix()}/{ref.id}") for ref in refs)


def _read_table(path: Path, columns: Columns) -> Iterator[Ref]:
    if path.suffix.lower() == ".parquet":
        yield from _read_parquet(path, columns)
    elif path.suffix.lower() == ".csv":
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            rows = csv.DictReader(file)
            number = 1
            try:
                names = _find_columns(rows.fieldnames or (), columns, path)
                for number, row in enumerate(rows, 2):
                    yield _make_ref(row, names, path, number)
            except csv.Error as error:  # nothing tells where the next row would begin
                raise DataError(path, str(error), row=number + 1, hint="mend that row") from error
    else:
        with path.open("rb") as lines:
            yield from _read_lines(lines, str(path), path.parent, columns)


def _read_lines(lines: IO[bytes], name: str, base: Path, columns: Columns) -> Iterator[Ref]:
    """JSON lines; a line that is none becomes a row with its fault, and the next is read."""
    number = 0
    while line := lines.readline(_LONGEST_LINE):
        number += 1
        if not line.strip():
            continue
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            yield Ref(f"{Path(name).name}:{number}", fault=f"line {number} is no JSON: {error}")
            continue
        if not isinstance(row, dict):
            yield Ref(f"{Path(name).name}:{number}", fault=f"line {number} is no object")
        elif row.get("kept") is not False:  # what ``collect`` set aside
            names = _find_columns(row, columns, Path(name), strict=False)
            yield _make_ref(row, names, base / Path(name).name, number)


def _find_columns(
    known: Iterable[str], columns: Columns, path: Path, *, strict: bool = True
) -> Columns:
    """The columns as named by the user, else the first of the usual names."""
    names = list(known)
    for asked in (columns.id, columns.image, columns.text):
        if strict and asked and asked not in names:
            raise InputError(
                f"{path} has no column {asked!r}", hint=f"it has {', '.join(names)[:300]}"
            )
    found = Columns(
        columns.id or next((name for name in _IDS if name in names), ""),
        columns.image or next((name for name in _IMAGES if name in names), ""),
        columns.text or next((name for name in _TEXTS if name in names), ""),
    )
    if strict and not found.image and not found.text:
        raise InputError(
            f"{path} has neither an image nor a text column",
            hint=f"name one with --image-column or --text-column: {', '.join(names)[:300]}",
        )
    return found


def _make_ref(row: Mapping[str, object], names: Columns, path: Path, number: int) -> Ref:
    given = row.get(names.id) if names.id else None
    own = str(given) if given not in (None, "") else f"{path.name}:{number}"
    text = row.get(names.text) if names.text else None
    image = row.get(names.image) if names.image else None
    language = row.get("language")
    ref = Ref(
        own,
        text=text if isinstance(text, str) else None,
        language=language if isinstance(language, str) else "",
    )
    if isinstance(image, str) and image:
        try:
            return replace(ref, kind="file", place=str(inside(path.parent, image)))
        except MemanticsError as error:
            return replace(ref, fault=str(error))
    if ref.text is None:
        return replace(ref, fault=f"row {number} has neither an image nor a text")
    return ref


def _read_parquet(path: Path, columns: Columns) -> Iterator[Ref]:
    """Rows of a Parquet file; images inside are read by the workers, row group by row group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(path, f"is no Parquet file: {error}", hint="write it again") from error
    with file:
        names = _find_columns(file.schema_arrow.names, columns, path)
        kind = file.schema_arrow.field(names.image).type if names.image else None
        inner = kind is not None and (pa.types.is_struct(kind) or pa.types.is_binary(kind))
        inner = inner or (kind is not None and pa.types.is_large_binary(kind))
        plain = [names.id, names.text, "language", "" if inner else names.image]
        wanted = [name for name in plain if name and name in file.schema_arrow.names]
        number = 0
        for batch in file.iter_batches(batch_size=4096, columns=wanted):
            rows = batch.to_pylist() if wanted else [{}] * batch.num_rows
            for row in rows:
                if inner:
                    text = row.get(names.text)
                    own = row.get(names.id)
                    yield Ref(
                        f"{path.name}:{number}" if own in (None, "") else str(own),
                        "table",
                        str(path),
                        number,
                        column=names.image,
                        text=text if isinstance(text, str) else None,
                        language=str(row.get("language") or ""),
                    )
                else:
                    yield _make_ref(row, names, path, number)
                number += 1


def _read_tar(path: Path) -> Iterator[Ref]:
    """A WebDataset shard: files that share the name before the first dot are one sample."""
    try:
        archive = tarfile.open(path, "r:")  # noqa: SIM115 - closed below, also when not exhausted
    except (tarfile.TarError, OSError) as error:
        raise DataError(path, f"is no tar archive: {error}", hint="write it again") from error
    with archive:
        waiting: Ref | None = None
        current = ""
        for member in _walk_tar(archive):
            if member is None:
                fault = "the archive is cut off: what follows is lost; copy it again"
                waiting = waiting or Ref(path.name, place=str(path), fault=fault)
                break
            key, _, ending = Path(member.name).name.partition(".")
            key = (Path(member.name).parent / key).as_posix()
            if waiting is not None and current != key:
                yield _complete(waiting, path)
                waiting = None
            current = key
            waiting = _add_member(waiting or Ref(key, place=str(path)), archive, member, ending)
        if waiting is not None:
            yield _complete(waiting, path)


def _walk_tar(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo | None]:
    """The files of an archive; None at the end of one that is cut off."""
    while True:
        try:
            member = archive.next()
        except tarfile.TarError:
            yield None
            return
        if member is None:
            return
        archive.members = []  # type: ignore[attr-defined]  # else it keeps every header
        if member.isfile():
            yield member


def _add_member(ref: Ref, archive: tarfile.TarFile, member: tarfile.TarInfo, ending: str) -> Ref:
    if f".{ending.lower()}" in SUFFIXES:
        return replace(ref, kind="member", index=member.offset_data, size=member.size)
    if ending in ("txt", "json") and member.size <= _LONGEST_LINE:
        held = archive.extractfile(member)
        body = held.read() if held else b""
        if ending == "txt":
            return replace(ref, text=body.decode("utf-8", "replace").strip())
        try:
            fields = orjson.loads(body)
        except orjson.JSONDecodeError:
            return replace(ref, fault=f"{member.name} is no JSON")
        known = fields if isinstance(fields, dict) else {}
        text, own = known.get("text"), known.get("id")
        return replace(
            ref,
            id=own if isinstance(own, str) and own else ref.id,
            text=text if isinstance(text, str) else ref.text,
        )
    return ref


def _complete(ref: Ref, path: Path) -> Ref:
    if ref.kind == "text" and ref.text is None and not ref.fault:
        return replace(ref, fault=f"{path.name} holds neither an image nor a text of this sample")
    return ref if ref.kind == "member" else replace(ref, place="")
