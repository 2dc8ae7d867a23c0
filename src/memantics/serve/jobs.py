"""Background jobs of the service, stored on disk, and the runner that executes them.

An accepted job is in the database before the client gets its reply. Several processes may share the
job folder: the process that runs a job holds a lease on it. If that process dies, the lease expires
and another process takes the job. Each job runs on a thread with its own event loop; only a few
jobs run at a time.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import JsonValue, TypeAdapter

from memantics.core.errors import MemanticsError, StoreError
from memantics.core.files import read_regular_text
from memantics.core.images import MIME, probe, read_bytes
from memantics.models.client import ProgressWatch
from memantics.serve.engine import ServiceEngine
from memantics.serve.refusals import Refusal, make_busy
from memantics.understanding import (
    MEME,
    NO_MODEL,
    PAGE,
    SHEET,
    ReappraiseSettings,
    reappraise_async,
)
from memantics.web.logs import note, note_failure
from memantics.workbench import AnalyzeSettings, analyze_async

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
SLOTS = 2
_BEAT = 0.5
_PURGE = 60.0
_REST = 1.0  # seconds to wait after a database error
_ENDINGS = 10  # attempts to store the end of a job; after that its lease expires


@dataclass(frozen=True, slots=True)
class StoredJob:
    """One background job with its status; a finished job is deleted at ``expires``."""

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
    """The background jobs of a service in a database. Thread-safe."""

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
            # A damaged text makes only its own row fail, not the whole query.
            self._db.text_factory = lambda data: data.decode("utf-8", "replace")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute(_TABLE)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"the job folder {folder} is not writable: {error}",
                hint="choose another folder with --state",
            ) from error

    def close(self) -> None:
        """Close the job database."""
        with self._lock:
            self._db.close()

    def place(self, job: str) -> Path:
        """Return the folder of a job: its image, and intermediate results for a retry."""
        return self.folder / "jobs" / job

    def add(self, kind: JobKind, owner: str, options: Mapping[str, Any], image: bytes) -> StoredJob:
        """Accept a background job; it is stored on disk when this function returns."""
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
                why = "the job could not be stored; try again later"
                raise Refusal(503, "not_stored", why, {"retry-after": "30"}) from error
            raise
        return self.get(name) or _lost(name)

    def get(self, job: str) -> StoredJob | None:
        """Return a job by its id; a damaged row counts as failed."""
        with self._lock:
            row = self._db.execute(f"SELECT {_COLUMNS} FROM jobs WHERE id = ?", (job,)).fetchone()  # noqa: S608
        if row is None:
            return None
        named = dict(zip(_COLUMNS.split(", "), row, strict=True))
        try:
            named["options"] = orjson.loads(named["options"])
            named["result"] = None if named["result"] is None else orjson.loads(named["result"])
            return _ROW.validate_python(named)
        except ValueError:  # raised by either parser
            whose, now = str(named["owner"]), self._clock()
            return StoredJob(
                job, "analyze", whose, "failed", {}, now, now, now, 0, 0, None, None, _DAMAGED
            )

    def count(self) -> dict[str, int]:
        """Return the number of background jobs per status."""
        with self._lock:
            rows = self._db.execute("SELECT status, COUNT(*) FROM jobs GROUP BY status").fetchall()
        return dict(rows)

    def recover(self) -> int:
        """Queue jobs again that were running when the service ended; delete unused folders."""
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
        """Take the oldest waiting job, or one whose process died; None if there is no job."""
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
        """Renew the lease of a job and store its progress; return False if it was cancelled."""
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
        """End a running job; its uploaded image and its folder are deleted."""
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
        """Put a job back into the queue because the service stops before the job is done."""
        with self._writing() as db:
            db.execute(
                "UPDATE jobs SET status = 'queued', lease = NULL, tries = tries - 1"
                " WHERE id = ? AND status = 'running'",
                (job,),
            )

    def drop(self, job: str) -> None:
        """Cancel an unfinished job, or delete a finished one."""
        found = self.get(job)
        if found is None:
            return
        if found.status in ENDED:
            with self._writing() as db:
                db.execute("DELETE FROM jobs WHERE id = ?", (job,))
        else:
            self.finish(job, "cancelled", reason="cancelled by the client")

    def purge(self) -> None:
        """Delete expired jobs."""
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
                if self._db.in_transaction:  # a full disk has already ended the transaction
                    self._db.execute("ROLLBACK")
                raise


def _lost(job: str) -> StoredJob:
    raise StoreError(f"job {job} no longer exists", hint="send the request again")


class Runner:
    """Runs background jobs from the job database until it is closed."""

    def __init__(self, store: JobStore, engine: ServiceEngine, grace: float = 15.0) -> None:
        self._store, self._engine, self._grace = store, engine, grace
        self._news = asyncio.Event()
        self._closing = False
        self._failing: set[int] = set()
        self._tasks = [asyncio.create_task(self._serve(slot)) for slot in range(SLOTS)]
        self._purging = asyncio.create_task(self._purge())

    @property
    def works(self) -> bool:
        """Whether all worker slots are healthy: their last database access succeeded."""
        return not self._failing and not any(task.done() for task in self._tasks)

    def wake(self) -> None:
        """Signal to the runner that a job was added."""
        self._news.set()

    async def close(self) -> None:
        """Let running jobs end within the grace period; unfinished jobs are kept on disk."""
        self._closing = True
        self._news.set()
        self._purging.cancel()
        _, late = await asyncio.wait(self._tasks, timeout=self._grace)
        for task in late:
            task.cancel()
        await asyncio.gather(*self._tasks, self._purging, return_exceptions=True)

    async def _purge(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self._store.purge)
            except sqlite3.Error as error:
                note_failure("jobs not purged", error)
            await asyncio.sleep(_PURGE)

    async def _serve(self, slot: int) -> None:
        while not self._closing:
            try:
                job = await asyncio.to_thread(self._store.claim)
                self._failing.discard(slot)
            except Exception as error:  # noqa: BLE001 - a slot outlives a moment's trouble
                self._failing.add(slot)
                note_failure("no job can be taken", error)
                await asyncio.sleep(_REST)
                continue
            if job is not None:
                try:
                    await self._run(job)
                except Exception as error:  # noqa: BLE001 - the lease ends, another takes it up
                    note_failure("job lost", error, job=job.id)
                continue
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):  # another process may have added a job
                    await self._news.wait()

    async def _run(self, job: StoredJob) -> None:
        began, steps = time.perf_counter(), _Steps()
        work = Thread(run_job(job, self._store.place(job.id), self._engine, steps.see))
        try:
            while not work.wait_done(0):
                if not await self._hold(job, steps):
                    work.cancel()
                    break
                await asyncio.to_thread(work.wait_done, _BEAT)
        except asyncio.CancelledError:
            work.cancel()
            self._store.give_back(job.id)
            raise
        result = await asyncio.to_thread(work.result)
        status: JobStatus = "done" if not isinstance(result, BaseException) else "failed"
        if isinstance(result, MemanticsError):
            await self._finish(job, status, None, str(result))
        elif isinstance(result, BaseException):
            # the job was cancelled in the database before
            if not isinstance(result, asyncio.CancelledError):
                note_failure("job failed", result, job=job.id)
                why = "internal error; see the log of the service"
                await self._finish(job, status, None, why)
        else:
            await self._hold(job, steps)
            await self._finish(job, status, result)
        seconds = round(time.perf_counter() - began, 2)
        note("job", job=job.id, kind=job.kind, status=status, seconds=seconds)

    async def _hold(self, job: StoredJob, steps: _Steps) -> bool:
        try:
            return await asyncio.to_thread(self._store.hold, job.id, steps.done, steps.total)
        except sqlite3.Error as error:
            note_failure("job not held", error, job=job.id)
            return True  # the lease lasts longer than a short database failure

    async def _finish(
        self, job: StoredJob, status: JobStatus, result: JsonValue, reason: str = ""
    ) -> None:
        for left in reversed(range(_ENDINGS)):
            try:
                await asyncio.to_thread(self._store.finish, job.id, status, result, reason)
                break
            except sqlite3.Error as error:
                note_failure("end of a job not written", error, job=job.id)
                if not left:
                    raise
                await asyncio.sleep(_REST)


class _Steps:
    """The progress of a background job."""

    def __init__(self) -> None:
        self.done, self.total = 0, None

    done: int
    total: int | None

    def see(self, progress: Any) -> None:
        """Store the progress counters of a run."""
        self.done, self.total = progress.done, progress.total


class Thread:
    """A coroutine on its own thread and event loop, cancellable from another thread."""

    def __init__(self, work: Coroutine[Any, Any, JsonValue]) -> None:
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(work)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="serve-job", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(asyncio.gather(self._task, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
        finally:
            self._loop.close()
            self._ended.set()

    def wait_done(self, seconds: float) -> bool:
        """Wait at most the given seconds; return whether the coroutine has ended."""
        return self._ended.wait(seconds)

    def cancel(self) -> None:
        """Cancel the coroutine and its running model calls."""
        with contextlib.suppress(RuntimeError):  # the event loop has just ended
            self._loop.call_soon_threadsafe(self._task.cancel)

    def result(self) -> JsonValue | BaseException:
        """Return the result of the coroutine, or raise its error."""
        self._ended.wait()
        if self._task.cancelled():
            return asyncio.CancelledError()
        return self._task.exception() or self._task.result()


async def run_job(
    job: StoredJob, place: Path, engine: ServiceEngine, watch: ProgressWatch
) -> JsonValue:
    """Run a background job; its folder keeps model replies, which a second attempt reuses."""
    data = read_bytes(place / IMAGE)
    image = place / f"meme.{MIME[probe(data, IMAGE).format].partition('/')[2]}"
    image.write_bytes(data)
    model = job.options.get("model")
    if job.kind == "analyze":
        return show_analysis(
            await analyze_async(
                image,
                model=model,
                parts=engine.parts,
                settings=AnalyzeSettings(
                    language=job.options.get("language"), call_log=place / "call_log"
                ),
                calls=engine.calls,
                progress=watch,
            )
        )
    made = await reappraise_async(
        image,
        model=model or NO_MODEL,
        target=job.options.get("target"),
        ocr=engine.ocr,
        calls=engine.calls,
        out=place / "out",
        settings=ReappraiseSettings(
            versions=job.options.get("versions", 1), label=job.options.get("label", False)
        ),
        progress=watch,
    )
    shown = made.to_dict()
    del shown["folder"]  # the folder is deleted when the job has ended
    shown["by"] = model or NO_MODEL
    shown["image"] = show_png(made.folder / MEME) if made.drawn else None
    shown["images"] = [show_png(version.path(made.folder)) for version in made.versions]
    shown["sheet"] = show_png(made.folder / SHEET) if made.versions else None
    shown["page"] = read_regular_text(made.folder / PAGE) if made.versions else None
    return shown


def show_png(path: Path) -> str:
    """Return an image produced by a job as a data URL."""
    return f"data:image/png;base64,{base64.b64encode(read_bytes(path)).decode()}"


def show_analysis(found: Any) -> dict[str, JsonValue]:
    """Return an analysis in the response format, without internal file paths."""
    shown: dict[str, JsonValue] = found.to_dict()
    del shown["image"]
    return shown
