"""Where the files of a PunMemeCN release lie, and which of its groups are meant."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from memantics.core.errors import DataError, InputError

META = "_Meta.json"
# A clone, the folder its README names, the data folder, the files alone.
PLACES = ("", "cn", "pun_meme/cn", "data/pun_meme/cn", "PunMemeCN/data/pun_meme/cn")
_RANGE = re.compile(r"(?:CN)?(\d{1,5})(?:-(?:CN)?(\d{1,5}))?", re.IGNORECASE)


def find_folder(root: Path) -> Path:
    """The folder with the metadata, in any official layout."""
    for place in PLACES:
        if (root / place / META).is_file():
            return root / place
    looked = ", ".join(f"{place}/{META}" if place else META for place in PLACES)
    raise DataError(
        root,
        f"no PunMemeCN release: looked for {looked}",
        hint="give the folder of a clone of the official repository, or the one with its files",
    )


def is_test(group: str) -> bool:
    """Whether a group of memes is in the test part.

    The paper trains on 500 of 653 groups and does not say which: here a digest of the group
    decides, so that a group is in the same part in every copy of the data.

    >>> [group for group in map(str, range(1, 11)) if is_test(group)]
    ['2', '5', '6']
    """
    digest = hashlib.sha256(f"punmemecn:{group}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % 653 < 153


def choose_groups(wanted: str, known: Iterable[str]) -> frozenset[str]:
    """The groups that a user names: ``train``, ``test``, or numbers and ranges of them.

    >>> sorted(choose_groups("1-2,CN00005", ["CN00001", "CN00003", "CN00005"]))
    ['CN00001', 'CN00005']
    """
    groups = frozenset(known)
    if wanted in ("train", "test"):
        return frozenset(group for group in groups if is_test(group) == (wanted == "test"))
    named: set[str] = set()
    for part in wanted.split(","):
        found = _RANGE.fullmatch(part.strip())
        if found is None:
            raise InputError(
                f"{part.strip()[:40]!r} names no groups",
                hint="give train, test, or numbers such as 1-100,205",
            )
        first = int(found[1])
        named.update(f"CN{number:05d}" for number in range(first, int(found[2] or first) + 1))
    if not named & groups:
        raise InputError(f"none of the groups {wanted[:40]} is here", hint="give others")
    return groups & named
