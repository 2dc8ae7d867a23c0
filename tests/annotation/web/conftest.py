"""An app on a fresh database for each test, once for each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.annotation.web.visitors import Office, make_office, open_quick


@pytest.fixture
def office(database_url: str, tmp_path: Path) -> Iterator[Office]:
    service = open_quick(database_url, tmp_path / "media")
    yield make_office(service)
    service.close()
