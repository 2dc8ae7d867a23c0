"""Fixtures for all tests of annotation: both databases, and a service over each."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from memantics.annotation.database import Database
from memantics.annotation.service import AnnotationService, open_service
from tests.annotation.postgres import Postgres, start_postgres, why_not
from tests.annotation.team import Clock, quick_hasher

# Every test of annotation runs on both databases; those on PostgreSQL are in the second tier.
KINDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for all tests of a process."""
    if reason := why_not():
        pytest.skip(reason)
    with start_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with all tables and no rows: copying it is cheaper than migrating again."""
    path = tmp_path_factory.mktemp("migrated") / "annotate.db"
    database = Database(str(path))
    database.migrate()
    database.close()
    return path


@pytest.fixture
def sqlite_file(migrated: Path, tmp_path: Path) -> Path:
    """A database of one's own with all tables and no rows."""
    return Path(shutil.copyfile(migrated, tmp_path / "annotate.db"))


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest) -> str:
    """The address of a database with all tables and no rows, once for each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{request.getfixturevalue('sqlite_file')}"
    server: Postgres = request.getfixturevalue("postgres")
    return server.make_tables()


@pytest.fixture(params=KINDS)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database without tables, once for each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.db'}"
    server: Postgres = request.getfixturevalue("postgres")
    return server.make_database()


@pytest.fixture
def clock() -> Clock:
    """A clock that tests move."""
    return Clock()


@pytest.fixture
def service(database_url: str, tmp_path: Path, clock: Clock) -> Iterator[AnnotationService]:
    """A service over an empty database, with a clock that tests move."""
    made = open_service(database_url, tmp_path / "media", clock=clock, hasher=quick_hasher())
    yield made
    made.close()
