"""Jobs on disk: what was accepted is in a database before the client hears of it.

Several processes may share the folder. A job that runs is leased; where the process that runs it
dies, the lease ends and another takes the job up again.
"""

from __future__ import annotations

import secrets
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import JsonValue, TypeAdapter

from memantics.core.errors import StoreError
from memantics.serve.refusals import Refusal, make_busy

JobKind = Literal["analyze", "reappraise"]
JobStatus = Literal["queued", "running", "done", "failed", "cancelled"]
ENDED: tuple[JobStatus, ...] = ("done", "failed", "cancelled")
LEASE = 15.0
TRIES = 3
IMAGE = "image"
_FILE = "jobs.sqlite"
_DAMAGED = "its row in the database is damaged"
_COLUMNS = (
    "id, kind, owner, status, options, created, ended, expires, tries, done, total, result, reason"
)
_TABLE = """CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, owner TEXT NOT NULL, status TEXT NOT NULL,
    options TEXT NOT NULL, created REAL NOT NULL, ended REAL, expires REAL,
    tries INTEGER NOT NULL DEFAULT 0, lease REAL, done INTEGER NOT NULL DEFAULT 0,
    total INTEGER, result TEXT, reason TEXT NOT NULL DEFAULT '')"""


@dataclass(frozen=True, slots=True)
class StoredJob:
    """One job as it stands; ``expires`` is when an ended one is forgotten."""

    id: str
    kind: JobKind
    owner: str
    status: JobStatus
    options: Mapping[str, Any]
    created: float
    ended: float | None
    expires: float | None
    tries: int
    done: int
    total: int | None
    result: JsonValue
    reason: str


_ROW = TypeAdapter(StoredJob)


