"""A row of the cache that is damaged or of another version is a miss; nothing else is lost."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memantics.core.records import Reply
from memantics.models.cache import Cache
from tests.hostile.cachedrows import generate
from tests.hostile.cases import SEED, Case, count_cases, known_and_fresh, noted, read_corpus

TEXTS = ("text", "reasoning", "refusal", "finish", "served_by")


def look_up(folder: Path, case: Case) -> Reply | None:
    """What the cache says when a row holds these bytes; the row beside it must still be found."""
    cache = Cache(folder / "cache.sqlite")
    cache.put(b"sound", Reply("B", tokens_in=3))
    cache.put(b"changed", Reply("C"))
    cache.close()
    with closing(sqlite3.connect(folder / "cache.sqlite")) as rows, rows:
        change = "UPDATE replies SET reply = ? WHERE key = ?"
        rows.execute(change, (bytes.fromhex(case["row"]), b"changed"))
    rows.close()
    cache = Cache(folder / "cache.sqlite")
    try:
        found = cache.get(b"changed")
        assert cache.get(b"sound") == Reply("B", tokens_in=3)
        cache.put(b"changed", Reply("D"))
        assert cache.get(b"changed") == Reply("D")
    finally:
        cache.close()
    return found


@pytest.mark.parametrize("case", read_corpus("cachedrows"), ids=lambda case: str(case["row"]))
def test_known_rows_are_misses(tmp_path: Path, case: Case) -> None:
    assert look_up(tmp_path, case) is None


def test_changed_rows_are_misses_or_replies(tmp_path: Path) -> None:
    for case in known_and_fresh("cachedrows", generate(SEED, count_cases(200))):
        with noted("cachedrows", case):
            found = look_up(tmp_path, case)
            if found is not None:
                assert all(type(getattr(found, name)) is str for name in TEXTS)
                assert type(found.tokens_in) is type(found.tokens_out) is int
