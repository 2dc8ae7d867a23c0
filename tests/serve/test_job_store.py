"""Jobs outlive the trouble of a moment: a database that fails, damaged rows, a full disk."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memantics.serve import jobs
from memantics.serve.jobs import LEASE, TRIES, JobStore, Runner, run_job, show_analysis
from memantics.serve.refusals import Refusal
from memantics.understanding import ReappraiseSettings
from tests.serve.site import MEME, Clock, Site


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[JobStore]:
    made = JobStore(tmp_path / "state", keep=60, most=9, clock=clock)
    yield made
    made.close()


def change(store: JobStore, statement: str, *values: object) -> None:
    """What happens to the database from outside."""
    with closing(sqlite3.connect(store.folder / "jobs.sqlite", isolation_level=None)) as db, db:
        db.execute(statement, values)
    db.close()


async def wait_until(store: JobStore, job: str, status: str) -> None:
    for _ in range(400):
        found = await asyncio.to_thread(store.get, job)
        if found is not None and found.status == status:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{found} is not {status}")


@pytest.mark.slow
def test_slots_outlive_a_database_error(store: JobStore) -> None:
    async def run() -> None:
        runner = Runner(store, None, grace=1.0)  # type: ignore[arg-type]
        change(store, "ALTER TABLE jobs RENAME TO gone")
        runner.wake()
        await asyncio.sleep(1.5)  # a slot looks once a second
        seen.append(getattr(runner, "works", True))
        change(store, "ALTER TABLE gone RENAME TO jobs")
        job = store.add("analyze", "a", {}, b"no image")
        await wait_until(store, job.id, "failed")
        await asyncio.sleep(1.5)
        seen.append(getattr(runner, "works", True))
        await runner.close()

    seen: list[bool] = []
    asyncio.run(run())
    assert seen == [False, True]


@pytest.mark.parametrize(
    "damage",
    [
        "options = '{'",
        "options = CAST(x'ff7b' AS TEXT)",
        "options = NULL",
        "kind = 'other'",
        "created = 'long ago'",
        "result = 'x'",
    ],
)
def test_a_damaged_row_fails_by_itself(store: JobStore, damage: str) -> None:
    # The same table without its constraints.
    change(store, "CREATE TABLE free AS SELECT * FROM jobs")
    change(store, "DROP TABLE jobs")
    change(store, "ALTER TABLE free RENAME TO jobs")
    change(
        store,
        "CREATE TRIGGER t AFTER INSERT ON jobs BEGIN UPDATE jobs SET"
        " tries = 0, done = 0, reason = ''; END",
    )
    bad = store.add("analyze", "a", {}, b"1")
    good = store.add("reappraise", "a", {"target": "happy"}, b"2")
    change(store, f"UPDATE jobs SET {damage} WHERE id = ?", bad.id)
    taken = store.claim()
    assert taken is not None
    assert (taken.id, taken.options) == (good.id, {"target": "happy"})
    assert store.claim() is None
    found = store.get(bad.id)
    assert found is not None
    assert found.status == "failed"
    assert "damaged" in found.reason
    assert not store.place(bad.id).exists()
    assert store.place(good.id).exists()


def test_the_image_of_a_job_that_failed_three_times_is_deleted(
    store: JobStore, clock: Clock
) -> None:
    job = store.add("analyze", "a", {}, b"image")
    for _ in range(TRIES):
        assert store.claim() is not None
        assert store.place(job.id).is_dir()
        clock.now += LEASE + 1
    assert store.claim() is None
    found = store.get(job.id)
    assert found is not None
    assert found.status == "failed"
    assert f"ended {TRIES} times" in found.reason
    assert not store.place(job.id).exists()


def test_a_full_disk_leaves_no_scrap(store: JobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", write)
        with pytest.raises((Refusal, OSError)) as refused:
            store.add("analyze", "a", {}, b"image")
    assert list((store.folder / "jobs").glob("*")) == []
    assert isinstance(refused.value, Refusal)
    assert (refused.value.status, refused.value.headers["retry-after"]) == (503, "30")
    change(store, "ALTER TABLE jobs RENAME TO gone")
    with pytest.raises(Refusal):
        store.add("analyze", "a", {}, b"image")
    assert list((store.folder / "jobs").glob("*")) == []


def test_a_commit_that_fails_leaves_no_transaction_open(store: JobStore) -> None:
    """Else every later one fails, long after the disk has room again."""
    store._db.execute("PRAGMA foreign_keys=ON")
    store._db.execute("CREATE TABLE a (id INTEGER PRIMARY KEY)")
    store._db.execute("CREATE TABLE b (a REFERENCES a DEFERRABLE INITIALLY DEFERRED)")
    with pytest.raises(sqlite3.IntegrityError), store._writing() as db:
        db.execute("INSERT INTO b VALUES (1)")  # found out when it is committed
    assert store.add("analyze", "a", {}, b"image").status == "queued"


@pytest.mark.slow
def test_readiness_follows_the_slots(site: Site) -> None:
    import time

    def wait_for(status: int) -> int:
        for _ in range(200):
            found = client.get("/readyz").status_code
            if found == status:
                break
            time.sleep(0.1)
        return found

    jobs = site.service.jobs
    with site.client() as client:
        assert wait_for(200) == 200
        change(jobs, "ALTER TABLE jobs RENAME TO gone")
        try:
            assert wait_for(503) == 503
        finally:
            change(jobs, "ALTER TABLE gone RENAME TO jobs")
        assert wait_for(200) == 200


def test_running_jobs_are_queued_again_and_unused_folders_deleted(
    store: JobStore, clock: Clock
) -> None:
    """What the service does at its start, after it was killed."""
    running = store.add("analyze", "shop", {}, b"image")
    clock.now += 1
    waiting = store.add("analyze", "shop", {}, b"image")
    claimed = store.claim()
    assert claimed is not None
    assert claimed.id == running.id
    store.place("of-nobody").mkdir()
    assert store.recover() == 1
    found = [store.get(job.id) for job in (running, waiting)]
    assert [one.status for one in found if one] == ["queued", "queued"]
    assert store.place(running.id).is_dir()
    assert not store.place("of-nobody").exists()
    again = store.claim()
    assert again is not None
    assert (again.id, again.tries) == (running.id, 2)


def test_an_analysis_is_shown_without_the_path_of_its_file() -> None:
    class Found:
        def to_dict(self) -> dict[str, object]:
            return {"image": "/var/jobs/x/meme.png", "text": "hi"}

    assert show_analysis(Found()) == {"text": "hi"}


@pytest.mark.parametrize(
    ("options", "expected"), [({}, (1, False)), ({"versions": 3, "label": True}, (3, True))]
)
def test_a_job_rewrites_with_its_options(
    store: JobStore,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, object],
    expected: tuple[int, bool],
) -> None:
    class Stopped(Exception):
        pass

    seen: list[tuple[int, bool]] = []

    async def rewrite(*_: object, settings: ReappraiseSettings, **__: object) -> None:
        seen.append((settings.versions, settings.label))
        raise Stopped

    monkeypatch.setattr(jobs, "reappraise_async", rewrite)
    job = store.add("reappraise", "shop", options, MEME.read_bytes())
    engine: Any = SimpleNamespace(ocr=None, calls=None)
    with pytest.raises(Stopped):
        asyncio.run(run_job(job, store.place(job.id), engine, lambda _progress: None))
    assert seen == [expected]
