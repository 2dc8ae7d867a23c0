"""Decided memes that a detector remembers: teach, forget, list, and exchange them as CSV."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from memantics.core.errors import InputError
from memantics.core.files import replace_file
from memantics.core.images import decode, read_bytes
from memantics.core.memes import SUFFIXES
from memantics.core.parameters import Argument, Flag
from memantics.core.tables import guard_cell
from memantics.models.embedded.ocr import open_reader
from memantics.moderation.judges import open_judge
from memantics.moderation.match_index import Memory, Precedent, hash_meaning
from memantics.moderation.subjects import MOST_TEXT
from memantics.understanding.vision.hashes import PDQ_QUALITY, hash_image, hash_pdq
from memantics.understanding.vision.roles import read_image_text

__all__ = [
    "Precedent",
    "export_precedents",
    "forget_precedents",
    "import_precedents",
    "list_precedents",
    "teach_precedents",
]
DetectorArgument = Annotated[Path, Argument("A detector file or folder.")]
MatchLabel = Literal["harmless", "harmful"]
_COLUMNS = ("signal_type", "indicator", "label", "why", "text", "id")
_LONG, _SHORT = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{16}")
_FORMS = {"sha256": _LONG, "phash": _SHORT, "pdq": _LONG}


def teach_precedents(
    detector: DetectorArgument,
    items: Annotated[
        Sequence[str], Argument("Image files or texts.", metavar="ITEM…", kind=list[str])
    ],
    *,
    label: Annotated[MatchLabel, Flag("What they are.")],
    why: Annotated[str, Flag("Why; verdicts that rest on it cite that.")] = "",
    meaning: Annotated[
        bool, Flag("Also know texts that mean the same (each look-up then costs 15 ms more).")
    ] = False,
) -> list[Precedent]:
    """Remember memes with their label: copies of them are judged alike from now on."""
    memory = _open(detector)
    made = [_look(item, label, why) for item in items]
    if meaning:
        made = [replace(one, sense=hash_meaning(one.text) if one.text else "") for one in made]
    return memory.teach(made)


def forget_precedents(
    detector: DetectorArgument,
    ids: Annotated[Sequence[str], Argument("Ids of precedents.", metavar="ID…", kind=list[str])],
) -> list[Precedent]:
    """Forget precedents; verdicts are the detector's own again."""
    return _open(detector).forget(ids)


def list_precedents(detector: DetectorArgument) -> list[Precedent]:
    """All precedents of a detector, oldest first."""
    return list(_open(detector).walk())


def export_precedents(detector: DetectorArgument, out: Path) -> int:
    """Write a list of hashes as CSV, one row for each; return how many."""
    buffer = io.StringIO()
    rows = csv.writer(buffer)
    rows.writerow(_COLUMNS)
    count = 0
    for one in _open(detector).walk():
        said = [guard_cell(text) for text in (one.why, one.text, one.id)]
        for kind, value in (("sha256", one.sha256), ("phash", one.phash), ("pdq", one.pdq)):
            if value:
                rows.writerow((kind, value, one.label, *said))
                count += 1
    replace_file(out, buffer.getvalue().encode(), "precedents")
    return count


def import_precedents(detector: DetectorArgument, file: Path) -> int:
    """Learn hashes from CSV (``signal_type``, ``indicator``, ``label``); return how many.

    Lists of PDQ may have the columns ``hash`` and ``quality`` instead; below 50 of 100, rows are
    left out, as the makers of that hash ask.
    """
    known: dict[str, dict[str, str]] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for number, row in enumerate(csv.DictReader(lines), 2):
            given = row if "hash" not in row else {"signal_type": "pdq", "indicator": row["hash"]}
            kind, value = (str(given.get(name) or "").strip().lower() for name in _COLUMNS[:2])
            if _read_quality(row.get("quality"), file, number) < PDQ_QUALITY:
                continue
            label = str(row.get("label") or "harmful").strip().lower()
            if kind not in _FORMS or not _FORMS[kind].fullmatch(value):
                raise InputError(
                    f"{file}, line {number}: {kind[:40]!r} is no hash that can be read",
                    hint="signal_type is sha256, phash (64 bits in hexadecimal) or pdq (256 bits)",
                )
            if label not in ("harmless", "harmful"):
                raise InputError(
                    f"{file}, line {number}: {label[:40]!r} is no label", hint="harmful"
                )
            name = str(row.get("id") or value[:12])
            found = known.setdefault(name, {"id": name, "label": label})
            found[kind] = value
            found |= {key: str(row.get(key) or "") for key in ("why", "text")}
    memory = _open(detector)
    return len(memory.teach(Precedent(**found) for found in known.values()))  # type: ignore[arg-type]


def _read_quality(given: str | None, file: Path, number: int) -> int:
    said = (given or "100").strip()
    if not said.isdecimal() or int(said) > 100:
        raise InputError(f"{file}, line {number}: {said[:40]!r} is no quality", hint="0 to 100")
    return int(said)


def _open(detector: Path) -> Memory:
    open_judge(detector)  # refuses what is no detector
    return Memory.beside(detector)


def _look(item: str, label: MatchLabel, why: str) -> Precedent:
    path = Path(item)
    if path.suffix.lower() not in SUFFIXES:
        if not item.strip():
            raise InputError("a precedent needs a text or an image", hint="give one")
        return Precedent("", label, why, item)
    data = read_bytes(path)
    image = decode(data, path.name)
    text = read_image_text(open_reader("fast"), data, path.name, image=image).caption[:MOST_TEXT]
    hashes = hashlib.sha256(data).hexdigest(), f"{hash_image(image):016x}", hash_pdq(image)
    return Precedent("", label, why, text, *hashes)
