"""Memes in tar archives, by the convention of WebDataset."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

import orjson

from memantics.core.errors import DataError
from memantics.core.memes import SUFFIXES
from memantics.scale.records import Ref
from memantics.scale.tables import LONGEST_LINE, TableColumns, find_columns, show_name, stamp_file

# What a header leads to that says what cannot be: sizes, times and maps of any number or word.
_DAMAGED = (tarfile.TarError, ValueError, OverflowError, LookupError, RecursionError)
_FARTHEST = 2**62
_CUT_OFF = "the archive is cut off or damaged: what follows is lost; copy it again"


@dataclass(slots=True)
class _Sample:
    """Files of an archive that share their name before the first dot."""

    key: str
    id: str = ""
    text: str | None = None
    language: str = ""
    fault: str = ""
    images: list[tuple[str, tarfile.TarInfo]] = field(default_factory=list)


def read_tar(path: Path, columns: TableColumns) -> Iterator[Ref]:
    """A reference for each image of a sample, or for its text where it has none."""
    try:
        archive = tarfile.open(path, "r:")  # noqa: SIM115 - closed below, also when not exhausted
    except (*_DAMAGED, OSError) as error:
        raise DataError(path, f"is no tar archive: {error}", hint="write it again") from error
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
            if not stem:  # hidden, such as what macOS adds for each file
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
    """The members of an archive but folders; None at last where it is cut off or damaged."""
    while True:
        try:
            member = archive.next()
        except tarfile.TarError:
            member = None
        except _DAMAGED:
            yield None
            return
        archive.members = []  # type: ignore[attr-defined]  # else it keeps every header
        if member is None and _is_end(archive):
            return
        # A size below zero leads back to where a reader has been, for ever.
        if member is None or not (
            0 <= member.size < _FARTHEST and member.offset < archive.offset < _FARTHEST
        ):
            yield None
            return
        if not member.isdir():
            yield member


def _is_end(archive: tarfile.TarFile) -> bool:
    """Whether zeros or nothing follow: a damaged header is taken for the end, too.

    A member that is cut off ends beyond the file, and fails when it is fetched.
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
        sample.fault = f"{show_name(name)} is no JSON"
        return
    if not isinstance(fields, dict):
        return
    names = find_columns(fields, columns, Path(name), strict=False)
    value, text = fields.get(names.id), fields.get(names.text)
    language = fields.get("language")
    sample.id = "" if value is None else str(value)
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
        if len(sample.images) > 1:  # each is looked at
            tail = f".{show_name(ending)}"
            longer = f"{place.apart}{tail}" if place.apart else ""
            place = replace(place, id=place.id + tail, apart=longer)
        yield place
    if not sample.images:
        empty = ref.text is None and not ref.fault
        fault = f"{path.name} holds neither an image nor a text of this sample"
        yield replace(ref, fault=fault) if empty else ref
