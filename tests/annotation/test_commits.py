"""Writers that share a commit: apart when one fails, told only when all is on disk."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from memantics.annotation.database import Database
from memantics.annotation.faults import DatabaseFailed
from memantics.core.errors import StoreError

INSERT = sa.text("INSERT INTO t (v) VALUES (:v)")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(str(tmp_path / "t.db"))
    with made.write() as connection:
        connection.execute(sa.text("CREATE TABLE t (v INTEGER PRIMARY KEY)"))
    yield made
    made.close()


def values(database: Database) -> list[int]:
    with database.read() as connection:
        return [int(v) for (v,) in connection.execute(sa.text("SELECT v FROM t ORDER BY v"))]


def test_one_that_fails_takes_nobody_along(database: Database) -> None:
    begun = threading.Barrier(20)

    def write(number: int) -> bool:
        begun.wait()
        try:
            with database.write() as connection:
                connection.execute(INSERT, {"v": number})
                if number % 3 == 0:
                    raise ValueError(number)
        except ValueError:
            return False
        return True

    with ThreadPoolExecutor(20) as pool:
        saved = list(pool.map(write, range(20)))
    assert values(database) == [number for number, kept in enumerate(saved) if kept]
    assert len(values(database)) == 13


def test_a_broken_statement_leaves_the_next_writer_in_peace(database: Database) -> None:
    with database.write() as connection:
        connection.execute(INSERT, {"v": 1})
    with pytest.raises(DatabaseFailed, match="constraint failed"), database.write() as connection:
        connection.execute(INSERT, [{"v": 2}, {"v": 1}])
    with database.write() as connection:
        connection.execute(INSERT, {"v": 3})
    assert values(database) == [1, 3]


def test_nobody_is_told_before_the_commit(database: Database, tmp_path: Path) -> None:
    """Who looks through another connection sees every answer that was acknowledged."""

    def write(number: int) -> bool:
        with database.write() as connection:
            connection.execute(INSERT, {"v": number})
        other = sqlite3.connect(tmp_path / "t.db")
        try:
            found = other.execute("SELECT 1 FROM t WHERE v = ?", (number,)).fetchone()
        finally:
            other.close()
        return found is not None

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(write, range(200)))


def test_a_commit_that_fails_is_said_plainly(database: Database) -> None:
    with database.write() as connection:
        connection.execute(sa.text("CREATE TABLE u (v REFERENCES t DEFERRABLE INITIALLY DEFERRED)"))
    orphan = sa.text("INSERT INTO u VALUES (7)")
    with pytest.raises(StoreError, match="could not be saved"), database.write() as connection:
        connection.execute(orphan)
    with database.write() as connection:
        connection.execute(INSERT, {"v": 2})
    assert values(database) == [2]


def test_a_transaction_that_sqlite_gave_up_is_an_error_for_all(database: Database) -> None:
    inside, waiting = threading.Event(), threading.Event()

    def first() -> None:
        with database.write() as connection:
            connection.execute(INSERT, {"v": 1})
            inside.set()
            waiting.wait()

    def second() -> None:
        with database.write() as connection:
            # What SQLite itself does when the disk is full.
            connection.connection.driver_connection.execute("ROLLBACK")  # type: ignore[union-attr]

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(first)
        inside.wait()
        two = pool.submit(second)
        turn = database._group._turn  # type: ignore[union-attr]
        while not turn.crowded:
            pass
        waiting.set()
        with pytest.raises((StoreError, sqlite3.OperationalError)):
            two.result()
        with pytest.raises(StoreError):
            one.result()
    assert values(database) == []
    with database.write() as connection:
        connection.execute(INSERT, {"v": 9})
    assert values(database) == [9]


def test_a_file_that_others_hold_is_said_to_be_busy(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memantics.annotation.database.BUSY_MS", 50)
    short = Database(str(tmp_path / "t.db"))
    holder = sqlite3.connect(tmp_path / "t.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(StoreError, match="locked"), short.write():
            pass
    finally:
        holder.execute("ROLLBACK")
        holder.close()
    with short.write() as connection:
        connection.execute(INSERT, {"v": 5})
    assert values(database) == [5]
    short.close()


def test_the_file_is_for_its_owner_alone(database: Database, tmp_path: Path) -> None:
    assert (tmp_path / "t.db").stat().st_mode & 0o077 == 0
    assert database.sqlite
