"""Fixtures for all tests of annotation: both databases, and a service over each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memantics.annotate.service import Service, open_service
from tests.annotate.postgres import Postgres, start_postgres, why_not
from tests.annotate.team import Clock, quick_hasher


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for all tests of a process."""
    if reason := why_not():
        pytest.skip(reason)
    with start_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, once for each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'annotate.db'}"
    server: Postgres = request.getfixturevalue("postgres")
    return server.make_database()


@pytest.fixture
def clock() -> Clock:
    """A clock that tests move."""
    return Clock()


@pytest.fixture
def service(database_url: str, tmp_path: Path, clock: Clock) -> Iterator[Service]:
    """A service over an empty database, with a clock that tests move."""
    made = open_service(database_url, tmp_path / "media", clock=clock, hasher=quick_hasher())
    yield made
    made.close()


@pytest.fixture
def sqlite_service(tmp_path: Path, clock: Clock) -> Iterator[Service]:
    """A service on SQLite alone, for what does not depend on the database."""
    url = f"sqlite:///{tmp_path / 'annotate.db'}"
    made = open_service(url, tmp_path / "media", clock=clock, hasher=quick_hasher())
    yield made
    made.close()
