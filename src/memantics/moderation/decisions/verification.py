"""Verify a decision log: changed, removed and reordered lines, and changed texts and images.

The hash chain finds every change by somebody who does not compute the hashes again. Whoever can
write to the database can do that, or remove the last lines together with the head. Only a head that
was noted elsewhere (the anchor) finds it. SQLite stores values of any type: a line whose values
cannot be hashed was changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memantics.core.errors import StoreError
from memantics.moderation.decisions.cases import hash_content
from memantics.moderation.decisions.log import (
    FIRST,
    DecisionLog,
    LogLine,
    find_start,
    hash_line,
    name_image,
    read_head,
    read_line,
    read_stored_bytes,
)

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

_MISSING = "the line is missing"


@dataclass(frozen=True, slots=True)
class LogFault:
    """A fault of the log: the number of the line, and what is wrong."""

    seq: int
    problem: str


def find_faults(log: DecisionLog, anchor: tuple[int, str] | None = None) -> Iterator[LogFault]:
    """Yield changed, removed and reordered lines of a log, and changed texts and images in it.

    ``anchor`` is the number and hash of a line that was noted earlier: a log that was rewritten or
    shortened as a whole is consistent, but no longer contains it.
    """
    import sqlalchemy as sa

    table = log.tables["decision_log"]
    with log.read() as connection:
        texts = dict(_hash_contents(log, connection))
        start = seq, prev = find_start(connection, table)
        noted = start[1] if anchor and anchor[0] == start[0] else None
        for row in connection.execute(sa.select(table).order_by(table.c.seq)).yield_per(1000):
            if not isinstance(row.seq, int) or row.seq <= seq:
                yield LogFault(seq + 1, "the number of a line was changed")
                continue
            yield from _find_gap(seq + 1, row.seq - 1)
            if not _has_own_hash(row):
                yield LogFault(row.seq, "the line was changed")
            elif row.prev != prev and row.seq == seq + 1:
                yield LogFault(row.seq, "the line does not follow the one before it")
            yield from _find_changed_text(read_line(row), texts)
            if anchor is not None and row.seq == anchor[0]:
                noted = row.hash
            seq, prev = row.seq, row.hash
        yield from _check_head(log, connection, seq, prev)
    if anchor is not None and noted != anchor[1]:
        lost = 0 < anchor[0] < start[0]
        yield LogFault(
            anchor[0],
            "retention deleted the line, so the noted head proves nothing; note a newer one"
            if lost
            else "the line does not have the hash that was noted",
        )


def _find_gap(first: int, last: int) -> Iterator[LogFault]:
    if first <= last:
        yield LogFault(first, _MISSING if first == last else f"all lines to {last} are missing")


def _has_own_hash(row: Any) -> bool:
    try:
        own = hash_line(row.seq, row.kind, row.case_id, row.at, row.body, row.prev)
    except TypeError:  # such as bytes
        return False
    return bool(own == row.hash)


def _check_head(
    log: DecisionLog, connection: Connection, seq: int, prev: object
) -> Iterator[LogFault]:
    """Compare the last line with the head, which finds removed last lines."""
    try:
        known = read_head(connection, log.tables["decision_head"]) or (0, FIRST)
    except StoreError as error:
        yield LogFault(seq, str(error))
        return
    yield from _find_gap(seq + 1, known[0])
    if known[0] < seq or (known[0] == seq and seq and known[1] != prev):
        yield LogFault(seq, "the last line is not the one that the head names")


def _hash_contents(log: DecisionLog, connection: Connection) -> Iterator[tuple[str, str]]:
    import sqlalchemy as sa

    for row in connection.execute(sa.select(log.tables["decision_contents"])).yield_per(1000):
        yield row.content_key, hash_content(read_stored_bytes(row.content_key, str(row.text)))


def _find_changed_text(line: LogLine, texts: Mapping[str, str]) -> Iterator[LogFault]:
    """Compare a stored text, image or statement with the hash in its line."""
    body = line.body
    if line.kind == "decided" and body.get("content_type") == "text":
        key, noted, what = line.case, body.get("content_sha256"), "text"
    elif line.kind == "decided" and body.get("content_type") == "image":
        key, noted, what = name_image(line.case), body.get("content_sha256"), "image"
    elif line.kind == "appealed":
        key, noted, what = str(body.get("appeal")), body.get("statement_sha256"), "statement"
    else:
        return
    if texts.get(key, noted) != noted:
        yield LogFault(line.seq, f"the stored {what} was changed")
