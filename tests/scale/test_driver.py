"""Shards end once, whatever dies in between."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memantics.core.errors import InputError, StoreError
from memantics.core.files import lock_folder
from memantics.moderation.scale.driver import (
    MANIFEST,
    ScaleProgress,
    ScaleResult,
    ScaleSettings,
    read_manifest,
    run_shards,
)
from memantics.moderation.scale.engines import PoolEngine
from memantics.moderation.scale.records import Ref
from memantics.moderation.scale.sources import count_ahead, read_sources
from tests.places import ROOT
from tests.scale.inline import InlineEngine
from tests.scale.work import Measure, Unready


def texts(*words: str) -> list[Ref]:
    return [Ref(f"m{place}", text=word) for place, word in enumerate(words)]


def run(refs: list[Ref], out: Path, **settings: Any) -> ScaleResult:
    chosen = ScaleSettings(out, {"work": "measure"}, **({"shard_size": 3} | settings))
    return run_shards(refs, Measure(), chosen, PoolEngine(2))


def read(out: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    parts = sorted((out / "parts").glob("*.parquet"))
    return [row for part in parts for row in pq.read_table(part).to_pylist()]


def digests(out: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (out / "parts").iterdir()
    }


@pytest.mark.slow
def test_every_meme_becomes_one_row_in_order(tmp_path: Path) -> None:
    done = run(texts(*("x" * n for n in range(8))), tmp_path)
    assert [row["n"] for row in read(tmp_path)] == list(range(8))
    assert (done.rows, done.done_now, len(done.parts)) == (8, 8, 3)
    assert done.statuses == {"scored": 8}


@pytest.mark.slow
def test_a_second_call_does_nothing_again(tmp_path: Path) -> None:
    refs = texts("a", "bb", "ccc", "dddd")
    run(refs, tmp_path)
    before = digests(tmp_path)
    done = run(refs, tmp_path)
    assert (done.rows, done.done_now) == (4, 0)
    assert digests(tmp_path) == before


@pytest.mark.slow
def test_only_what_is_missing_damaged_or_changed_is_done_again(tmp_path: Path) -> None:
    refs = texts(*"abcdefghi")
    run(refs, tmp_path)
    parts = sorted((tmp_path / "parts").iterdir())
    parts[0].unlink()
    parts[1].write_bytes(parts[1].read_bytes()[:-1] + b"?")
    assert run(refs, tmp_path).done_now == 6
    changed = [*refs[:8], Ref("m8", text="longer")]
    assert run(changed, tmp_path).done_now == 3
    assert [row["n"] for row in read(tmp_path)] == [1] * 8 + [6]


@pytest.mark.slow
def test_a_shorter_source_leaves_no_part_behind(tmp_path: Path) -> None:
    refs = texts(*"abcdefghi")
    run(refs, tmp_path)
    assert run(refs[:4], tmp_path).rows == 4
    assert len(read(tmp_path)) == 4


def test_a_meme_that_raises_is_one_failed_row(tmp_path: Path) -> None:
    done = run(texts("a", "raise", "ccc"), tmp_path)
    rows = read(tmp_path)
    assert [row["status"] for row in rows] == ["scored", "failed", "scored"]
    assert rows[1]["reason"] == "ValueError: as planned"
    assert done.statuses == {"scored": 2, "failed": 1}


@pytest.mark.slow
def test_a_meme_that_kills_its_worker_is_one_failed_row(tmp_path: Path) -> None:
    words = ["a", "die", "ccc", "dd", "e", "f", "g"]
    done = run(texts(*words), tmp_path)
    rows = read(tmp_path)
    assert [row["id"] for row in rows if row["status"] == "failed"] == ["m1"]
    assert rows[1]["reason"] == "the worker process died while processing it"
    assert done.rows == 7


def test_workers_that_cannot_start_are_no_fault_of_the_memes(tmp_path: Path) -> None:
    chosen = ScaleSettings(tmp_path, {"work": "measure"})
    with pytest.raises(StoreError, match="exited at start"):
        run_shards(texts("a"), Unready(), chosen, PoolEngine(1))
    assert read(tmp_path) == []


@pytest.mark.slow
def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    """Workers are new processes, which must not run the script again that started them."""
    script = tmp_path / "script.py"
    script.write_text(
        "from tests.scale.test_driver import Path, run, texts\n"
        "print(dict(run(texts('a', 'bb'), Path('out')).statuses))\n",
        encoding="utf-8",
    )
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    ended = subprocess.run(
        [sys.executable, script.name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.stdout, ended.stderr) == ("{'scored': 2}\n", "")


@pytest.mark.slow
def test_failed_rows_alone_are_tried_again_when_asked(tmp_path: Path) -> None:
    image = tmp_path / "late.png"
    refs = [Ref("a", text="a"), Ref("b", "file", str(image)), Ref("c", text="ccc")]
    out = tmp_path / "out"
    assert run(refs, out).statuses == {"scored": 2, "failed": 1}
    image.write_bytes(b"12345")
    assert run(refs, out).done_now == 0
    assert run(refs, out, retry_failed=True).statuses == {"scored": 3}
    assert [row["n"] for row in read(out)] == [1, 5, 3]


def test_an_id_stands_for_one_meme(tmp_path: Path) -> None:
    refs = [Ref("a", text="a"), Ref("a", text="a"), Ref("a", text="other"), Ref("b", text="b")]
    done = run(refs, tmp_path)
    rows = read(tmp_path)
    assert done.repeated == 1
    assert [(row["id"], row["status"]) for row in rows] == [
        ("a", "scored"),
        ("a", "failed"),
        ("b", "scored"),
    ]
    assert "is already used by another meme" in rows[1]["reason"]


def test_other_settings_are_refused(tmp_path: Path) -> None:
    run(texts("a"), tmp_path)
    with pytest.raises(InputError, match="other settings: shard_size"):
        run(texts("a"), tmp_path, shard_size=4)


@pytest.mark.slow
def test_what_was_made_of_other_sources_is_not_lost(tmp_path: Path) -> None:
    run(texts("a", "b"), tmp_path, sources=("one",))
    with pytest.raises(InputError, match="has results of the source one, which would be lost"):
        run(texts("c"), tmp_path, sources=("two",))
    assert [row["id"] for row in read(tmp_path)] == ["m0", "m1"]
    done = run(texts("a", "b", "c", "d"), tmp_path, sources=("two", "one"))
    assert done.rows == 4


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    lock = lock_folder(tmp_path)
    with pytest.raises(StoreError, match="another process"):
        run(texts("a"), tmp_path)
    lock.close()


@pytest.mark.slow
def test_a_torn_last_line_of_the_manifest_costs_one_shard(tmp_path: Path) -> None:
    refs = texts(*"abcdef")
    run(refs, tmp_path)
    path = tmp_path / MANIFEST
    path.write_bytes(path.read_bytes()[:-10])
    assert run(refs, tmp_path).done_now == 3
    assert len(read_manifest(tmp_path)[1]) == 2


def test_a_damaged_manifest_says_where(tmp_path: Path) -> None:
    run(texts("a"), tmp_path)
    with (tmp_path / MANIFEST).open("ab") as file:
        file.write(b"{}\n")
    with pytest.raises(StoreError, match="line 3"):
        run(texts("a"), tmp_path)


def test_nothing_is_nothing(tmp_path: Path) -> None:
    done = run([], tmp_path)
    assert (done.rows, done.parts, done.statuses) == (0, (), {})


def wait_for(count: Callable[[], int | None]) -> int | None:
    end = time.monotonic() + 30
    while count() is None and time.monotonic() < end:
        time.sleep(0.01)
    return count()


def test_progress_says_rate_and_time_left(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "a", "text": "x"}\n' * 2 + '{"text": "y"}\n' * 3, encoding="utf-8")
    seen: list[ScaleProgress] = []
    chosen = ScaleSettings(tmp_path / "out", {}, shard_size=2)
    with count_ahead([path]) as count:
        assert wait_for(count) == 5
        run_shards(read_sources([path]), Measure(), chosen, InlineEngine(), seen.append, count)
    # Five lines, one of which comes twice.
    assert [(now.rows, now.total) for now in seen] == [(2, 4), (4, 4)]
    assert seen[0].left == pytest.approx(2 / seen[0].rate)
    assert seen[1].left == 0
    assert ScaleProgress(2, {}, 1, 4.0, 0.0, total=4).left is None
    with count_ahead(["-"]) as count, count_ahead([tmp_path / "nowhere"]) as lost:
        time.sleep(0.05)
        assert (count(), lost()) == (None, None)


def test_memes_are_counted_as_they_are_read(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    lines = [
        '{"text": "a"}',
        "",
        '{"text": "b", "kept": false}',
        '{"text": "c", "kept": true}',
        "x",
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "b.csv").write_text('text\n"two\nlines"\nd\n', encoding="utf-8")
    pq.write_table(pa.table({"text": ["e", "f", None]}), tmp_path / "c.parquet")
    files = [tmp_path / name for name in ("a.jsonl", "b.csv", "c.parquet")]
    for sources in (files[:1], files[1:2], files):
        with count_ahead(sources) as count:
            assert wait_for(count) == len(list(read_sources(sources)))
