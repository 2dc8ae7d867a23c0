"""What the tests of all readers do with copies of a release that they wrote themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from memantics.core.data import Source
from memantics.core.errors import InputError


def write_rows(root: Path, rows: object, name: str) -> Path:
    """Write rows into a file below a folder; return the folder."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8")
    return root


def complain(reader: Callable[[Source], object], root: Path) -> str:
    """What a reader says about a copy that it must refuse: one line."""
    with pytest.raises(InputError) as error:
        reader(Source("release", root))
    assert "\n" not in str(error.value)
    return str(error.value)
