"""Caches and call logs: what counts as the same request, and what a damaged file costs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from memantics.core.files import AppendOnlyFile, read_whole_lines
from memantics.core.records import Form, Message, Reply, Request, Sampling
from memantics.models.cache import Cache, cache_key, request_digest

ASKED = Request((Message("user", ("What?",)),), Form("", ()), schema={"type": "object"})
KEY = b"k" * 32
WHOLE = Reply("B", reasoning="because", tokens_in=7)


@pytest.mark.parametrize(
    "other",
    [
        replace(ASKED, schema=None),
        replace(ASKED, schema={"type": "array"}),
        replace(ASKED, messages=(Message("system", ("What?",)),)),
        replace(ASKED, messages=(Message("user", ("What", "?")),)),
    ],
)
def test_another_request_has_another_digest(other: Request) -> None:
    assert request_digest(ASKED) != request_digest(other)


def test_the_same_request_has_the_same_digest_whatever_the_order_of_its_schema() -> None:
    one = replace(ASKED, schema={"type": "object", "title": "t"})
    other = replace(ASKED, schema={"title": "t", "type": "object"}, sampling=Sampling(seed=5))
    assert request_digest(one) == request_digest(other)
    keys = {cache_key({}, own.sampling, request_digest(own), 0) for own in (one, other)}
    assert len(keys) == 2


def store(path: Path, body: object) -> Cache:
    cache = Cache(path)
    cache.put(KEY, WHOLE)
    cache.flush()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE replies SET reply = ?", (body,))
    database.close()
    return cache


FIELDS = orjson.loads(orjson.dumps(WHOLE))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"null",
        b"[]",
        b'"B"',
        5,
        1.5,
        b"{}",
        orjson.dumps(FIELDS | {"text": None}),
        orjson.dumps(FIELDS | {"text": 5}),
        orjson.dumps(FIELDS | {"tokens_in": "7"}),
        orjson.dumps(FIELDS | {"tokens_in": True}),
        orjson.dumps(FIELDS | {"tokens_in": 7.0}),
        orjson.dumps(FIELDS | {"audio": ""}),
        orjson.dumps({name: value for name, value in FIELDS.items() if name != "text"}),
    ],
)
def test_a_damaged_row_or_one_of_another_version_is_a_miss(tmp_path: Path, body: object) -> None:
    cache = store(tmp_path / "cache.sqlite", body)
    assert cache.get(KEY) is None
    cache.put(KEY, WHOLE)
    cache.flush()
    assert cache.get(KEY) == WHOLE
    cache.close()


@pytest.mark.parametrize("body", [orjson.dumps(FIELDS), orjson.dumps({"text": "B"})])
def test_a_whole_row_is_found(tmp_path: Path, body: bytes) -> None:
    cache = store(tmp_path / "cache.sqlite", body)
    found = cache.get(KEY)
    cache.close()
    assert found is not None
    assert found.text == "B"


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 200_000])
@pytest.mark.parametrize("before", [b"", b'{"n": 1}\n', b"x" * 70_000 + b"\n"])
def test_a_torn_tail_of_any_length_is_dropped(tmp_path: Path, size: int, before: bytes) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(before + b"y" * size)
    call_log = AppendOnlyFile(path, path)
    assert path.read_bytes() == before
    call_log.append(b"z\n")
    call_log.close()
    lines = [line for _, line in read_whole_lines(path)]
    assert lines == [line for line in (before, b"z\n") if line]
