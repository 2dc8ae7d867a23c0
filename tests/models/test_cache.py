"""The cache of replies: what makes a key, when it is written, and what is said when it fails."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from pydantic import JsonValue

from memantics.core import files
from memantics.core.errors import StoreError
from memantics.core.records import Form, Image, Message, Reply, Request, Sampling
from memantics.models.cache import Cache, cache_key, picture_digest, request_digest
from tests.models.forms import draw

ASKED = Request((Message("user", ("What?",)),), Form("", ()))


def count(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        (found,) = database.execute("SELECT COUNT(*) FROM replies").fetchone()
    return int(found)


@pytest.mark.parametrize(("stored", "written"), [(127, 0), (128, 128), (129, 128)])
def test_replies_are_written_in_lots(stored: int, written: int, tmp_path: Path) -> None:
    path = tmp_path / "new" / "cache.sqlite"
    cache = Cache(path)
    for number in range(stored):
        cache.put(b"%d" % number, Reply(str(number)))
    assert count(path) == written
    for number in (0, stored - 1):
        found = cache.get(b"%d" % number)
        assert found is not None
        assert found.text == str(number)
    assert cache.get(b"none") is None
    cache.flush()
    assert count(path) == stored
    cache.flush()
    cache.close()
    assert count(path) == stored


def test_processes_share_a_cache(tmp_path: Path) -> None:
    one, other = Cache(tmp_path / "c.sqlite"), Cache(tmp_path / "c.sqlite")
    one.put(b"k", Reply("first"))
    assert other.get(b"k") is None
    one.close()
    assert other.get(b"k") == Reply("first")
    other.put(b"k", Reply("second"))
    other.flush()
    third = Cache(tmp_path / "c.sqlite")
    assert third.get(b"k") == Reply("second"), "the last one counts"
    for cache in (other, third):
        cache.close()


@pytest.mark.parametrize(
    ("masses", "found"),
    [
        ({"A": 0.9, "B": 0.1}, {"A": 0.9, "B": 0.1}),
        ({}, {}),
        (None, None),
    ],
)
def test_probabilities_come_back(
    masses: dict[str, float] | None, found: dict[str, float] | None, tmp_path: Path
) -> None:
    cache = Cache(tmp_path / "c.sqlite")
    cache.put(b"k", Reply("A", masses=masses))
    assert cache.get(b"k") == Reply("A", masses=found)
    cache.close()


@pytest.mark.parametrize("masses", [{"A": 1}, {"A": "0.5"}, {"A": 0.5, "B": None}, [0.5], 0.5])
def test_damaged_probabilities_are_a_miss(masses: JsonValue, tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    cache = Cache(path)
    cache.put(b"k", Reply("A"))
    cache.flush()
    with closing(sqlite3.connect(path)) as database, database:
        body = orjson.dumps({"text": "A", "masses": masses})
        database.execute("UPDATE replies SET reply = ?", (body,))
    assert cache.get(b"k") is None
    cache.close()


def test_secrets_are_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_known", {})
    files.learn_secrets("a-long-secret")
    cache = Cache(tmp_path / "c.sqlite")
    cache.put(b"k", Reply("my key is a-long-secret"))
    assert cache.get(b"k") == Reply("my key is ***")
    cache.close()


def test_a_cache_that_cannot_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError) as caught:
        Cache(path)
    assert str(caught.value) == (
        f"cache {path} cannot be opened: file is not a database; "
        "set MEMANTICS_HOME to a writable folder, or use --no-cache"
    )
    with pytest.raises(StoreError, match=r"cannot be opened: .*File exists"):
        Cache(path / "below.sqlite")


def test_a_cache_that_fails_while_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    cache = Cache(path)
    cache.put(b"k", Reply("x"))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("ALTER TABLE replies RENAME TO gone")
    with pytest.raises(StoreError) as caught:
        cache.flush()
    assert str(caught.value) == (
        f"cache {path} cannot be written: no such table: replies; "
        "free disk space, or use --no-cache"
    )
    with pytest.raises(StoreError) as caught:
        cache.get(b"other")
    assert str(caught.value) == (
        f"cache {path} cannot be read: no such table: replies; delete that file, or use --no-cache"
    )
    # Nothing that waits is lost: it is written once the cause is gone.
    assert cache.get(b"k") == Reply("x")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("ALTER TABLE gone RENAME TO replies")
    cache.close()
    assert count(path) == 1


def test_everything_that_determines_an_answer_is_in_the_key() -> None:
    keys = {
        cache_key({"name": "m"}, Sampling(), "d", 0),
        cache_key({"name": "n"}, Sampling(), "d", 0),
        cache_key({"name": "m"}, Sampling(temperature=0.5), "d", 0),
        cache_key({"name": "m"}, Sampling(), "e", 0),
        cache_key({"name": "m"}, Sampling(), "d", 1),
    }
    assert len(keys) == 5
    assert cache_key({"a": 1, "b": 2}, Sampling(), "d", 0) == cache_key(
        {"b": 2, "a": 1}, Sampling(), "d", 0
    )


def test_digests_of_images_are_those_of_their_bytes(tmp_path: Path) -> None:
    one, copy, other = (
        Image(draw(tmp_path / name, text))
        for name, text in (("a.png", "A"), ("b.png", "A"), ("c.png", "C"))
    )

    def pose(*parts: str | Image, schema: dict[str, JsonValue] | None = None) -> Request:
        return replace(ASKED, messages=(Message("user", parts),), schema=schema)

    assert request_digest(pose("?", one)) == request_digest(pose("?", copy))
    assert request_digest(pose("?", one)) != request_digest(pose("?", other))
    assert request_digest(pose("?", one)) != request_digest(pose(one, "?"))
    # Without its texts, a request is its images and its schema.
    assert picture_digest(pose("?", one)) == picture_digest(pose(copy, "!"))
    assert picture_digest(pose(one, other)) != picture_digest(pose(other, one))
    assert picture_digest(pose(one)) != picture_digest(pose(one, schema={"type": "object"}))
    ordered = ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    first, second = (picture_digest(pose(one, schema={**schema})) for schema in ordered)
    assert first == second
