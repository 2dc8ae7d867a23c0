"""A set of keys on disk, so that duplicates in very large data are found in constant memory."""

from __future__ import annotations

import sqlite3
from hashlib import blake2b
from tempfile import TemporaryDirectory
from types import TracebackType


class SeenKeys:
    """A set of keys on disk, each with a label; the file is deleted when the set is closed.

    Example:
        >>> with SeenKeys() as seen:
        ...     seen.add("a", "train"), seen.add("a", "test"), seen.add("b", "test")
        (None, 'train', None)
    """

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="memantics-")
        self._base = sqlite3.connect(f"{self._folder.name}/seen", isolation_level=None)
        for line in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-4096"):
            self._base.execute(f"PRAGMA {line}")
        self._base.execute("CREATE TABLE seen (key INTEGER PRIMARY KEY, label TEXT) WITHOUT ROWID")
        self._base.execute("BEGIN")

    def add(self, key: str | bytes, label: str = "") -> str | None:
        """Add a key; return the label under which it was added before, or None if it is new."""
        data = key.encode("utf-8", "surrogatepass") if isinstance(key, str) else key
        number = int.from_bytes(blake2b(data, digest_size=8).digest(), "big", signed=True)
        done = self._base.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (number, label))
        if done.rowcount:
            return None
        row = self._base.execute("SELECT label FROM seen WHERE key = ?", (number,)).fetchone()
        return str(row[0])

    def __enter__(self) -> SeenKeys:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._base.close()
        self._folder.cleanup()