class JobStore:
    """The jobs of a service. Threads may share it."""

    def __init__(
        self, folder: Path, *, keep: float, most: int, clock: Callable[[], float] = time.time
    ) -> None:
        self.folder, self._keep, self._most, self._clock = folder, keep, most, clock
        self._lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._db = sqlite3.connect(
                folder / _FILE, isolation_level=None, timeout=10, check_same_thread=False
            )
            # A damaged text fails its own row, not the query that meets it.
            self._db.text_factory = lambda data: data.decode("utf-8", "replace")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute(_TABLE)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"no jobs can be kept in {folder}: {error}", hint="give --state DIR"
            ) from error

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._db.close()

    def place(self, job: str) -> Path:
        """The folder of a job: its image, and what it leaves behind to go on from."""
        return self.folder / "jobs" / job

    def add(self, kind: JobKind, owner: str, options: Mapping[str, Any], image: bytes) -> StoredJob:
        """Accept a job; when this returns it is on disk."""
        name, now = secrets.token_hex(16), self._clock()
        place = self.place(name)
        try:
            place.mkdir(parents=True, mode=0o700)
            (place / IMAGE).write_bytes(image)
            with self._writing() as db:
                unfinished = "SELECT COUNT(*) FROM jobs WHERE status IN ('queued', 'running')"
                if db.execute(unfinished).fetchone()[0] >= self._most:
                    raise make_busy(10, "too many jobs are unfinished")
                db.execute(
                    "INSERT INTO jobs (id, kind, owner, status, options, created)"
                    " VALUES (?, ?, ?, 'queued', ?, ?)",
                    (name, kind, owner, orjson.dumps(dict(options)).decode(), now),
                )
        except BaseException as error:
            shutil.rmtree(place, ignore_errors=True)
            if isinstance(error, (OSError, sqlite3.Error)):
                why = "the job could not be written down here; try again later"
                raise Refusal(503, "not_stored", why, {"retry-after": "30"}) from error
            raise
        return self.get(name) or _lost(name)

    def get(self, job: str) -> StoredJob | None:
        """A job by its id; one whose row is damaged has failed."""
        with self._lock:
            row = self._db.execute(f"SELECT {_COLUMNS} FROM jobs WHERE id = ?", (job,)).fetchone()  # noqa: S608
        if row is None:
            return None
        named = dict(zip(_COLUMNS.split(", "), row, strict=True))
        try:
            named["options"] = orjson.loads(named["options"])
            named["result"] = None if named["result"] is None else orjson.loads(named["result"])
            return _ROW.validate_python(named)
        except ValueError:  # of either reader
            whose, now = str(named["owner"]), self._clock()
            return StoredJob(
                job, "analyze", whose, "failed", {}, now, now, now, 0, 0, None, None, _DAMAGED
            )

    def count(self) -> dict[str, int]:
        """How many jobs are in which status."""
        with self._lock:
            rows = self._db.execute("SELECT status, COUNT(*) FROM jobs GROUP BY status").fetchall()
        return dict(rows)

    def recover(self) -> int:
        """After a start: what ran when the service ended waits again; folders of no job go."""
        with self._writing() as db:
            found = db.execute(
                "UPDATE jobs SET status = 'queued', lease = NULL WHERE status = 'running'"
            ).rowcount
            rows = db.execute("SELECT id FROM jobs WHERE status = 'queued'").fetchall()
        waiting = {row[0] for row in rows}
        for place in (self.folder / "jobs").glob("*"):
            if place.name not in waiting:
                shutil.rmtree(place, ignore_errors=True)
        return found

    def claim(self) -> StoredJob | None:
        """Take the oldest job that waits, or whose process died; None where there is none."""
        now = self._clock()
        while True:
            with self._writing() as db:
                row = db.execute(
                    "SELECT id, tries FROM jobs WHERE status = 'queued'"
                    " OR (status = 'running' AND lease < ?) ORDER BY created LIMIT 1",
                    (now,),
                ).fetchone()
                if row is None:
                    return None
                db.execute(
                    "UPDATE jobs SET status = 'running', tries = tries + 1, lease = ? WHERE id = ?",
                    (now + LEASE, row[0]),
                )
            job = self.get(row[0])
            if job is not None and job.status == "running" and job.tries <= TRIES:
                return job
            why = f"the service ended {TRIES} times while this job ran"
            self.finish(row[0], "failed", None, job.reason or why if job is not None else why)

    def hold(self, job: str, done: int, total: int | None) -> bool:
        """Keep the lease and tell the progress; False where the job was cancelled or deleted."""
        with self._writing() as db:
            return bool(
                db.execute(
                    "UPDATE jobs SET lease = ?, done = ?, total = ?"
                    " WHERE id = ? AND status = 'running'",
                    (self._clock() + LEASE, done, total, job),
                ).rowcount
            )

    def finish(
        self, job: str, status: JobStatus, result: JsonValue = None, reason: str = ""
    ) -> None:
        """End a job that runs; its image and its folder are deleted."""
        with self._writing() as db:
            self._end(db, job, status, result, reason)
        shutil.rmtree(self.place(job), ignore_errors=True)

    def _end(
        self, db: sqlite3.Connection, job: str, status: JobStatus, result: JsonValue, reason: str
    ) -> None:
        now = self._clock()
        text = None if result is None else orjson.dumps(result).decode()
        db.execute(
            "UPDATE jobs SET status = ?, result = ?, reason = ?, ended = ?, expires = ?,"
            " lease = NULL WHERE id = ? AND status IN ('queued', 'running')",
            (status, text, reason, now, now + self._keep, job),
        )

    def give_back(self, job: str) -> None:
        """Let a job wait again: the service stops before it is done."""
        with self._writing() as db:
            db.execute(
                "UPDATE jobs SET status = 'queued', lease = NULL, tries = tries - 1"
                " WHERE id = ? AND status = 'running'",
                (job,),
            )

    def drop(self, job: str) -> None:
        """Cancel a job that is not done, or forget one that is."""
        found = self.get(job)
        if found is None:
            return
        if found.status in ENDED:
            with self._writing() as db:
                db.execute("DELETE FROM jobs WHERE id = ?", (job,))
        else:
            self.finish(job, "cancelled", reason="cancelled by the client")

    def purge(self) -> None:
        """Forget ended jobs whose time is over."""
        with self._writing() as db:
            db.execute("DELETE FROM jobs WHERE expires < ?", (self._clock(),))

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk has ended it by itself
                    self._db.execute("ROLLBACK")
                raise


def _lost(job: str) -> StoredJob:
    raise StoreError(f"job {job} is gone", hint="send it again")
