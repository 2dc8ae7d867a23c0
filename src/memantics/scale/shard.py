"""Run one shard: every reference becomes exactly one row of one Parquet part."""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memantics.core.errors import MemanticsError
from memantics.scale.records import Process, Ref, Row, Shard, ShardPart, Work, escape_all, part_path

if TYPE_CHECKING:
    import pyarrow as pa


def run_shard(
    shard: Shard, work: Work, process: Process, folder: Path, *, only_failed: bool = False
) -> ShardPart:
    """Process a shard and put its part in place in one step.

    With ``only_failed`` the rows of the existing part are kept and only failed ones done again.
    """
    started = time.process_time()
    kept = _read_settled(part_path(folder, shard), len(shard.refs)) if only_failed else {}
    todo = [place for place in range(len(shard.refs)) if place not in kept]
    done = process_refs([shard.refs[place] for place in todo], work, process)
    rows = kept | dict(zip(todo, done, strict=True))
    ordered = [rows[place] for place in range(len(shard.refs))]
    return write_part(shard, work, ordered, folder, time.process_time() - started)


def process_refs(refs: Sequence[Ref], work: Work, process: Process) -> list[Row]:
    """A row for each reference, in order; what fails together is tried one by one."""
    sound = [ref for ref in refs if not ref.fault]
    try:
        made = process(sound) if sound else []
        if len(made) != len(sound):
            raise MemanticsError(f"{len(made)} rows for {len(sound)} memes")
    except Exception:  # noqa: BLE001 - one meme must not take its shard along: see below
        made = [_process_alone(ref, work, process) for ref in sound]
    rows = iter(made)
    return [work.fail(ref, ref.fault) if ref.fault else next(rows) for ref in refs]


def _process_alone(ref: Ref, work: Work, process: Process) -> Row:
    try:
        (row,) = process([ref])
    except Exception as error:  # noqa: BLE001 - the reason becomes the row's
        return work.fail(ref, f"{type(error).__name__}: {error}"[:500])
    return row


def write_part(
    shard: Shard, work: Work, rows: Sequence[Row], folder: Path, cpu: float
) -> ShardPart:
    """Write a part under a name of its own, flush it to disk, then give it its name."""
    import pyarrow.parquet as pq

    path = part_path(folder, shard)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        pq.write_table(_make_table(rows, work.schema), partial)
        body = partial.read_bytes()
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    statuses = dict(sorted(Counter(str(row["status"]) for row in rows).items()))
    digest = hashlib.sha256(body).hexdigest()
    return ShardPart(
        shard.number, shard.key, path.name, len(rows), len(body), digest, statuses, cpu
    )


def _make_table(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    try:
        return pa.Table.from_pylist(list(rows), schema=schema)
    except UnicodeEncodeError:  # ids and reasons with names of files that are not UTF-8
        return pa.Table.from_pylist([escape_all(row) for row in rows], schema=schema)


def _read_settled(path: Path, count: int) -> dict[int, Row]:
    """Rows of an earlier part that did not fail, by their place."""
    import pyarrow.parquet as pq

    rows: list[Row] = pq.read_table(path).to_pylist() if path.is_file() else []
    if len(rows) != count:
        return {}
    return {place: row for place, row in enumerate(rows) if row["status"] != "failed"}
