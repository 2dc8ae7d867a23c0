"""Add, remove, list, import and export the entries of a detector's match list."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

from memantics.core.errors import InputError
from memantics.core.files import open_regular_text, replace_file
from memantics.core.images import decode, read_bytes
from memantics.core.memes import SUFFIXES
from memantics.core.parameters import Argument, Flag
from memantics.core.tables import guard_cell
from memantics.models.embedded.ocr import open_reader
from memantics.moderation.judges import open_judge
from memantics.moderation.match_hashes import hash_embedding
from memantics.moderation.match_index import MatchEntry, MatchList
from memantics.moderation.subjects import MOST_TEXT
from memantics.understanding.vision.hashes import hash_image
from memantics.understanding.vision.pdq import PDQ_QUALITY, hash_pdq
from memantics.understanding.vision.roles import read_image_text

__all__ = [
    "MatchEntry",
    "add_to_match_list",
    "export_match_list",
    "import_match_list",
    "read_match_list",
    "remove_from_match_list",
]
DetectorArgument = Annotated[Path, Argument("Detector file or folder.")]
MatchLabel = Literal["harmless", "harmful"]
_COLUMNS = ("signal_type", "indicator", "label", "reason", "text", "id")
_LINE = re.compile(r"[a-z0-9_]{2,32} \S+")
_LONG, _SHORT = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{16}")
_FORMS = {"sha256": _LONG, "phash": _SHORT, "pdq": _LONG}


def add_to_match_list(
    detector: DetectorArgument,
    items: Annotated[
        Sequence[str], Argument("Image files or texts.", metavar="ITEM…", kind=list[str])
    ],
    *,
    label: Annotated[MatchLabel, Flag("Label that copies get.")],
    reason: Annotated[str, Flag("Reason, shown on every match.")] = "",
    semantic: Annotated[
        bool,
        Flag("Also match texts with a similar embedding; adds about 15 ms per scored text."),
    ] = False,
) -> list[MatchEntry]:
    """Add labelled memes to a detector's match list: their copies get the same label.

    Args:
        detector: The detector file or folder that the match list belongs to.
        items: Image files or texts. The text of an image is read by OCR.
        label: The label that copies get.
        reason: Why, in your words; shown on every match.
        semantic: Also match texts by embedding, which finds paraphrases.

    Returns:
        The new entries with their ids. An older entry for the same image or text is replaced.

    Raises:
        InputError: If the detector or an image cannot be read, or a text is empty.
    """
    match_list = _open(detector)
    entries = [_make_entry(item, label, reason) for item in items]
    if semantic:
        entries = [
            replace(entry, embedding_hash=hash_embedding(entry.text) if entry.text else "")
            for entry in entries
        ]
    return match_list.add(entries)


def remove_from_match_list(
    detector: DetectorArgument,
    ids: Annotated[Sequence[str], Argument("Ids of entries.", metavar="ID…", kind=list[str])],
) -> list[MatchEntry]:
    """Remove entries from a match list and return them.

    Copies of these memes are then scored by the detector again.

    Raises InputError if an id is not in the list.
    """
    return _open(detector).remove(ids)


def read_match_list(detector: DetectorArgument) -> list[MatchEntry]:
    """List the entries of a match list, oldest first."""
    return list(_open(detector).walk())


HashListFormat = Literal["csv", "threatexchange"]


def export_match_list(
    detector: DetectorArgument,
    out: Annotated[Path, Flag("File to write.")],
    *,
    kind: Annotated[HashListFormat, Flag("Format of the file.", "--format")] = "csv",
) -> int:
    """Export the hashes of a match list, one row per hash, and return their number.

    ``csv`` has the label, reason and text of each hash. ``threatexchange`` is the file of Meta's
    ``threatexchange`` package: a line has the type and the hash. It contains PDQ hashes of harmful
    entries only, since its readers treat each hash as harmful and know no other type of ours.
    """
    if kind == "threatexchange":
        lines = [
            f"pdq {entry.pdq}\n"
            for entry in _open(detector).walk()
            if entry.pdq and entry.label == "harmful"
        ]
        replace_file(out, "".join(lines).encode(), "match list")
        return len(lines)
    buffer = io.StringIO()
    rows = csv.writer(buffer)
    rows.writerow(_COLUMNS)
    count = 0
    for entry in _open(detector).walk():
        cells = [guard_cell(text) for text in (entry.reason, entry.text, entry.id)]
        hashes = (("sha256", entry.sha256), ("phash", entry.phash), ("pdq", entry.pdq))
        for name, value in hashes:
            if value:
                rows.writerow((name, value, entry.label, *cells))
                count += 1
    replace_file(out, buffer.getvalue().encode(), "match list")
    return count


def import_match_list(
    detector: DetectorArgument,
    file: Annotated[Path, Argument("CSV file or hash list of ThreatExchange.")],
) -> int:
    """Import hashes from a file into a match list, and return the number of entries.

    The columns are ``signal_type``, ``indicator`` and ``label``. PDQ lists may have the columns
    ``hash`` and ``quality`` instead; rows with a quality below 50 of 100 are skipped, as the
    authors of PDQ recommend. Lists of ThreatExchange are read too: CSV with the columns ``type``
    and ``indicator``, or ``signal_type`` and ``signal_str``, or lines such as ``pdq HASH``. Their
    hashes of other types, such as MD5, are skipped. Raises InputError for an invalid hash, label or
    quality.
    """
    known: dict[str, dict[str, str]] = {}
    for number, row in _read_rows(file):
        kind, value, foreign = _read_signal(row)
        if foreign and kind not in _FORMS:
            continue
        if _read_quality(row.get("quality"), file, number) < PDQ_QUALITY:
            continue
        label = str(row.get("label") or "harmful").strip().lower()
        if kind not in _FORMS or not _FORMS[kind].fullmatch(value):
            raise InputError(
                f"{file}, line {number}: {value[:40]!r} is not a valid hash of the type"
                f" {kind[:40]!r}",
                hint="use sha256 or pdq (64 hexadecimal digits) or phash (16)",
            )
        if label not in ("harmless", "harmful"):
            raise InputError(
                f"{file}, line {number}: {label[:40]!r} is not a valid label",
                hint="use harmful or harmless",
            )
        name = str(row.get("id") or value[:12])
        found = known.setdefault(name, {"id": name, "label": label})
        found[kind] = value
        found |= {key: str(row.get(key) or "") for key in ("reason", "text")}
    match_list = _open(detector)
    return len(match_list.add(MatchEntry(**found) for found in known.values()))  # type: ignore[arg-type]


def _read_signal(row: dict[str, str]) -> tuple[str, str, bool]:
    """Return type and hash of a row, and whether the row is one of ThreatExchange."""
    if "hash" in row:
        return "pdq", str(row["hash"] or "").strip().lower(), False
    foreign = "type" in row or "signal_str" in row
    kind = row.get("signal_type") or row.get("type") or ""
    value = row.get("indicator") or row.get("signal_str") or ""
    return kind.strip().lower().removeprefix("hash_"), str(value).strip().lower(), foreign


def _read_rows(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a CSV file with their line numbers; an error names the line."""
    number = 1
    try:
        with open_regular_text(file, "utf-8-sig", newline="") as lines:
            first = lines.readline()
            if _LINE.fullmatch(first.strip()):  # the file of the threatexchange package
                for number, line in enumerate(chain([first], lines), 1):
                    kind, _, value = line.strip().partition(" ")
                    if line.strip():
                        yield number, {"type": kind, "indicator": value}
                return
            for number, row in enumerate(csv.DictReader(chain([first], lines)), 2):
                yield number, row
    except OSError as error:
        raise InputError(
            f"{file} cannot be read: {error.strerror}", hint="check the path"
        ) from error
    except (csv.Error, UnicodeDecodeError) as error:  # the csv module limits the size of a cell
        raise InputError(
            f"{file}, line {number + 1}: {error}",
            hint="export the list as a CSV file in UTF-8; a cell has at most 131,072 characters",
        ) from error


def _read_quality(given: str | None, file: Path, number: int) -> int:
    quality = (given or "100").strip()
    # Python rejects the conversion of numbers with thousands of digits.
    if not quality.isdecimal() or len(quality) > 9 or int(quality) > 100:
        raise InputError(
            f"{file}, line {number}: {quality[:40]!r} is not a valid quality",
            hint="use a whole number from 0 to 100",
        )
    return int(quality)


def _open(detector: Path) -> MatchList:
    open_judge(detector)  # raises InputError if the file is not a detector
    return MatchList.beside(detector)


def _make_entry(item: str, label: MatchLabel, reason: str) -> MatchEntry:
    path = Path(item)
    if path.suffix.lower() not in SUFFIXES:
        if not item.strip():
            raise InputError(
                "an entry of a match list needs a text or an image, and the text is empty",
                hint="give a text or an image file",
            )
        return MatchEntry("", label, reason, item)
    data = read_bytes(path)
    image = decode(data, path.name)
    text = read_image_text(open_reader(), data, path.name, image=image).caption[:MOST_TEXT]
    hashes = hashlib.sha256(data).hexdigest(), f"{hash_image(image):016x}", hash_pdq(image)
    return MatchEntry("", label, reason, text, *hashes)
