"""Look up hashes and images in a detector's match list, and add hashes to it.

A hash alone cannot tell two memes on one template apart: both have nearly the same image. If the
text of the meme is known, an entry with another text is reported as ``same template, other text``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from memantics.core.errors import InputError, require_known
from memantics.core.images import decode
from memantics.core.result import Result
from memantics.metrics.text import measure_overlap
from memantics.moderation.match_hashes import count_apart, normalize_text
from memantics.moderation.match_index import (
    NEAR_BITS,
    OTHER_TEXT,
    SAME_TEXT,
    MatchEntry,
    MatchList,
)
from memantics.moderation.match_list import MatchLabel
from memantics.understanding.vision.hashes import hash_image
from memantics.understanding.vision.pdq import hash_pdq

SIGNAL_TYPES: Final[Mapping[str, int]] = {"pdq": 31, "phash": NEAR_BITS, "sha256": 0}
LookupResult = Literal["same bytes", "same text", "text not compared", "same template, other text"]
_DIGITS = {"pdq": 64, "phash": 16, "sha256": 64}


@dataclass(frozen=True, slots=True)
class SignalMatch(Result):
    """An entry of a match list that is near a hash.

    ``distance`` is the number of different bits. ``how`` compares the texts; an entry with ``same
    template, other text`` is another meme, and ``match`` is False.
    """

    entry: MatchEntry
    signal_type: str
    distance: int
    how: LookupResult

    @property
    def match(self) -> bool:
        """Whether the meme is a copy of the entry, as far as is known."""
        return self.how != OTHER_TEXT


def hash_meme(data: bytes) -> dict[str, str]:
    """Compute the hashes of an image file: PDQ (if it has enough structure), phash and sha256.

    Args:
        data: The bytes of the file.

    Returns:
        The hashes in hexadecimal.

    Raises:
        ImageError: If the bytes are not an image, or the image is too large.

    Example:
        >>> from memantics.core.samples import IMAGES
        >>> list(hash_meme((IMAGES / "CN90001.png").read_bytes()))
        ['pdq', 'phash', 'sha256']
    """
    image = decode(data, "image")
    pdq = hash_pdq(image)
    found: dict[str, str] = {"pdq": pdq} if pdq else {}
    return found | {
        "phash": f"{hash_image(image):016x}",
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def look_up_signals(
    detector: Path, signals: Mapping[str, str], text: str | None = None
) -> list[SignalMatch]:
    """Find the entries of a match list whose hash is near one of the given hashes.

    Args:
        detector: The detector file or folder that the match list belongs to.
        signals: Hashes by type (``pdq``, ``phash`` or ``sha256``), in hexadecimal.
        text: The text of the meme; None if it is not known. Then texts are not compared.

    Returns:
        One match per type and entry, nearest first. PDQ hashes match up to 31 different bits, the
        64-bit hash up to 6, and sha256 only if equal.

    Raises:
        InputError: If a type or a hash is invalid.
    """
    wanted = {kind: read_signal(kind, value) for kind, value in signals.items()}
    found = []
    for entry in MatchList.beside(detector).list_near(**wanted):
        for kind, value in wanted.items():
            known = str(getattr(entry, kind))
            distance = count_apart(value, known) if known else 1 << 16
            if distance <= SIGNAL_TYPES[kind]:
                found.append(SignalMatch(entry, kind, distance, _compare(entry, kind, text)))
    return sorted(found, key=lambda one: (one.distance, one.entry.id))


def read_signal(kind: str, value: str) -> str:
    """Return a hash in lower case; raise InputError if it is not a hash of the type."""
    require_known("signal type", kind, SIGNAL_TYPES)
    shown = value.strip().lower()
    if not re.fullmatch(rf"[0-9a-f]{{{_DIGITS[kind]}}}", shown):
        raise InputError(
            f"{value[:80]!r} is not a valid {kind} hash",
            hint=f"a {kind} hash has {_DIGITS[kind]} hexadecimal digits",
        )
    return shown


def _compare(entry: MatchEntry, kind: str, text: str | None) -> LookupResult:
    said, other = normalize_text(text or ""), normalize_text(entry.text)
    if text is None or not entry.text:
        return "same bytes" if kind == "sha256" else "text not compared"
    same = measure_overlap(said, other) >= SAME_TEXT if said and other else said == other
    if not same:
        return OTHER_TEXT
    return "same bytes" if kind == "sha256" else "same text"


def add_signals(
    detector: Path, signals: Mapping[str, str], *, label: MatchLabel, reason: str = ""
) -> MatchEntry:
    """Add the hashes of one meme to a match list; an entry for the same image is replaced.

    Args:
        detector: The detector file or folder that the match list belongs to.
        signals: Hashes by type (``pdq``, ``phash`` or ``sha256``), in hexadecimal.
        label: The label that copies get after human review.
        reason: Why; shown on every match.

    Returns:
        The new entry.

    Raises:
        InputError: If a type or a hash is invalid, or there is none.
    """
    known = {kind: read_signal(kind, value) for kind, value in signals.items()}
    (made,) = MatchList.beside(detector).add([MatchEntry("", label, reason, **known)])
    return made
