"""The database engine over SQLite or PostgreSQL: short transactions, migrations, group commit.

In SQLite, waiting writers share one commit. Each writer runs inside a savepoint of a shared
transaction, one after the other, and the last one waiting commits for all. Writers are acknowledged
only after that commit, so an acknowledged answer is on disk, and a writer that fails does not
affect the others.

In PostgreSQL, transactions run in parallel and lock rows. Every transaction locks in this order,
which excludes deadlocks, and reads what it decides on after it has the lock:

1. the whole database (:func:`lock_database`): first account, new projects, login attempts;
2. the project (``queries.LOCK_PROJECT``): every change by a lead, and people who join;
3. the invitation;
4. the member (``queries.LOCK_MEMBER``): an annotator takes or answers an item;
5. the assignments of an item, by id (``queries.LOCK_ITEM``); of several items only with the lock of
   their project. Free assignments are taken with ``SKIP LOCKED``, which never waits;
6. single rows that no other lock follows: item state, draft, account, session.

All locks are ``FOR NO KEY UPDATE``: foreign keys of inserted rows lock the rows they refer to with
``FOR KEY SHARE``, which conflicts with ``FOR UPDATE``. Functions with a write transaction are
:func:`~memantics.annotation.faults.retried`, since keys can still collide. The server ends
statements and waits for locks that last too long (``TIMEOUTS``).
"""

from __future__ import annotations

import threading
import time
from collections import deque, namedtuple
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Connection, Dialect, Engine
from sqlalchemy.exc import OperationalError

from memantics.annotation.faults import DatabaseFailed, explain, explained
from memantics.annotation.liveness import Pulse, Watch
from memantics.core.errors import InputError, StoreError

# Limits of PostgreSQL per connection, in milliseconds; ``options`` of the URL may set others.
TIMEOUTS: Mapping[str, int] = {
    "statement_timeout": 30_000,
    "lock_timeout": 10_000,
    "idle_in_transaction_session_timeout": 60_000,
}
CONNECT_SECONDS = 5
_MOST = 64
_LONGEST = 0.05
_PATIENCE = 0.2
BUSY_MS = 15_000
MIGRATIONS = Path(__file__).parent / "migrations"
Bound = Mapping[str, object]
# Arbitrary keys of PostgreSQL locks: one server migrates at a time; and see lock_database.
_MIGRATION_LOCK, _DATABASE_LOCK = 5_417_233, 5_417_234


