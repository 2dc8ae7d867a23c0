"""The decision log: append-only, hash-chained, on SQLite or PostgreSQL.

Each line has a number, a canonical JSON body, the hash of the line before, and its own hash over
all of these. The table ``decision_head`` repeats the last number and hash, so that a removed last
line is found, too. A transaction writes line, head and outgoing webhooks together: after a kill,
either all of them are there or none. On SQLite ``synchronous = FULL`` puts an accepted decision on
disk before :meth:`DecisionLog.append` returns; on PostgreSQL one lock orders the writers.

Texts, images and statements of posters are in a table of their own (``decision_contents``), from
which retention deletes them. The log has only their hashes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson
from pydantic import JsonValue

from memantics.core.errors import InputError, StoreError, need_packages
from memantics.core.registry import home

if TYPE_CHECKING:
    import sqlalchemy as sa
    from sqlalchemy.engine import Connection

LineKind = Literal["decided", "appealed", "upheld", "overturned", "retention"]
FIRST = "0" * 64  # the hash before the first line
_LOCK = 5_417_235  # arbitrary key of the PostgreSQL lock of this log
_BUSY_MS = 15_000
_START = "check --db; 'memantics decisions record' or 'memantics serve --decisions' starts a log"
_WAITING, _DELIVERED, _DEAD = "waiting", "delivered", "dead"
_IMAGE = "/image"  # end of the key of a stored image
_PACKED = "\x1abase64:"  # start of a stored text that PostgreSQL would refuse as it is


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of the log; ``case`` is the id of the decision that it is about."""

    seq: int
    kind: str
    case: str
    at: float
    body: Mapping[str, JsonValue]
    prev: str
    hash: str


@dataclass(frozen=True, slots=True)
class StoredContent:
    """A stored text with the time at which retention may delete it (None: never).

    The text of an image is its base64; see :func:`store_image`.
    """

    key: str
    text: str
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class OutgoingEvent:
    """An event for one webhook URL; ``state`` is waiting, delivered or dead."""

    id: int
    url: str
    event: str
    body: str
    state: str
    attempts: int
    next_at: float
    error: str


def name_image(decision: str) -> str:
    """Return the key under which the image of a decision is stored.

    >>> name_image("dec-1")
    'dec-1/image'
    """
    return decision + _IMAGE


def store_image(decision: str, data: bytes, expires_at: float | None = None) -> StoredContent:
    """Return the content that stores the image of a decision."""
    return StoredContent(name_image(decision), base64.b64encode(data).decode("ascii"), expires_at)


def pack_text(text: str) -> str:
    r"""Encode a text for storage: PostgreSQL rejects zero bytes, every database lone surrogates.

    >>> pack_text("a\0b"), unpack_text(pack_text("a\0b")), pack_text("ab")
    ('\x1abase64:YQBi', 'a\x00b', 'ab')
    """
    data = text.encode("utf-8", "replace")
    if b"\0" in data or text.startswith(_PACKED):
        return _PACKED + base64.b64encode(data).decode("ascii")
    return data.decode()


def unpack_text(text: str) -> str:
    """Return a text that :func:`pack_text` made; a damaged one is returned as it is."""
    if text.startswith(_PACKED):
        with suppress(ValueError):  # of base64, or of UTF-8
            return base64.b64decode(text.removeprefix(_PACKED), validate=True).decode()
    return text


def is_known_form(decision: str) -> bool:
    r"""Return whether a text can be the id of a decision; a database refuses some others.

    >>> is_known_form("dec-1"), is_known_form("a\0b"), is_known_form("\udcff")
    (True, False, False)
    """
    return decision.isascii() and decision.isprintable()


def read_stored_bytes(key: str, text: str) -> bytes:
    """Return the bytes of a stored text or image; of a damaged image, those of its text.

    >>> read_stored_bytes("dec-1/image", "aGk="), read_stored_bytes("dec-1", "aGk=")
    (b'hi', b'aGk=')
    """
    if key.endswith(_IMAGE):
        try:
            return base64.b64decode(text.encode("ascii", "replace"), validate=True)
        except binascii.Error:
            pass
    return unpack_text(text).encode("utf-8", "replace")


def hash_line(seq: int, kind: str, case: str, at: float, body: str, prev: str) -> str:
    """Hash a line with the hash of the line before.

    >>> hash_line(1, "decided", "d", 0.0, "{}", FIRST)[:8]
    'c8c7f40f'
    """
    packed = orjson.dumps([seq, kind, case, at, body, prev])
    return hashlib.sha256(packed).hexdigest()


def new_id(kind: str) -> str:
    """Return a new id that cannot be guessed, such as ``dec-…``."""
    return f"{kind}-{secrets.token_hex(16)}"


