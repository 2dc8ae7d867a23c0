"""Runs jobs, each in a thread with an event loop of its own, a few at a time."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import sqlite3
import threading
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from memantics.actions.analyze import analyze_async
from memantics.actions.desk import Watch
from memantics.actions.reappraise import EMBEDDED, MEME, PAGE, SHEET, reappraise_async
from memantics.core.errors import MemanticsError
from memantics.core.images import MIME, probe, read_bytes
from memantics.serve.engine import Engine
from memantics.serve.jobs import IMAGE, JobStatus, JobStore, StoredJob
from memantics.web.logs import note, note_failure

SLOTS = 2
_BEAT = 0.5
_PURGE = 60.0
_REST = 1.0  # seconds after a database error
_ENDINGS = 10  # times to write down how a job ended; after that its lease ends


class Runner:
    """Takes jobs from the store and runs them until it is closed."""

    def __init__(self, store: JobStore, engine: Engine, grace: float = 15.0) -> None:
        self._store, self._engine, self._grace = store, engine, grace
        self._news = asyncio.Event()
        self._closing = False
        self._failing: set[int] = set()
        self._tasks = [asyncio.create_task(self._serve(slot)) for slot in range(SLOTS)]
        self._purging = asyncio.create_task(self._purge())

    @property
    def works(self) -> bool:
        """Whether every slot takes jobs: the last look into the database went well."""
        return not self._failing and not any(task.done() for task in self._tasks)

    def wake(self) -> None:
        """A job was added."""
        self._news.set()

    async def close(self) -> None:
        """Let running jobs end within the grace; the others wait on disk for the next start."""
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
                async with asyncio.timeout(1.0):  # another process may have added one
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
            if not isinstance(result, asyncio.CancelledError):  # cancelled in the store before
                note_failure("job failed", result, job=job.id)
                why = "something went wrong here; it was written down"
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
            return True  # the lease lasts longer than a moment's trouble

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
    """How far a job is."""

    def __init__(self) -> None:
        self.done, self.total = 0, None

    done: int
    total: int | None

    def see(self, progress: Any) -> None:
        """Note the counts of an action."""
        self.done, self.total = progress.done, progress.total


class Thread:
    """A coroutine in a thread and a loop of its own, which can be cancelled from another thread."""

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
        """Whether it has ended, after waiting that long at most."""
        return self._ended.wait(seconds)

    def cancel(self) -> None:
        """Ask it to end; calls in flight are given up."""
        with contextlib.suppress(RuntimeError):  # it has just ended
            self._loop.call_soon_threadsafe(self._task.cancel)

    def result(self) -> JsonValue | BaseException:
        """What came of it, or the error it ended with."""
        self._ended.wait()
        if self._task.cancelled():
            return asyncio.CancelledError()
        return self._task.exception() or self._task.result()


async def run_job(job: StoredJob, place: Path, engine: Engine, watch: Watch) -> JsonValue:
    """Do what a job asks. Its folder keeps a model's answers: a second try asks for the rest."""
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
                language=job.options.get("language"),
                asking=engine.asking,
                journal=place / "journal",
                progress=watch,
            )
        )
    made = await reappraise_async(
        image,
        model=model or EMBEDDED,
        target=job.options.get("target"),
        ocr=engine.ocr,
        asking=engine.asking,
        out=place / "out",
        versions=job.options.get("versions", 1),
        progress=watch,
    )
    shown = made.to_dict()
    del shown["folder"]  # it is gone when the job has ended
    shown["by"] = model or EMBEDDED
    shown["image"] = show_png(made.folder / MEME) if made.drawn else None
    shown["images"] = [show_png(version.path(made.folder)) for version in made.versions]
    shown["sheet"] = show_png(made.folder / SHEET) if made.versions else None
    shown["page"] = (made.folder / PAGE).read_text("utf-8") if made.versions else None
    return shown


def show_png(path: Path) -> str:
    """A picture of a job as a data URL."""
    return f"data:image/png;base64,{base64.b64encode(read_bytes(path)).decode()}"


def show_analysis(found: Any) -> dict[str, JsonValue]:
    """An analysis as it is sent: without the path of a file that is ours."""
    shown: dict[str, JsonValue] = found.to_dict()
    del shown["image"]
    return shown