class _Turnstile:
    """A lock that serves waiting threads in order of arrival."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._queue: deque[threading.Lock] = deque()
        self._busy = False

    @property
    def crowded(self) -> bool:
        """Return whether any thread is waiting."""
        return bool(self._queue)

    def acquire(self) -> None:
        with self._guard:
            if not self._busy:
                self._busy = True
                return
            mine = threading.Lock()
            mine.acquire()
            self._queue.append(mine)
        try:
            mine.acquire()
        except BaseException:
            self._give_up(mine)
            raise

    def release(self) -> None:
        with self._guard:
            if self._queue:
                self._queue.popleft().release()
            else:
                self._busy = False

    def _give_up(self, mine: threading.Lock) -> None:
        """Leave the queue of waiting threads after an interrupt; if it is our turn, end it."""
        with self._guard:
            if mine in self._queue:
                self._queue.remove(mine)
                return
        self.release()


@dataclass(slots=True, eq=False)
class _WriteBatch:
    connection: Connection
    begun: float
    members: int = 0
    error: BaseException | None = None
    done: threading.Event = field(default_factory=threading.Event)


class GroupCommit:
    """The only writer of a SQLite file in this process; combines waiting writers in one commit."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._turn = _Turnstile()
        self._batch: _WriteBatch | None = None

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a write transaction that fails or succeeds independently of the other writers."""
        self._turn.acquire()
        batch: _WriteBatch | None = None
        try:
            batch = self._batch = self._batch or self._begin()
            batch.members += 1
            with _savepoint(batch.connection):
                yield batch.connection
        finally:
            self._leave(batch)
        self._await_commit(batch)

    def _begin(self) -> _WriteBatch:
        connection = self._engine.connect()
        try:
            connection.begin()
        except OperationalError as error:
            connection.close()
            raise StoreError(
                f"the database is locked: {error.orig}", hint="close other programs that use it"
            ) from error
        except BaseException:
            connection.close()
            raise
        return _WriteBatch(connection, time.monotonic())

    def _leave(self, batch: _WriteBatch | None) -> None:
        """Commit the batch, unless another waiting writer will commit it."""
        try:
            if batch is None:
                return
            if not _in_transaction(batch.connection):
                # SQLite rolled back the whole transaction, for example because the disk is full.
                batch.error = StoreError(
                    "the database could not be written", hint="check the free disk space"
                )
            late = time.monotonic() - batch.begun > _LONGEST
            if batch.error or late or batch.members >= _MOST or not self._turn.crowded:
                self._close(batch)
        finally:
            self._turn.release()

    def _close(self, batch: _WriteBatch) -> None:
        self._batch = None
        try:
            transaction = batch.connection.get_transaction()
            assert transaction is not None
            if batch.error is None:
                transaction.commit()
        except Exception as error:  # noqa: BLE001 - whoever waits for this commit raises it
            batch.error = error
        except BaseException as error:
            batch.error = error
            raise
        finally:
            try:
                if batch.error is not None:
                    # The transaction may still be open, so the connection must not be reused.
                    batch.connection.invalidate()
                batch.connection.close()
            finally:
                batch.done.set()

    def _await_commit(self, batch: _WriteBatch) -> None:
        while not batch.done.wait(_PATIENCE):
            # The writer that should commit was interrupted: commit here.
            self._turn.acquire()
            try:
                if self._batch is batch:
                    self._close(batch)
            finally:
                self._turn.release()
        if batch.error is not None:
            raise StoreError(f"the answer could not be saved: {batch.error}") from batch.error


@contextmanager
def _savepoint(connection: Connection) -> Iterator[None]:
    driver: Any = connection.connection.driver_connection
    driver.execute("SAVEPOINT writer")
    try:
        yield
    except BaseException:
        if driver.in_transaction:
            driver.execute("ROLLBACK TO writer")
            driver.execute("RELEASE writer")
        raise
    driver.execute("RELEASE writer")


def _in_transaction(connection: Connection) -> bool:
    driver = connection.connection.driver_connection
    return bool(getattr(driver, "in_transaction", False))


class Database:
    """Read and write transactions on one database.

    On SQLite, the writers of this process wait for a fair lock and share commits. Waiting inside
    SQLite would poll, and some writers would wait for seconds.
    """

    def __init__(self, url: str) -> None:
        self.url = normalise(url)
        self.engine = _make_engine(self.url)
        self.sqlite = self.engine.dialect.name == "sqlite"
        self._writing = self.engine.execution_options(memantics_write=True)
        self._group = GroupCommit(self._writing) if self.sqlite else None
        self._errors: type[Exception] = self.engine.dialect.loaded_dbapi.Error
        self._pulse = Pulse(self._read_schema_version)
        self._watch = Watch(self._pulse)
        if not self.sqlite:
            _watch_connections(self.engine, self._watch)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a consistent read transaction; raise DatabaseFailed for an error of the database."""
        self._refuse_frozen()
        with explained(self._errors), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a write transaction; when the block ends, it is on disk or rolled back.

        Raises:
            DatabaseFailed: The database reported an error, so the transaction was rolled back.
        """
        self._refuse_frozen()
        writing = self._group.write() if self._group else self._writing.begin()
        with explained(self._errors), writing as connection:
            yield connection

    def _refuse_frozen(self) -> None:
        if self._watch.down:
            raise DatabaseFailed("the database does not respond")

    def migrate(self) -> None:
        """Upgrade the schema to the newest revision; raise an error for an unknown revision."""
        config = _alembic_config()
        newest = ScriptDirectory.from_config(config).get_current_head()
        try:
            with self._migrating() as connection:
                if not self.sqlite:
                    allow_long(connection)
                    lock = sa.text("SELECT pg_advisory_xact_lock(:key)")
                    connection.execute(lock, {"key": _MIGRATION_LOCK})
                current = MigrationContext.configure(connection).get_current_revision()
                if current == newest:
                    return
                self._refuse_unknown(config, current)
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
        except sa.exc.DBAPIError as error:
            raise _explain(self.url, error) from error

    def _migrating(self) -> AbstractContextManager[Connection]:
        return self._group.write() if self._group else self._writing.begin()

    def schema_version(self, seconds: float = 60.0) -> str:
        """Return the schema revision of the database, or an empty string.

        Raises:
            DatabaseFailed: The database did not answer within this time.
        """
        return self._pulse.ask(seconds)

    def _read_schema_version(self) -> str:
        with explained(self._errors), self.engine.connect() as connection, connection.begin():
            return MigrationContext.configure(connection).get_current_revision() or ""

    def close(self) -> None:
        """Close all connections."""
        self._watch.close()
        self.engine.dispose()

    def _refuse_unknown(self, config: Config, current: str | None) -> None:
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        if current is not None and current not in known:
            raise StoreError(
                f"the annotation database has the format {current}, which this version cannot read",
                hint="use the version of Memantics that wrote it",
            )


class Query:
    """A SQLAlchemy Core expression that is compiled once per database and sent to the driver.

    One answer takes about a dozen small statements. SQLAlchemy's execution would cost more time
    than the database itself. Parameters must be ``bindparam`` objects, and an INSERT must name its
    columns.
    """

    __slots__ = ("_columns", "_compiled", "_expression", "_row")

    def __init__(self, expression: Any, columns: str = "") -> None:
        self._expression = expression
        self._columns = columns.split() or None
        self._compiled: dict[str, tuple[str, dict[str, Any]]] = {}
        self._row: Any = None

    def text(self, dialect: Dialect) -> tuple[str, dict[str, Any]]:
        """Return the SQL for a database, and its fixed parameters."""
        known = self._compiled.get(dialect.name)
        if known is None:
            # SQLite's driver is called with named parameters.
            named: Any = sqlite.dialect(paramstyle="named") if dialect.name == "sqlite" else dialect
            made = self._expression.compile(dialect=named, column_keys=self._columns)
            ours = {name for name, bind in made.binds.items() if bind.required}
            fixed = {name: value for name, value in made.params.items() if name not in ours}
            known = self._compiled[dialect.name] = (str(made), fixed)
        return known

    def one(self, connection: Connection, values: Bound) -> Any:
        """Return the first row, or None."""
        cursor = self._execute(connection, values)
        row = cursor.fetchone()
        return None if row is None else self._shape(cursor)._make(row)

    def all(self, connection: Connection, values: Bound) -> list[Any]:
        """Return all rows."""
        cursor = self._execute(connection, values)
        make = self._shape(cursor)._make
        return [make(row) for row in cursor.fetchall()]

    def value(self, connection: Connection, values: Bound) -> Any:
        """Return the first column of the first row, or None."""
        row = self._execute(connection, values).fetchone()
        return None if row is None else row[0]

    def run(self, connection: Connection, values: Bound) -> int:
        """Execute a change and return the number of changed rows."""
        return int(self._execute(connection, values).rowcount)

    def run_each(self, connection: Connection, rows: Sequence[Bound]) -> None:
        """Execute a change once per set of parameters; PostgreSQL gets all of them at once."""
        if len(rows) > 1 and connection.dialect.name != "sqlite":
            driver: Any = connection.connection.driver_connection
            text, fixed = self.text(connection.dialect)
            driver.cursor().executemany(text, [{**fixed, **values} for values in rows])
            return
        for values in rows:
            self._execute(connection, values)

    def _execute(self, connection: Connection, values: Bound) -> Any:
        driver: Any = connection.connection.driver_connection
        text, fixed = self.text(connection.dialect)
        return driver.execute(text, {**fixed, **values} if fixed else values)

    def _shape(self, cursor: Any) -> Any:
        if self._row is None:
            names = [column[0] for column in cursor.description]
            self._row = namedtuple("Row", names)  # type: ignore[misc]
        return self._row


def lock_database(connection: Connection) -> None:
    """Let one transaction at a time decide on the whole database; SQLite has one writer anyway."""
    if connection.dialect.name != "sqlite":
        lock = sa.text("SELECT pg_advisory_xact_lock(:key)")
        connection.execute(lock, {"key": _DATABASE_LOCK})


def allow_long(connection: Connection) -> None:
    """Let a transaction last as long as it takes: a migration, a backup, or its restoration."""
    if connection.dialect.name != "sqlite":
        for name in TIMEOUTS:
            connection.execute(sa.text(f"SET LOCAL {name} = 0"))


def insert_row(connection: Connection, table: sa.Table, values: Bound) -> int:
    """Insert a row into a table with automatic ids and return the new id."""
    key = connection.execute(sa.insert(table), dict(values)).inserted_primary_key
    assert key is not None
    return int(key[0])


def normalise(url: str) -> str:
    """Return a SQLAlchemy URL for a file path or PostgreSQL URL.

    >>> normalise("postgres://me@host/x"), normalise("a.db")
    ('postgresql+psycopg://me@host/x', 'sqlite:///a.db')
    """
    for scheme in ("postgresql://", "postgres://"):
        if url.startswith(scheme):
            return "postgresql+psycopg://" + url.removeprefix(scheme)
    if "://" not in url:
        url = f"sqlite:///{url}"
    if url in ("sqlite:///", "sqlite:///:memory:"):
        raise InputError(
            "an in-memory database is not supported", hint="give a file, such as annotate.db"
        )
    if not url.startswith(("sqlite:///", "postgresql+psycopg://")):
        raise InputError(
            f"unsupported database URL {url.split(':', 1)[0]}:…",
            hint="give a file, sqlite:///FILE or postgresql://…",
        )
    return url


def newest_schema() -> str:
    """Return the schema revision that this version of the code uses."""
    return ScriptDirectory.from_config(_alembic_config()).get_current_head() or ""


def _alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _make_engine(url: str) -> Engine:
    # Parameters may contain password hashes, so error messages hide them.
    hidden = {"hide_parameters": True}
    if not url.startswith("sqlite"):
        return _make_postgres_engine(url)
    path = Path(url.removeprefix("sqlite:///"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The file contains password hashes, so only its owner may read it.
        path.touch(mode=0o600)
    except OSError as error:
        raise StoreError(f"database {path} cannot be created: {error.strerror}") from error
    # One connection per request thread, since opening one is slower than a query.
    engine = sa.create_engine(url, pool_size=50, **hidden)
    sa.event.listen(engine, "connect", _set_up_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _make_postgres_engine(url: str) -> Engine:
    try:
        asked = sa.make_url(url).query
        given = {} if "connect_timeout" in asked else {"connect_timeout": CONNECT_SECONDS}
        engine = sa.create_engine(
            url,
            hide_parameters=True,
            pool_size=10,
            max_overflow=30,
            pool_timeout=CONNECT_SECONDS,
            connect_args=given,
        )
    except (sa.exc.ArgumentError, ImportError, ValueError) as error:
        # The message of the parser may contain the password.
        reason = f": {error}" if isinstance(error, ImportError) else ""
        raise InputError(
            f"the PostgreSQL URL cannot be used{reason}",
            hint="write postgresql://USER@HOST:PORT/DATABASE, an IPv6 address as [::1]",
        ) from error
    chosen = str(asked.get("options", ""))
    limits = "; ".join(f"SET {name} = {ms}" for name, ms in TIMEOUTS.items() if name not in chosen)

    def set_up(connection: Any, _record: object) -> None:
        if limits:
            connection.execute(limits)
            connection.commit()

    sa.event.listen(engine, "connect", set_up)
    return engine


def _watch_connections(engine: Engine, watch: Watch) -> None:
    """Register connections in use with the watch, and replace closed ones before their use.

    SQLAlchemy's own check (``pool_pre_ping``) runs before any event, so that nobody would notice
    that it hangs.
    """
    dialect = engine.dialect

    def take(connection: Any, record: Any, _proxy: object) -> None:
        watch.begin(id(record), connection)
        try:
            dialect.do_ping(connection)
        except dialect.loaded_dbapi.Error as error:
            raise sa.exc.InvalidatePoolError from error

    def give_back(_connection: Any, record: Any) -> None:
        watch.end(id(record))

    def drop(_connection: Any, record: Any, _error: object) -> None:
        watch.end(id(record))

    sa.event.listen(engine, "checkout", take)
    sa.event.listen(engine, "checkin", give_back)
    sa.event.listen(engine, "invalidate", drop)


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # BEGIN is sent explicitly, see _begin_sqlite
    for pragma in (
        f"busy_timeout = {BUSY_MS}",
        "journal_mode = WAL",
        "synchronous = FULL",  # committed answers survive a power failure
        "foreign_keys = ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    writing = connection.get_execution_options().get("memantics_write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _explain(url: str, error: sa.exc.DBAPIError) -> StoreError:
    # The URL may contain a password, so the message names only the database type.
    reason = str(error.orig).splitlines()[0] if error.orig else "unknown reason"
    if getattr(error.orig, "sqlstate", None) == "42501":
        return explain(error)
    file = url.startswith("sqlite")
    return StoreError(
        f"the {'SQLite' if file else 'PostgreSQL'} database cannot be opened: {reason}",
        hint="give an annotation database or a new file"
        if file
        else "check the URL, and that the server is running",
    )
