"""Whatever a source holds: rows with reasons, or one line; bounded in time, memory and place."""

from __future__ import annotations

import gzip
import io
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from memantics.moderation.screening import read_rows
from memantics.moderation.verdict import REVIEW
from tests.commands import Ran, Shell
from tests.hostile.cases import SEED, Case, count_cases, noted, read_corpus, write_case
from tests.hostile.sources import generate, picture, write
from tests.scale.inline import InlineEngine

pytest.importorskip("pyarrow")

SECONDS, GROWTH = 20, 400 * 1024  # KB
KNOWN = read_corpus("sources")
SECRET = picture("purple")  # lies beside the folder of the source


class Late(BaseException):
    """Not swallowed where one meme must not take its shard along."""


@pytest.fixture(autouse=True)
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker does, in this process: starting others takes seconds a case."""
    monkeypatch.setattr(
        import_module("memantics.moderation.screen"), "PoolEngine", lambda *_: InlineEngine()
    )


@contextmanager
def bounded(seconds: int = SECONDS) -> Iterator[None]:
    """Fails what takes too long, or too much memory."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Late(f"no end after {seconds} s")

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    old = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < GROWTH, f"{grown // 1024} MB more"


def try_source(shell: Shell, folder: Path, case: Case) -> Ran:
    """Screen the source of a case and look at what came out."""
    folder.mkdir()
    (folder / "secret.png").write_bytes(SECRET)
    (folder / "in").mkdir()
    path = write(case, folder / "in")
    there = sorted(folder.rglob("*"))
    with bounded():
        ran = shell.run("screen", path, "--out", folder / "out")
    check(ran, folder / "out")
    left = [path for path in folder.rglob("*") if (folder / "out") not in (path, *path.parents)]
    assert sorted(left) == there
    return ran


def check(ran: Ran, out: Path) -> None:
    said = ran.out + ran.err
    assert "Traceback" not in said, said
    assert ran.code in (0, 1, 2), ran
    rows = list(read_rows(out)) if (out / "parts").exists() else []
    if ran.code == 2:
        errors = [line for line in ran.err.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1, ran.err
        assert errors[0].isprintable(), errors
        assert len(errors[0]) < 1200, errors
    else:
        assert rows or "0 memes: " in ran.out, ran
        assert ran.code == int(any(row["status"] == "failed" for row in rows)), ran
    for row in rows:
        assert row["id"], row
        assert row["status"] in ("scored", "not_scored", "failed"), row
        # Rows that people decide say why they do.
        assert bool(row["reason"]) == (row["status"] != "scored" or row["label"] == REVIEW), row
        assert row["sha256"] != sha256(SECRET).hexdigest(), row


@pytest.mark.parametrize("case", KNOWN, ids=write_case)
def test_known_sources(shell: Shell, case: Case) -> None:
    try_source(shell, shell.folder / "try", case)


@pytest.mark.slow
def test_sources_that_were_changed(shell: Shell) -> None:
    broken = []
    for number, case in enumerate(generate(SEED, count_cases(24))):
        try:
            with noted("sources", case):
                try_source(shell, shell.folder / str(number), case)
        except (Exception, SystemExit, Late) as error:  # noqa: BLE001 - all of them are wanted
            broken.append(f"{write_case(case)}: {error!r}"[:1000])
    assert not broken, "\n".join(broken)


def pack_table(**columns: Any) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, use_dictionary=True)
    return out.getvalue()


def repeat(value: str | bytes, rows: int) -> Any:
    """A column whose value stands in the file once."""
    import pyarrow as pa

    kind = pa.string() if isinstance(value, str) else pa.binary()
    return pa.DictionaryArray.from_arrays(
        pa.nulls(rows, pa.int32()).fill_null(0), pa.array([value], kind)
    )


SMALL = {
    "texts.parquet": lambda: pack_table(text=repeat("x" * 800_000, 640)),
    "images.parquet": lambda: pack_table(image=repeat(bytes(1_000_000), 1_000)),
    "line.jsonl.gz": lambda: gzip.compress(bytes(600_000_000), 1),
    "texts.jsonl.gz": lambda: gzip.compress((b'{"text":"%b"}\n' % (b"x" * 1_000_000)) * 600, 1),
    "ids.jsonl.gz": lambda: gzip.compress(
        (b'{"id":"%b","text":"x"}\n' % (b"x" * 999_999)) * 600, 1
    ),
    "line.csv.gz": lambda: gzip.compress(b"id,text\n" + b"x" * 600_000_000, 1),
    "row.csv.gz": lambda: gzip.compress(b'text\n"' + (b'\n","' * 5 + b"x" * 50_000) * 12_000, 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SMALL))
def test_a_small_file_fills_no_memory(shell: Shell, name: str) -> None:
    """Each would take half a gigabyte to several, all of it at once."""
    path = shell.folder / name
    path.write_bytes(SMALL[name]())
    with bounded(300):
        ran = shell.run("screen", path, "--out", "out", "--readings", "none")
    check(ran, shell.folder / "out")


def test_a_table_that_claims_absurdly_many_rows_is_refused(shell: Shell) -> None:
    path = shell.folder / "a.parquet"
    path.write_bytes(pack_table(image=repeat(b"", 2_000_000)))
    assert "declares 2,000,000 rows in" in shell.refused("screen", path)
    path.write_bytes(pack_table(text=repeat("good morning", 1_000)))
    assert shell.run("screen", path).out.startswith("1,000 memes")


@pytest.mark.parametrize("kind", ["1", "2", "3", "6", "S"])
def test_a_member_that_is_a_link_or_has_holes_says_so(shell: Shell, kind: str) -> None:
    """Links were passed over, and of a file with holes other bytes were read than it holds."""
    case = {"form": "tar", "name": "a.png", "header": ["type", kind.encode().hex()]}
    try_source(shell, shell.folder / "try", case)
    rows = {row["id"]: row for row in read_rows(shell.folder / "try" / "out")}
    assert rows["a"]["status"] == "failed"
    assert "stored as a link, a device or with holes" in rows["a"]["reason"]
