"""An app on a fresh SQLite database for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.annotation.web.visitors import Office, make_office, open_quick


@pytest.fixture
def office(sqlite_file: Path, tmp_path: Path) -> Iterator[Office]:
    service = open_quick(str(sqlite_file), tmp_path / "media")
    yield make_office(service)
    service.close()