def make_tables() -> dict[str, sa.Table]:
    """Define the tables of the log; their names do not collide with those of the annotation app."""
    import sqlalchemy as sa

    meta = sa.MetaData()
    hashes = sa.String(64)
    sa.Table(
        "decision_log",
        meta,
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("case_id", sa.String(80), nullable=False, index=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("prev", hashes, nullable=False),
        sa.Column("hash", hashes, nullable=False),
    )
    sa.Table(
        "decision_head",
        meta,
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("hash", hashes, nullable=False),
    )
    sa.Table(
        "decision_contents",
        meta,
        sa.Column("content_key", sa.String(80), primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=True),
    )
    sa.Table(
        "decision_deliveries",
        meta,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("event", sa.String(20), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("state", sa.String(10), nullable=False, index=True),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_at", sa.Double, nullable=False),
        sa.Column("error", sa.Text, nullable=False),
    )
    return dict(meta.tables)


def find_url(given: str | Path | None) -> str:
    """Return the SQLAlchemy URL of a file, a PostgreSQL URL, or the default file.

    >>> find_url("postgresql://me@host/x"), find_url("log.db")
    ('postgresql+psycopg://me@host/x', 'sqlite:///log.db')
    """
    text = str(given) if given else str(home() / "decisions.db")
    for scheme in ("postgresql://", "postgres://"):
        if text.startswith(scheme):
            return "postgresql+psycopg://" + text.removeprefix(scheme)
    if "://" in text and not text.startswith(("sqlite:///", "postgresql+psycopg://")):
        raise InputError(
            f"unsupported database URL {text.split(':', 1)[0]}:…",
            hint="give a file or postgresql://…",
        )
    return text if "://" in text else f"sqlite:///{text}"


class DecisionLog:
    """A decision log in one database; it may share the database of the annotation app.

    Args:
        database: SQLite file or ``postgresql://`` URL. Default: ``decisions.db`` in the home
            folder of Memantics.
        webhooks: URLs to which decided and overturned cases are sent.
        clock: The time in seconds since 1970.
        create: Create the log if there is none; else raise InputError.
    """

    def __init__(
        self,
        database: str | Path | None = None,
        *,
        webhooks: Sequence[str] = (),
        clock: Callable[[], float] = time.time,
        create: bool = True,
    ) -> None:
        need_packages("decision logs", "annotate", "sqlalchemy")
        self.url = find_url(database)
        self.webhooks, self.clock = tuple(webhooks), clock
        if not create:
            _need_file(self.url)
        self._engine = _make_engine(self.url)
        self.tables = make_tables()
        try:
            if create:
                with self.write() as connection:
                    self.tables["decision_log"].metadata.create_all(connection)
            else:
                self._need_tables()
        except BaseException:
            self.close()
            raise

    def _need_tables(self) -> None:
        import sqlalchemy as sa

        with self.read() as connection:
            found = sa.inspect(connection).has_table("decision_log")
        if not found:
            raise InputError("the database has no decision log", hint=_START)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        import sqlalchemy as sa

        try:
            yield
        except sa.exc.DBAPIError as error:
            reason = str(error.orig).strip().splitlines()[0] if error.orig else "unknown reason"
            raise StoreError(
                f"the decision log cannot be used: {reason}",
                hint="check the file or URL, and that its server is running",
            ) from error

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a read transaction."""
        with self._explained(), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open the only write transaction; when the block ends, it is on disk or rolled back."""
        writing = self._engine.execution_options(memantics_write=True)
        with self._explained(), writing.begin() as connection:
            _lock(connection)
            yield connection

    def await_writers(self) -> None:
        """Wait for transactions that were started before, such as the last one of a killed command.

        A PostgreSQL server may still be committing it when the command is repeated.
        """
        with self.write():
            pass

    def add(
        self,
        connection: Connection,
        kind: LineKind,
        case: str,
        body: Mapping[str, JsonValue],
        *,
        contents: Sequence[StoredContent] = (),
        event: str = "",
    ) -> LogLine:
        """Append a line inside a write transaction, with its contents and outgoing webhooks."""
        import sqlalchemy as sa

        head = self.tables["decision_head"]
        known = read_head(connection, head)
        seq, prev = (1, FIRST) if known is None else (known[0] + 1, known[1])
        at = round(self.clock(), 6)
        text = orjson.dumps(dict(body), option=orjson.OPT_SORT_KEYS).decode()
        digest = hash_line(seq, kind, case, at, text, prev)
        line = {"seq": seq, "kind": kind, "case_id": case, "at": at, "body": text}
        connection.execute(
            sa.insert(self.tables["decision_log"]), {**line, "prev": prev, "hash": digest}
        )
        if known is None:
            connection.execute(sa.insert(head), {"id": 1, "seq": seq, "hash": digest})
        else:
            connection.execute(sa.update(head).where(head.c.id == 1).values(seq=seq, hash=digest))
        for content in contents:
            self._keep(connection, content)
        if event:
            self._send(connection, event, case, at, body)
        return LogLine(seq, kind, case, at, dict(body), prev, digest)

    def _keep(self, connection: Connection, content: StoredContent) -> None:
        import sqlalchemy as sa

        values = {"content_key": content.key, "text": pack_text(content.text)}
        values_all: dict[str, Any] = {**values, "expires_at": content.expires_at}
        connection.execute(sa.insert(self.tables["decision_contents"]), values_all)

    def _send(
        self,
        connection: Connection,
        event: str,
        case: str,
        at: float,
        body: Mapping[str, JsonValue],
    ) -> None:
        import sqlalchemy as sa

        said = {"event": event, "decision": case, "at": at, "data": dict(body)}
        text = orjson.dumps(said, option=orjson.OPT_SORT_KEYS).decode()
        for url in self.webhooks:
            row = {"url": url, "event": event, "body": text, "state": _WAITING}
            connection.execute(
                sa.insert(self.tables["decision_deliveries"]),
                {**row, "attempts": 0, "next_at": at, "error": ""},
            )

    def walk(self, case: str | None = None) -> Iterator[LogLine]:
        """Yield the lines in order, or those of one case."""
        import sqlalchemy as sa

        table = self.tables["decision_log"]
        query = sa.select(table).order_by(table.c.seq)
        if case is not None:
            if not is_known_form(case):
                return
            query = query.where(table.c.case_id == case)
        with self.read() as connection:
            for row in connection.execute(query).yield_per(1000):
                yield read_line(row)

    def walk_in(self, connection: Connection, case: str) -> Iterator[LogLine]:
        """Yield the lines of one case inside a transaction."""
        import sqlalchemy as sa

        table = self.tables["decision_log"]
        if is_known_form(case):
            query = sa.select(table).where(table.c.case_id == case).order_by(table.c.seq)
            yield from map(read_line, connection.execute(query).all())

    def walk_after(self, connection: Connection, seq: int) -> Iterator[LogLine]:
        """Yield the lines after a number, inside a transaction."""
        import sqlalchemy as sa

        table = self.tables["decision_log"]
        query = sa.select(table).where(table.c.seq > seq).order_by(table.c.seq)
        yield from map(read_line, connection.execute(query).yield_per(1000))

    def head(self) -> tuple[int, str]:
        """Return number and hash of the last line; note them to detect a rewritten log."""
        with self.read() as connection:
            return read_head(connection, self.tables["decision_head"]) or (0, FIRST)

    def count(self) -> int:
        """Return the number of lines."""
        import sqlalchemy as sa

        query = sa.select(sa.func.count()).select_from(self.tables["decision_log"])
        with self.read() as connection:
            return int(connection.execute(query).scalar_one())

    def read_content(self, key: str) -> str | None:
        """Return a stored text; None if it was never stored or has been deleted."""
        import sqlalchemy as sa

        table = self.tables["decision_contents"]
        query = sa.select(table.c.text).where(table.c.content_key == key)
        with self.read() as connection:
            found = connection.execute(query).scalar_one_or_none()
        return None if found is None else unpack_text(str(found))

    def read_image(self, decision: str) -> bytes | None:
        """Return the stored image of a decision; None if it was not stored or has been deleted."""
        key = name_image(decision)
        found = self.read_content(key)
        return None if found is None else read_stored_bytes(key, found)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def __enter__(self) -> DecisionLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_head(connection: Connection, table: sa.Table) -> tuple[int, str] | None:
    """Return number and hash of the last line; None if the log has none.

    Raises:
        StoreError: The head was overwritten with something else.
    """
    import sqlalchemy as sa

    row = connection.execute(sa.select(table).where(table.c.id == 1)).one_or_none()
    if row is None:
        return None
    if not isinstance(row.seq, int) or not isinstance(row.hash, str):
        raise StoreError(
            "the head (last hash) of the decision log was changed", hint="restore a backup"
        )
    return row.seq, row.hash


def read_line(row: Any) -> LogLine:
    """Read a row of the log; a body that is not JSON becomes empty, and ``verify`` reports it."""
    try:
        body = orjson.loads(row.body)
    except orjson.JSONDecodeError:
        body = {}
    found = body if isinstance(body, dict) else {}
    seq = row.seq if isinstance(row.seq, int) else 0  # SQLite stores values of any type
    return LogLine(seq, row.kind, row.case_id, row.at, found, row.prev, row.hash)


def find_start(connection: Connection, table: sa.Table) -> tuple[int, str]:
    """Return number and hash before the first line; retention records them when it deletes."""
    import sqlalchemy as sa

    query = sa.select(table.c.body).where(table.c.kind == "retention")
    rows = connection.execute(query.order_by(table.c.seq.desc())).scalars()
    for text in rows:
        try:
            body = orjson.loads(text)
            through, digest = body.get("through"), body.get("hash")
        except (orjson.JSONDecodeError, AttributeError):
            continue
        if isinstance(through, int) and isinstance(digest, str) and through:
            return through, digest
    return 0, FIRST


def apply_retention(log: DecisionLog, lines_before: float | None) -> tuple[int, int]:
    """Delete expired contents and, if asked, the oldest lines; return both numbers.

    Lines are deleted from the start of the log with their contents, up to the first line at or
    after ``lines_before`` and never the last one. A line of kind ``retention`` records the last
    deleted hash, so that the rest of the chain can be verified. Cases with an open appeal are kept,
    with all later lines.
    """
    import sqlalchemy as sa

    table, contents = log.tables["decision_log"], log.tables["decision_contents"]
    with log.write() as connection:
        expired = contents.c.expires_at <= log.clock()
        gone = connection.execute(sa.delete(contents).where(expired)).rowcount
        cut = None
        if lines_before is not None:
            kept_from = _find_kept(connection, table, lines_before)
            cut = connection.execute(
                sa.select(table.c.seq, table.c.hash)
                .where(table.c.seq < kept_from)
                .order_by(table.c.seq.desc())
                .limit(1)
            ).one_or_none()
        if not gone and cut is None:
            return 0, 0
        body: dict[str, JsonValue] = {}
        deleted = 0
        if cut is not None:
            gone += _delete_contents(connection, log.tables, cut.seq)
            old = sa.delete(table).where(table.c.seq <= cut.seq)
            deleted = connection.execute(old).rowcount
            body |= {"through": int(cut.seq), "hash": str(cut.hash), "lines": int(deleted)}
        else:
            through, digest = find_start(connection, table)
            body |= {"through": through, "hash": digest, "lines": 0}
        body["contents"] = int(gone)
        log.add(connection, "retention", "retention", body)
        return int(gone), int(deleted)


def _delete_contents(connection: Connection, tables: Mapping[str, sa.Table], last: int) -> int:
    """Delete the texts, images and statements of the lines up to a number; return how many."""
    import sqlalchemy as sa

    table, contents = tables["decision_log"], tables["decision_contents"]
    old = connection.execute(sa.select(table).where(table.c.seq <= last)).all()
    keys = {row.case_id for row in old} | {read_line(row).body.get("appeal") for row in old}
    keys |= {name_image(row.case_id) for row in old}
    gone = 0
    for key in keys - {None}:
        one = sa.delete(contents).where(contents.c.content_key == key)
        gone += connection.execute(one).rowcount
    return gone


def _find_kept(connection: Connection, table: sa.Table, before: float) -> int:
    import sqlalchemy as sa

    last = connection.execute(sa.select(sa.func.max(table.c.seq))).scalar() or 0
    recent = connection.execute(
        sa.select(sa.func.min(table.c.seq)).where(table.c.at >= before)
    ).scalar()
    ended = sa.select(table.c.case_id).where(table.c.kind.in_(("upheld", "overturned")))
    contested = sa.select(table.c.case_id).where(
        table.c.kind == "appealed", table.c.case_id.not_in(ended)
    )
    first_open = connection.execute(
        sa.select(sa.func.min(table.c.seq)).where(table.c.case_id.in_(contested))
    ).scalar()
    return int(min(one for one in (last, recent, first_open) if one is not None))


def _lock(connection: Connection) -> None:
    """Let one PostgreSQL transaction at a time append; SQLite has one writer anyway."""
    import sqlalchemy as sa

    if connection.dialect.name != "sqlite":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})


def _need_file(url: str) -> None:
    path = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite") and not path.is_file():
        raise InputError(f"no decision log at {path}", hint=_START)


def _make_engine(url: str) -> sa.Engine:
    import sqlalchemy as sa

    try:
        if not url.startswith("sqlite"):
            return sa.create_engine(url, hide_parameters=True, pool_pre_ping=True)
        path = Path(url.removeprefix("sqlite:///"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)  # the log names posts and reviewers
    except OSError as error:
        raise StoreError(f"database {path} cannot be created: {error.strerror}") from error
    except (sa.exc.ArgumentError, ImportError, ValueError):
        raise InputError(
            "the PostgreSQL URL cannot be used",
            hint="write postgresql://USER@HOST:PORT/DATABASE",
        ) from None
    engine = sa.create_engine(url, hide_parameters=True)
    sa.event.listen(engine, "connect", _set_up_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # BEGIN is sent explicitly, see _begin_sqlite
    # A damaged text is read, so that verify can name its line.
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    for pragma in (
        f"busy_timeout = {_BUSY_MS}",
        "journal_mode = WAL",
        "synchronous = FULL",  # an accepted decision survives a power failure
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Any) -> None:
    writing = connection.get_execution_options().get("memantics_write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
