"""A cache of model replies: the same request to the same model is never paid for twice.

The cache key covers model identity, sampling, messages, image bytes, schema **and the attempt
number**. The attempt number is included because a retry after an unparsable answer must not return
that answer again.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import orjson
from pydantic import JsonValue

from memantics.core.errors import StoreError
from memantics.core.files import hide_bytes
from memantics.core.images import read_image
from memantics.core.records import MessagePart, Reply, Request, Sampling

_FLUSH_AT = 128
_KINDS = {one.name: {"str": str, "int": int}.get(str(one.type), dict) for one in fields(Reply)}


def request_digest(request: Request) -> str:
    """Hash the content of a request without the model: messages, image bytes and schema."""
    body = {
        "schema": request.schema,
        "messages": [[m.role, [_address(part) for part in m.parts]] for m in request.messages],
    }
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()


def picture_digest(request: Request) -> str:
    """Hash the image bytes and the schema of a request, without its texts."""
    images = [_address(p) for m in request.messages for p in m.parts if not isinstance(p, str)]
    body = {"schema": request.schema, "images": images}
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _address(part: MessagePart) -> str | dict[str, str]:
    if isinstance(part, str):
        return part
    return {"sha256": hashlib.sha256(read_image(part)).hexdigest()}


def cache_key(
    identity: Mapping[str, JsonValue], sampling: Sampling, digest: str, attempt: int
) -> bytes:
    """Return the cache key of one attempt at a request with the given digest.

    >>> first, second = (cache_key({}, Sampling(), "d", attempt) for attempt in (0, 1))
    >>> first == second
    False
    """
    body = {"identity": identity, "sampling": sampling, "request": digest, "attempt": attempt}
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).digest()


class Cache:
    """A table of cached replies in one SQLite file; several processes may share it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = Cache(Path(folder) / "cache.sqlite")
    ...     cache.put(b"key", Reply("B"))
    ...     found = cache.get(b"key")
    ...     cache.close()
    >>> found.text
    'B'
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pending: dict[bytes, bytes] = {}
        try:
            self._db = _open(path)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"cache {path} cannot be opened: {error}",
                hint="set MEMANTICS_HOME to a writable folder, or use --no-cache",
            ) from error

    def get(self, key: bytes) -> Reply | None:
        """Return the reply stored under a key; an unreadable row counts as a miss."""
        body = self._pending.get(key)
        if body is None:
            try:
                row = self._db.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
            except sqlite3.Error as error:
                raise StoreError(
                    f"cache {self.path} cannot be read: {error}",
                    hint="delete that file, or use --no-cache",
                ) from error
            if row is None:
                return None
            body = row[0]
        return _read_reply(body)

    def put(self, key: bytes, reply: Reply) -> None:
        """Store a reply; the next flush writes it to disk."""
        self._pending[key] = hide_bytes(orjson.dumps(reply))
        if len(self._pending) >= _FLUSH_AT:
            self.flush()

    def flush(self) -> None:
        """Write pending replies in one short transaction."""
        if not self._pending:
            return
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(
                "INSERT OR REPLACE INTO replies VALUES (?, ?)", self._pending.items()
            )
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.rollback()
            raise StoreError(
                f"cache {self.path} cannot be written: {error}",
                hint="free disk space, or use --no-cache",
            ) from error
        self._pending.clear()

    def close(self) -> None:
        """Write pending replies and close the cache file."""
        self.flush()
        self._db.close()


def _open(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path, isolation_level=None, timeout=30)
    try:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        database.execute(
            "CREATE TABLE IF NOT EXISTS replies"
            " (key BLOB PRIMARY KEY, reply BLOB NOT NULL) WITHOUT ROWID"
        )
    except sqlite3.Error:
        database.close()
        raise
    return database


def _read_reply(body: object) -> Reply | None:
    """Parse the reply of a cache row; return None if it is damaged or from another version."""
    try:
        found = orjson.loads(body)  # type: ignore[arg-type]  # SQLite gives whatever is there
    except orjson.JSONDecodeError:
        return None
    if not isinstance(found, dict) or "text" not in found:
        return None
    masses = found.get("masses")
    if masses is None:
        found.pop("masses", None)
    if any(type(value) is not _KINDS.get(name) for name, value in found.items()):
        return None
    if masses is not None and not all(type(share) is float for share in masses.values()):
        return None
    return Reply(**found)
